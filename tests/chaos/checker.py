"""Whether a store that was through a fault holds what its users were told, and is sound.

acknowledged ⊆ stored ⊆ acknowledged or unknown      counter = rows      ids ascend
`resumes db check` finds nothing
"""

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from resumes.store import (
    Store,
    accounts,
    api_keys,
    creation,
    integrity,
    open_store,
    plans,
    stored_resumes,
)
from resumes.store.plans import PlanChange
from tests.chaos.campaign import Figures
from tests.support.api import full_disks, load
from tests.support.api.load import Attempt, Client
from tests.support.resumes import a_resume
from tests.support.store.builders import entries_of


def make_account(url: str) -> str:
    """A key of the account "ada", which may have any number of resumes, in the store at this address."""
    with open_store(url) as store:
        plans.set_plan_limits(store, PlanChange("business", None))
        accounts.create_account(store, "ada", plan="business")
        return api_keys.create_key(store, "ada").secret


def a_full_store(path: Path, count: int) -> dict[str, str]:
    """In the file is a store, closed, whose account "ada" has so many resumes; their names by ids."""
    make_account(f"sqlite:///{path}")
    told = {}
    with open_store(f"sqlite:///{path}") as store:
        account_id = accounts.get_account(store, "ada").id
        for number in range(count):
            (outcome,) = creation.create(store, account_id, [a_resume(f"number {number}")])
            assert isinstance(outcome, creation.Created)
            told[outcome.id] = f"number {number}"
    return told


@dataclass(frozen=True, slots=True)
class Found:
    """How many resumes an account has, and how many of them are not as its clients were told."""

    stored: int
    lost: int
    """Acknowledged, and not there under that id and with that name."""
    doubled: int
    """There once more, beside one of the same name."""
    uninvited: int
    """There, though they were refused or never sent."""


def compare(
    stored: Sequence[tuple[str, str]], told: Mapping[str, str], unknown: Collection[str] = ()
) -> Found:
    """What is stored, held against what was told. Each name is sent once.

    `stored` are ids and names; `told` the names by the ids that clients got, `unknown` the names of
    those of which nobody was told anything.
    """
    names = [name for _, name in stored]
    return Found(
        stored=len(stored),
        lost=len(told.items() - set(stored)),
        doubled=len(names) - len(set(names)),
        uninvited=len(set(names) - {*told.values(), *unknown}),
    )


def check(
    database: Path | str, told: Mapping[str, str], unknown: Collection[str] = (), who: str = "ada"
) -> Found:
    """Nothing of the account is lost, doubled or uninvited, and its store is sound; what was found.

    As for `compare`. `database` is a file or an address.
    """
    with open_store(address_of(database)) as store:
        stored = list(iter_stored(store, who))
        assert accounts.get_account(store, who).resume_count == len(stored)
        check_soundness(store)
    ids = [resume_id for resume_id, _ in stored]
    assert ids == sorted(set(ids)), "pages do not show each id once and in order"
    found = compare(stored, told, unknown)
    assert found == Found(found.stored, lost=0, doubled=0, uninvited=0)
    return found


def check_attempts(database: Path | str, attempts: Sequence[Attempt]) -> Found:
    """As `check`, of what clients of the API sent to the account "ada"; and their ids ascend."""
    assert count_out_of_order(attempts) == 0
    return check(database, told_of(attempts), {one.title for one in attempts if is_unknown(one)})


def note_recovery(
    figures: Figures, database: Path, writers: Sequence[Client], recovery_s: float
) -> None:
    """As `check_attempts`, of clients that met a fault; what they saw is told."""
    attempts = load.attempts_of(writers)
    found = check_attempts(database, attempts)
    figures["resumes_acknowledged"] = load.acknowledged(writers)
    figures["responses_with_status_503"] = len(full_disks.refusals([*writers]))
    figures["unknown_outcomes"] = sum(map(is_unknown, attempts))
    figures["recovery_time_s"] = recovery_s
    figures["lost"], figures["refused_but_stored"] = found.lost, found.uninvited


def told_of(attempts: Iterable[Attempt]) -> dict[str, str]:
    """The titles of what was acknowledged, by ids. No two of them got the same id."""
    acknowledged = [one for one in attempts if one.id]
    told = {one.id: one.title for one in acknowledged}
    assert len(told) == len(acknowledged), "an id was given twice"
    return told


def is_unknown(attempt: Attempt) -> bool:
    """Whether its client cannot know if it was done: no answer came, or one that says so."""
    answer = attempt.answer
    return answer is None or (
        answer.status == 503 and answer.json["error"].startswith(full_disks.UNKNOWN)
    )


def count_out_of_order(attempts: Iterable[Attempt]) -> int:
    """How many have an id that is not above each that was told before they were sent: who goes on
    with the last id that they saw would miss them."""
    sent = sorted((one for one in attempts if one.id), key=lambda one: one.began_s)
    told = sorted(sent, key=lambda one: one.ended_s)
    highest, known, count = "", 0, 0
    for one in sent:
        while told[known].ended_s < one.began_s:
            highest = max(highest, told[known].id)
            known += 1
        count += one.id <= highest
    return count


def count_differences(expected: Iterable[str], stored: Iterable[str]) -> tuple[int, int]:
    """How many names are missing, and how many are there that were not expected, or too often."""
    wanted, found = Counter(iter(expected)), Counter(iter(stored))  # a mapping would be counts
    return (wanted - found).total(), (found - wanted).total()


def address_of(database: Path | str) -> str:
    """The address of a store: that of a file, or as it is."""
    return database if isinstance(database, str) else f"sqlite:///{database}"


def check_soundness(store: Store) -> None:
    """What `resumes db check` looks for is not there."""
    assert list(integrity.iter_damage(store)) == []
    for checked in integrity.iter_accounts(store):
        assert list(checked.flaws) == []


def iter_stored(store: Store, who: str = "ada") -> Iterator[tuple[str, str]]:
    """Ids and names of the account's resumes, as its pages show them."""
    account_id = accounts.get_account(store, who).id
    read = partial(stored_resumes.list_page, store, account_id, limit=stored_resumes.MAX_LIMIT)
    yield from ((entry.id, entry.name or "") for entry in entries_of(read))


def let_pass(span_s: float) -> None:
    """So much time has gone by, in which others work."""
    threading.Event().wait(span_s)


def took_ms(attempts: Sequence[Attempt]) -> list[float]:
    """How long each answer took, that came."""
    return [(one.ended_s - one.began_s) * 1_000 for one in attempts if one.answer is not None]


def p99_ms(attempts: Sequence[Attempt]) -> float:
    """The 99th percentile of what the answers took; there has to be one."""
    sorted_ms = sorted(took_ms(attempts))
    return sorted_ms[len(sorted_ms) * 99 // 100]


def between(attempts: Sequence[Attempt], since_s: float, until_s: float) -> list[Attempt]:
    """Those that began in that time."""
    return [one for one in attempts if since_s <= one.began_s < until_s]


def iter_windows(attempts: Sequence[Attempt], window_s: float) -> Iterator[list[Attempt]]:
    """The attempts that began in each time of that length, one after the other; none is empty."""
    windows: dict[int, list[Attempt]] = {}
    for one in attempts:
        windows.setdefault(int(one.began_s // window_s), []).append(one)
    return (windows[number] for number in sorted(windows))
