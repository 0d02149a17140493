"""The event loop: no key, page or filter keeps the next key waiting, however much there is."""

import asyncio
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import pytest
from textual.pilot import Pilot

from resumes.store import plans, search
from resumes.store.search_index import Indexer
from resumes.store.store import Store
from tests.support.stores import open_home
from tests.support.terminal.builders import an_account, stored_many
from tests.support.terminal.driving import LARGE, LIMIT_S, SMALL, at_rest, presses, running

pytestmark = [pytest.mark.anyio, pytest.mark.timing]

MANY: Final = 5_000
STALL_S: Final = 0.05
TRIES: Final = 3


@pytest.fixture(scope="module")
def large_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """20,000 resumes, all of which can be found."""
    with open_home(tmp_path_factory.mktemp("large")) as store:
        plans.set_plan_limits(store, plans.PlanChange("business", None))
        account = an_account(store, "ana")
        for _ in range(4):
            stored_many(store, MANY)
        with Indexer(store):
            deadline = time.monotonic() + LIMIT_S
            while search.find_page(store, account.id, "number").unindexed:
                assert time.monotonic() < deadline, "the index was never filled"
                time.sleep(0.01)
        yield store


HELD_DOWN: Final = 60


@pytest.mark.parametrize(
    "pressed",
    [("down",) * HELD_DOWN, ("pagedown",) * HELD_DOWN, ("slash", *"number 1999")],
    ids=["down", "paging", "filtering"],
)
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=str)
async def test_no_key_keeps_the_next_one_waiting(
    large_store: Store, pressed: tuple[str, ...], size: tuple[int, int]
) -> None:
    stalls_s: list[float] = []
    for _ in range(TRIES):
        async with running(large_store, " loaded · more…", size=size) as pilot:
            await at_rest(pilot)
            stalls_s.append(await longest_stall_s(partial(press_all, pilot, pressed)))
        if stalls_s[-1] < STALL_S:
            return
    pytest.fail(f"The event loop stood still for {min(stalls_s) * 1_000:.0f} ms at best.")


async def press_all(pilot: Pilot[int], pressed: tuple[str, ...]) -> None:
    """All keys are pressed, as fast as they are taken, and what they ask for is there."""
    for key in pressed:
        await presses(pilot, key)
    await at_rest(pilot)


async def longest_stall_s(work: Callable[[], Any]) -> float:
    """For how long at most nothing else could run in the event loop during the work.

    Where the kernel gave the processor to another program meanwhile, only what was computed counts.
    """
    longest_s, is_over = 0.0, False

    async def tick() -> None:
        nonlocal longest_s
        while not is_over:
            wall_s, computed_s, interruptions = now()
            await asyncio.sleep(0.001)
            after_wall_s, after_computed_s, after_interruptions = now()
            is_ours = interruptions == after_interruptions
            stall_s = after_wall_s - wall_s if is_ours else after_computed_s - computed_s
            longest_s = max(longest_s, stall_s)

    ticking = asyncio.create_task(tick())
    await work()
    is_over = True
    await ticking
    return longest_s


def now() -> tuple[float, float, int]:
    """The time, how long this thread computed so far, and how often it was interrupted."""
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return time.perf_counter(), time.thread_time(), usage.ru_nivcsw
