"""Rules of the recipe, seen through whole rounds."""

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from importer import moves, pipeline
from importer.steps import Step
from resumes.analyzer import Format
from resumes.errors import OutcomeUnknown, ResumesError, StoreUnavailable
from resumes.store import Store, ledger, listing, plans
from resumes.store.accounts import AccountInfo, check_counters
from resumes.store.creating import Creation, Outcome, create_files
from resumes.store.ledger import FileOutcome
from resumes.store.plans import PlanChange
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


def test_a_whole_resume_is_imported_at_once(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    account = an_account()
    drop(root, "ana/sub/cv.json", a_document("Ada"))
    assert an_importer().round() == 1
    assert resume_names(store, account.id) == ["Ada"]
    (file,) = told.files
    assert (file.account, file.name, file.outcome) == ("ana", "ana/sub/cv.json", FileOutcome.DONE)
    assert file.resume_id == listing.list_page(store, account.id).entries[0].id
    assert file.filed_as.read_bytes() == a_document("Ada")
    (row,) = ledger.list_files(store)
    assert (row.name, row.outcome) == ("ana/sub/cv.json", FileOutcome.DONE)


def test_a_refused_file_gets_a_report_and_a_row(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    drop(root, "ana/cv.json", b'{"header": {}, "sections": 5}')
    an_importer(settle_s=0).round()
    report = the_report(root, "_failed/invalid_resume")
    (row,) = ledger.list_files(store)
    assert (row.reason, row.message, row.path) == (
        report["reason"],
        report["message"],
        report["path"],
    )
    assert report["file"] == "ana/cv.json"
    assert told.files[0].reason == "invalid_resume"


def test_a_done_file_with_warnings_gets_a_report(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    drop(root, "ana/cv.json", a_document(nickname="Ada"))
    an_importer().round()
    assert told.files[0].warnings == 1
    assert the_report(root, "_done")["warnings"][0]["path"] == "nickname"


def test_the_same_content_under_another_name_is_a_duplicate(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    drop(root, "ana/1.json", a_document("Ada"))
    drop(root, "ana/2.json", b"\n " + a_document("Ada") + b"\r\n")
    os.link(root / "ana/1.json", root / "ana/3.json")
    drop(root, "bo/1.json", a_document("Ada"))
    importer = an_importer()
    importer.round()
    assert (resume_names(store, ana.id), resume_names(store, bo.id)) == (["Ada"], ["Ada"])
    assert len(filed(root, "_duplicate")) == 2
    drop(root, "ana/4.json", a_document("Ada"))
    importer.round()
    assert len(filed(root, "_duplicate")) == 3


def test_any_name_is_imported_and_told_escaped(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    names = [
        b"a\nb.json",
        b"bad\xff.json",
        b"-rf.json",
        b"n" * 250 + b".json",
        b"\xe2\x80\xae.json",
    ]
    for name in names:
        drop(root, "ana/" + os.fsdecode(name))
    an_importer().round()
    assert [file.outcome for file in told.files] == [FileOutcome.DONE] * len(names)
    assert all(file.name.isprintable() for file in told.files)
    assert all(row.name.isprintable() for row in ledger.list_files(store))


def test_what_is_no_file_is_left_untouched(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    target = drop(root.parent, "secret.json")
    (root / "ana").mkdir()
    (root / "ana/link.json").symlink_to(target)
    os.mkfifo(root / "ana/pipe.json")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(root / "ana/s.json"))
        importer = an_importer(settle_s=0)
        importer.round()
    assert told.files == []
    assert importer.summary().ignored == 3


def test_a_file_over_the_limit_is_refused_after_settling(
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    an_account()
    drop(root, "ana/large.json", a_document())
    os.truncate(root / "ana/large.json", 5 * 1024**3)
    importer = an_importer(settle_s=5, format=Format(max_bytes=1_000_000))
    importer.round()
    assert told.files == []
    monotonic.advance(5)
    importer.round()
    report = the_report(root, "_failed/too_large")
    assert report["message"] == "Resume too large: the limit is 1000000 bytes"
    assert (report["size_bytes"], report["sha256"]) == (5 * 1024**3, None)


def test_our_own_report_is_not_imported(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    importer = an_importer(settle_s=0)
    drop(root, "ana/bad.json", b"{}")
    importer.round()
    (path,) = (root / "_failed").rglob("*.report.json")
    path.rename(root / "ana" / "renamed.json")
    importer.round()
    importer.round()
    assert len(told.files) == 1
    assert (importer.summary().ignored, importer.summary().waiting) == (1, 0)


def test_what_does_not_fit_the_quota_is_held_and_released_in_the_order_of_arrival(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    plans.set_plan_limits(store, PlanChange("small", max_resumes=2))
    account = an_account(plan="small")
    importer = an_importer()
    for number in range(5):
        path = drop(root, f"ana/{9 - number}.json", a_document(str(number)))
        os.utime(path, ns=(number, number))
    importer.round()
    assert resume_names(store, account.id) == ["0", "1"]
    assert the_report_reasons(root) == ["quota_reached"] * 3
    drop(root, "ana/late.json", a_document("late"))
    plans.set_plan_limits(store, PlanChange("small", max_resumes=4))
    importer.round()
    assert resume_names(store, account.id) == ["0", "1", "2", "3"]
    assert len(filed(root, "_held")) == 2
    plans.set_plan_limits(store, PlanChange("small", max_resumes=None))
    importer.round()
    assert resume_names(store, account.id) == ["0", "1", "2", "3", "4", "late"]
    assert names_below(root / "_held") == []
    assert len(filed(root, "_done")) == 6
    assert importer.summary().held == 0
    assert check_counters(store) == []
    assert {row.outcome for row in ledger.list_files(store)} == {FileOutcome.DONE}


def the_report_reasons(root: Path) -> list[str]:
    rows = [path.read_text() for path in (root / "_held").rglob("*.report.json")]
    return ["quota_reached" for row in rows if '"reason": "quota_reached"' in row]


def test_a_new_file_does_not_overtake_held_ones_through_a_place_freed_meanwhile(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    plans.set_plan_limits(store, PlanChange("small", max_resumes=1))
    account = an_account(plan="small")
    for number in range(2):
        path = drop(root, f"ana/{number}.json", a_document(str(number)))
        os.utime(path, ns=(number, number))
    an_importer().round()
    drop(root, "ana/late.json", a_document("late"))
    drop(root, "ana/again.json", a_document("0"))

    def free_a_place(step: Step) -> None:
        if step is Step.JOURNAL_WRITTEN:
            plans.set_plan_limits(store, PlanChange("small", max_resumes=2))

    importer = an_importer(observe=free_a_place)
    importer.round()
    assert resume_names(store, account.id) == ["0"]
    assert len(filed(root, "_held")) == 2
    assert len(filed(root, "_duplicate")) == 1
    importer.round()
    assert resume_names(store, account.id) == ["0", "1"]


def test_while_the_store_is_out_of_reach_nothing_new_is_claimed(
    store: Store,
    root: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()

    def unavailable(store: Store, creations: Sequence[Creation]) -> None:
        raise StoreUnavailable("The store is busy")

    importer = an_importer()
    drop(root, "ana/1.json", a_document("1"))
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "create_files", unavailable)
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                importer.round()
            drop(root, "ana/2.json", a_document("2"))
        assert (root / "ana/2.json").exists()
        assert told.files == []
    importer.round()
    assert resume_names(store, account.id) == ["1", "2"]


def test_after_an_unknown_outcome_the_ledger_decides(
    store: Store,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()

    def unknown(store: Store, creations: Sequence[Creation]) -> list[list[Outcome] | ResumesError]:
        create_files(store, creations)
        raise OutcomeUnknown

    importer = an_importer()
    drop(root, "ana/1.json", a_document("1"))
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "create_files", unknown)
        with pytest.raises(OutcomeUnknown):
            importer.round()
    importer.round()
    assert resume_names(store, account.id) == ["1"]
    assert len(filed(root, "_done")) == 1
    assert names_below(root / "_duplicate") == []


def test_what_was_committed_is_filed_as_done_whatever_is_thought_of_it_now(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    account = an_account()

    def kill(step: Step) -> None:
        if step is Step.COMMITTED:
            raise KeyboardInterrupt

    drop(root, "ana/1.json", a_document("1"))
    dying = an_importer(observe=kill)
    with pytest.raises(KeyboardInterrupt):
        dying.round()
    dying.close()
    an_importer(settle_s=0, format=Format(max_bytes=5)).round()
    assert resume_names(store, account.id) == ["1"]
    assert told.outcomes() == {"ana/1.json": "done"}


def test_a_file_that_breaks_the_create_path_does_not_stop_the_others(
    store: Store,
    root: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()

    def breaks(store: Store, creations: Sequence[Creation]) -> list[list[Outcome] | ResumesError]:
        if any(new.resume.name == "poison" for one in creations for new in one.resumes):
            raise RuntimeError("broken")
        return create_files(store, creations)

    monkeypatch.setattr(pipeline, "create_files", breaks)
    for name in ("1", "poison", "2"):
        drop(root, f"ana/{name}.json", a_document(name))
    an_importer().round()
    assert sorted(resume_names(store, account.id)) == ["1", "2"]
    assert told.outcomes()["ana/poison.json"] == "failed"
    assert the_report(root, "_failed")["reason"] == "internal_error"
    rows = {row.name: row.reason for row in ledger.list_files(store)}
    assert rows["ana/poison.json"] == "internal_error"


def test_what_cannot_be_filed_stays_claimed_is_retried_and_stops_new_claims(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    account = an_account()
    importer = an_importer()
    (root / "_done").write_bytes(b"in the way")
    drop(root, "ana/1.json", a_document("1"))
    importer.round()
    drop(root, "ana/2.json", a_document("2"))
    importer.round()
    assert resume_names(store, account.id) == ["1"]
    assert (root / "ana/2.json").exists()
    (notice,) = told.notices
    assert "Cannot file ana/1.json away" in notice
    (root / "_done").unlink()
    importer.round()
    assert resume_names(store, account.id) == ["1", "2"]
    assert len(filed(root, "_done")) == 2


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

    def refuse(source: object, target: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(moves, "move", refuse)
        importer.round()
        monotonic.advance(10)
        importer.round()
    assert path.exists()
    assert len(told.notices) == 1
    monotonic.advance(10)
    importer.round()
    assert told.outcomes() == {"ana/1.json": "done"}


def test_a_full_disk_stops_the_round(
    root: Path, monkeypatch: pytest.MonkeyPatch, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    drop(root, "ana/1.json")

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    importer = an_importer()
    with monkeypatch.context() as patch:
        patch.setattr(moves, "write_new", full)
        with pytest.raises(OSError, match="No space"):
            importer.round()
    importer.round()
    assert len(filed(root, "_done")) == 1


def test_a_batch_is_full_with_files_or_with_bytes(
    root: Path, monkeypatch: pytest.MonkeyPatch, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    steps: list[Step] = []
    monkeypatch.setattr(pipeline, "BATCH_FILES", 3)
    for number in range(7):
        drop(root, f"ana/{number}.json")
    an_importer(observe=steps.append).round()
    assert steps.count(Step.COMMITTED) == 3
    monkeypatch.setattr(pipeline, "BATCH_BYTES", 1)
    for number in range(2):
        drop(root, f"ana/again{number}.json")
    an_importer(observe=steps.append).round()
    assert steps.count(Step.COMMITTED) == 5
