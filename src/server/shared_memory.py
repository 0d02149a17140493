"""Memory that the processes of one machine share: a file below HOME, mapped."""

import mmap
import os
from pathlib import Path


def map_shared(path: Path, size_bytes: int) -> mmap.mmap:
    """Map the file's bytes as memory: what one process writes, the others see at once.

    A file that is new, or shorter, has zeros there. It is for its owner alone, as is its folder
    if that is made here. Nothing is synchronised: see to it that one writes a place, or lock.
    Raises OSError.
    """
    path.parent.mkdir(mode=0o700, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        if os.fstat(descriptor).st_size < size_bytes:
            # Whole now: memory beyond a file's end, or that finds no disk later, ends a process.
            os.posix_fallocate(descriptor, 0, size_bytes)
        return mmap.mmap(descriptor, size_bytes)
    finally:
        os.close(descriptor)
