import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, text

from resumes.errors import OutcomeUnknown, StoreUnavailable
from resumes.store import Store, creating, listing, open_store, soon
from resumes.store.accounts import AccountInfo
from resumes.store.locks import FileLock
from resumes.store.plans import list_plans
from resumes.store.soon import SoonWriter
from resumes.store.sqlite import lane
from resumes.store.sqlite.driver import dbapi
from resumes.store.writes import Write
from tests.resumes.builders import a_resume
from tests.resumes.store.builders import (
    Busy,
    dialect_of,
    free_maximum,
    hold_lane,
    rename,
    sqlite_of,
)

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


class Seen:
    """A write that notes its batches: how large, and in which thread they were applied."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.threads: list[str] = []

    def __call__(self, _: Connection, requests: Sequence[Any]) -> Sequence[Any]:
        self.sizes.append(len(requests))
        self.threads.append(threading.current_thread().name)
        return requests


def soon_writer(store: Store, *, commit_grace_s: float = 20) -> SoonWriter:
    return SoonWriter(store.lane, asyncio.get_running_loop(), commit_grace_s=commit_grace_s)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


@pytest.mark.sqlite("its turns, which event loops take part in")
def test_the_loop_applies_what_waits_together_and_the_thread_commits_it(store: Store) -> None:
    seen = Seen()

    async def scenario() -> list[Any]:
        return await asyncio.gather(*(store.write_soon(seen, number) for number in range(20)))

    assert asyncio.run(scenario()) == list(range(20))
    assert seen.sizes == [20]
    assert seen.threads == [threading.main_thread().name]


@pytest.mark.sqlite("its turns, which event loops take part in")
def test_what_comes_while_a_batch_is_committed_makes_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, go_on = Seen(), threading.Event()
    dialect = dialect_of(store)
    really = dialect.do_commit

    def slowly(connection: Any) -> None:
        go_on.wait(60)
        really(connection)

    monkeypatch.setattr(dialect, "do_commit", slowly)

    async def scenario() -> None:
        first = asyncio.create_task(store.write_soon(seen, 0))
        await until(lambda: seen.sizes)
        more = [asyncio.create_task(store.write_soon(seen, number)) for number in range(5)]
        await until(lambda: store.lane.waiting == 5)
        go_on.set()
        await asyncio.gather(first, *more)

    asyncio.run(scenario())
    assert seen.sizes == [1, 5]
    assert set(seen.threads) == {threading.main_thread().name}


@pytest.mark.sqlite("its lock file")
def test_where_another_process_has_the_lock_the_thread_waits_for_it(store: Store) -> None:
    seen = Seen()
    other = FileLock(sqlite_of(store).path.with_name(f"{sqlite_of(store).path.name}.lane"))
    assert other.acquire(wait_s=1)

    async def scenario() -> Any:
        task = asyncio.create_task(store.write_soon(seen, "late"))
        await asyncio.sleep(0.1)
        assert seen.sizes == []
        other.release()
        return await task

    assert asyncio.run(scenario()) == "late"
    assert seen.threads == ["store-lane"]
    other.close()


def add_plan(connection: Connection, names: Sequence[str]) -> list[str]:
    """A write that no other one waits for, whatever the machine is doing."""
    for name in names:
        connection.execute(
            text("INSERT INTO plans (name, api_listing) VALUES (:name, false)"), {"name": name}
        )
    return [name.upper() for name in names]


def test_writes_of_threads_and_loops_meet(store: Store) -> None:
    of_threads = [f"t{number}" for number in range(40)]
    of_loops = [f"l{number}" for number in range(40)]

    async def scenario() -> list[Any]:
        threads = [asyncio.to_thread(store.write, add_plan, name) for name in of_threads]
        loops = [store.write_soon(add_plan, name) for name in of_loops]
        async with asyncio.timeout(20):
            return await asyncio.gather(*threads, *loops)

    assert asyncio.run(scenario()) == [name.upper() for name in of_threads + of_loops]
    assert {plan.name for plan in list_plans(store)} >= {*of_threads, *of_loops}


def test_s7_one_bad_row_of_a_loop_does_not_fail_the_rest_of_its_batch(store: Store) -> None:
    async def scenario() -> list[Any]:
        requests = ("a", "bad", "c")
        return await asyncio.gather(
            *(store.write_soon(rename, request) for request in requests), return_exceptions=True
        )

    first, bad, last = asyncio.run(scenario())
    assert (first, last) == ("A", "C")
    assert isinstance(bad, StoreUnavailable)


def test_s2_a_failed_commit_of_a_loop_is_proved_gone_by_a_later_one(
    store: Store, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = an_account()
    dialect = dialect_of(store)
    really, failures = dialect.do_commit, iter([True])

    def fail_once(connection: Any) -> None:
        if next(failures, False):
            raise OSError("input/output error")
        really(connection)

    monkeypatch.setattr(dialect, "do_commit", fail_once)
    outcome = asyncio.run(creating.create_soon(store, account.id, a_resume()))
    assert isinstance(outcome, creating.Created)
    assert [e.id for e in listing.list_page(store, account.id).entries] == [outcome.id]


def test_s3_a_write_of_a_loop_that_is_overdue_before_its_turn_is_not_done(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soon, "LOOK_AFTER_S", 0.01)
    seen = Seen()

    async def scenario() -> None:
        go_on, holder = await asyncio.to_thread(hold_lane, store)
        with pytest.raises(StoreUnavailable, match="busy"):
            await store.write_soon(seen, "late", deadline_s=0.02)
        go_on.set()
        await asyncio.to_thread(holder.join)
        assert await store.write_soon(seen, "next") == "next"

    asyncio.run(scenario())
    assert seen.sizes == [1]


def test_a_commit_that_takes_too_long_is_unknown(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soon, "LOOK_AFTER_S", 0.01)
    go_on = threading.Event()
    dialect = dialect_of(store)
    really = dialect.do_commit

    def slowly(connection: Any) -> None:
        go_on.wait(60)
        really(connection)

    monkeypatch.setattr(dialect, "do_commit", slowly)

    async def scenario() -> None:
        writer = soon_writer(store, commit_grace_s=0.02)
        outcome = await writer.write(rename, "x", deadline_s=1.0)
        go_on.set()
        assert isinstance(outcome, OutcomeUnknown)

    asyncio.run(scenario())
    assert store.write(rename, "next") == "NEXT"


def test_s7_a_waiter_that_is_gone_does_not_keep_the_others_from_their_answers(
    store: Store,
) -> None:
    async def scenario() -> list[asyncio.Future[None]]:
        writer, loop = soon_writer(store), asyncio.get_running_loop()
        waiters: list[asyncio.Future[None]] = [loop.create_future() for _ in range(3)]
        writes = [Write(rename, "x", deadline=0, mailbox=writer, waiter=one) for one in waiters]
        waiters[0].cancel()
        await asyncio.to_thread(writer.deliver, writes)
        async with asyncio.timeout(10):
            await asyncio.gather(*waiters[1:])
        return waiters

    gone, *others = asyncio.run(scenario())
    assert gone.cancelled()
    assert all(other.done() and not other.cancelled() for other in others)


def test_s9_a_loop_writes_nothing_while_the_lane_is_left_and_goes_on_afterwards(
    store: Store,
) -> None:
    seen = Seen()

    async def scenario() -> Any:
        with store.lane.left():
            task = asyncio.create_task(store.write_soon(seen, "later"))
            await asyncio.sleep(0.1)
            assert seen.sizes == []
        async with asyncio.timeout(10):
            return await task

    assert asyncio.run(scenario()) == "later"


def test_what_a_loop_had_waiting_when_the_store_closes_is_written(url: str) -> None:
    store = open_store(url)
    answers: list[Any] = []

    async def scenario() -> None:
        go_on, holder = await asyncio.to_thread(hold_lane, store)
        task = asyncio.create_task(store.write_soon(rename, "waiting"))
        await until(lambda: store.lane.waiting)
        go_on.set()
        await asyncio.to_thread(store.close)
        answers.append(await task)
        await asyncio.to_thread(holder.join)
        with pytest.raises(StoreUnavailable):
            await store.write_soon(rename, "too late")

    asyncio.run(scenario())
    assert answers == ["WAITING"]


def test_a_cancelled_waiter_that_was_not_taken_writes_nothing(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()

    async def scenario() -> None:
        go_on, holder = await asyncio.to_thread(hold_lane, store)
        task = asyncio.create_task(creating.create_soon(store, account.id, a_resume()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        await asyncio.to_thread(holder.join)

    asyncio.run(scenario())
    assert listing.list_page(store, account.id).entries == []


def test_an_event_loop_that_ended_does_not_hurt_the_lane(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()

    async def leave() -> None:
        task = asyncio.create_task(creating.create_soon(store, account.id, a_resume()))
        await asyncio.sleep(0)
        task.cancel()

    for _ in range(3):
        asyncio.run(leave())
    assert store.write(rename, "alive") == "ALIVE"


@pytest.mark.sqlite("its turns, which event loops take part in")
def test_what_was_applied_and_not_handed_over_is_rolled_back_and_unknown(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = free_maximum(store)

    def fail(*_: object) -> None:
        raise MemoryError

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        with monkeypatch.context() as patched:
            patched.setattr(lane, "_Begun", fail)
            with pytest.raises(OutcomeUnknown):
                await store.write_soon(rename, "lost")

    asyncio.run(scenario())
    assert free_maximum(store) == before
    assert store.write(rename, "next") == "NEXT"


def hold_beside(store: Store) -> Callable[[], None]:
    """Somebody writes who does not use the lane; until this is called, once or more often."""
    if store.path is None:
        busy = Busy(store)
        busy.acquire()
        return busy.release
    other = dbapi.connect(str(store.path), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    end: Callable[[], None] = other.close
    return end


@pytest.mark.timing
def test_a_loop_goes_on_while_somebody_beside_the_lane_writes(store: Store) -> None:
    go_on = hold_beside(store)
    pauses: list[float] = []

    async def tick() -> None:
        while True:
            began_s = time.monotonic()
            await asyncio.sleep(0.01)
            pauses.append(time.monotonic() - began_s)

    async def scenario() -> Any:
        ticking = asyncio.create_task(tick())
        writing = asyncio.create_task(store.write_soon(rename, "x"))
        await asyncio.sleep(1)
        go_on()
        answer = await writing
        ticking.cancel()
        return answer

    try:
        assert asyncio.run(scenario()) == "X"
    finally:
        go_on()
    assert max(pauses) < 0.5


def test_an_outcome_that_was_told_stays_what_it_is(store: Store) -> None:
    async def scenario() -> Any:
        writer, loop = soon_writer(store), asyncio.get_running_loop()
        waiter: asyncio.Future[Any] = loop.create_future()
        write = Write(rename, "x", deadline=0, mailbox=writer, waiter=waiter)
        write.outcome = "first"
        writer._wake([write])
        write.outcome = "second"
        return await waiter

    assert asyncio.run(scenario()) == "first"
