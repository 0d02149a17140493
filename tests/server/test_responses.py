import asyncio
import json
from typing import Any

from starlette.exceptions import HTTPException

from resumes.errors import ErrorCode, InvalidResume, Issue, NotFound
from server.responses import STATUSES, error_body, respond_error, respond_http_error


def test_the_status_table_covers_every_error_code() -> None:
    assert set(STATUSES) == set(ErrorCode)
    assert all(400 <= status < 600 for status in STATUSES.values())


def test_an_error_body_is_error_and_status_and_issues_only_if_any() -> None:
    assert json.loads(error_body(404, "No")) == {"error": "No", "status": 404}
    assert json.loads(error_body(400, "No", [Issue("a", "b")]))["issues"] == [
        {"path": "a", "message": "b"}
    ]


def sent_by(respond: Any, error: Exception) -> list[Any]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(respond(send, error))
    return sent


def test_the_status_in_the_body_is_the_status_of_the_answer() -> None:
    for error in (NotFound("No such resume"), InvalidResume([Issue("title", "Bad")])):
        start, body = sent_by(respond_error, error)

        assert json.loads(body["body"])["status"] == start["status"] == STATUSES[error.code]
        assert (b"content-length", b"%d" % len(body["body"])) in start["headers"]


def test_errors_of_http_alone_keep_their_headers() -> None:
    start, body = sent_by(respond_http_error, HTTPException(405, headers={"Allow": "GET"}))

    assert (b"allow", b"GET") in start["headers"]
    assert json.loads(body["body"]) == {"error": "Method Not Allowed", "status": 405}
