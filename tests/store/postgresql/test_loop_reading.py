"""Reads of an event loop: many in one message, fresh, and never waited for by the loop."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import Integer, bindparam, func, literal_column, select

from resumes.errors import StatementRefused, StoreUnavailable
from resumes.store import Store, api_keys, creation, open_store, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.creation import Created
from resumes.store.postgresql import connection, loop_reader
from resumes.store.postgresql.connection import CONNECT_TIMEOUT_S
from resumes.store.statements import Prepared
from tests.support.postgres import (
    OURS,
    Server,
    count_sessions,
    find_backends,
    frozen,
    pooled,
    stopped,
)
from tests.support.proxy import Fault, Proxy
from tests.support.resumes import a_resume
from tests.support.store.builders import MakeAccount, add_resumes
from tests.support.waiting import wait_until

__all__ = ["pooled"]  # a fixture

NOW = Prepared(select(func.clock_timestamp(), literal_column("1")))
BACKEND = Prepared(select(func.pg_backend_pid()))
SLEEP = Prepared(select(func.pg_backend_pid(), func.pg_sleep(bindparam("seconds", type_=Integer))))
DIVIDE = Prepared(select(literal_column("1") / bindparam("by", type_=Integer)))


LENGTH = Prepared(select(func.length(bindparam("text"))))


async def only(store: Store, statement: Prepared, **values: Any) -> Any:
    """The first value of the first row."""
    rows = await store.fetch_async(statement, **values)
    return rows[0][0]


def is_sleeping(server: Server) -> bool:
    return bool(server.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"))


async def until(condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(wait_until, condition)


def test_who_asks_the_same_in_one_round_shares_the_rows_and_who_asks_later_has_newer_ones(
    store: Store,
) -> None:
    async def ask() -> list[Any]:
        return [await asyncio.gather(*(only(store, NOW) for _ in range(3))) for _ in range(2)]

    first, second = asyncio.run(ask())
    assert len(set(first)) == len(set(second)) == 1
    assert first[0] < second[0]


def test_what_is_asked_while_others_wait_for_an_answer_is_asked_anew(
    store: Store, server: Server
) -> None:
    async def ask() -> None:
        early = asyncio.create_task(only(store, SLEEP, seconds=1))
        await until(lambda: is_sleeping(server))
        began = asyncio.create_task(only(store, NOW))
        late = [await only(store, NOW), await began]
        assert early.done()
        assert late[0] == late[1]

    asyncio.run(ask())


def test_who_has_created_reads_it_whoever_else_reads_and_writes(
    store: Store, ana: AccountInfo
) -> None:
    async def create_and_read(number: int) -> None:
        last = ""
        for _ in range(5):
            new = a_resume(f"Ada {number}")
            outcome = await creation.create_async(store, ana.id, new)
            assert isinstance(outcome, Created)
            page = await stored_resumes.list_page_async(store, ana.id, cursor=last, limit=100)
            assert outcome.id in [entry.id for entry in page.entries]
            assert (
                await stored_resumes.get_resume_async(store, ana.id, outcome.id)
            ).entry.id == outcome.id
            last = outcome.id

    async def all_of_them() -> None:
        await asyncio.gather(*map(create_and_read, range(16)))

    asyncio.run(all_of_them())


def test_hundreds_of_different_questions_have_their_own_answers_also_if_they_fill_the_socket(
    store: Store, ana: AccountInfo
) -> None:
    made = add_resumes(store, ana, 100)
    secret = api_keys.create_key(store, "ana").secret
    sizes = range(400_000, 400_040)

    async def ask() -> None:
        pages = [stored_resumes.list_page_async(store, ana.id, cursor=id_, limit=1) for id_ in made]
        holders = [api_keys.authenticate_async(store, secret) for _ in range(100)]
        lengths = [only(store, LENGTH, text="x" * size) for size in sizes]
        found, known, told = await asyncio.gather(
            asyncio.gather(*pages), asyncio.gather(*holders), asyncio.gather(*lengths)
        )
        assert [page.entries[0].id for page in found[:99]] == made[1:]
        assert found[99] == stored_resumes.Page([], None)
        assert {holder.account_id for holder in known} == {ana.id}
        assert told == [*sizes]

    asyncio.run(ask())


def test_a_statement_that_is_refused_or_cannot_be_read_fails_no_other(
    store: Store, ana: AccountInfo
) -> None:
    unreadable = Prepared(select(literal_column("'infinity'::timestamptz")))

    async def ask() -> list[Any]:
        questions: list[Awaitable[Any]] = [
            only(store, DIVIDE, by=0),
            only(store, unreadable),
            only(store, DIVIDE, by=1),
            stored_resumes.list_page_async(store, ana.id),
        ]
        async with asyncio.timeout(loop_reader.DEADLINE_S / 2):
            return await asyncio.gather(*questions, return_exceptions=True)

    refused, unread, quotient, page = asyncio.run(ask())
    assert isinstance(refused, StatementRefused)
    assert "DivisionByZero (22012)" in refused.message
    assert isinstance(unread, StatementRefused)
    assert (quotient, page) == (1, stored_resumes.Page([], None))


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_connection_that_is_lost_is_opened_again_and_nobody_notices(
    store: Store, server: Server, is_asked: bool
) -> None:
    async def ask() -> None:
        first = await only(store, BACKEND)
        question = asyncio.create_task(only(store, SLEEP, seconds=1)) if is_asked else None
        if is_asked:
            await until(lambda: is_sleeping(server))
        await asyncio.to_thread(server.execute, f"SELECT pg_terminate_backend({first})")
        assert await (question or only(store, BACKEND)) != first

    asyncio.run(ask())


def test_s17_a_frozen_server_holds_up_no_event_loop_and_is_not_waited_for(
    store: Store, server: Server, ana: AccountInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_reader, "DEADLINE_S", 60.0)

    async def ask() -> None:
        await stored_resumes.list_page_async(store, ana.id)
        with frozen(server):
            question = asyncio.create_task(stored_resumes.list_page_async(store, ana.id))
            rounds = 0
            async with asyncio.timeout(loop_reader.DEADLINE_S / 2):
                while not question.done():
                    await asyncio.sleep(0.01)
                    rounds += 1
                assert rounds > 1
                for again in (question, stored_resumes.list_page_async(store, ana.id)):
                    with pytest.raises(StoreUnavailable, match="is not responding"):
                        await again
        # A connection that was being opened may still be answered, or not.
        async with asyncio.timeout(loop_reader.DEADLINE_S):
            while True:
                with contextlib.suppress(StoreUnavailable):
                    page = await stored_resumes.list_page_async(store, ana.id)
                    break
        assert page == stored_resumes.Page([], None)

    asyncio.run(ask())


@pytest.mark.slow
def test_a_server_that_is_not_there_fails_no_read_while_another_one_is(
    url: str, server: Server
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the kernel accepts, and nobody answers
        hosts = f"127.0.0.1:{silent.getsockname()[1]},127.0.0.1:{server.port}"

        async def ask(store: Store) -> None:
            first = await only(store, BACKEND)
            await asyncio.to_thread(server.execute, f"SELECT pg_terminate_backend({first})")
            assert await only(store, BACKEND) != first

        with open_store(f"postgresql://resumes@{hosts}/{url.rpartition('/')[2]}") as store:
            asyncio.run(ask(store))


def test_reads_that_wait_for_a_lost_server_connect_together(
    url: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_reader, "DEADLINE_S", 2.0)
    monkeypatch.setattr(connection, "RETRY_DELAYS_S", (0.2,))  # at least half of it

    async def ask(other: Store, proxy: Proxy) -> None:
        proxy.choose = lambda: Fault(up_bytes=0)
        began_s, before = time.monotonic(), proxy.count
        lengths = (only(other, LENGTH, text="x" * size) for size in range(200))
        late = (asyncio.sleep(size / 200) for size in range(200))

        async def ask_late(wait: Awaitable[None]) -> None:
            await wait
            await only(other, NOW)

        found = await asyncio.gather(*lengths, *map(ask_late, late), return_exceptions=True)
        assert {type(each) for each in found} == {StoreUnavailable}
        assert proxy.count - before <= (time.monotonic() - began_s) / 0.1 + 1

    with Proxy(url) as proxy:
        through = url.replace(urlsplit(url).netloc, f"resumes@127.0.0.1:{proxy.port}")
        with open_store(through) as other:
            asyncio.run(ask(other, proxy))


@pytest.mark.slow
def test_through_a_pooler_reads_wait_for_a_server_that_takes_over(
    pooled: str, server: Server
) -> None:
    async def ask(store: Store) -> None:
        assert await only(store, NOW)
        with frozen(server):
            question = asyncio.create_task(only(store, NOW))
            frozen_s = time.monotonic()
            await until(lambda: time.monotonic() > frozen_s + CONNECT_TIMEOUT_S + 2)
            assert not question.done()
        assert await question

    with open_store(pooled) as store:
        asyncio.run(ask(store))


def test_s17_a_frozen_connection_is_replaced_by_another_one(
    store: Store, an_account: MakeAccount
) -> None:
    several = [an_account(name) for name in "abc"]

    async def ask() -> None:
        backend = await only(store, BACKEND)
        with stopped(backend):
            pages = (stored_resumes.list_page_async(store, account.id) for account in several)
            async with asyncio.timeout(loop_reader.DEADLINE_S / 2):
                assert await asyncio.gather(*pages) == [stored_resumes.Page([], None)] * 3
            assert await only(store, BACKEND) != backend

    asyncio.run(ask())


@pytest.mark.timing
def test_s17_a_loop_that_ends_while_its_server_is_frozen_waits_for_no_answer(
    url: str, server: Server, ana: AccountInfo
) -> None:
    async def ask(store: Store, stack: contextlib.ExitStack) -> None:
        await stored_resumes.list_page_async(store, ana.id)
        stack.enter_context(frozen(server))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await stored_resumes.list_page_async(store, ana.id)

    with open_store(url) as store, contextlib.ExitStack() as stack:
        began_s = time.monotonic()
        asyncio.run(ask(store, stack))
        assert time.monotonic() - began_s < 3  # psycopg would wait 5 s for its cancellation


def test_a_slow_query_is_asked_again_on_a_connection_of_its_own(
    store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_reader, "ANSWER_TIMEOUTS_S", (0.5, 60.0))

    async def ask() -> None:
        first = await only(store, BACKEND)
        slow = asyncio.create_task(only(store, SLEEP, seconds=60))
        await until(lambda: bool({*find_backends(server, "wait_event = 'PgSleep'")} - {first}))
        assert await only(store, BACKEND) not in find_backends(server, "wait_event = 'PgSleep'")
        assert not slow.done()
        slow.cancel()

    asyncio.run(ask())


def test_who_does_not_wait_any_more_takes_nothing_from_those_who_do(store: Store) -> None:
    async def ask() -> None:
        gone, still = (asyncio.create_task(only(store, NOW)) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        assert await still
        assert gone.cancelled()

    asyncio.run(ask())


def test_loops_come_and_go_and_a_closed_store_has_no_connection(url: str) -> None:
    async def ask(store: Store) -> None:
        assert await only(store, NOW)

    with open_store(url) as store:
        for _ in range(3):
            asyncio.run(ask(store))
        assert count_sessions(url, OURS) <= 2
    wait_until(lambda: count_sessions(url, OURS) == 0)


def test_what_is_asked_when_the_store_is_closed_is_refused(url: str, server: Server) -> None:
    async def ask() -> None:
        store = open_store(url)
        waiting = asyncio.create_task(only(store, SLEEP, seconds=60))
        unsent = asyncio.create_task(only(store, NOW))
        await until(lambda: is_sleeping(server))
        store.close()
        async with asyncio.timeout(loop_reader.DEADLINE_S):
            for question in (waiting, unsent, only(store, NOW)):
                with pytest.raises(StoreUnavailable, match="closed"):
                    await question

    asyncio.run(ask())
