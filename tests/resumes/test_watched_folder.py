"""What a watched folder says of its store, and what is made of it."""

from pathlib import Path

import pytest

from resumes import watched_folder
from resumes.errors import InvalidArgument
from resumes.watched_folder import Owner

MINE = Owner("a" * 16, "sqlite:////srv/resumes.db")
MOVED = MINE._replace(address="postgresql://db/resumes")
OTHER = Owner("b" * 16, "sqlite:////other\x1b.db")


def mark(root: Path, content: bytes) -> None:
    (root / ".importer").mkdir()
    (root / ".importer" / "store").write_bytes(content)


def test_a_folder_is_its_first_store_s_wherever_that_store_moves(tmp_path: Path) -> None:
    watched_folder.check_owner(tmp_path, OTHER)
    assert watched_folder.find_owner(tmp_path) is None

    watched_folder.set_owner(tmp_path, MINE)
    watched_folder.set_owner(tmp_path, MOVED)

    assert watched_folder.find_owner(tmp_path) == MOVED
    assert [path.name for path in (tmp_path / ".importer").iterdir()] == ["store"]


def test_another_store_takes_it_only_on_purpose(tmp_path: Path) -> None:
    watched_folder.set_owner(tmp_path, OTHER)

    with pytest.raises(InvalidArgument, match=r"another store, known as sqlite:////other\\x1b\.db"):
        watched_folder.set_owner(tmp_path, MINE)
    assert watched_folder.find_owner(tmp_path) == OTHER

    watched_folder.set_owner(tmp_path, MINE, adopts=True)
    assert watched_folder.find_owner(tmp_path) == MINE


def test_a_store_in_the_place_of_another_gets_its_folder_and_no_one_else_s(tmp_path: Path) -> None:
    watched_folder.replace_owner(tmp_path, OTHER.store_id, MINE)
    assert watched_folder.find_owner(tmp_path) is None

    watched_folder.set_owner(tmp_path, OTHER)
    watched_folder.replace_owner(tmp_path, "c" * 16, MINE)
    assert watched_folder.find_owner(tmp_path) == OTHER

    watched_folder.replace_owner(tmp_path, OTHER.store_id, MINE)
    assert watched_folder.find_owner(tmp_path) == MINE


@pytest.mark.parametrize("content", [b"", b"[]", b'{"store": "a"}', b"\xff", b"[" * 4_000])
def test_a_mark_that_says_nothing_is_none(tmp_path: Path, content: bytes) -> None:
    mark(tmp_path, content)
    watched_folder.set_owner(tmp_path, MINE)
    assert watched_folder.find_owner(tmp_path) == MINE


def test_no_link_is_followed(tmp_path: Path) -> None:
    elsewhere, root = tmp_path / "elsewhere", tmp_path / "root"
    for folder in (elsewhere, root):
        folder.mkdir()
    (root / ".importer").symlink_to(elsewhere)

    with pytest.raises(OSError, match=r"symbolic link|Not a directory"):
        watched_folder.set_owner(root, MINE)

    assert list(elsewhere.iterdir()) == []


def test_files_that_wait_are_counted_by_folder_and_account(tmp_path: Path) -> None:
    mine, other, claim = "a" * 16, "b" * 16, "0" * 24
    names = [
        f"_held/ana/{claim}-{mine}-cv.json",
        f"_held/ana/{claim}-{mine}-cv.report.json",
        f"_held/ana/{claim}-{other}-cv.json",
        "_held/ana/notes.txt",
        f".work/i/{other}/{claim}",
        f".work/i/{other}/{claim}.tmp",
        ".work/i/lease",
        f".work/i/strange/{claim}",
    ]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    waiting = watched_folder.count_waiting(tmp_path)

    assert waiting == {
        ("_held/ana", mine): 1,
        ("_held/ana", other): 1,
        (f".work/i/{other}", other): 1,
    }
    assert watched_folder.describe_unknown(waiting, {other}) == (
        f"2 files in .work/i/{other}, _held/ana wait for accounts that this store does not know"
    )
    assert watched_folder.describe_unknown(waiting, {mine}) == (
        "1 file in _held/ana waits for an account that this store does not know"
    )
    assert watched_folder.describe_unknown(waiting, set()) is None
