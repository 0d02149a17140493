import asyncio
from collections.abc import Callable

import pytest

from server.outgoing import Outgoing


class Wire:
    """A transport that notes what was done with it, and sends nothing."""

    def __init__(self, *, is_gone: bool = False, has_eof: bool = True) -> None:
        self.done: list[bytes | str] = []
        self.unsent_bytes = 0
        self._is_gone = is_gone
        self._has_eof = has_eof

    def is_closing(self) -> bool:
        return self._is_gone

    def write(self, data: bytes) -> None:
        self.done.append(data)
        self.unsent_bytes += len(data)

    def close(self) -> None:
        self.done.append("close")

    def can_write_eof(self) -> bool:
        return self._has_eof

    def write_eof(self) -> None:
        self.done.append("eof")

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes


def after(wire: Wire, act: Callable[[Outgoing], None]) -> Outgoing:
    """The sending half of a connection, a turn of the event loop after this was done with it."""

    async def run() -> Outgoing:
        outgoing = Outgoing(wire, asyncio.get_running_loop())
        act(outgoing)
        await asyncio.sleep(0)
        return outgoing

    return asyncio.run(run())


def answer(outgoing: Outgoing) -> None:
    outgoing.write(b"HTTP/1.1 200 OK")
    outgoing.write(b"\r\n\r\n")


def answer_and_close(outgoing: Outgoing) -> None:
    answer(outgoing)
    outgoing.close()


def linger_and_close(outgoing: Outgoing) -> None:
    outgoing.linger()
    answer_and_close(outgoing)


def test_what_is_written_in_a_turn_is_sent_at_once() -> None:
    wire = Wire()

    after(wire, answer)

    assert wire.done == [b"HTTP/1.1 200 OK\r\n\r\n"]


def test_a_connection_is_closed_behind_what_was_written() -> None:
    wire = Wire()

    outgoing = after(wire, answer_and_close)

    assert wire.done == [b"HTTP/1.1 200 OK\r\n\r\n", "close"]
    assert outgoing.is_closing()


@pytest.mark.parametrize(("has_eof", "end"), [(True, "eof"), (False, "close")])
def test_one_that_lingers_is_closed_by_half_where_that_can_be(*, has_eof: bool, end: str) -> None:
    wire = Wire(has_eof=has_eof)

    outgoing = after(wire, linger_and_close)

    assert wire.done == [b"HTTP/1.1 200 OK\r\n\r\n", end]
    assert outgoing.is_closing()


def test_a_client_that_is_gone_before_its_answer_troubles_nobody() -> None:
    wire = Wire(is_gone=True)

    after(wire, answer)

    assert wire.done == []


def test_a_client_that_is_gone_before_a_lingering_close_troubles_nobody() -> None:
    wire = Wire(is_gone=True)

    def linger(outgoing: Outgoing) -> None:
        outgoing.linger()
        outgoing.close()

    after(wire, linger)

    assert wire.done == []


def test_what_the_system_has_taken_is_counted() -> None:
    wire = Wire()
    outgoing = after(wire, answer)

    wire.unsent_bytes = 5

    assert outgoing.unsent_bytes == 5
    assert outgoing.sent_bytes == len(b"HTTP/1.1 200 OK\r\n\r\n") - 5
