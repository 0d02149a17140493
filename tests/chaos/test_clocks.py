"""Clocks that are set while resumes are created and followed."""

import random
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from resumes.clock import system_clock
from resumes.errors import InvalidKey
from resumes.store import Store, accounts, creating, keys, listing, open_store, plans
from resumes.store.plans import PlanChange
from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.resumes.builders import a_resume
from tests.system.importer.clocks import HOUR_US, JumpingClock

JUMPS = 400
CREATES_A_JUMP = 5


def follow(store: Store, account_id: str, seen: list[str], over: threading.Event) -> None:
    """A client goes on with the last id that it saw, until all is written and there is no more."""
    while True:
        is_last = over.is_set()
        cursor = seen[-1] if seen else ""
        page = listing.list_page(store, account_id, limit=7, cursor=cursor)
        seen += [entry.id for entry in page.entries]
        if is_last and not page.entries:
            return


@pytest.mark.chaos(
    12,
    fault="the clock is set, back and forth",
    promise="who follows the cursor misses nothing and sees nothing twice",
)
def test_a_clock_that_jumps_skips_and_repeats_nothing(
    url: str, figures: Figures, seed: random.Random
) -> None:
    """The store's clock jumps by up to an hour, or a day, to either side 400 times, while one
    creates and another follows with the last id; on SQLite, PostgreSQL 16 and 18."""
    clock = JumpingClock()
    told: dict[str, str] = {}
    seen: list[str] = []
    over = threading.Event()
    with open_store(url, clock=clock) as store:
        plans.set_plan_limits(store, PlanChange("business", None))
        account_id = accounts.create_account(store, "ada", plan="business").id
        follower = threading.Thread(target=follow, args=[store, account_id, seen, over])
        follower.start()
        try:
            for number in range(JUMPS):
                span_us = HOUR_US * seed.choice([1, 1, 24])
                clock.off_us = seed.randint(-span_us, span_us)
                for part in range(CREATES_A_JUMP):
                    name = f"{number}-{part}"
                    (outcome,) = creating.create(store, account_id, [a_resume(name)])
                    assert isinstance(outcome, creating.Created)
                    told[outcome.id] = name
        finally:
            over.set()
            follower.join()
    assert seen == list(told)
    figures["jumps"] = JUMPS
    figures["resumes"] = checker.check(url, told)
    figures["missed"] = figures["repeated"] = 0


@pytest.mark.chaos(
    12,
    fault="the clock is set across the end of a key",
    promise="a key counts until its time by the clock as it is",
)
def test_a_key_ends_when_the_clock_says_so(
    tmp_path: Path, figures: Figures, seed: random.Random
) -> None:
    """The store's clock jumps 400 times to a random moment within two hours of a key's last one."""
    clock = JumpingClock()
    wrong = 0
    with open_store(f"sqlite:///{tmp_path / 'resumes.db'}", clock=clock) as store:
        accounts.create_account(store, "ada", plan="business")
        key = keys.create_key(store, "ada", lifetime=timedelta(hours=2))
        ends_us = system_clock() + 2 * HOUR_US
        for _ in range(JUMPS):
            # Not within a minute of the end: the real clock goes on meanwhile.
            off_us = seed.choice([-1, 1]) * seed.randint(60_000_000, 2 * HOUR_US)
            clock.off_us = ends_us + off_us - system_clock()
            wrong += counts(store, key.secret) is not (off_us < 0)
    assert wrong == 0
    figures["jumps"] = JUMPS
    figures["wrong"] = 0


def counts(store: Store, secret: str) -> bool:
    """Whether the key does."""
    try:
        keys.authenticate(store, secret)
    except InvalidKey:
        return False
    return True
