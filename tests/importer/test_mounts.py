from pathlib import Path

import pytest

from importer.mounts import MOUNTINFO, find_mount, iter_mounts, polling_reason

ROOT = "27 1 254:0 / / rw,relatime - ext4 /dev/sda rw"
"""Of a system whose other mounts were made first, so that it stands after them."""

SHARED = (
    "nfs nfs4 cifs smb3 smbfs 9p virtiofs vboxsf vmhgfs drvfs fakeowner ceph glusterfs lustre afs "
    "fuse.sshfs fuse.grpcfuse"
)
LOCAL = "ext4 xfs btrfs zfs tmpfs overlay fuseblk ecryptfs fuse.fuse-overlayfs fuse.ntfs-3g"


def mountinfo(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def a_mount(point: str, kind: str, *, id: int = 50, parent: int = 27) -> str:  # noqa: A002  (as proc(5) names it)
    return f"{id} {parent} 0:44 / {point} rw,relatime shared:7 master:1 - {kind} source rw"


def reason(path: str, *lines: str) -> str | None:
    return polling_reason(Path(path), mountinfo(ROOT, *lines), platform="linux")


@pytest.mark.parametrize(
    "kind",
    SHARED.split(),
)
def test_a_shared_file_system_is_polled(kind: str) -> None:
    found = reason("/srv/in/box", a_mount("/srv/in", kind))
    assert found is not None
    assert kind in found
    assert "not announced" in found


@pytest.mark.parametrize(
    "kind",
    LOCAL.split(),
)
def test_a_local_file_system_is_not(kind: str) -> None:
    assert reason("/srv/in/box", a_mount("/srv/in", kind)) is None


@pytest.mark.parametrize("kind", ["fuse", "fuse.somebodys"])
def test_an_unknown_file_system_in_user_space_is_polled(kind: str) -> None:
    assert "user space" in (reason("/srv/in", a_mount("/srv/in", kind)) or "")


def test_the_mount_that_a_path_lies_on_decides() -> None:
    lines = [
        a_mount("/srv", "nfs4"),
        a_mount("/srv/local", "ext4", id=51, parent=50),
        a_mount("/srv/local/far", "cifs", id=52, parent=51),
    ]
    assert reason("/srv/x", *lines) is not None
    assert reason("/srv/local/x", *lines) is None
    assert reason("/srv/local/far/x", *lines) is not None
    assert reason("/srv/localhost", *lines) is not None
    assert reason("/srvs", *lines) is None
    assert reason("/", *lines) is None


def test_the_later_of_two_mounts_on_one_point_decides() -> None:
    below = a_mount("/srv", "nfs4")
    assert reason("/srv/x", below, a_mount("/srv", "ext4", id=51, parent=50)) is None
    assert reason("/srv/x", below, a_mount("/srv", "ext4", id=51)) is None
    assert reason("/srv/x", a_mount("/srv", "ext4"), a_mount("/srv", "nfs4", id=51)) is not None


def test_a_mount_that_another_hides_does_not_decide() -> None:
    hidden = a_mount("/srv/in", "nfs4")
    assert reason("/srv/in/x", hidden) is not None
    assert reason("/srv/in/x", hidden, a_mount("/srv", "ext4", id=51)) is None


def test_blanks_and_backslashes_in_mount_points_are_read() -> None:
    assert reason("/srv/my in/x", a_mount(r"/srv/my\040in", "cifs")) is not None
    assert reason("/srv/a\tb\\c", a_mount(r"/srv/a\011b\134c", "cifs")) is not None


def test_what_may_not_be_shown_of_a_kind_is_escaped() -> None:
    found = reason("/srv/in", a_mount("/srv/in", "fuse.\x1b[31m"))
    assert found is not None
    assert "\x1b" not in found


def test_lines_that_are_none_are_passed_over() -> None:
    text = mountinfo("", "nonsense", "1 2 - nfs", ROOT, "9 27 0:1 / /srv rw")
    (mount,) = iter_mounts(text)
    assert mount.point == "/"
    assert find_mount("/srv", []) is None
    assert polling_reason(Path("/srv"), "", platform="linux") is None


def test_mounts_that_name_each_other_come_to_an_end() -> None:
    lines = mountinfo(
        "27 27 0:1 / / rw - ext4 x rw", a_mount("/", "nfs4", id=28), a_mount("/", "xfs", id=28)
    )
    assert find_mount("/srv", list(iter_mounts(lines))) is not None


def test_links_are_followed_to_where_the_path_lies(tmp_path: Path) -> None:
    link = tmp_path / "inbox"
    link.symlink_to("/srv/in")
    lines = mountinfo(ROOT, a_mount("/srv/in", "nfs4"))
    assert polling_reason(link, lines, platform="linux") is not None


def test_other_systems_are_not_asked() -> None:
    lines = mountinfo(ROOT, a_mount("/srv", "nfs4"))
    assert polling_reason(Path("/srv"), lines, platform="darwin") is None


@pytest.mark.skipif(not MOUNTINFO.exists(), reason="no mountinfo on this system")
def test_this_systems_own_mounts_are_read() -> None:
    mounts = list(iter_mounts(MOUNTINFO.read_text(errors="surrogateescape")))
    found = find_mount("/proc/self", mounts)
    assert found is not None
    assert found.kind == "proc"
    assert polling_reason(Path("/proc/self")) is None
