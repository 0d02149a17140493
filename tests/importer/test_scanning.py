import os
from pathlib import Path

import pytest

from importer import reading, scanning
from importer.names import EXTENSIONS
from importer.scanning import Seen
from tests.importer.builders import drop


class Remarked:
    """Collects what is told: each key with its sentence."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def __call__(self, key: str, sentence: str) -> None:
        self.told.append((key, sentence))


def look(root: Path, below: str) -> list[Seen]:
    """What lies in an inbox of ROOT, by name, with nothing remarked."""
    remarked = Remarked()
    folder = f"{root}/{below}" if below else str(root)
    seen = list(scanning.iter_inbox(folder, below=below, remark=remarked))
    assert remarked.told == []
    return sorted(seen, key=lambda one: one.name)


def to_import(root: Path, below: str) -> list[str]:
    return [one.name for one in look(root, below) if one.signature is not None]


def ignored(root: Path, below: str) -> list[str]:
    return [one.name for one in look(root, below) if one.signature is None]


def test_an_inbox_is_looked_through_with_what_is_below(root: Path) -> None:
    path = drop(root, "ana/1.json")
    drop(root, "ana/deep/er/2.JSON")
    drop(root, "bo/3.json")
    first, second = look(root, "ana")
    assert first == (str(path), "ana/1.json", reading.find_signature(path))
    assert second.name == "ana/deep/er/2.JSON"


def test_roots_own_files_are_those_directly_in_it(root: Path) -> None:
    drop(root, "1.json")
    drop(root, "ana/2.json")
    drop(root, "_done/2027-01-15/3.json")
    drop(root, "_later.json")
    drop(root, ".work/i/a/c.json")
    assert [one.name for one in look(root, "")] == ["1.json"]


@pytest.mark.parametrize("extension", [*EXTENSIONS, ".NDJSON", ".Json.GZ"])
def test_every_kind_of_file_is_found(root: Path, extension: str) -> None:
    drop(root, f"ana/cv{extension}")
    assert to_import(root, "ana") == [f"ana/cv{extension}"]


def test_hidden_temporary_and_other_names_are_not_imported(root: Path) -> None:
    names = [
        *("ana/.a.json", "ana/._a.json", "ana/a.json.part", "ana/a.json.tmp", "ana/a.json~"),
        *(
            "ana/a.json.crdownload",
            "ana/a.json.FILEPART",
            "ana/a.txt",
            "ana/json",
            "ana/a.csv.zip~",
        ),
    ]
    for name in names:
        drop(root, name)
    assert to_import(root, "ana") == []
    assert ignored(root, "ana") == sorted(names)


def test_hidden_folders_and_those_of_some_systems_are_not_looked_into(root: Path) -> None:
    for name in ("ana/.hidden/a.json", "ana/@eaDir/a.json", "ana/x/__MACOSX/a.json"):
        drop(root, name)
    drop(root, "ana/poses.json/a.json")
    assert to_import(root, "ana") == []


def test_below_an_account_our_own_names_are_names_like_others(root: Path) -> None:
    drop(root, "ana/_done/1.json")
    drop(root, "ana/_2.json")
    assert to_import(root, "ana") == ["ana/_2.json", "ana/_done/1.json"]


def test_what_is_no_file_is_not_imported_and_links_are_not_followed(root: Path) -> None:
    outside = drop(root.parent, "outside/a.json")
    (root / "ana").mkdir()
    (root / "ana" / "link.json").symlink_to(outside)
    (root / "ana" / "folder").symlink_to(outside.parent)
    (root / "ana" / "dangling.json").symlink_to("nowhere")
    os.mkfifo(root / "ana" / "pipe.json")
    assert to_import(root, "ana") == []
    assert ignored(root, "ana") == [
        *("ana/dangling.json", "ana/folder", "ana/link.json", "ana/pipe.json")
    ]


def test_any_name_is_found(root: Path) -> None:
    names = [b"a\nb.json", b"bad\xff.json", b"-rf.json", b"n" * 250 + b".json", b"$(x);`.json"]
    for name in names:
        drop(root, "ana/" + os.fsdecode(name))
    seen = {os.fsencode(name) for name in to_import(root, "ana")}
    assert seen == {b"ana/" + name for name in names}


def test_a_folder_that_cannot_be_listed_is_remarked(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    remarked = Remarked()
    assert list(scanning.iter_inbox(str(path), below="a\nna", remark=remarked)) == []
    ((key, sentence),) = remarked.told
    assert key == "unlisted a\\x0ana"
    assert sentence == "Cannot look into a\\x0ana: Not a directory. Its files wait"


def test_a_folder_that_is_gone_holds_nothing(root: Path) -> None:
    assert look(root, "gone") == []


def test_roots_own_files_and_each_folder_that_may_bear_an_accounts_name_are_inboxes(
    root: Path,
) -> None:
    for name in ("nobody", "ana", "_done", ".work", ".hidden", "@eaDir", "poses.json"):
        (root / name).mkdir()
    drop(root, "bo.json")
    (root / "bo").symlink_to(root / "ana")
    assert scanning.find_inboxes(str(root)) == ["", "ana", "nobody"]


def test_a_root_that_is_gone_is_an_error(root: Path) -> None:
    root.rmdir()
    with pytest.raises(FileNotFoundError):
        scanning.find_inboxes(str(root))
