"""Find the file system of a path: its kind, whether other machines write to it, and its free space.

If other machines write to it, this system receives no events of their writes (inotify(7),
"Limitations and caveats") and does not see their locks. This causes no error, so only the kind of
the file system shows it. The format of mountinfo is described in proc(5).
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
"""The kinds of file systems that other machines may write to, each with a description."""


DISK_FLOOR_BYTES = 64 * 1024 * 1024
"""The space that is kept free. With less space, the API rejects resumes, and the importer does not
copy files to the disk."""


def free_bytes(path: Path) -> int:
    """Return the number of bytes that this user can write to the path's disk. Raises OSError."""
    return shutil.disk_usage(path).free


def find_kind(path: Path, mountinfo: str | None = None) -> str | None:
    """Return the kind of the path's file system, such as "ext4".

    `mountinfo` is the system's list of mounts; by default, it is read from the system. Return None
    if it cannot be read or does not exist.
    """
    return _find_mount(path, mountinfo)[1]


def is_mount_point(path: Path, mountinfo: str | None = None) -> bool:
    """Return whether the path itself is a mount point, even of a single file.

    `os.path.ismount` does not detect a file that is bound from the same file system. Return False
    if mountinfo cannot be read or does not exist.
    """
    return _find_mount(path, mountinfo)[0] == os.path.realpath(path)


def _find_mount(path: Path, mountinfo: str | None) -> tuple[str, str] | tuple[None, None]:
    """Return the mount point and the kind of the path's file system, or None for both."""
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
            # Spaces, line breaks and backslashes are escaped, for example as `\040`.
            point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
            if place.startswith(point.rstrip("/") + "/"):
                found.append((point, after.split(" ")[0]))
    # The last mount hides earlier mounts at the same path. Sort the root first: mounts that an
    # initramfs has moved below it may be listed before it.
    return sorted(found, key=lambda mount: mount[0] != "/")[-1] if found else (None, None)
