"""Rules of the recipe, seen through whole rounds."""

import contextlib
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from importer import bundles, committing
from importer.steps import Step
from resumes.analyzer import Format
from resumes.errors import OutcomeUnknown, StoreUnavailable
from resumes.store import Store, accounts, counters, creating, ledger, listing, plans
from resumes.store.accounts import AccountInfo
from resumes.store.creating import Creation, create_files
from resumes.store.ledger import FileOutcome
from resumes.store.plans import PlanChange
from tests.importer.builders import (
    FakeMonotonic,
    MakeImporter,
    Told,
    a_full_disk,
    drop,
    filed,
    names_below,
    resume_names,
    the_report,
)
from tests.importer.packing import zipped
from tests.resumes.builders import a_document
from tests.resumes.store.builders import Busy

MakeAccount = Callable[..., AccountInfo]


def lines(*names: str) -> bytes:
    """NDJSON of a resume for each name, and of nonsense for each empty one."""
    return b"".join((a_document(name) if name else b"nonsense") + b"\n" for name in names)


def drop_aged(root: Path, age: int, name: str, content: bytes) -> None:
    os.utime(drop(root, name, content), ns=(age, age))


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
    assert Path(file.filed_as).read_bytes() == a_document("Ada")
    (row,) = ledger.list_files(store)
    assert (row.name, row.outcome) == ("ana/sub/cv.json", FileOutcome.DONE)
    assert (row.claim_id, row.root) == (file.claim_id, str(root))


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
    os.truncate(root / "ana/large.json", 50_000_000)
    importer = an_importer(settle_s=5, format=Format(max_bytes=1_000_000), max_file_bytes=2_000_000)
    importer.round()
    assert told.files == []
    monotonic.advance(5)
    importer.round()
    report = the_report(root, "_failed/too_large")
    assert "2000000 bytes" in report["message"]
    assert report["size_bytes"] == 50_000_000


