"""The file system that a path is on: its kind, whether other machines write there too, its free space.

Where they do, this system neither hears of what they write (inotify(7), "Limitations and
caveats") nor sees their locks. The kind of file system decides: nothing else shows it, neither an
event nor an error. Source: proc(5) for mountinfo.
"""

import os
import re
import shutil
from pathlib import Path
from typing import Final

MOUNTINFO = Path("/proc/self/mountinfo")


NETWORK: Final = (
    "nfs nfs4 cifs smb3 smbfs ncpfs afs coda davfs ceph glusterfs fuse.sshfs fuse.davfs "
    "fuse.glusterfs fuse.ceph fuse.ceph-fuse fuse.rclone fuse.s3fs fuse.smbnetfs"
)
CLUSTER: Final = "lustre beegfs gpfs orangefs pvfs2 ocfs2 gfs2 panfs fuse.juicefs"
HOST: Final = (
    "9p virtiofs vboxsf vmhgfs prl_fs hostfs drvfs fakeowner osxfs grpcfuse fuse.osxfs "
    "fuse.grpcfuse fuse.vmhgfs-fuse"
)
OF_A_HOST: Final = "a folder shared by a host system"

SHARED: Final = {
    **dict.fromkeys(NETWORK.split(), "a network file system"),
    **dict.fromkeys(CLUSTER.split(), "a cluster file system"),
    **dict.fromkeys(HOST.split(), OF_A_HOST),
}
"""By kind of file system that others write to, what it is, as people say it."""


DISK_FLOOR_BYTES = 64 * 1024 * 1024
"""What stays free: with less, the API refuses resumes, and the importer copies no file to the disk."""


def free_bytes(path: Path) -> int:
    """Return how much this user may still write to the disk that the path is on. Raises OSError."""
    return shutil.disk_usage(path).free


def find_kind(path: Path, mountinfo: str | None = None) -> str | None:
    """Return the kind of file system that the path is on, such as "ext4".

    `mountinfo` is the text of the system's list of mounts, by default read here. None if it cannot
    be read, and on systems without it.
    """
    return _find_mount(path, mountinfo)[1]


def is_mount_point(path: Path, mountinfo: str | None = None) -> bool:
    """Return whether something is mounted on the path itself, be it a single file.

    `os.path.ismount` does not see a file that is bound from the same file system. False if
    mountinfo cannot be read, and on systems without it.
    """
    return _find_mount(path, mountinfo)[0] == os.path.realpath(path)


def _find_mount(path: Path, mountinfo: str | None) -> tuple[str, str] | tuple[None, None]:
    """Return the path at which this process sees the file system that the path is on, and its kind."""
    try:
        text = os.fsdecode(MOUNTINFO.read_bytes()) if mountinfo is None else mountinfo
    except OSError:
        return None, None
    place = os.path.realpath(path) + "/"
    found = []
    for line in text.split("\n"):
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if separator and len(fields) >= 6:
            # Blanks, line ends and backslashes are written as `\040` and the like.
            point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
            if place.startswith(point.rstrip("/") + "/"):
                found.append((point, after.split(" ")[0]))
    # The last one made hides the others on the way. The root may be listed behind what an initramfs
    # has moved below it.
    return sorted(found, key=lambda mount: mount[0] != "/")[-1] if found else (None, None)
