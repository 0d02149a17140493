"""The importer's scenarios of docs/pitfalls.md, each test named after its row."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from importer import judging
from importer.judging import Judged
from importer.steps import Step
from resumes.analyzer import Format
from resumes.store import Store, accounts, ledger, listing, plans
from resumes.store.accounts import AccountInfo
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


class Killed(BaseException):
    """Stands for the process ending at a step; nothing catches it."""


def killed_at(which: Step) -> Callable[[Step], None]:
    def observe(step: Step) -> None:
        if step is which:
            raise Killed

    return observe


def test_i1_a_deleted_resume_can_be_dropped_again_and_a_refused_file_is_no_duplicate(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    account = an_account()
    importer = an_importer(settle_s=0)
    drop(root, "ana/1.json", a_document("Ada"))
    drop(root, "ana/bad1.json", b"{}")
    importer.round()
    (entry,) = listing.list_page(store, account.id).entries
    listing.delete_resume(store, account.id, entry.id)
    drop(root, "ana/2.json", a_document("Ada"))
    drop(root, "ana/bad2.json", b"{}")
    importer.round()
    assert told.outcomes() == {
        "ana/1.json": "done",
        "ana/2.json": "done",
        "ana/bad1.json": "failed",
        "ana/bad2.json": "failed",
    }


def test_i1_killed_after_the_commit_then_deleted_then_recovered_does_not_bring_it_back(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    account = an_account()
    drop(root, "ana/1.json", a_document("Ada"))
    dying = an_importer(observe=killed_at(Step.COMMITTED))
    with pytest.raises(Killed):
        dying.round()
    dying.close()
    (entry,) = listing.list_page(store, account.id).entries
    listing.delete_resume(store, account.id, entry.id)
    an_importer().round()
    assert resume_names(store, account.id) == []
    assert len(filed(root, "_done")) == 1


def test_i3_a_writer_first_puts_an_empty_object_or_zeros_and_nothing_is_judged_too_soon(
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    an_account()
    importer = an_importer(settle_s=5)
    drop(root, "ana/1.json", b"{}")
    drop(root, "ana/2.json", b"\x00" * 500)
    drop(root, "ana/3.json", a_document("Cut")[:40])
    drop(root, "ana/4.json", b"{}")
    importer.round()
    monotonic.advance(4.9)
    importer.round()
    assert told.files == []
    for number in (1, 2, 3):
        drop(root, f"ana/{number}.json", a_document(str(number)))
    monotonic.advance(0.2)
    importer.round()
    assert told.outcomes() == {
        "ana/1.json": "done",
        "ana/2.json": "done",
        "ana/3.json": "done",
        "ana/4.json": "failed",
    }


def test_i5_a_newer_file_of_the_same_name_survives_a_claim_that_has_to_settle(
    store: Store,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()
    path = drop(root, "ana/cv.json", a_document("First"))
    importer = an_importer(settle_s=5)
    real = judging.judge

    def judge_and_go_on_writing(path_read: str, format: Format) -> Judged | None:  # noqa: A002  (as in judging.judge)
        judged = real(path_read, format)
        if path_read == str(path) and path.stat().st_ino == first_inode:
            path.write_bytes(b'{"begun": "anew')
        return judged

    first_inode = path.stat().st_ino
    monkeypatch.setattr(judging, "judge", judge_and_go_on_writing)
    importer.round()
    assert not path.exists()
    drop(root, "ana/cv.json", a_document("Newer"))
    importer.round()
    assert resume_names(store, account.id) == ["Newer"]
    (claimed,) = (root / ".work").glob("*/*/*[!n]")
    claimed.write_bytes(a_document("First, finished"))
    importer.round()
    assert resume_names(store, account.id) == ["Newer", "First, finished"]
    assert len(filed(root, "_done")) == 2


def test_i5_equal_names_never_overwrite_one_another(
    root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    importer = an_importer()
    for number in range(3):
        drop(root, "ana/cv.json", a_document(str(number)))
        importer.round()
    contents = {path.read_bytes() for path in filed(root, "_done")}
    assert contents == {a_document(str(number)) for number in range(3)}


@pytest.mark.parametrize("step", [Step.JOURNAL_WRITTEN, Step.CLAIMED, Step.COMMITTED, Step.MOVED])
def test_i6_recovery_knows_the_account_and_the_name_of_a_claim(
    store: Store,
    root: Path,
    told: Told,
    an_account: MakeAccount,
    an_importer: MakeImporter,
    step: Step,
) -> None:
    account = an_account()
    name = os.fsdecode(b"ana/deep/bad\xff\n.json")
    drop(root, name, a_document("Ada"))
    dying = an_importer(observe=killed_at(step))
    with pytest.raises(Killed):
        dying.round()
    dying.close()
    importer = an_importer()
    importer.round()
    importer.close()
    assert resume_names(store, account.id) == ["Ada"]
    assert [file.name for file in told.files] == (
        [] if step is Step.MOVED else ["ana/deep/bad\\xff\\x0a.json"]
    )
    assert len(filed(root, "_done")) == 1
    assert names_below(root / ".work") == []


def test_i6_two_importers_never_take_one_file_twice(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    account = an_account()
    for number in range(20):
        drop(root, f"ana/{number}.json", a_document(str(number)))
    second = an_importer()
    overtaken: list[Step] = []

    def overtake(step: Step) -> None:
        if step is Step.JOURNAL_WRITTEN and not overtaken:
            overtaken.append(step)
            second.round()

    first = an_importer(observe=overtake)
    first.round()
    first.round()
    assert sorted(resume_names(store, account.id)) == sorted(str(n) for n in range(20))
    assert len(told.files) == 20
    assert len(filed(root, "_done")) == 20


def test_s14_files_of_a_deleted_account_do_not_enter_the_next_account_of_its_name(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    plans.set_plan_limits(store, PlanChange("one", max_resumes=1))
    an_account("ana", plan="one")
    for number in range(3):
        drop(root, f"ana/{number}.json", a_document(str(number)))
    an_importer().round()
    assert len(filed(root, "_held")) == 2
    accounts.delete_account(store, "ana", with_resumes=True)
    drop(root, "ana/claimed.json")
    successor = an_account("ana")
    dying = an_importer(observe=killed_at(Step.CLAIMED))
    for path in (root / "_held").rglob("*.report.json"):
        path.unlink()
    with pytest.raises(Killed):
        dying.round()
    dying.close()
    an_importer().round()
    assert resume_names(store, successor.id) == [f"Owner of {b'ana/claimed.json'!r}"]
    assert len(filed(root, "_failed/account_deleted")) == 2
    assert names_below(root / "_held") == []
    assert [row.outcome for row in ledger.list_files(store, account_id=successor.id)] == ["done"]


def test_s14_a_claim_of_a_deleted_account_says_so(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account("ana")
    drop(root, "ana/cv.json")
    dying = an_importer(observe=killed_at(Step.CLAIMED))
    with pytest.raises(Killed):
        dying.round()
    dying.close()
    accounts.delete_account(store, "ana")
    successor = an_account("ana")
    an_importer().round()
    assert resume_names(store, successor.id) == []
    report = the_report(root, "_failed")
    assert (report["reason"], report["message"]) == ("account_deleted", "The account was deleted")