def test_what_does_not_fit_the_quota_is_held_and_released_in_the_order_of_arrival(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    plans.set_plan_limits(store, PlanChange("small", max_resumes=2))
    account = an_account(plan="small")
    importer = an_importer()
    for number in range(5):
        drop_aged(root, number, f"ana/{9 - number}.json", a_document(str(number)))
    importer.round()
    assert resume_names(store, account.id) == ["0", "1"]
    assert held_reasons(root) == ["quota_reached"] * 3
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
    assert counters.list_wrong(store) == []
    assert {row.outcome for row in ledger.list_files(store)} == {FileOutcome.DONE}


def held_reasons(root: Path) -> list[str]:
    rows = [path.read_text() for path in (root / "_held").rglob("*.report.json")]
    return ["quota_reached" for row in rows if '"reason": "quota_reached"' in row]


def test_while_the_store_is_out_of_reach_nothing_new_is_claimed(
    store: Store,
    root: Path,
    told: Told,
    busy: Busy,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()
    importer = an_importer()
    drop(root, "ana/1.json", a_document("1"))
    drop(root, "ana/2.ndjson", lines("2a", "2b"))
    with busy.held():
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                importer.round()
            drop(root, "ana/3.json", a_document("3"))
        assert (root / "ana/3.json").exists()
        assert told.files == []
    importer.round()
    assert resume_names(store, account.id) == ["1", "3"]
    assert importer.summary().waiting == 1


def test_after_an_unknown_outcome_the_ledger_decides(
    store: Store,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()

    def unknown(store: Store, creations: Sequence[Creation], **rest: Any) -> None:
        create_files(store, creations, **rest)
        raise OutcomeUnknown

    importer = an_importer()
    drop(root, "ana/1.json", a_document("1"))
    with monkeypatch.context() as patch:
        patch.setattr(committing, "create_files", unknown)
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
    add_resume = creating._add_resume

    def add(*arguments: Any) -> None:
        if arguments[3].resume.name == "poison":
            raise RuntimeError("broken")
        add_resume(*arguments)

    monkeypatch.setattr(creating, "_add_resume", add)
    for name in ("1", "poison", "2"):
        drop(root, f"ana/{name}.json", a_document(name))
    an_importer().round()
    assert sorted(resume_names(store, account.id)) == ["1", "2"]
    assert told.outcomes()["ana/poison.json"] == "failed"
    assert the_report(root, "_failed")["reason"] == "internal_error"
    rows = {row.name: row.reason for row in ledger.list_files(store)}
    assert rows["ana/poison.json"] == "internal_error"


def test_a_batch_is_full_with_files_or_with_bytes(
    root: Path, monkeypatch: pytest.MonkeyPatch, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    steps: list[Step] = []
    monkeypatch.setattr(committing, "BATCH_FILES", 3)
    for number in range(7):
        drop(root, f"ana/{number}.json")
    an_importer(observe=steps.append).round()
    assert steps.count(Step.COMMITTED) == 3
    monkeypatch.setattr(committing, "BATCH_BYTES", 1)
    for number in range(2):
        drop(root, f"ana/again{number}.json")
    an_importer(observe=steps.append).round()
    assert steps.count(Step.COMMITTED) == 5


# Files of several resumes


def test_each_resume_of_a_file_of_several_has_an_outcome_of_its_own(
    store: Store,
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()
    drop(root, "ana/many.ndjson", lines("1", "", "2", "1"))
    importer = an_importer(settle_s=5)
    importer.round()
    assert told.files == []
    monotonic.advance(5)
    importer.round()
    assert resume_names(store, account.id) == ["1", "2"]
    report = the_report(root, "_failed/invalid_json")
    outcomes = [(item["place"], item["outcome"]) for item in report["items"]]
    assert outcomes == [
        ("line 1", "done"),
        ("line 2", "failed"),
        ("line 3", "done"),
        ("line 4", "duplicate"),
    ]
    (row,) = ledger.list_files(store)
    assert row.outcome is FileOutcome.FAILED
    assert row.items is not None
    assert (row.items.total, row.items.done, row.items.failed) == (4, 2, 1)
    assert told.outcomes() == {"ana/many.ndjson": "failed"}


def test_a_file_of_several_that_is_wholly_good_is_done_with_a_report(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    account = an_account()
    drop(root, "ana/many.zip", zipped({"a.json": a_document("a"), "b.json": a_document("b")}))
    an_importer(settle_s=0).round()
    assert resume_names(store, account.id) == ["a", "b"]
    assert the_report(root, "_done")["message"] == "Imported: 2 done"


def test_a_large_file_is_imported_in_slices_and_others_get_their_turn(
    store: Store,
    root: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    monkeypatch.setattr(bundles, "SLICE_ITEMS", 2)
    ana, bo = an_account("ana"), an_account("bo")
    drop(root, "ana/many.ndjson", lines(*"12345"))
    importer = an_importer(settle_s=0)
    importer.turn()
    importer.turn()
    assert resume_names(store, ana.id) == ["1", "2"]
    drop(root, "bo/quick.json", a_document("quick"))
    importer.round()
    assert resume_names(store, ana.id) == ["1", "2", "3", "4", "5"]
    assert resume_names(store, bo.id) == ["quick"]
    assert [file.name for file in told.files] == ["bo/quick.json", "ana/many.ndjson"]


def test_what_does_not_fit_of_a_file_of_several_is_imported_when_there_is_room(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    plans.set_plan_limits(store, PlanChange("small", max_resumes=2))
    account = an_account(plan="small")
    drop(root, "ana/many.ndjson", lines("1", "2", "3", ""))
    importer = an_importer(settle_s=0)
    importer.round()
    assert resume_names(store, account.id) == ["1", "2"]
    assert the_report(root, "_held")["message"].startswith("2 done, 1 held, 1 failed")
    plans.set_plan_limits(store, PlanChange("small", max_resumes=4))
    importer.round()
    assert resume_names(store, account.id) == ["1", "2", "3"]
    assert told.outcomes() == {"ana/many.ndjson": "failed"}
    assert len(filed(root, "_failed/invalid_json")) == 1
    assert names_below(root / "_held") == []
    assert counters.list_wrong(store) == []


def test_a_file_of_several_queues_behind_held_ones(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    plans.set_plan_limits(store, PlanChange("none", max_resumes=0))
    account = an_account(plan="none")
    drop(root, "ana/1.json", a_document("1"))
    importer = an_importer(settle_s=0)
    importer.round()
    drop(root, "ana/2.ndjson", lines("2", "3"))
    importer.round()
    assert len(filed(root, "_held")) == 2
    plans.set_plan_limits(store, PlanChange("none", max_resumes=None))
    importer.round()
    assert resume_names(store, account.id) == ["1", "2", "3"]


def test_a_file_that_cannot_be_unpacked_is_refused_whole(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    account = an_account()
    drop(root, "ana/cut.zip", zipped({"a.json": a_document("a")})[:-10])
    an_importer(settle_s=0).round()
    assert resume_names(store, account.id) == []
    (row,) = ledger.list_files(store)
    assert row.reason == the_report(root, "_failed")["reason"] == "invalid_archive"


def test_a_file_of_several_is_gone_on_with_when_the_store_is_back(
    store: Store,
    root: Path,
    busy: Busy,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    monkeypatch.setattr(bundles, "SLICE_ITEMS", 2)
    account = an_account()
    drop(root, "ana/many.ndjson", lines(*"12345"))
    importer = an_importer(settle_s=0)
    importer.turn()
    importer.turn()
    with busy.held(), pytest.raises(StoreUnavailable):
        importer.round()
    assert resume_names(store, account.id) == ["1", "2"]
    importer.round()
    assert resume_names(store, account.id) == ["1", "2", "3", "4", "5"]
    assert the_report(root, "_done")["message"] == "Imported: 5 done"


def test_a_file_of_several_that_was_cut_off_is_gone_on_with_and_remembers_what_was_imported(
    store: Store,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    monkeypatch.setattr(bundles, "SLICE_ITEMS", 2)
    account = an_account()
    drop(root, "ana/many.ndjson", lines(*"12345"))
    dying = an_importer(settle_s=0)
    dying.turn()
    dying.turn()
    (_, second) = listing.list_page(store, account.id).entries
    listing.delete_resume(store, account.id, second.id)
    dying.close()
    an_importer(settle_s=0).round()
    assert resume_names(store, account.id) == ["1", "3", "4", "5"]
    assert the_report(root, "_done")["message"] == "Imported: 5 done"


def test_a_file_of_several_whose_account_goes_meanwhile_says_so(
    store: Store,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    monkeypatch.setattr(bundles, "SLICE_ITEMS", 2)
    an_account()
    drop(root, "ana/many.ndjson", lines(*"12345"))
    importer = an_importer(settle_s=0)
    importer.turn()
    importer.turn()
    accounts.delete_account(store, "ana", with_resumes=True)
    importer.round()
    assert the_report(root, "_failed")["reason"] == "account_deleted"
    assert names_below(root / "ana") == []


def test_a_file_of_several_that_changed_since_it_was_taken_settles_once_more(
    store: Store,
    root: Path,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()
    path = drop(root, "ana/many.ndjson", lines("1", "2"))
    alias = root.parent / "alias"
    os.link(path, alias)

    def write_on(step: Step) -> None:
        if step is Step.CLAIMED:
            with alias.open("ab") as file:
                file.write(lines("3"))

    importer = an_importer(settle_s=5, observe=write_on)
    importer.round()
    monotonic.advance(5)
    importer.round()
    assert names_below(root / "ana") == []
    monotonic.advance(4)
    importer.round()
    monotonic.advance(4)
    importer.round()
    assert resume_names(store, account.id) == []
    assert importer.summary().waiting == 1
    monotonic.advance(1)
    importer.round()
    assert resume_names(store, account.id) == ["1", "2", "3"]


def test_a_held_array_is_gone_on_with_although_it_bears_the_name_of_one_resume(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    plans.set_plan_limits(store, PlanChange("one", max_resumes=1))
    account = an_account(plan="one")
    body = b"[" + b",".join(a_document(name) for name in "123") + b"]"
    drop(root, "ana/three.json", body)
    importer = an_importer(settle_s=0)
    importer.round()
    importer.close()
    plans.set_plan_limits(store, PlanChange("one", max_resumes=10))
    an_importer(settle_s=5).round()
    assert resume_names(store, account.id) == ["1", "2", "3"]
    assert len(filed(root, "_done")) == 1


def test_a_held_file_under_the_number_of_another_is_a_file_of_its_own(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    plans.set_plan_limits(store, PlanChange("none", max_resumes=0))
    account = an_account(plan="none")
    drop(root, "ana/2.json", a_document("first"))
    importer = an_importer(settle_s=0)
    importer.round()
    (held,) = filed(root, "_held")
    held.with_name(held.name.replace("2.json", "2-copy.json")).write_bytes(a_document("copy"))
    plans.set_plan_limits(store, PlanChange("none", max_resumes=10))
    for _ in range(3):
        importer.round()
    assert sorted(resume_names(store, account.id)) == ["copy", "first"]
    assert len(filed(root, "_done")) == 2


def test_what_changed_after_its_commit_and_cannot_be_set_aside_stays_claimed_until_it_can(
    store: Store,
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()
    alias = root.parent / "alias"
    os.link(drop(root, "ana/cv.json", a_document("First")), alias)
    disk = contextlib.ExitStack()

    def write_on(step: Step) -> None:
        if step is Step.COMMITTED and "First" in alias.read_text():
            alias.write_bytes(a_document("Second"))
            disk.enter_context(a_full_disk())

    importer = an_importer(observe=write_on)
    with disk:
        importer.round()
        was_stuck = importer.is_stuck
        assert was_stuck
        assert told.notices == [
            "ana/cv.json changed after it was imported, and cannot be set aside"
        ]
    importer.round()
    assert not importer.is_stuck
    for _ in range(2):
        monotonic.advance(5)
        importer.round()
    assert resume_names(store, account.id) == ["First", "Second"]
    importer.close()
    assert list((root / ".work").iterdir()) == []


def test_a_folder_that_became_a_link_leads_nowhere(
    store: Store,
    root: Path,
    tmp_path: Path,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()
    drop(root, "ana/sub/cv.json", a_document("inside"))
    outside = drop(tmp_path / "outside", "cv.json", a_document("outside"))
    importer = an_importer(settle_s=0)
    importer.round(with_scan=False)
    importer._intake.force()
    importer._intake.look()
    (root / "ana" / "sub").rename(tmp_path / "gone")
    (root / "ana" / "sub").symlink_to(outside.parent)
    importer.turn()
    assert resume_names(store, account.id) == []
    assert outside.exists()
