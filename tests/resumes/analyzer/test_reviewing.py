"""What there was to say about a resume that is stored by now."""

import json
from typing import Any

import pytest

from resumes.analyzer import Format, parse, stored_warnings

DOCUMENTS: list[dict[str, Any]] = [
    {"header": {"name": "Ada"}, "sections": {}},
    {"header": {"name": "Ada", "shoe": 38}, "sections": {}, "odd": [1, 2]},
    {
        "header": {},
        "sections": {
            "experiences": {
                "column": 0,
                "items": [{"position": "X", "dateRange": {"fromMonth": 12}, "hat": True}, {}],
            }
        },
    },
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_they_are_those_of_its_creation(document: dict[str, Any]) -> None:
    created = parse(json.dumps(document).encode())

    assert stored_warnings(created.document) == created.warnings


def test_what_the_service_set_is_no_warning() -> None:
    document = {
        "header": {},
        "sections": {"skills": {"column": 0, "items": [{"title": "X", "record": "me"}]}},
    }
    created = parse(json.dumps(document).encode())

    assert created.warnings
    assert stored_warnings(created.document) == ()


def test_section_types_that_were_admitted_once_are_still() -> None:
    document = {"header": {}, "sections": {"hobbies": {"column": 0, "items": [{"any": 1}]}}}
    admitted = Format(extra_section_types=frozenset({"hobbies"}))

    assert stored_warnings(parse(json.dumps(document).encode(), admitted).document) == ()


def test_a_document_that_was_stored_without_a_field_of_the_service_has_no_warning_for_it() -> None:
    # Fields that the service sets may be added to the format after it was stored.
    stored = {"header": {}, "sections": {"skills": {"column": 0, "items": [{"title": "X"}]}}}

    assert stored_warnings(json.dumps(stored)) == ()
