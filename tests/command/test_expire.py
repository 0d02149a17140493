"""Resumes that their plan no longer keeps: listed, then erased."""

import random
import signal
import subprocess
from contextlib import suppress
from functools import partial

import pytest

from resumes.clock import system_clock
from resumes.store import Store, accounts, open_store
from resumes.store.retention import DAY_US, SLICE_RESUMES, count_expired
from tests.command.conftest import CommandLine, a_resume, start, store_resumes
from tests.support.store.builders import add_resumes, find_flaws
from tests.support.stores import open_home
from tests.support.waiting import wait_until


@pytest.fixture
def old(acme: CommandLine) -> CommandLine:
    """Two resumes of acme are 31 days old, and one is new."""
    then_us = system_clock() - 31 * DAY_US
    with open_store(f"sqlite:///{acme.home}/resumes.db", clock=lambda: then_us) as store:
        add_resumes(store, accounts.get_account(store, "acme"), 2)
    store_resumes(acme.home, a_resume("New"))
    return acme


def listed(run: CommandLine, *words: str) -> list[str]:
    return [resume["title"] for resume in run.answers("list", *words, "--json")["resumes"]]


def test_a_plan_that_keeps_resumes_for_days_says_whom_that_concerns(old: CommandLine) -> None:
    due = {"count": 1, "fullest": [{"account": "acme", "resumes": 2}]}
    dry = old.answers("plans", "set", "free", "--keep-days", "30", "--dry-run", "--json")
    assert dry == {
        "over": {"count": 0, "fullest": []},
        "unlisted": {"count": 0, "fullest": []},
        "due": due,
    }
    told = old("plans", "set", "free", "--keep-days", "30").stderr
    assert told == (
        'Plan "free": 5 resumes, no API listing, kept for 30 days.\n'
        "1 account has older resumes, which services erase within the hour: acme (2).\n"
    )
    # What is not given stays.
    assert old.answers("plans", "set", "free", "--api-listing", "--json")["keepDays"] == 30
    free, *_ = old.answers("plans", "list", "--json")["plans"]
    assert (free["keepDays"], free["dueResumes"]) == (30, 2)
    assert " 30 days (2 due) " in old.succeeds("plans", "list").splitlines()[1]
    shown = old.answers("accounts", "show", "acme", "--json")
    assert (shown["keepDays"], shown["dueResumes"]) == (30, 2)
    assert "30 days (2 due)\n" in old.succeeds("accounts", "show", "acme")

    assert (
        old.answers("plans", "set", "free", "--keep-days", "forever", "--json")["keepDays"] is None
    )
    assert old("expire", "--yes").stderr == "No resume is older than its plan allows.\n"
    for days, message in (
        ("soon", '"soon" is neither a number of days nor forever'),
        ("0", "Invalid number of days 0: use 1 to 36,500, or forever"),
    ):
        assert message in old.fails(2, "plans", "set", "free", "--keep-days", days)


def test_what_is_due_is_listed_and_then_erased(old: CommandLine) -> None:
    old.succeeds("plans", "set", "free", "--keep-days", "30")
    oldest = old.answers("list", "--json")["resumes"][0]["createdAt"]

    dry = old("expire", "--dry-run")
    shown = " ".join(dry.stdout.splitlines()[1].split())
    assert shown.startswith(f"acme free 30 days 2 {oldest[:10]} ")
    assert dry.stderr == "Dry run: 2 resumes due, nothing was erased.\n"
    assert "use --yes" in old.fails(2, "expire")
    assert "Account not found" in old.fails(1, "expire", "--account", "nobody", "--yes")
    assert len(listed(old)) == 3

    done = old.answers("expire", "--account", "acme", "--yes", "--json")
    (row,) = done["due"]
    assert (row["account"], row["plan"], row["keepDays"], row["resumes"]) == ("acme", "free", 30, 2)
    assert (row["oldestAt"], done["erased"]) == (oldest, 2)
    assert listed(old) == ["New Resume"]
    assert old.answers("expire", "--yes", "--json") == {"due": [], "erased": 0}


def has_erased(store: Store, before: int) -> bool:
    return count_expired(store) > before


@pytest.mark.parametrize("kills", [1, pytest.param(100, marks=pytest.mark.campaign(minutes=3))])
@pytest.mark.slow
def test_a_command_that_was_killed_comes_to_the_same_end_when_it_is_repeated(
    acme: CommandLine, kills: int
) -> None:
    choose, then_us = random.Random(1), system_clock() - 31 * DAY_US
    count = (20 + 6 * kills) * SLICE_RESUMES
    acme.succeeds("plans", "set", "free", "--max-resumes", "unlimited", "--keep-days", "30")
    acme.succeeds("accounts", "create", "bolt", "--plan", "business")
    with open_store(f"sqlite:///{acme.home}/resumes.db", clock=lambda: then_us) as store:
        add_resumes(store, accounts.get_account(store, "acme"), count)
        add_resumes(store, accounts.get_account(store, "bolt"), SLICE_RESUMES)
    store_resumes(acme.home, a_resume("New"))
    erased = 0
    with open_home(acme.home) as store:
        for _ in range(kills):
            with start("--home", str(acme.home), "expire", "--yes") as process:
                wait_until(partial(has_erased, store, erased))
                with suppress(subprocess.TimeoutExpired):
                    process.wait(choose.uniform(0, 0.01))
                process.kill()
                assert process.wait() == -signal.SIGKILL
            erased = count_expired(store)
            assert erased % SLICE_RESUMES == 0
            assert accounts.get_account(store, "acme").resume_count == count + 1 - erased

        assert find_flaws(store) == []
        assert acme.answers("expire", "--yes", "--json")["erased"] == count - erased
        assert listed(acme, "--account", "acme") == ["New Resume"]
        assert accounts.get_account(store, "bolt").resume_count == SLICE_RESUMES
