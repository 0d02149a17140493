"""Moving without replacing, and writing so that it is there after a power cut."""

import ctypes
import errno
import filecmp
import os
import shutil
from pathlib import Path

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_NOT_SUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})

_renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def move(source: str | Path, target: str | Path, *, source_fd: int | None = None) -> None:
    """Move a file to where nothing is; whatever is at the target stays.

    With `source_fd` the source is below that open folder. Raises FileExistsError when something is
    at the target, FileNotFoundError when nothing is at the source (someone else moved it), and
    OSError. A plain rename replaces silently, and does nothing, successfully, between two links of
    one file.
    """
    if _renameat2 is None:
        link_and_unlink(source, target, source_fd=source_fd)
        return
    done = _renameat2(
        _AT_FDCWD if source_fd is None else source_fd,
        os.fsencode(source),
        _AT_FDCWD,
        os.fsencode(target),
        _RENAME_NOREPLACE,
    )
    if done == 0:
        return
    code = ctypes.get_errno()
    if code not in _NOT_SUPPORTED:
        raise OSError(code, os.strerror(code), str(source), None, str(target))
    link_and_unlink(source, target, source_fd=source_fd)


def link_and_unlink(
    source: str | Path, target: str | Path, *, source_fd: int | None = None
) -> None:
    """`move` where the system cannot refuse to replace."""
    # Cut off between the two, the content has two names: a duplicate of itself, never a loss.
    os.link(source, target, src_dir_fd=source_fd, follow_symlinks=False)
    os.unlink(source, dir_fd=source_fd)


def copy(source: str | Path, target: Path) -> None:
    """Copy a file, with its times, so that it is on the disk. Raises OSError."""
    shutil.copyfile(source, target, follow_symlinks=False)
    shutil.copystat(source, target, follow_symlinks=False)
    with target.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_copy(source: str | Path, target: str | Path) -> bool:
    """Whether the target is a file of the same content. Raises OSError."""
    return os.path.isfile(target) and filecmp.cmp(source, target, shallow=False)  # noqa: PTH113


def write_new(path: Path, content: bytes) -> None:
    """The file exists with this content, on the disk; or, with an OSError, it does not exist.

    Raises FileExistsError when something is there, and leaves that as it is.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        os.fsync(descriptor)
    except OSError:
        path.unlink()
        raise
    finally:
        os.close(descriptor)


def write_over(path: Path, content: bytes, *, temporary: Path) -> None:
    """The file has this content, on the disk, in place of any earlier: whole or not at all."""
    temporary.unlink(missing_ok=True)
    write_new(temporary, content)
    temporary.replace(path)
