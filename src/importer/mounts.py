"""On which file systems the system's events cannot be relied on, and on which a path lies.

inotify says what is written through this machine's kernel. What another machine writes to a
network share, or a host to the folder that it shares with a virtual machine, comes without an
event and without an error. So the kind of file system decides. Sources: proc(5) for mountinfo,
inotify(7) under "Limitations and caveats".
"""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from importer.names import escaped

MOUNTINFO = Path("/proc/self/mountinfo")

NETWORK = "a network file system, and what other machines write there is not announced"
CLUSTER = "a file system of several machines, and what the others write there is not announced"
SHARED = "a folder that a host shares with this system, and what the host writes is not announced"
USER_SPACE = "a file system in user space, and not all of those announce what is written"

POLLED = {
    kind: why
    for kinds, why in (
        (
            "nfs nfs4 cifs smb3 smbfs ncpfs afs coda davfs ceph glusterfs fuse.sshfs fuse.davfs "
            "fuse.glusterfs fuse.ceph fuse.ceph-fuse fuse.rclone fuse.s3fs fuse.smbnetfs",
            NETWORK,
        ),
        ("lustre beegfs gpfs orangefs pvfs2 ocfs2 gfs2 panfs fuse.juicefs", CLUSTER),
        (
            "9p virtiofs vboxsf vmhgfs prl_fs hostfs drvfs fakeowner osxfs grpcfuse fuse.osxfs "
            "fuse.grpcfuse fuse.vmhgfs-fuse",
            SHARED,
        ),
    )
    for kind in kinds.split()
}

LOCAL_FUSE = frozenset(
    {"fuse.fuse-overlayfs", "fuse.ntfs-3g", "fuse.ntfs", "fuse.exfat", "fuse.ext2", "fuse.fuse2fs"}
)
"""In user space, but on a disk of this machine that nobody else writes to. Of the rest nobody
knows; when in doubt, a file that is found a second later harms less than one that is not."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A line of mountinfo. `point` is the path as this process sees it."""

    id: str
    parent_id: str
    point: str
    kind: str


def polling_reason(
    path: Path, mountinfo: str | None = None, *, platform: str = sys.platform
) -> str | None:
    """Why the system's events are not to be relied on at the path; None when they are.

    The reason is the end of a sentence about the path: "it lies on nfs4, a network …". The text
    of mountinfo is read here unless it is given. None also where it cannot be read, and on
    systems without it.
    """
    if platform != "linux":
        return None
    try:
        text = os.fsdecode(MOUNTINFO.read_bytes()) if mountinfo is None else mountinfo
    except OSError:
        return None
    mount = find_mount(os.path.realpath(path), list(iter_mounts(text)))
    why = None if mount is None else _why_polled(mount.kind)
    return None if mount is None or why is None else f"it lies on {escaped(mount.kind)}, {why}"


def _why_polled(kind: str) -> str | None:
    is_unknown_fuse = kind == "fuse" or (kind.startswith("fuse.") and kind not in LOCAL_FUSE)
    return POLLED.get(kind, USER_SPACE if is_unknown_fuse else None)


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
