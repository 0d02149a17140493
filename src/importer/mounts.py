"""Where the system's events cannot be relied on, so that folders are looked through instead."""

import sys
from pathlib import Path

from importer.names import escaped
from resumes.mounts import SHARED, find_kind

USER_SPACE = "a file system in user space, and not all of those announce what is written"

LOCAL_FUSE = frozenset(
    {"fuse.fuse-overlayfs", "fuse.ntfs-3g", "fuse.ntfs", "fuse.exfat", "fuse.ext2", "fuse.fuse2fs"}
)
"""In user space, but on a disk of this machine that nobody else writes to. Of the rest nobody
knows; when in doubt, a file that is found a second later harms less than one that is not."""


def polling_reason(
    path: Path, mountinfo: str | None = None, *, platform: str = sys.platform
) -> str | None:
    """Why the system's events are not to be relied on at the path; None when they are.

    The reason is the end of a sentence about the path: "it lies on nfs4, a network …". None also
    where the kind of file system cannot be found out (`find_kind`).
    """
    kind = find_kind(path, mountinfo, platform=platform)
    why = None if kind is None else _why_polled(kind)
    return None if kind is None or why is None else f"it lies on {escaped(kind)}, {why}"


def _why_polled(kind: str) -> str | None:
    if sharing := SHARED.get(kind):
        return f"{sharing.nature}, and what {sharing.others} there is not announced"
    is_unknown_fuse = kind == "fuse" or (kind.startswith("fuse.") and kind not in LOCAL_FUSE)
    return USER_SPACE if is_unknown_fuse else None
