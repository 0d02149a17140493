"""Writes of threads and of event loops: together, in turn, and with a true outcome."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import psycopg
import pytest
from sqlmodel import Session

from resumes.errors import NotFound, OutcomeUnknown, StatementRefused, StoreUnavailable
from resumes.store import Store, accounts, creation, idempotency, open_store
from resumes.store.accounts import AccountInfo
from resumes.store.locks import FileLock
from resumes.store.sqlite.driver import dbapi
from resumes.store.write_queue import LoopWriter, Write, apply_changes
from tests.support.resumes import a_resume
from tests.support.store.builders import (
    Of,
    Seen,
    at_commit,
    batched,
    end_thread,
    free_maximum,
    hold_writer,
    listed_ids,
    path_of,
    refusing,
    rename,
    write_batched,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.engines

IN_TURNS = pytest.mark.sqlite("its turns, which event loops take part in")


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


async def write_batched_async(store: Store, apply: Any, request: Of, **options: Any) -> Any:
    return await store.commit_async(batched(apply, request, **options))


def together(
    store: Store, threads: Sequence[Callable[[], Any]], loops: Sequence[Callable[[], Any]]
) -> list[Any]:
    """What each call came to, of threads and of coroutines, whose writes waited together."""

    async def scenario() -> list[Any]:
        go_on, holder = await asyncio.to_thread(hold_writer, store)
        calls = [
            *(asyncio.create_task(asyncio.to_thread(call)) for call in threads),
            *(asyncio.create_task(call()) for call in loops),
        ]
        await until(lambda: store.write_queue.waiting == len(calls))
        go_on.set()
        await asyncio.to_thread(holder.join)
        return await asyncio.gather(*calls, return_exceptions=True)

    return asyncio.run(scenario())


def changed(
    store: Store, changes: Sequence[Callable[[Session], Any]], *, in_loop: int = 0
) -> list[Any]:
    """What each change of one account came to, the last ones written by coroutines."""
    at = len(changes) - in_loop
    return together(
        store,
        [partial(store.write, change, account_id="a") for change in changes[:at]],
        [partial(store.write_async, change, account_id="a") for change in changes[at:]],
    )


@pytest.mark.parametrize("way", ["thread", "loop"])
def test_s7_a_bad_row_or_a_refusal_takes_nothing_of_its_batch_along(store: Store, way: str) -> None:
    def refuse(session: Session) -> None:
        rename("x")(session)
        raise NotFound("refused")

    # Of one account, so in one transaction.
    changes = [rename("x"), rename("bad"), refuse, rename("x")]
    first, bad, refused, last = changed(store, changes, in_loop=4 if way == "loop" else 0)
    assert (first, last) == ("X", "X")
    assert isinstance(bad, StatementRefused)
    assert isinstance(refused, NotFound)
    assert free_maximum(store) == 7


def test_writes_of_an_account_that_wait_together_are_committed_together(store: Store) -> None:
    seen = Seen()
    requests = [Of("a", number) for number in range(20)]
    threads = [partial(write_batched, store, seen, request) for request in requests[:3]]
    loops = [partial(write_batched_async, store, seen, request) for request in requests[3:]]
    assert together(store, threads, loops) == requests
    assert seen.sizes == [20]


def test_s7_writer_threads_outlive_unexpected_errors(store: Store) -> None:
    def broken(error: type[BaseException], _: Session) -> str:
        raise error

    with pytest.raises(ZeroDivisionError):
        store.write(partial(broken, ZeroDivisionError))
    if store.path is not None:
        with pytest.raises(OutcomeUnknown):
            store.write(partial(broken, SystemExit))  # which ends other threads
    with pytest.raises(AssertionError, match="one result for each"):
        write_batched(store, lambda connection, requests: [], Of("a"))
    assert store.write(rename("next")) == "NEXT"
    assert store.write_queue.is_alive


def test_s7_writer_threads_outlive_errors_of_their_own_error_handler(store: Store) -> None:
    failures: list[str] = []

    def fail(*_: object) -> NoReturn:
        failures.append(threading.current_thread().name)
        raise SystemExit

    log = logging.getLogger("resumes.store")
    log.addFilter(fail)
    store.write_queue.observe = fail
    try:
        for _ in range(8):
            assert store.write(rename("next")) == "NEXT"
        # Twice each: what was observed, and what was logged of that.
        wait_until(lambda: len(failures) == 16)
        assert store.write(rename("next")) == "NEXT"
    finally:
        log.removeFilter(fail)
    store.check_threads()
    assert store.write_queue.is_alive


def test_a_store_that_has_lost_a_writer_thread_says_so(store: Store) -> None:
    store.check_threads()
    thread = store.write_queue.threads[0]
    end_thread(store, thread)
    with pytest.raises(StoreUnavailable, match=rf"has ended.*\({thread.name}\)"):
        store.check_threads()
    with pytest.raises(StoreUnavailable, match="has ended, so nothing was done"):
        store.write(rename("next"))
    store.close()
    store.check_threads()


# Deadlines, and callers that go away


@pytest.mark.parametrize("way", ["thread", "loop"])
def test_s3_a_write_that_is_overdue_before_its_turn_is_not_done(store: Store, way: str) -> None:
    seen = Seen()

    async def scenario() -> None:
        go_on, holder = await asyncio.to_thread(hold_writer, store)
        late = (
            write_batched_async(store, seen, Of("late"), deadline_s=0.02)
            if way == "loop"
            else asyncio.to_thread(write_batched, store, seen, Of("late"), deadline_s=0.02)
        )
        with pytest.raises(StoreUnavailable, match="busy"):
            await late
        go_on.set()
        await asyncio.to_thread(holder.join)
        assert await write_batched_async(store, seen, Of("next"), deadline_s=60) == Of("next")

    asyncio.run(scenario())
    assert seen.batches == [[Of("next")]]


def test_a_commit_that_takes_too_long_is_unknown_to_a_loop(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resumes.store.write_queue.COMMIT_GRACE_S", 0.02)
    go_on = threading.Event()

    async def scenario() -> None:
        with pytest.raises(OutcomeUnknown):
            await store.write_async(rename("x"), deadline_s=0.5)
        go_on.set()

    with at_commit(lambda: go_on.wait(60)):
        asyncio.run(scenario())
        assert store.write(rename("next")) == "NEXT"


def test_a_cancelled_waiter_that_was_not_taken_writes_nothing_and_hurts_no_other(
    store: Store, ana: AccountInfo
) -> None:
    async def leave() -> None:
        task = asyncio.create_task(creation.create_async(store, ana.id, a_resume()))
        await asyncio.sleep(0)
        task.cancel()

    async def scenario() -> None:
        go_on, holder = await asyncio.to_thread(hold_writer, store)
        await leave()
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.to_thread(holder.join)

    asyncio.run(scenario())
    assert store.write(rename("next")) == "NEXT"
    assert listed_ids(store, ana) == []
    for _ in range(3):
        asyncio.run(leave())  # its event loop ends with it
    assert store.write(rename("alive")) == "ALIVE"


def test_s7_a_waiter_that_is_gone_does_not_keep_the_others_from_their_answers(store: Store) -> None:
    async def scenario() -> list[asyncio.Future[Any]]:
        loop = asyncio.get_running_loop()
        writer = LoopWriter(store.write_queue, loop)
        waiters: list[asyncio.Future[Any]] = [loop.create_future() for _ in range(3)]
        writes = [Write(apply_changes, rename("x"), deadline=0) for _ in waiters]
        writer._pending.update(zip(writes, waiters, strict=True))
        for write in writes:
            write.outcome = "first"
        waiters[0].cancel()
        await asyncio.to_thread(writer.deliver, writes)
        async with asyncio.timeout(10):
            await asyncio.gather(*waiters[1:])
        writes[1].outcome = "second"  # what was told stays what it is
        return waiters

    gone, *others = asyncio.run(scenario())
    assert gone.cancelled()
    assert [one.result() for one in others] == ["first", "first"]


# Commits that fail


@pytest.mark.parametrize("way", ["thread", "loop"])
def test_s2_a_failed_commit_is_proved_gone_by_a_later_one_and_doubles_nothing(
    store: Store, ana: AccountInfo, way: str
) -> None:
    failures = iter([OSError("input/output error")])

    def fail_once() -> None:
        for error in failures:
            raise error

    with at_commit(fail_once):
        if way == "loop":
            outcome = asyncio.run(creation.create_async(store, ana.id, a_resume()))
        else:
            (outcome,) = creation.create(store, ana.id, [a_resume()])
    assert next(failures, None) is None
    assert isinstance(outcome, creation.Created)
    assert listed_ids(store, ana) == [outcome.id]


def test_s7_a_row_that_the_database_refuses_concerns_its_own_write_alone(
    store: Store, ana: AccountInfo
) -> None:
    def create(name: str) -> Callable[[], Any]:
        return lambda: creation.create_async(store, ana.id, a_resume(name))

    with refusing(store):
        names = ["Ada", "Refused", "Bo", "Refused", "Cy"]
        outcomes = together(store, [], [create(name) for name in names])
        made = [one for one in outcomes if isinstance(one, creation.Created)]
        refused = [one for one in outcomes if isinstance(one, StatementRefused)]
        assert (len(made), len(refused)) == (3, 2), outcomes
        assert all("refused the values" in one.message for one in refused)
        with pytest.raises(StatementRefused):
            creation.create(store, ana.id, [a_resume("Ada"), a_resume("Refused")])
        assert listed_ids(store, ana) == sorted(one.id for one in made)
        assert accounts.list_wrong(store) == []
    assert isinstance(creation.create(store, ana.id, [a_resume("Refused")])[0], creation.Created)


# Turns, and the end


@IN_TURNS
def test_where_another_process_has_the_lock_the_thread_waits_for_it(store: Store) -> None:
    seen = Seen()
    other = FileLock(path_of(store).with_name(f"{path_of(store).name}.writer"))
    assert other.acquire(timeout_s=1)

    async def scenario() -> Any:
        task = asyncio.create_task(write_batched_async(store, seen, Of("late")))
        await asyncio.sleep(0.1)
        assert seen.sizes == []
        other.release()
        return await task

    assert asyncio.run(scenario()) == Of("late")
    assert seen.threads == ["store-writer"]
    other.close()


def test_s9_nothing_is_written_while_writes_are_paused_and_all_of_it_afterwards(
    store: Store,
) -> None:
    seen = Seen()

    async def scenario() -> list[Any]:
        with store.write_queue.paused():
            loop = asyncio.create_task(write_batched_async(store, seen, Of("loop")))
            thread = asyncio.create_task(
                asyncio.to_thread(write_batched, store, seen, Of("thread"))
            )
            await until(lambda: store.write_queue.waiting == 2)
            await asyncio.sleep(0.1)
            assert seen.sizes == []
        async with asyncio.timeout(30):
            return list(await asyncio.gather(loop, thread))

    assert asyncio.run(scenario()) == [Of("loop"), Of("thread")]


@pytest.mark.parametrize("ways", [["loop", "thread"], ["loop"], ["thread"]], ids="-".join)
def test_what_waits_when_the_store_closes_is_written_and_nothing_after_it(
    url: str, ways: list[str]
) -> None:
    store = open_store(url)

    async def scenario() -> list[Any]:
        go_on, holder = await asyncio.to_thread(hold_writer, store)
        calls = [
            asyncio.create_task(
                asyncio.to_thread(store.write, rename(way))
                if way == "thread"
                else store.write_async(rename(way))
            )
            for way in ways
        ]
        await until(lambda: store.write_queue.waiting == len(ways))
        closing = asyncio.create_task(asyncio.to_thread(store.close))
        await until(lambda: not store.write_queue.is_alive)
        go_on.set()
        answers = list(await asyncio.gather(*calls))
        await closing
        await asyncio.to_thread(holder.join)
        with pytest.raises(StoreUnavailable):
            await store.write_async(rename("too late"))
        return answers

    assert asyncio.run(scenario()) == [way.upper() for way in ways]
    with pytest.raises(StoreUnavailable, match="closed"):
        store.write(rename("too late"))


# Event loops wait for nobody


def test_an_event_loop_never_waits_for_a_network(store: Store, url: str, ana: AccountInfo) -> None:
    if store.path is not None:
        pytest.skip("a store in a file has no network")

    async def scenario() -> int:
        with psycopg.connect(url) as other:
            other.execute("LOCK TABLE idempotency IN ACCESS EXCLUSIVE MODE")
            pruning = asyncio.create_task(idempotency.prune_async(store))
            await asyncio.sleep(0.1)
            assert not pruning.done()  # and yet the loop goes on
            other.rollback()
        return await pruning

    assert asyncio.run(scenario()) == 0


@pytest.mark.timing
@pytest.mark.sqlite("its file")
def test_a_loop_goes_on_while_somebody_writes_without_the_file_lock(store: Store) -> None:
    other = dbapi.connect(str(path_of(store)), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    pauses: list[float] = []

    async def tick() -> None:
        while True:
            began_s = time.monotonic()
            await asyncio.sleep(0.01)
            pauses.append(time.monotonic() - began_s)

    async def scenario() -> Any:
        ticking = asyncio.create_task(tick())
        writing = asyncio.create_task(store.write_async(rename("x")))
        await asyncio.sleep(1)
        other.close()
        answer = await writing
        ticking.cancel()
        return answer

    assert asyncio.run(scenario()) == "X"
    assert max(pauses) < 0.5
