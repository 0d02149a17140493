import os
from collections.abc import Callable
from pathlib import Path

from importer import scanning
from importer.scanning import Found
from resumes.store.accounts import AccountInfo
from tests.importer.builders import drop

MakeAccount = Callable[..., AccountInfo]


class Remarked:
    def __init__(self) -> None:
        self.keys: list[str] = []

    def __call__(self, key: str, sentence: str) -> None:
        self.keys.append(key)


def found(root: Path, *owners: AccountInfo, default: str | None = None) -> list[Found]:
    by_name = {owner.name: owner for owner in owners}
    inboxes = scanning.find_inboxes(str(root), by_name, default)
    return [one for inbox in inboxes for one in inbox.iter_found(Remarked())]


def test_files_belong_to_the_account_whose_folder_they_are_in(
    root: Path, an_account: MakeAccount
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    drop(root, "ana/1.json")
    drop(root, "ana/deep/er/2.JSON")
    drop(root, "bo/3.json")
    drop(root, "nobody/4.json")
    drop(root, "5.json")
    names = {(one.account.name, one.name) for one in found(root, ana, bo)}
    assert names == {("ana", "ana/1.json"), ("ana", "ana/deep/er/2.JSON"), ("bo", "bo/3.json")}


def test_files_directly_in_root_belong_to_the_chosen_account(
    root: Path, an_account: MakeAccount
) -> None:
    ana = an_account("ana")
    drop(root, "1.json")
    drop(root, "nobody/2.json")
    assert [(one.account.name, one.name) for one in found(root, ana, default="ana")] == [
        ("ana", "1.json")
    ]
    assert found(root, default="ana") == []


def test_our_folders_hidden_and_temporary_names_are_passed_over(
    root: Path, an_account: MakeAccount
) -> None:
    passed_over = [
        *("_done/a.json", "_new-in-a-later-version/a.json", ".work/i/a/c.json", "_a.json"),
        *("ana/.a.json", "ana/._a.json", "ana/.hidden/a.json", "ana/@eaDir/a.json"),
        *("ana/a.json.part", "ana/a.json.tmp", "ana/a.json~", "ana/a.json.crdownload"),
        *("ana/a.json.filepart", "ana/a.ndjson", "ana/a.json.gz", "ana/a.txt", "ana/json"),
    ]
    for name in passed_over:
        drop(root, name)
    assert found(root, an_account("ana"), default="ana") == []


def test_what_is_no_file_is_passed_over_and_links_are_not_followed(
    root: Path, an_account: MakeAccount
) -> None:
    outside = drop(root.parent, "outside/a.json")
    (root / "ana").mkdir()
    (root / "ana" / "link.json").symlink_to(outside)
    (root / "ana" / "folder").symlink_to(outside.parent)
    (root / "bo").symlink_to(outside.parent)
    (root / "ana" / "dangling.json").symlink_to("nowhere")
    os.mkfifo(root / "ana" / "pipe.json")
    drop(root, "ana/poses.json/a.json")
    assert found(root, an_account("ana"), an_account("bo")) == []


def test_any_name_is_found(root: Path, an_account: MakeAccount) -> None:
    names = [b"a\nb.json", b"bad\xff.json", b"-rf.json", b"n" * 250 + b".json", b"$(x);`.json"]
    for name in names:
        drop(root, "ana/" + os.fsdecode(name))
    seen = {os.fsencode(one.name) for one in found(root, an_account("ana"))}
    assert seen == {b"ana/" + name for name in names}


def test_the_oldest_file_of_a_folder_comes_first(root: Path, an_account: MakeAccount) -> None:
    for age, name in enumerate(["c", "a", "b"]):
        path = drop(root, f"ana/{name}.json")
        os.utime(path, ns=(age, age))
    assert [one.name[4] for one in found(root, an_account("ana"))] == ["c", "a", "b"]


def test_accounts_take_turns(root: Path, an_account: MakeAccount) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    for number in range(3):
        drop(root, f"ana/{number}.json")
    drop(root, "bo/0.json")
    inboxes = scanning.find_inboxes(str(root), {"ana": ana, "bo": bo}, None)
    sources = [inbox.iter_found(Remarked()) for inbox in inboxes]
    turns = [one.account.name for one in scanning.in_turns(sources)]
    assert turns == ["ana", "bo", "ana", "ana"]


def test_a_folder_that_cannot_be_listed_is_remarked(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    remarked = Remarked()
    seen = scanning.iter_inbox(str(path), below="ana", is_recursive=True, remark=remarked)
    assert list(seen) == []
    assert remarked.keys == ["unlisted ana"]


def test_a_folder_that_vanished_holds_nothing(tmp_path: Path) -> None:
    remarked = Remarked()
    gone = str(tmp_path / "gone")
    assert list(scanning.iter_inbox(gone, below="", is_recursive=True, remark=remarked)) == []
    assert remarked.keys == []
