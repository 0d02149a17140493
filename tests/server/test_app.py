import asyncio
import json
from typing import Any

import pytest

from resumes.errors import StoreIncompatible
from resumes.store import Store, creating, listing
from tests.server.builders import RESUMES, Client, a_resume

# docs/api.md, Errors: which comes first, and their shape


def test_under_the_api_401_comes_before_404_and_405(client: Client) -> None:
    for path in ("/api/v1", "/api/v1/", "/api/v1/nothing", RESUMES, f"{RESUMES}/x"):
        for method in ("GET", "PUT", "OPTIONS"):
            assert client.request(method, path, headers={}).status_code == 401


@pytest.mark.parametrize(
    "path", ["/api/v1", "/api/v1/", "/api/v1/nothing", f"{RESUMES}/", f"{RESUMES}/a/b"]
)
def test_an_unknown_path_is_404_and_no_redirect(client: Client, path: str) -> None:
    answer = client.request("GET", path)

    assert answer.status_code == 404
    assert answer.json()["error"] == "Not Found"
    assert answer.json()["status"] == 404


@pytest.mark.parametrize("path", ["/", "/healthz/", "/doc", "/api", "/api/v10/resumes", "//api/v1"])
def test_outside_the_api_no_key_is_needed_for_a_404(client: Client, path: str) -> None:
    answer = client.request("GET", path, headers={})

    assert answer.status_code == 404
    assert answer.json()["error"] == "Not Found"
    assert answer.json()["status"] == 404


@pytest.mark.parametrize(
    ("path", "allowed"), [(RESUMES, "GET, POST"), (f"{RESUMES}/x", "GET, DELETE")]
)
def test_another_method_is_405_with_allow(client: Client, path: str, allowed: str) -> None:
    for method in ("HEAD", "OPTIONS", "PUT", "PATCH", "BREW"):
        answer = client.request(method, path)

        assert answer.status_code == 405
        assert answer.headers["Allow"] == allowed
        if method != "HEAD":  # whose answers have no body
            assert answer.json()["error"] == "Method Not Allowed"


def test_401_comes_before_413_and_415(client: Client) -> None:
    headers = {"Content-Length": "99999999", "Content-Type": "text/plain"}

    assert client.request("POST", headers=headers).status_code == 401


def test_413_comes_before_415_and_415_before_400(client: Client) -> None:
    assert client.post(b"x" * (2 * 1024 * 1024 + 1), Content_Type="text/plain").status_code == 413
    assert client.post(b"no json", Content_Type="text/plain").status_code == 415


def test_answers_are_json_that_no_cache_keeps(client: Client) -> None:
    for answer in (client.page(), client.create(a_resume()), client.get("x")):
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "Server" not in answer.headers


def test_an_unexpected_exception_is_500_with_an_id_that_is_logged_whole(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("the cause")

    monkeypatch.setattr(listing, "list_page", fail)

    answer = client.page()

    assert answer.status_code == 500
    assert answer.json()["status"] == 500
    words, _, error_id = answer.json()["error"].rpartition(" ")
    assert words == "Internal error"
    assert len(error_id) == 16
    assert error_id in caplog.text
    assert "ValueError: the cause" in caplog.text


def test_a_request_that_there_was_no_memory_for_may_have_been_done(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(listing, "list_page", fail)

    answer = client.page()

    assert answer.status_code == 503
    assert answer.json()["error"].startswith("Outcome unknown")
    assert "Traceback" not in caplog.text


def test_a_damaged_store_is_an_internal_error_and_names_no_path(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreIncompatible("/secret/path is damaged")

    monkeypatch.setattr(listing, "get_resume", fail)

    answer = client.get("x")

    assert answer.status_code == 500
    assert answer.json()["error"].startswith("Internal error ")
    assert "/secret/path is damaged" in caplog.text


def a_scope(client: Client, method: str = "POST") -> dict[str, Any]:
    headers = [(b"authorization", f"Bearer {client.key}".encode())]
    headers.append((b"content-type", b"application/json"))
    return {
        "type": "http",
        "method": method,
        "path": RESUMES,
        "query_string": b"",
        "headers": headers,
    }


def test_a_client_that_leaves_before_its_body_is_whole_creates_nothing(
    client: Client, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    half = {"type": "http.request", "body": json.dumps(a_resume()).encode(), "more_body": True}

    sent = client.call(a_scope(client), half, {"type": "http.disconnect"})

    assert sent == []
    assert client.page().json()["resumes"] == []
    assert caplog.records == []


def test_a_request_cut_off_by_a_stop_is_503(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cancelled(*_: object) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(creating, "create_soon", cancelled)

    answer = client.create(a_resume())

    assert answer.status_code == 503
    assert answer.headers["Connection"] == "close"
    assert "shutting down" in answer.json()["error"]


def test_the_store_is_closed_at_the_end_of_the_lifespan(client: Client, store: Store) -> None:
    scope = {"type": "lifespan", "state": {}}

    sent = client.call(scope, {"type": "lifespan.startup"}, {"type": "lifespan.shutdown"})

    said = [message["type"] for message in sent]
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert not store.lane.is_alive
