import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from server import limits
from server.exchange import Exchange
from server.limits import BodyTooLarge, read_body, refuse_too_large, run_aside
from tests.server.builders import RESUMES, Client, a_resume, error_of

MAX_BYTES = 2 * 1024 * 1024


# docs/api.md, Create: the type of the body


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON;charset=x",
     "application/vnd.api+json", "application/json ; a=b"],
)  # fmt: skip
def test_json_content_types_are_accepted(client: Client, content_type: str) -> None:
    answer = client.post(b"{}", Content_Type=content_type)

    assert answer.status_code == 400


@pytest.mark.parametrize(
    "content_type",
    ["", "text/plain", "text/json", "application/jsonp", "application/x-www-form-urlencoded",
     "multipart/form-data; boundary=json", "application/+json", "json", "application/json,text/x"],
)  # fmt: skip
def test_missing_and_other_content_types_are_415(client: Client, content_type: str) -> None:
    answer = client.post(b"{}", Content_Type=content_type)

    assert answer.status_code == 415
    assert error_of(answer) == {
        "error": "Unsupported content type: send application/json",
        "status": 415,
    }


def test_two_content_types_are_415(client: Client) -> None:
    headers = [("Authorization", f"Bearer {client.key}")]
    headers += [("Content-Type", "application/json"), ("Content-Type", "application/json")]

    assert client.request("POST", content=b"{}", headers=headers).status_code == 415


@pytest.mark.parametrize(("encoding", "status"), [("gzip", 415), ("identity", 400)])
def test_a_content_encoding_but_identity_is_415(client: Client, encoding: str, status: int) -> None:
    assert client.post(b"{}", Content_Encoding=encoding).status_code == status


# docs/api.md, Create: the largest body


def test_a_declared_length_over_the_limit_is_413_at_once(client: Client) -> None:
    answer = client.post(b"x" * (MAX_BYTES + 1))

    assert answer.status_code == 413
    assert answer.headers["Connection"] == "close"
    assert error_of(answer) == {
        "error": "Resume too large: the limit is 2097152 bytes",
        "status": 413,
    }


def test_an_undeclared_length_is_counted(client: Client) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b" " * 1024 * 1024

    headers = {"Authorization": f"Bearer {client.key}", "Content-Type": "application/json"}

    assert client.request("POST", content=chunks(), headers=headers).status_code == 413


def test_a_body_of_exactly_the_limit_is_read(client: Client) -> None:
    assert client.create(b" " * MAX_BYTES).status_code == 400


def test_the_limit_is_a_setting(a_client: Any, client: Client) -> None:
    strict = a_client(client.key, max_body_bytes=1_024)

    assert strict.create(a_resume(title="x" * 1_024)).status_code == 413


def test_a_length_of_absurd_digits_is_413(client: Client) -> None:
    headers = {"Authorization": f"Bearer {client.key}", "Content-Length": "9" * 5_000}

    assert client.request("POST", RESUMES, headers=headers).status_code == 413


class Sender:
    """A client that sends `chunk_bytes` for ever, or nothing for 0."""

    def __init__(self, chunk_bytes: int) -> None:
        self.sent: list[Any] = []
        self.received_bytes = 0
        self.answered_after_bytes = -1
        self._chunk = b"x" * chunk_bytes

    @property
    def exchange(self) -> Exchange:
        """Its request, and what it is answered with."""
        return Exchange({"headers": []}, self.receive, self.send)

    async def receive(self) -> Any:
        if not self._chunk:
            await asyncio.Event().wait()
        self.received_bytes += len(self._chunk)
        return {"type": "http.request", "body": self._chunk, "more_body": True}

    async def send(self, message: Any) -> None:
        if message.get("body"):
            self.answered_after_bytes = self.received_bytes
        self.sent.append(message)


def test_after_a_413_at_most_16_mib_more_are_thrown_away() -> None:
    sender = Sender(1024 * 1024)

    error = BodyTooLarge(limit_bytes=MAX_BYTES)
    asyncio.run(refuse_too_large(sender.exchange, error))

    assert sender.answered_after_bytes == 0
    assert sender.received_bytes == 16 * 1024 * 1024
    assert [message.get("more_body") for message in sender.sent] == [None, True, None]


def test_after_a_413_a_silent_client_is_waited_for_2_s_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert limits.DRAIN_S == 2
    monkeypatch.setattr(limits, "DRAIN_S", 0.01)
    sender = Sender(0)

    error = BodyTooLarge(limit_bytes=MAX_BYTES)
    asyncio.run(refuse_too_large(sender.exchange, error))

    assert sender.sent[-1] == {"type": "http.response.body", "body": b""}


def test_nothing_is_waited_for_when_the_large_body_is_whole() -> None:
    sender = Sender(0)

    async def whole() -> Any:
        return {"type": "http.request", "body": b"x" * 11, "more_body": False}

    with pytest.raises(BodyTooLarge) as caught:
        asyncio.run(read_body(whole, max_bytes=10))
    asyncio.run(refuse_too_large(sender.exchange, caught.value))

    assert sender.received_bytes == 0


# What takes long


def test_work_is_done_aside_by_two_threads_at_most() -> None:
    begun, may_end = threading.Semaphore(0), threading.Event()

    def work(number: int) -> int:
        begun.release()
        may_end.wait(60)
        return number

    async def run() -> tuple[bool, list[int]]:
        tasks = [asyncio.create_task(run_aside(work, number)) for number in range(3)]
        for _ in range(2):
            await asyncio.to_thread(begun.acquire, timeout=60)
        has_third_begun = begun.acquire(blocking=False)
        may_end.set()
        return has_third_begun, await asyncio.gather(*tasks)

    assert asyncio.run(run()) == (False, [0, 1, 2])


def test_what_goes_wrong_aside_is_raised() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(run_aside(int, "x"))
