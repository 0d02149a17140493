"""Threads that read for the event loop."""

import asyncio
import threading
import time

import pytest

from resumes.errors import StoreIncompatible, StoreUnavailable
from server.readers import Readers, read_until

LOST = StoreUnavailable("lost")


def test_a_visit_is_made_in_a_thread_and_is_told_its_end() -> None:
    readers = Readers(deadline_s=30)

    async def visit() -> tuple[float, threading.Thread]:
        return await readers.run(lambda ends_at: (ends_at, threading.current_thread()))

    began_s = time.monotonic()
    ends_at, thread = asyncio.run(visit())
    readers.close()

    assert 30 <= ends_at - began_s < 40
    assert thread is not threading.main_thread()


def test_what_a_visit_raises_is_raised() -> None:
    def fail(_: float) -> None:
        raise StoreIncompatible("newer")

    readers = Readers()
    with pytest.raises(StoreIncompatible):
        asyncio.run(readers.run(fail))
    readers.close()


def test_when_every_thread_is_held_up_who_waits_is_told_at_the_deadline_and_the_loop_goes_on() -> (
    None
):
    release = threading.Event()
    begun: list[str] = []
    readers = Readers(threads=1, deadline_s=0.2)

    def hang(_: float) -> None:
        begun.append("first")
        release.wait(30)

    async def ask() -> list[BaseException | None]:
        first = asyncio.create_task(readers.run(hang))
        second = asyncio.create_task(readers.run(lambda _: begun.append("second")))
        return list(await asyncio.gather(first, second, return_exceptions=True))

    outcomes = asyncio.run(ask())
    release.set()
    readers.close()

    assert [type(one) for one in outcomes] == [StoreUnavailable, StoreUnavailable]
    # Nobody waits for its outcome any more, so it is not even begun.
    assert begun == ["first"]


def test_no_more_threads_are_used_than_there_are() -> None:
    readers = Readers(threads=3)

    async def ask() -> set[str]:
        return set(
            await asyncio.gather(
                *(readers.run(lambda _: threading.current_thread().name) for _ in range(50))
            )
        )

    assert 1 <= len(asyncio.run(ask())) <= 3
    readers.close()


def test_a_read_that_loses_its_connection_is_tried_again() -> None:
    outcomes: list[StoreUnavailable | str] = [LOST, LOST, "page"]

    def read() -> str:
        outcome = outcomes.pop(0)
        if isinstance(outcome, StoreUnavailable):
            raise outcome
        return outcome

    assert read_until(time.monotonic() + 30, read) == "page"


@pytest.mark.timing
def test_a_read_is_not_tried_again_when_no_time_is_left() -> None:
    tries = []

    def read() -> None:
        tries.append(time.monotonic())
        raise LOST

    ends_at = time.monotonic() + 0.2
    with pytest.raises(StoreUnavailable):
        read_until(ends_at, read)

    assert len(tries) > 1
    assert max(tries) < ends_at
    with pytest.raises(StoreUnavailable):
        read_until(time.monotonic(), read)


def test_what_trying_again_does_not_mend_is_raised_at_once() -> None:
    tries = []

    def read() -> None:
        tries.append(1)
        raise StoreIncompatible("newer")

    with pytest.raises(StoreIncompatible):
        read_until(time.monotonic() + 30, read)
    assert len(tries) == 1
