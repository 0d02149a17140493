import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from importer import intake, rounds
from importer.changes import Changes
from importer.rounds import TAKE_OVER_S, Importer
from importer.running import Runner
from importer.steps import Step
from importer.telling import Remarks
from resumes.store import Store, accounts, asking, ledger, plans, requests
from resumes.store.accounts import AccountInfo
from resumes.store.ledger import FileOutcome
from resumes.store.plans import PlanChange
from resumes.store.requests import Action
from tests.importer.builders import (
    FakeMonotonic,
    MakeImporter,
    Told,
    drop,
    filed,
    names_below,
    resume_names,
    the_report,
)
from tests.resumes.builders import a_document

MakeAccount = Callable[..., AccountInfo]


def mark(importer: Importer, *names: str) -> None:
    """Events came from these parts of ROOT."""
    changes = Changes()
    for name in names:
        changes.mark(name)
    importer.mark(changes.take())


# Whose files they are


def test_files_that_nobody_owns_are_left_told_of_once_and_imported_as_soon_as_somebody_does(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    drop(root, "bo/1.json")
    drop(root, "2.json")
    (root / "empty").mkdir()
    importer = an_importer(settle_s=0)
    importer.round()
    importer.round()
    assert told.files == []
    assert len(told.notices) == 2
    assert "--account" in told.notices[0]
    assert '"bo" names no account' in told.notices[1]
    assert importer.summary().waiting == 2
    an_account("bo")
    importer.round()
    assert told.outcomes() == {"bo/1.json": "done"}
    assert (root / "2.json").exists()


def test_files_in_root_wait_for_the_chosen_account(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    drop(root, "1.json")
    importer = an_importer(account="bo")
    importer.round()
    assert 'no account "bo"' in told.notices[0]
    an_account("bo")
    importer.round()
    assert [(file.account, file.name) for file in told.files] == [("bo", "1.json")]


def test_an_account_that_goes_leaves_its_folder_untouched(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account("ana")
    importer = an_importer()
    drop(root, "ana/1.json")
    importer.round()
    accounts.delete_account(store, "ana", with_resumes=True)
    drop(root, "ana/2.json")
    importer.round()
    assert (root / "ana/2.json").exists()
    assert '"ana" names no account' in told.notices[0]


# What it comes to


def test_the_summary_accounts_for_every_file(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account(plan="free")
    for number in range(7):
        drop(root, f"ana/{number}.json")
    drop(root, "ana/again.json", (root / "ana/6.json").read_bytes())
    drop(root, "ana/bad.json", b"{}")
    drop(root, "ana/notes.txt")
    drop(root, "nobody/1.json")
    importer = an_importer(settle_s=0)
    Runner(importer, Changes(), Remarks(told.notices.append)).drain(threading.Event())
    summary = importer.summary()
    assert (summary.done, summary.failed) == (5, 1)
    assert summary.duplicate + summary.held == 3
    assert (summary.ignored, summary.waiting) == (1, 1)


def test_the_progress_counts_what_is_left(
    root: Path, monkeypatch: pytest.MonkeyPatch, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    monkeypatch.setattr(intake, "BATCH_FILES", 3)
    an_account()
    sizes_bytes = [len(drop(root, f"ana/{n}.json").read_bytes()) for n in range(5)]
    drop(root, "ana/cut.json", b"{")
    os.utime(root / "ana/cut.json", ns=(0, 0))
    importer = an_importer()
    assert importer.progress().waiting == 0
    importer.turn()
    progress = importer.progress()
    assert (progress.done, progress.waiting, progress.is_complete) == (2, 4, True)
    assert progress.waiting_bytes == sum(sizes_bytes[2:]) + 1
    importer.turn()
    progress = importer.progress()
    assert (progress.done, progress.waiting, progress.waiting_bytes) == (5, 1, 1)


def test_a_held_file_that_is_released_is_counted_once(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    plans.set_plan_limits(store, PlanChange("none", max_resumes=0))
    an_account(plan="none")
    drop(root, "ana/1.json")
    importer = an_importer()
    importer.round()
    assert importer.summary().held == 1
    plans.set_plan_limits(store, PlanChange("none", max_resumes=1))
    importer.round()
    summary = importer.summary()
    assert (summary.held, summary.done, summary.waiting) == (0, 1, 0)


# Turns


def test_accounts_take_turns_within_a_batch(
    root: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    monkeypatch.setattr(intake, "BATCH_FILES", 4)
    for name in ("ana", "bo"):
        an_account(name)
    for number in range(5):
        drop(root, f"ana/{number}.json")
    drop(root, "bo/0.json")
    importer = an_importer()
    importer.turn()
    assert sorted(file.name for file in told.files) == [
        *("ana/0.json", "ana/1.json", "ana/2.json", "bo/0.json")
    ]


def test_a_batch_is_full_with_bytes_too(
    root: Path, monkeypatch: pytest.MonkeyPatch, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    monkeypatch.setattr(intake, "BATCH_BYTES", 1)
    an_account()
    for number in range(3):
        drop(root, f"ana/{number}.json")
    importer = an_importer()
    importer.turn()
    assert len(filed(root, "_done")) == 1
    assert importer.has_work


def test_a_round_ends_although_files_are_left(
    root: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    monkeypatch.setattr(rounds, "ROUND_S", 0)
    monkeypatch.setattr(intake, "BATCH_FILES", 2)
    an_account()
    for number in range(5):
        drop(root, f"ana/{number}.json")
    importer = an_importer()
    assert [importer.round() for _ in range(4)] == [2, 2, 1, 0]


def test_nothing_new_is_taken_without_a_scan(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    importer = an_importer()
    importer.round()
    drop(root, "ana/1.json")
    assert importer.round(with_scan=False) == 0
    assert importer.round() == 1


def test_a_folder_is_looked_through_again_after_the_interval(
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    an_account()
    (root / "ana").mkdir()
    importer = an_importer(scan_s=2)
    importer.turn()
    drop(root, "ana/1.json")
    importer.turn()
    assert told.files == []
    assert 0 < importer.wait_s() <= 2
    monotonic.advance(2)
    importer.turn()
    assert told.outcomes() == {"ana/1.json": "done"}


def test_a_new_account_folder_is_found_by_its_event(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    importer = an_importer(scan_s=600)
    importer.turn()
    assert importer.folders == []
    drop(root, "ana/1.json")
    mark(importer, "ana")
    importer.round(with_scan=False)
    importer.turn()
    assert importer.folders == ["ana"]
    assert told.outcomes() == {"ana/1.json": "done"}


def test_a_folder_that_is_heard_of_is_looked_for_at_once_and_not_by_idle_turns(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    importer = an_importer(scan_s=600)
    importer.turn()
    drop(root, "ana/1.json")
    mark(importer, "ana")
    assert importer.wait_s() == 0
    importer.turn()
    importer.turn()
    assert told.outcomes() == {"ana/1.json": "done"}
    assert importer.wait_s() > 0


def test_a_file_that_settles_is_waited_for(
    root: Path, monotonic: FakeMonotonic, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    importer = an_importer(settle_s=5, scan_s=600)
    importer.turn()
    dues = [importer.next_due]
    drop(root, "ana/cut.json", b"{")
    importer.round()
    dues.append(importer.next_due)
    assert dues == [None, monotonic() + 5]
    monotonic.advance(5)
    assert importer.wait_s() == 0
    importer.turn()
    assert len(filed(root, "_failed")) == 1


# What others change


def test_what_an_importer_left_that_is_gone_is_taken_over_while_running(
    store: Store,
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()
    survivor = an_importer(scan_s=600)
    survivor.round()
    drop(root, "ana/1.json", a_document("1"))

    def kill(step: Step) -> None:
        if step is Step.CLAIMED:
            raise KeyboardInterrupt

    dying = an_importer(observe=kill)
    with pytest.raises(KeyboardInterrupt):
        dying.round()
    monotonic.advance(TAKE_OVER_S)
    survivor.turn()
    assert told.files == []  # it lives, for all that others know
    dying.close()
    monotonic.advance(TAKE_OVER_S)
    survivor.turn()
    survivor.turn()
    assert resume_names(store, account.id) == ["1"]
    assert told.outcomes() == {"ana/1.json": "done"}
    survivor.close()
    assert list((root / ".work").iterdir()) == []


def test_a_failed_file_is_tried_again_when_somebody_asks(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    account = an_account()
    importer = an_importer(settle_s=0)
    drop(root, "ana/cv.json", b"{}")
    drop(root, "ana/other.json", b"{}")
    importer.round()
    failed = {row.name: row for row in ledger.list_files(store)}["ana/cv.json"]
    (path,) = (path for path in filed(root, "_failed") if path.name.startswith("cv"))
    path.write_bytes(a_document("mended"))
    asking.ask(store, [failed], Action.RETRY)
    importer.round()
    assert resume_names(store, account.id) == ["mended"]
    assert told.outcomes() == {"ana/cv.json": "done", "ana/other.json": "failed"}
    row = ledger.get_file(store, failed.claim_id)
    assert (row.outcome, row.reason) == (FileOutcome.DONE, None)
    assert requests.list_requests(store) == []
    assert the_report(root, "_failed")["file"] == "ana/other.json"


def test_a_request_outlives_an_importer_that_was_killed_before_it_took_the_file(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    drop(root, "ana/cv.json", b"{}")
    first = an_importer(settle_s=0)
    first.round()
    first.close()
    asking.ask(store, ledger.list_files(store), Action.RETRY)

    def kill(step: Step) -> None:
        if step is Step.JOURNAL_WRITTEN:
            raise KeyboardInterrupt

    dying = an_importer(observe=kill)
    with pytest.raises(KeyboardInterrupt):
        dying.round()
    dying.close()
    told.files.clear()
    an_importer().round()
    assert told.outcomes() == {"ana/cv.json": "failed"}
    assert requests.list_requests(store) == []


def test_a_file_that_fails_again_comes_to_the_same_end(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    importer = an_importer(settle_s=0)
    drop(root, "ana/cv.json", b"{}")
    importer.round()
    before = names_below(root / "_failed")
    asking.ask(store, ledger.list_files(store), Action.RETRY)
    importer.round()
    assert names_below(root / "_failed") == before
    assert [file.outcome for file in told.files] == [FileOutcome.FAILED] * 2
    assert requests.list_requests(store) == []


def test_a_request_for_a_file_that_is_not_there_says_so(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    importer = an_importer(settle_s=0)
    drop(root, "ana/cv.json", b"{}")
    importer.round()
    (path,) = filed(root, "_failed")
    path.unlink()
    asking.ask(store, ledger.list_files(store), Action.RETRY)
    importer.round()
    (row,) = ledger.list_files(store)
    assert row.outcome is FileOutcome.FAILED
    assert row.message is not None
    assert row.message.startswith("Could not retry it: the file is no longer in")
    assert requests.list_requests(store) == []


def test_a_held_file_that_is_released_too_early_is_held_on(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    plans.set_plan_limits(store, PlanChange("none", max_resumes=0))
    account = an_account(plan="none")
    for number in range(2):
        drop(root, f"ana/{number}.json", a_document(str(number)))
    importer = an_importer()
    importer.round()
    before = names_below(root / "_held")
    asking.ask(store, ledger.list_files(store), Action.RELEASE)
    importer.round()
    assert names_below(root / "_held") == before
    assert requests.list_requests(store) == []
    plans.set_plan_limits(store, PlanChange("none", max_resumes=2))
    importer.round()
    assert resume_names(store, account.id) == ["0", "1"]


def test_an_importer_whose_folder_was_emptied_goes_on(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    importer = an_importer()
    importer.round()
    for path in sorted(root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    drop(root, "ana/1.json")
    importer.round()
    assert told.outcomes() == {"ana/1.json": "done"}


def test_claims_that_were_emptied_away_are_not_waited_for(
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    an_account()

    def write_on(step: Step) -> None:
        if step is Step.CLAIMED:
            (claim,) = (root / ".work").glob("*/*/*")
            claim.write_bytes(b"{")

    drop(root, "ana/1.json")
    importer = an_importer(observe=write_on)
    importer.round()
    assert importer.summary().waiting == 1
    for path in sorted(root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    monotonic.advance(60)
    importer.round()
    assert importer.summary().waiting == 0
    assert importer.next_due is None


def test_nothing_is_left_in_the_work_folder_after_a_regular_end(
    root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    drop(root, "ana/1.json")
    importer = an_importer()
    importer.round()
    assert [name.rpartition("/")[2] for name in names_below(root / ".work")] == ["lease"]
    importer.close()
    assert list((root / ".work").iterdir()) == []


# What stands in the way


def test_a_file_that_cannot_be_claimed_stays_and_is_told_of_once(
    root: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    an_account()
    path = drop(root, "ana/1.json")
    importer = an_importer()

    def refuse(source: object, target: object, **_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("importer.taking.os.rename", refuse)
        importer.round()
        monotonic.advance(10)
        importer.round()
    assert path.exists()
    (notice,) = told.notices
    assert notice.startswith("Cannot take ana/1.json: Permission denied.")
    monotonic.advance(10)
    importer.round()
    assert told.outcomes() == {"ana/1.json": "done"}


def test_a_full_disk_stops_the_round(
    root: Path, monkeypatch: pytest.MonkeyPatch, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    drop(root, "ana/1.json")

    def full(workspace: Path, claims: object) -> None:
        raise OSError(28, "No space left on device")

    importer = an_importer()
    with monkeypatch.context() as patch:
        patch.setattr("importer.journals.write", full)
        with pytest.raises(OSError, match="No space"):
            importer.round()
    assert (root / "ana/1.json").exists()
    importer.round()
    assert len(filed(root, "_done")) == 1
