"""On which file system a path lies, and whether other machines write there too.

Where they do, this system neither hears of what they write (inotify(7), "Limitations and
caveats") nor sees their locks. The kind of file system decides: nothing else tells, neither an
event nor an error. Source: proc(5) for mountinfo.
"""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

MOUNTINFO = Path("/proc/self/mountinfo")


class Sharing(NamedTuple):
    """What kind of file system it is that others write to, and who those are, as people say it."""

    nature: str
    others: str


NETWORK = Sharing("a network file system", "other machines write")
CLUSTER = Sharing("a file system of several machines", "the others write")
HOST = Sharing("a folder that a host shares with this system", "the host writes")

SHARED = {
    kind: sharing
    for kinds, sharing in (
        (
            "nfs nfs4 cifs smb3 smbfs ncpfs afs coda davfs ceph glusterfs fuse.sshfs fuse.davfs "
            "fuse.glusterfs fuse.ceph fuse.ceph-fuse fuse.rclone fuse.s3fs fuse.smbnetfs",
            NETWORK,
        ),
        ("lustre beegfs gpfs orangefs pvfs2 ocfs2 gfs2 panfs fuse.juicefs", CLUSTER),
        (
            "9p virtiofs vboxsf vmhgfs prl_fs hostfs drvfs fakeowner osxfs grpcfuse fuse.osxfs "
            "fuse.grpcfuse fuse.vmhgfs-fuse",
            HOST,
        ),
    )
    for kind in kinds.split()
}


@dataclass(frozen=True, slots=True)
class Mount:
    """A line of mountinfo. `point` is the path as this process sees it."""

    id: str
    parent_id: str
    point: str
    kind: str


def find_kind(
    path: Path, mountinfo: str | None = None, *, platform: str = sys.platform
) -> str | None:
    """The kind of file system that the path lies on, such as "ext4".

    The text of mountinfo is read here unless it is given. None where it cannot be read, and on
    systems without it.
    """
    mount = _find(path, mountinfo, platform)
    return None if mount is None else mount.kind


def is_mount_point(
    path: Path, mountinfo: str | None = None, *, platform: str = sys.platform
) -> bool:
    """Return whether something is mounted on the path itself, be it a single file.

    `os.path.ismount` does not see a file that is bound from the same file system. False where
    mountinfo cannot be read, and on systems without it.
    """
    mount = _find(path, mountinfo, platform)
    return mount is not None and mount.point == os.path.realpath(path)


def _find(path: Path, mountinfo: str | None, platform: str) -> Mount | None:
    if platform != "linux":
        return None
    try:
        text = os.fsdecode(MOUNTINFO.read_bytes()) if mountinfo is None else mountinfo
    except OSError:
        return None
    return find_mount(os.path.realpath(path), list(iter_mounts(text)))


def iter_mounts(mountinfo: str) -> Iterator[Mount]:
    """The mounts that the text lists; what is no such line is passed over."""
    for line in mountinfo.split("\n"):
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if separator and len(fields) >= 6:
            yield Mount(fields[0], fields[1], _unescaped(fields[4]), after.split(" ")[0])


def _unescaped(field: str) -> str:
    """Blanks, line ends and backslashes are written as `\\040` and the like."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)


def find_mount(path: str, mounts: list[Mount]) -> Mount | None:
    """The mount that a look-up of the absolute path ends in.

    It goes from mount to mount as the kernel does: in each, the first one on the way that hangs
    on it. So the later of two at one point wins, and what a mount above has hidden is not found.
    """
    on_the_way = [mount for mount in mounts if _is_below(path, mount.point)]
    ids = {mount.id for mount in mounts}
    found: Mount | None = None
    passed: set[str] = set()
    while True:
        found_id = found.id if found else None
        nexts = [
            mount
            for mount in on_the_way
            if mount.id not in passed
            and (mount.parent_id == found_id if found else _is_top(mount, ids))
        ]
        if not nexts:
            return found
        found = min(reversed(nexts), key=lambda mount: len(mount.point))
        passed.add(found.id)


def _is_top(mount: Mount, ids: set[str]) -> bool:
    """Whether it hangs on none that this process can see."""
    return mount.parent_id not in ids or mount.parent_id == mount.id


def _is_below(path: str, point: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")
