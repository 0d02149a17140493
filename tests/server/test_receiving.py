import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from resumes.settings import Settings
from server.connections import MIB, Connections
from server.heads import HEAD_BYTES, Refused
from server.receiving import OVER, SLICE_BYTES, Flow, Receiving

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


class Wire:
    """A transport that only knows whether it is read from."""

    def __init__(self) -> None:
        self.is_read = True

    def get_extra_info(self, _: str) -> None:
        return None

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True


class Client(Receiving):
    """A connection that notes what it was refused with."""

    refused: Refused | None = None

    def _refuse(self, refused: Refused) -> None:
        self.refused = refused
        self._reading = OVER


@pytest.fixture
def speak(settings: Settings) -> Callable[..., tuple[Client, list[Any]]]:
    """What becomes of data: the connection that received it, and the requests that were run."""

    def run(*data: bytes, **changes: object) -> tuple[Client, list[Any]]:
        return asyncio.run(_speak(settings.model_copy(update=changes), data))

    return run


async def _speak(settings: Settings, data: tuple[bytes, ...]) -> tuple[Client, list[Any]]:
    requests: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        requests.append(scope)
        await asyncio.Event().wait()

    config = Config(app, log_config=None, lifespan="off", ws="none", interface="asgi3")
    config.load()
    state = {"connections": Connections(settings)}
    client = Client(config=config, server_state=ServerState(), app_state=state)
    transport: Any = Wire()
    client.connection_made(transport)
    for part in data:
        client.data_received(part)
    await asyncio.sleep(0)
    for task in client.tasks:
        task.cancel()
    return client, requests


def test_a_head_is_refused_as_soon_as_it_is_too_large(speak: Any) -> None:
    slices = HEAD_BYTES // SLICE_BYTES + 3
    data = [HEAD + b"X: "] + [b"x" * SLICE_BYTES] * slices

    allowed, _ = speak(*data[: slices - 2])
    refused, requests = speak(*data)

    assert allowed.refused is None
    assert refused.refused.status == 431
    assert requests == []


def test_a_head_that_came_in_parts_is_measured_when_it_is_whole(speak: Any) -> None:
    head = HEAD + b"X: " + b"x" * (HEAD_BYTES - len(HEAD)) + b"\r\n\r\n"

    refused, requests = speak(*[head[at : at + 10_000] for at in range(0, len(head), 10_000)])

    assert refused.refused.status == 431
    assert requests == []


def test_what_is_long_between_chunks_is_refused(speak: Any) -> None:
    client, _ = speak(CHUNKED, b"1;a=", *[b"x" * SLICE_BYTES] * 2)

    assert client.refused.status == 400


def test_a_long_body_in_chunks_is_not_refused_for_its_chunks(speak: Any) -> None:
    client, _ = speak(CHUNKED, *[b"1;a\r\nx\r\n" * 10_000] * 5)

    assert client.refused is None


def test_a_header_behind_a_body_is_not_one_of_the_request(speak: Any) -> None:
    client, requests = speak(CHUNKED + b"0\r\nX-Late: a\r\n\r\n")

    assert client.refused is None
    assert [name for name, _ in requests[0]["headers"]] == [b"host", b"transfer-encoding"]


def test_offers_of_another_protocol_are_read_as_requests(speak: Any) -> None:
    offer = b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\nx"

    client, _ = speak((HEAD + offer) * 1_000)

    assert client.refused is None
    assert len(client.pipeline) == 999


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (HEAD + b"Transfer-Encoding: gzip\r\n\r\n", 501),
    ],
)
def test_what_follows_a_refused_request_is_not_run(speak: Any, data: bytes, status: int) -> None:
    client, requests = speak(data + HEAD + b"\r\n", HEAD + b"\r\n")

    assert client.refused.status == status
    assert requests == []


def test_bodies_are_held_up_to_the_memory_for_them(speak: Any) -> None:
    head = HEAD + b"Content-Length: 9999999\r\n\r\n"
    limits = {"body_memory_bytes": MIB, "max_body_bytes": 1_024}

    within, _ = speak(head, b"x" * MIB, **limits)
    beyond, _ = speak(head, b"x" * (MIB + 1_025), **limits)

    assert within.refused is None
    assert within._all.body_bytes == MIB
    assert beyond.refused.status == 503


def test_nothing_is_read_while_requests_wait_behind_others() -> None:
    async def run() -> list[bool]:
        wire, pipeline = Wire(), deque([object()])
        flow = Flow(wire, pipeline)
        flow.pause_reading()
        flow.resume_reading()
        seen = [wire.is_read]
        pipeline.clear()
        flow.resume_reading()
        return [*seen, wire.is_read]

    assert asyncio.run(run()) == [False, True]
