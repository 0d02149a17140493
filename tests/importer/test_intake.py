import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from importer import inboxes
from importer.changes import Marked
from importer.claims import ClaimIds
from importer.health import Finding, Health, HealthState
from importer.intake import Intake
from importer.options import Options
from importer.reading import find_signature
from importer.taking import Candidate, Left, Why
from importer.telling import Remarks
from resumes.clock import system_clock
from resumes.store.accounts import AccountInfo
from tests.importer.builders import FakeMonotonic, Told, drop

HAND = "h" * 24
MakeIntake = Callable[..., Intake]


def an_account(name: str, free: int | None = None) -> AccountInfo:
    return AccountInfo(
        id=name.ljust(16, "0"),
        name=name,
        plan="p",
        resume_count=0,
        max_resumes=free,
        api_listing=True,
        created_at="2026-01-31T09:00:00.000Z",
    )


ANA, BO = an_account("ana"), an_account("bo")
ACCOUNTS = {"ana": ANA, "bo": BO}


@pytest.fixture
def found() -> list[Finding]:
    return []


@pytest.fixture
def an_intake(root: Path, monotonic: FakeMonotonic, told: Told, found: list[Finding]) -> MakeIntake:
    def make(**options: Any) -> Intake:
        return Intake(
            root,
            Options(**options),
            ids=ClaimIds(system_clock),
            clock=system_clock,
            monotonic=monotonic,
            remarks=Remarks(told.notices.append),
            health=Health(found.append),
        )

    return make


def look(intake: Intake, accounts: dict[str, AccountInfo] = ACCOUNTS) -> None:
    intake.force()
    intake.find_owners(accounts)
    intake.look()


def names(batch: list[Candidate]) -> list[str]:
    return [one.claim.name for one in batch]


def left(one: Candidate, why: Why, error: OSError | None = None) -> Left:
    return Left(one.claim.id, one.path, why, find_signature(one.path), error)


def test_accounts_take_turns_and_the_oldest_file_of_each_comes_first(
    root: Path, an_intake: MakeIntake
) -> None:
    for number, name in enumerate(("ana/c", "ana/b", "ana/a", "bo/x")):
        os.utime(drop(root, f"{name}.json"), (number, number))
    intake = an_intake()
    look(intake)
    assert intake.backlog == 4
    batch = names(intake.next_batch(HAND))
    assert sorted(batch[:2]) == ["ana/c.json", "bo/x.json"]
    assert batch[2:] == ["ana/b.json", "ana/a.json"]


def test_a_backlog_is_known_before_the_look_that_finds_it_is_over(
    root: Path, an_intake: MakeIntake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inboxes, "SLICE_FILES", 3)
    for number in range(4):
        drop(root, f"ana/{number}.json")
    intake = an_intake()
    look(intake)
    assert (intake.backlog, intake.next_batch(HAND)) == (2, [])
    intake.look()
    assert (intake.backlog, len(intake.next_batch(HAND))) == (4, 4)


def test_a_claim_lies_in_the_workspace_of_the_hand_that_takes_it(
    root: Path, an_intake: MakeIntake
) -> None:
    drop(root, "ana/cv.json")
    intake = an_intake()
    look(intake)
    (one,) = intake.next_batch(HAND)
    assert one.claim.path == f"{root}/.work/{HAND}/{ANA.id}/{one.claim.id}"
    assert one.claim.name_hex == b"ana/cv.json".hex()


def test_files_of_root_are_the_chosen_accounts(root: Path, an_intake: MakeIntake) -> None:
    drop(root, "cv.json")
    intake = an_intake(account="bo")
    look(intake)
    (one,) = intake.next_batch(HAND)
    assert one.claim.account == "bo"


def test_files_that_nobody_owns_are_told_of_once_until_somebody_does(
    root: Path, told: Told, an_intake: MakeIntake
) -> None:
    drop(root, "cy/cv.json")
    intake = an_intake()
    for _ in range(3):
        look(intake)
    assert intake.next_batch(HAND) == []
    assert len([notice for notice in told.notices if '"cy"' in notice]) == 1
    intake.find_owners(ACCOUNTS | {"cy": an_account("cy")})
    intake.look()
    assert names(intake.next_batch(HAND)) == ["cy/cv.json"]


