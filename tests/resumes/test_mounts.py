from pathlib import Path

import pytest

from resumes.mounts import MOUNTINFO, find_kind, find_mount, is_mount_point, iter_mounts
from tests.resumes.builders import a_mount, mountinfo


def kind_of(path: str, *lines: str) -> str | None:
    return find_kind(Path(path), mountinfo(*lines), platform="linux")


def test_the_mount_that_a_path_lies_on_decides() -> None:
    lines = [
        a_mount("/srv", "nfs4"),
        a_mount("/srv/local", "xfs", id=51, parent=50),
        a_mount("/srv/local/far", "cifs", id=52, parent=51),
    ]
    assert kind_of("/srv/x", *lines) == "nfs4"
    assert kind_of("/srv/local/x", *lines) == "xfs"
    assert kind_of("/srv/local/far/x", *lines) == "cifs"
    assert kind_of("/srv/localhost", *lines) == "nfs4"
    assert kind_of("/srvs", *lines) == "ext4"
    assert kind_of("/", *lines) == "ext4"


def test_the_later_of_two_mounts_on_one_point_decides() -> None:
    below = a_mount("/srv", "nfs4")
    assert kind_of("/srv/x", below, a_mount("/srv", "xfs", id=51, parent=50)) == "xfs"
    assert kind_of("/srv/x", below, a_mount("/srv", "xfs", id=51)) == "xfs"
    assert kind_of("/srv/x", a_mount("/srv", "xfs"), a_mount("/srv", "nfs4", id=51)) == "nfs4"


def test_a_mount_that_another_hides_does_not_decide() -> None:
    hidden = a_mount("/srv/in", "nfs4")
    assert kind_of("/srv/in/x", hidden) == "nfs4"
    assert kind_of("/srv/in/x", hidden, a_mount("/srv", "xfs", id=51)) == "xfs"


def test_blanks_and_backslashes_in_mount_points_are_read() -> None:
    assert kind_of("/srv/my in/x", a_mount(r"/srv/my\040in", "cifs")) == "cifs"
    assert kind_of("/srv/a\tb\\c", a_mount(r"/srv/a\011b\134c", "cifs")) == "cifs"


def test_lines_that_are_none_are_passed_over() -> None:
    text = mountinfo("", "nonsense", "1 2 - nfs", "9 27 0:1 / /srv rw")
    (mount,) = iter_mounts(text)
    assert mount.point == "/"
    assert find_mount("/srv", []) is None
    assert find_kind(Path("/srv"), "", platform="linux") is None


def test_mounts_that_name_each_other_come_to_an_end() -> None:
    lines = "\n".join(
        ["27 27 0:1 / / rw - ext4 x rw", a_mount("/", "nfs4", id=28), a_mount("/", "xfs", id=28)]
    )
    assert find_mount("/srv", list(iter_mounts(lines))) is not None


def test_links_are_followed_to_where_the_path_lies(tmp_path: Path) -> None:
    link = tmp_path / "inbox"
    link.symlink_to("/srv/in")
    assert kind_of(str(link), a_mount("/srv/in", "nfs4")) == "nfs4"


def test_other_systems_are_not_asked() -> None:
    lines = mountinfo(a_mount("/srv", "nfs4"))
    assert find_kind(Path("/srv"), lines, platform="darwin") is None


@pytest.mark.skipif(not MOUNTINFO.exists(), reason="no mountinfo on this system")
def test_this_systems_own_mounts_are_read() -> None:
    assert find_kind(Path("/proc/self")) == "proc"


def test_a_path_that_something_is_mounted_on_is_told_from_one_below() -> None:
    lines = mountinfo(a_mount("/srv/resumes.db", "ext4"))
    answers = [
        is_mount_point(Path(path), lines, platform="linux")
        for path in ("/srv/resumes.db", "/srv", "/srv/resumes.db-wal")
    ]
    assert answers == [True, False, False]
    assert not is_mount_point(Path("/srv/resumes.db"), lines, platform="darwin")
