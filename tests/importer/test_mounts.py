from pathlib import Path

import pytest

from importer.mounts import polling_reason
from tests.resumes.builders import a_mount, mountinfo

SHARED = (
    "nfs nfs4 cifs smb3 smbfs 9p virtiofs vboxsf vmhgfs drvfs fakeowner ceph glusterfs lustre afs "
    "fuse.sshfs fuse.grpcfuse"
)
LOCAL = "ext4 xfs btrfs zfs tmpfs overlay fuseblk ecryptfs fuse.fuse-overlayfs fuse.ntfs-3g"


def reason(kind: str) -> str | None:
    lines = mountinfo(a_mount("/srv/in", kind))
    return polling_reason(Path("/srv/in/box"), lines, platform="linux")


@pytest.mark.parametrize("kind", SHARED.split())
def test_a_shared_file_system_is_polled(kind: str) -> None:
    found = reason(kind)
    assert found is not None
    assert kind in found
    assert "not announced" in found


@pytest.mark.parametrize("kind", LOCAL.split())
def test_a_local_file_system_is_not(kind: str) -> None:
    assert reason(kind) is None


@pytest.mark.parametrize("kind", ["fuse", "fuse.somebodys"])
def test_an_unknown_file_system_in_user_space_is_polled(kind: str) -> None:
    assert "user space" in (reason(kind) or "")


def test_what_may_not_be_shown_of_a_kind_is_escaped() -> None:
    found = reason("fuse.\x1b[31m")
    assert found is not None
    assert "\x1b" not in found


def test_where_nothing_is_known_events_are_relied_on() -> None:
    assert polling_reason(Path("/srv"), "", platform="linux") is None
