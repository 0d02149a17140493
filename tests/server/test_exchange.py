import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from starlette.exceptions import HTTPException

from resumes.errors import InvalidResume, Issue, NotFound
from server.exchange import Exchange, find_request_id
from server.responses import STATUSES


def sent_by(answer: Callable[[Exchange], Awaitable[None]], *headers: tuple[bytes, bytes]) -> Any:
    """What leaves when the exchange of a request with these headers is answered."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def run() -> None:
        await answer(Exchange({"headers": headers}, None, send))  # type: ignore[arg-type]  # never received

    asyncio.run(run())
    return sent


def test_the_status_in_the_body_is_the_status_of_the_answer() -> None:
    for error in (NotFound("No such resume"), InvalidResume([Issue("title", "Bad")])):
        start, body = sent_by(partial(Exchange.respond_error, error=error))

        assert json.loads(body["body"])["status"] == start["status"] == STATUSES[error.code]
        assert (b"content-length", b"%d" % len(body["body"])) in start["headers"]


def test_errors_of_http_alone_keep_their_headers() -> None:
    error = HTTPException(405, headers={"Allow": "GET"})
    start, body = sent_by(lambda exchange: exchange.respond_http_error(error))

    assert (b"allow", b"GET") in start["headers"]
    assert json.loads(body["body"])["error"] == "Method Not Allowed"


def test_an_answer_bears_the_id_of_its_request_in_header_and_error_body() -> None:
    start, body = sent_by(
        lambda exchange: exchange.respond_error(NotFound("No such resume")),
        (b"x-request-id", b"mine-1"),
    )
    assert (b"x-request-id", b"mine-1") in start["headers"]
    assert json.loads(body["body"])["requestId"] == "mine-1"


def test_an_answer_that_somebody_else_composed_bears_it_too() -> None:
    message = {"type": "http.response.start", "status": 204, "headers": []}
    (start,) = sent_by(lambda exchange: exchange.send(message), (b"x-request-id", b"mine-1"))
    assert start["headers"] == [(b"x-request-id", b"mine-1")]


@pytest.mark.parametrize("value", [b"a", b"A.b_c-9", b"x" * 64])
def test_a_request_id_of_the_form_is_kept(value: bytes) -> None:
    assert find_request_id([(b"x-request-id", value)]) == value.decode()


@pytest.mark.parametrize("value", [b"", b"x" * 65, b"a b", b"a\x1b", "ä".encode(), b"a\n"])
def test_another_request_id_is_replaced(value: bytes) -> None:
    made = find_request_id([(b"x-request-id", value)])
    assert len(made) == 16
    assert find_request_id([]) != made
