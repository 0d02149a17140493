import re

import pytest

from resumes.store.listing import DEFAULT_LIMIT
from server.idempotency import FORM
from server.openapi.parameters import PARAMETERS, parameter_references


@pytest.mark.parametrize("key", ["x", "~" * 255, "", "x" * 256, "a b", "caf\u00e9"])
def test_an_idempotency_key_has_the_form_that_the_service_asks_for(key: str) -> None:
    described = re.search(PARAMETERS["IdempotencyKey"]["schema"]["pattern"], key)
    assert bool(described) == bool(FORM.fullmatch(key.encode()))


def test_the_page_size_is_any_integer_as_it_is_brought_inside() -> None:
    assert PARAMETERS["Limit"]["schema"] == {"type": "integer", "default": DEFAULT_LIMIT}


def test_parameters_are_described_once_for_all() -> None:
    assert parameter_references("Id") == [{"$ref": "#/components/parameters/Id"}]
