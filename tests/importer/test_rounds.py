import threading
from collections.abc import Callable
from pathlib import Path

from importer.running import Runner
from importer.telling import Remarks
from resumes.store import Store, accounts
from resumes.store.accounts import AccountInfo
from tests.importer.builders import FakeMonotonic, MakeImporter, Told, drop, names_below
from tests.resumes.builders import a_document

MakeAccount = Callable[..., AccountInfo]


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


def test_the_summary_accounts_for_every_file(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account(plan="free")
    for number in range(7):
        drop(root, f"ana/{number}.json")
    drop(root, "ana/again.json", (root / "ana/6.json").read_bytes())
    drop(root, "ana/bad.json", b"[]")
    drop(root, "ana/notes.txt")
    drop(root, "nobody/1.json")
    importer = an_importer(settle_s=0)
    Runner(importer, Remarks(told.notices.append), scan_s=2).drain(threading.Event())
    summary = importer.summary()
    assert (summary.done, summary.failed) == (5, 1)
    assert summary.duplicate + summary.held == 3
    assert (summary.ignored, summary.waiting) == (1, 1)


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


def test_a_long_backlog_is_cut_into_rounds(
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    an_account("ana")
    an_account("bo")
    for number in range(6):
        drop(root, f"ana/{number}.json", a_document(str(number)))
    importer = an_importer(observe=lambda step: monotonic.advance(0.6))
    importer.round()
    drop(root, "bo/new.json")
    importer.round()
    importer.round()
    assert "bo/new.json" in told.outcomes()
    assert len(told.files) < 7


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
