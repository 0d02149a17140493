import asyncio
import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import text

from resumes.errors import ErrorCode, InvalidArgument
from resumes.store import Store, accounts, creating
from resumes.store.accounts import AccountInfo
from server.idempotency import InFlight, Turns, find_key, pruning
from tests.resumes.builders import a_resume
from tests.server.builders import SteppingClock

pytestmark = pytest.mark.engines

NAME = b"idempotency-key"
VISIBLE = st.binary(min_size=1, max_size=300).map(lambda raw: bytes(33 + byte % 94 for byte in raw))

# The header's form


def test_a_request_may_come_without_a_key() -> None:
    assert find_key([(b"host", b"resumes.test"), (b"x-idempotency-key", b"k")]) is None


@given(VISIBLE.filter(lambda value: len(value) <= 255))
@example(b"!")
@example(b"~" * 255)
@example(b'"quoted, and/or; listed"'.replace(b" ", b""))
def test_any_1_to_255_visible_characters_are_a_key_as_they_are(value: bytes) -> None:
    assert find_key([(b"host", b"h"), (NAME, value)]) == value.decode()


@given(st.binary(max_size=300))
@example(b"")
@example(b"k" * 256)
@example(b"two words")
@example("schlüssel".encode())
@example(b"nul\0")
@example(b"line\n")
@example(b"delete\x7f")
def test_whatever_else_is_invalid_and_named(value: bytes) -> None:
    if re.fullmatch(rb"[ \t]*[!-~]{1,255}[ \t]*", value):
        assert find_key([(NAME, value)]) == value.strip(b" \t").decode()
        return
    with pytest.raises(InvalidArgument, match="Invalid Idempotency-Key: must be 1 to 255"):
        find_key([(NAME, value)])


@given(VISIBLE, VISIBLE)
@example(b"k", b"k")
def test_two_headers_are_invalid_even_if_they_are_equal(one: bytes, other: bytes) -> None:
    with pytest.raises(InvalidArgument, match="Invalid Idempotency-Key: send the header once"):
        find_key([(NAME, one), (b"host", b"h"), (NAME, other)])


# Turns


def test_one_key_of_one_account_has_one_turn_at_a_time() -> None:
    running = 0
    most: list[int] = []

    async def create(turns: Turns) -> None:
        nonlocal running
        async with turns.turn("a", "k"):
            running += 1
            await asyncio.sleep(0)
            most.append(running)
            running -= 1

    async def scenario() -> None:
        turns = Turns()
        await asyncio.gather(*[create(turns) for _ in range(50)])

    asyncio.run(scenario())
    assert most == [1] * 50


def test_other_keys_and_other_accounts_do_not_wait() -> None:
    async def scenario() -> None:
        turns = Turns()
        async with turns.turn("a", "k"), turns.turn("a", "l"), turns.turn("b", "k"):
            pass

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_who_waits_to_the_deadline_is_told_that_the_first_is_in_flight() -> None:
    async def scenario() -> None:
        turns = Turns(deadline_s=0.01)
        async with turns.turn("a", "k"):
            with pytest.raises(InFlight) as caught:
                async with turns.turn("a", "k"):
                    raise AssertionError("the first still has its turn")
        assert caught.value.code is ErrorCode.CONFLICT

        async with turns.turn("a", "k"):  # the one that gave up holds nobody back
            pass

    asyncio.run(scenario())


def test_what_was_waited_is_taken_off_the_deadline() -> None:
    async def scenario() -> tuple[float, float]:
        turns = Turns(deadline_s=5)
        is_held, may_end = asyncio.Event(), asyncio.Event()

        async def hold() -> float:
            async with turns.turn("a", "k") as left_s:
                is_held.set()
                await may_end.wait()
                return left_s

        async def follow() -> float:
            async with turns.turn("a", "k") as left_s:
                return left_s

        holding = asyncio.create_task(hold())
        await is_held.wait()
        asyncio.get_running_loop().call_later(0.05, may_end.set)
        followed_s = await follow()
        return await holding, followed_s

    held_s, followed_s = asyncio.run(scenario())
    assert 4 < held_s <= 5
    assert 0 < followed_s <= 4.95


def test_a_turn_that_fails_or_is_cancelled_is_over() -> None:
    async def scenario() -> None:
        turns = Turns()
        with pytest.raises(ZeroDivisionError):
            async with turns.turn("a", "k"):
                raise ZeroDivisionError

        async def stay() -> None:
            async with turns.turn("a", "k"):
                await asyncio.Event().wait()

        staying, waiting = asyncio.create_task(stay()), asyncio.create_task(stay())
        await asyncio.sleep(0)
        for task in (waiting, staying):
            task.cancel()
        await asyncio.gather(staying, waiting, return_exceptions=True)
        async with turns.turn("a", "k"):
            pass

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_nothing_is_remembered_of_keys_that_nobody_uses() -> None:
    async def scenario() -> int:
        turns = Turns()
        for number in range(100):
            async with turns.turn("a", str(number)):
                pass
        return len(turns._locks)

    assert asyncio.run(scenario()) <= 1


# Pruning


@pytest.fixture
def account(store: Store) -> AccountInfo:
    return accounts.create_account(store, "ada", plan="business")


def keys_in(store: Store) -> list[str]:
    with store.read() as connection:
        return list(connection.execute(text("SELECT key FROM idempotency")).scalars())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


def test_keys_that_count_no_more_are_removed_at_once_and_again_later(
    store: Store, account: AccountInfo, clock: SteppingClock
) -> None:
    async def scenario() -> None:
        creating.create(store, account.id, [a_resume(idempotency="first")])
        clock.advance(24 * 3_600)
        async with pruning(store, every_s=0.001):
            await until(lambda: not keys_in(store))
            await creating.create_soon(store, account.id, a_resume(idempotency="second"))
            assert keys_in(store) == ["second"]
            clock.advance(24 * 3_600)
            await until(lambda: not keys_in(store))

    asyncio.run(scenario())


def test_pruning_outlives_a_store_that_cannot_write_and_ends_with_its_block(
    store: Store, account: AccountInfo, clock: SteppingClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        creating.create(store, account.id, [a_resume(idempotency="first")])
        clock.advance(24 * 3_600)
        store.lane.close()
        async with pruning(store, every_s=0.001):
            await until(lambda: len(caplog.messages) > 2)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())
    assert set(caplog.messages) == {"Old Idempotency-Keys were not removed: The store is closed"}
