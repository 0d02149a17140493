from collections.abc import Callable

import pytest

from resumes.analyzer import DEFAULT_FORMAT
from server.docs_page import ASSETS, POLICY, SWAGGER_UI, description_routes
from server.openapi import document_bytes
from tests.server.builders import Client

PATHS = [route.path for route in description_routes(DEFAULT_FORMAT)]


@pytest.fixture
def stranger(a_client: Callable[..., Client]) -> Client:
    """A client without a key."""
    return a_client("")


@pytest.mark.parametrize("path", PATHS)
def test_what_describes_the_api_needs_no_key(stranger: Client, path: str) -> None:
    answer = stranger.request("GET", path, headers=[])
    assert answer.status_code == 200
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert int(answer.headers["Content-Length"]) == len(answer.content)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["HEAD", "POST", "OPTIONS"])
def test_it_can_only_be_got(stranger: Client, path: str, method: str) -> None:
    answer = stranger.request(method, path, headers=[])
    assert answer.status_code == 405
    assert answer.headers["Allow"] == "GET"


def test_the_document_is_that_of_the_format_that_is_accepted(
    a_client: Callable[..., Client],
) -> None:
    plain, extended = a_client(""), a_client("", extra_section_types=frozenset({"hobbies"}))
    assert plain.request("GET", "/openapi.json").content == document_bytes()
    assert b'"hobbies"' in extended.request("GET", "/openapi.json").content


def test_the_page_may_load_nothing_but_what_the_service_has(stranger: Client) -> None:
    answer = stranger.request("GET", "/docs", headers=[])
    policy = answer.headers["Content-Security-Policy"]
    assert policy == POLICY
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_a_browser_keeps_only_what_has_a_version_in_its_path(stranger: Client) -> None:
    for path in PATHS:
        kept = stranger.request("GET", path, headers=[]).headers["Cache-Control"]
        assert ("immutable" in kept) == (SWAGGER_UI in path)


@pytest.mark.parametrize(
    "path", ["/docs/", "/docs/README.md", "/docs/../app.py", "/docs/docs.html"]
)
def test_no_other_file_is_given_out(stranger: Client, path: str) -> None:
    assert stranger.request("GET", path, headers=[]).status_code == 404


def test_the_licences_of_what_is_not_ours_lie_beside_it() -> None:
    for name in ("LICENSE", "NOTICE", "swagger-ui-bundle.js.LICENSE.txt"):
        assert (ASSETS / SWAGGER_UI / name).read_text(encoding="utf-8")
    assert SWAGGER_UI in (ASSETS / "README.md").read_text(encoding="utf-8")
