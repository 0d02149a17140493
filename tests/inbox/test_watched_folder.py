"""The watched folder: whose it is, what waits in it, which names are passed over, where it lies."""

import os
from pathlib import Path

import pytest

from resumes import watched_folder
from resumes.errors import InvalidArgument
from resumes.filesystems import MOUNTINFO, find_kind, is_mount_point
from resumes.watched_folder import Owner
from tests.support.resumes import a_mount, mountinfo

MINE = Owner("a" * 16, "sqlite:////srv/resumes.db")
MOVED = Owner(MINE.store_id, "postgresql://db/resumes")
OTHER = Owner("b" * 16, "sqlite:////other\x1b.db")


def mark(root: Path, content: bytes) -> None:
    (root / ".importer").mkdir()
    (root / ".importer" / "store").write_bytes(content)


def test_a_folder_is_its_first_store_s_wherever_that_store_moves(tmp_path: Path) -> None:
    watched_folder.check_owner(tmp_path, OTHER)
    assert watched_folder.find_owner(tmp_path) is None

    watched_folder.set_owner(tmp_path, MINE)
    os.utime(tmp_path / ".importer" / "store", (1, 1))
    watched_folder.set_owner(tmp_path, MOVED)

    assert watched_folder.find_owner(tmp_path) == MOVED
    assert (tmp_path / ".importer" / "store").stat().st_mtime == 1
    assert [path.name for path in (tmp_path / ".importer").iterdir()] == ["store"]


def test_another_store_takes_it_only_on_purpose_or_in_the_place_of_its_own(tmp_path: Path) -> None:
    watched_folder.replace_owner(tmp_path, OTHER.store_id, MINE)
    assert watched_folder.find_owner(tmp_path) is None

    watched_folder.set_owner(tmp_path, OTHER)
    watched_folder.replace_owner(tmp_path, "c" * 16, MINE)
    with pytest.raises(InvalidArgument, match=r"another store, known as sqlite:////other\\x1b\.db"):
        watched_folder.set_owner(tmp_path, MINE)
    assert watched_folder.find_owner(tmp_path) == OTHER

    watched_folder.replace_owner(tmp_path, OTHER.store_id, MINE)
    assert watched_folder.find_owner(tmp_path) == MINE
    watched_folder.set_owner(tmp_path, OTHER, adopts=True)
    assert watched_folder.find_owner(tmp_path) == OTHER


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
        f"_held/other/{claim}-{other}-cv.json",
    ]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    waiting = watched_folder.count_held(tmp_path)

    assert waiting == {("_held/ana", mine): 1, ("_held/ana", other): 1, ("_held/other", other): 1}
    assert watched_folder.describe_unknown(waiting, {other}) == (
        "2 files in _held/ana, _held/other are waiting for accounts that this store does not have"
    )
    assert watched_folder.describe_unknown(waiting, {mine}) == (
        "1 file in _held/ana is waiting for an account that this store does not have"
    )
    assert watched_folder.describe_unknown(waiting, set()) is None


# Mounts


def kind_of(path: str, *lines: str) -> str | None:
    return find_kind(Path(path), mountinfo(*lines))


NFS = a_mount("/srv", "nfs4")
INSIDE = [
    NFS,
    a_mount("/srv/local", "xfs", id=51, parent=50),
    a_mount("/srv/local/far", "cifs", id=52, parent=51),
]
XFS = a_mount("/srv", "xfs", id=51)


@pytest.mark.parametrize(
    ("path", "lines", "kind"),
    [
        ("/srv/x", INSIDE, "nfs4"),
        ("/srv/local/x", INSIDE, "xfs"),
        ("/srv/local/far/x", INSIDE, "cifs"),
        ("/srv/localhost", INSIDE, "nfs4"),
        ("/srvs", INSIDE, "ext4"),
        ("/", INSIDE, "ext4"),
        # The later of two mounts on one point, and one that hides another.
        ("/srv/x", [NFS, a_mount("/srv", "xfs", id=51, parent=50)], "xfs"),
        ("/srv/x", [NFS, XFS], "xfs"),
        ("/srv/x", [XFS, a_mount("/srv", "nfs4", id=52)], "nfs4"),
        ("/srv/in/x", [a_mount("/srv/in", "nfs4")], "nfs4"),
        ("/srv/in/x", [a_mount("/srv/in", "nfs4"), XFS], "xfs"),
        # Blanks and backslashes.
        ("/srv/my in/x", [a_mount(r"/srv/my\040in", "cifs")], "cifs"),
        ("/srv/a\tb\\c", [a_mount(r"/srv/a\011b\134c", "cifs")], "cifs"),
    ],
)
def test_the_mount_that_a_path_lies_on_decides(path: str, lines: list[str], kind: str) -> None:
    assert kind_of(path, *lines) == kind


def test_the_root_may_be_listed_after_what_was_moved_below_it() -> None:
    nonsense = ("", "nonsense", "1 2 - nfs", "9 27 0:1 / /srv rw")
    assert kind_of("/srv", *nonsense) == "ext4"
    assert find_kind(Path("/srv"), "nonsense") is None
    lines = [a_mount("/run", "tmpfs", id=20, parent=27), "27 1 0:2 / / rw - ext4 x rw"]
    assert [kind_of(path, *lines) for path in ("/run/x", "/srv")] == ["tmpfs", "ext4"]


def test_links_are_followed_to_where_the_path_lies(tmp_path: Path) -> None:
    link = tmp_path / "inbox"
    link.symlink_to("/srv/in")
    assert kind_of(str(link), a_mount("/srv/in", "nfs4")) == "nfs4"


@pytest.mark.skipif(not MOUNTINFO.exists(), reason="no mountinfo on this system")
def test_this_systems_own_mounts_are_read() -> None:
    assert find_kind(Path("/proc/self")) == "proc"


def test_a_mount_point_is_distinguished_from_paths_beside_it() -> None:
    lines = mountinfo(a_mount("/srv/resumes.db", "ext4"))
    answers = [
        is_mount_point(Path(path), lines)
        for path in ("/srv/resumes.db", "/srv", "/srv/resumes.db-wal")
    ]
    assert answers == [True, False, False]
