"""What can be asked for below the API."""

import pytest
from starlette.exceptions import HTTPException

from resumes.store.keys import KeyHolder
from server.exchange import Exchange
from server.operations import Operation, Operations


async def run(exchange: Exchange, holder: KeyHolder) -> None:
    """Nothing: these tests run no operation."""


OPERATIONS = Operations(
    of_all={"GET": Operation("list", run), "POST": Operation("create", run)},
    of_one={"DELETE": Operation("delete", run)},
)


@pytest.mark.parametrize(
    ("path", "method", "name"),
    [
        ("/api/v1/resumes", "GET", "list"),
        ("/api/v1/resumes", "POST", "create"),
        ("/api/v1/resumes/x", "DELETE", "delete"),
    ],
)
def test_an_operation_is_found_by_path_and_method(path: str, method: str, name: str) -> None:
    assert OPERATIONS.get(path, method).name == name


@pytest.mark.parametrize(
    "path", ["/api/v1", "/api/v1/", "/api/v1/resumes/", "/api/v1/resumes/a/b", "/api/v1/x"]
)
def test_another_path_is_404(path: str) -> None:
    with pytest.raises(HTTPException) as refusal:
        OPERATIONS.get(path, "GET")

    assert refusal.value.status_code == 404


def test_another_method_is_405_and_says_which_there_are() -> None:
    with pytest.raises(HTTPException) as refusal:
        OPERATIONS.get("/api/v1/resumes", "PUT")

    assert refusal.value.status_code == 405
    assert refusal.value.headers == {"Allow": "GET, POST"}