def test_a_file_that_is_being_tried_is_not_tried_twice(root: Path, an_intake: MakeIntake) -> None:
    drop(root, "ana/cv.json")
    intake = an_intake()
    look(intake)
    (one,) = intake.next_batch(HAND)
    look(intake)
    assert intake.next_batch(HAND) == []
    intake.land(one)
    look(intake)
    assert len(intake.next_batch(HAND)) == 1


def test_a_file_that_settles_is_tried_again_when_it_was_quiet(
    root: Path, monotonic: FakeMonotonic, an_intake: MakeIntake
) -> None:
    drop(root, "ana/cv.json", b"{")
    intake = an_intake(settle_s=5)
    look(intake)
    (one,) = intake.next_batch(HAND)
    assert one.known is None
    intake.after_try(one, left(one, Why.SETTLING))
    look(intake)
    assert intake.next_batch(HAND) == []
    monotonic.advance(5)
    intake.look()
    (again,) = intake.next_batch(HAND)
    assert again.known is not None
    assert again.known.for_s == 5


def test_a_report_is_left_alone_and_nobody_waits_for_it(
    root: Path, monotonic: FakeMonotonic, an_intake: MakeIntake
) -> None:
    drop(root, "ana/cv.report.json")
    intake = an_intake()
    look(intake)
    (one,) = intake.next_batch(HAND)
    intake.after_try(one, left(one, Why.REPORT))
    monotonic.advance(3_600)
    look(intake)
    assert intake.next_batch(HAND) == []
    assert intake.next_due() is None


def test_workers_get_nothing_of_accounts_that_are_nearly_full(
    root: Path, an_intake: MakeIntake
) -> None:
    drop(root, "ana/cv.json")
    drop(root, "bo/cv.json")
    intake = an_intake()
    look(intake, {"ana": an_account("ana", free=10), "bo": BO})
    assert names(intake.next_batch(HAND, for_worker=True)) == ["bo/cv.json"]
    assert names(intake.next_batch(HAND)) == ["ana/cv.json"]


def test_a_folder_that_is_a_file_system_of_its_own_is_named_and_others_go_on(
    root: Path, found: list[Finding], an_intake: MakeIntake
) -> None:
    for number in range(3):
        drop(root, f"ana/{number}.json")
    drop(root, "bo/cv.json")
    intake = an_intake()
    look(intake)
    batch = intake.next_batch(HAND)
    strange = OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    for one in batch:
        why = left(one, Why.STUCK, strange) if one.claim.account == "ana" else None
        intake.after_try(one, why)
    assert [(one.key, one.state) for one in found] == [("mount ana", HealthState.DEGRADED)]
    assert "resumes watch" in found[0].sentence
    assert not intake.has_work


def test_a_folder_that_is_movable_again_is_well(
    root: Path, monotonic: FakeMonotonic, found: list[Finding], an_intake: MakeIntake
) -> None:
    drop(root, "ana/cv.json")
    intake = an_intake(settle_s=0)
    look(intake)
    (one,) = intake.next_batch(HAND)
    intake.after_try(one, left(one, Why.STUCK, OSError(errno.EXDEV, "other device")))
    monotonic.advance(10)
    look(intake)
    (again,) = intake.next_batch(HAND)
    intake.after_try(again, None)
    assert found[-1].state is HealthState.OK


def test_a_suspect_is_tried_alone_with_the_attempts_that_it_had(
    root: Path, an_intake: MakeIntake
) -> None:
    drop(root, "ana/cv.json")
    intake = an_intake()
    intake.suspects[b"ana/cv.json".hex()] = 1
    look(intake)
    (one,) = intake.next_batch(HAND)
    assert one.is_alone
    assert one.claim.attempt == 1
    intake.after_try(one, None)
    assert intake.suspects == {}


def test_a_mark_asks_for_its_own_folder_alone(
    root: Path, monotonic: FakeMonotonic, an_intake: MakeIntake
) -> None:
    drop(root, "ana/1.json")
    drop(root, "bo/1.json")
    intake = an_intake()
    look(intake)
    for one in intake.next_batch(HAND):
        intake.after_try(one, None)
        Path(one.path).unlink()
    drop(root, "ana/2.json")
    drop(root, "bo/2.json")
    monotonic.advance(0.1)
    intake.mark(Marked(frozenset({"bo"}), is_all=False))
    intake.look()
    assert names(intake.next_batch(HAND)) == ["bo/2.json"]
