"""Clocks that are set while resumes are created and followed."""

import random
import threading
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from resumes.clock import system_clock
from resumes.errors import InvalidKey
from resumes.store import Store, accounts, creating, keys, listing, open_store
from tests.chaos import checker, stores
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
    stores.make_account(url)
    with open_store(url, clock=clock) as store:
        account_id = accounts.get_account(store, "ada").id
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
    figures["jumps"] = JUMPS
    figures["resumes"] = checker.check(url, told).stored
    figures["missed"], figures["repeated"] = checker.count_differences(told, seen)
    figures["out_of_order"] = sum(after <= before for before, after in pairwise(told))
    assert seen == list(told)
    assert figures["missed"] == figures["repeated"] == figures["out_of_order"] == 0


@pytest.mark.chaos(
    12,
    fault="the clock is set across the end of a key",
    promise="a key counts until its time by the clock as it is",
)
def test_a_key_ends_when_the_clock_says_so(
    tmp_path: Path, figures: Figures, seed: random.Random
) -> None:
    """The store's clock jumps 400 times to a random moment within two hours of a key's last one, and
    no nearer to it than a minute."""
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
            wrong += is_accepted(store, key.secret) is not (off_us < 0)
    figures["jumps"] = JUMPS
    figures["wrong"] = wrong
    assert wrong == 0


def is_accepted(store: Store, secret: str) -> bool:
    """Whether the key counts."""
    try:
        keys.authenticate(store, secret)
    except InvalidKey:
        return False
    return True
