"""Write files completely or not at all, and never replace another file by mistake (pitfalls S21).

A draft is written next to the file, and finally `place` or `replace` gives it the file's name.
`OutputFile` is for a path that the user chooses, where an earlier file of the same kind may exist.
"""

import contextlib
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from resumes.errors import Conflict, InvalidArgument

JOURNALS: Final = ("-journal", "-wal", "-shm")
"""The suffixes that SQLite appends to the name of a database. SQLite treats a file with such a name
as a part of the database, and applies or removes it (pitfalls S22)."""

SIDE_FILES: Final = (*JOURNALS, ".writer", ".lock")
"""The suffixes in JOURNALS, and the suffixes of a store's locks."""

HOME_FILES: Final = ("config.toml", "first-key", "demo-key", "watched-folders")
"""Files that commands read from the home. A backup with such a name, for example `config.toml`,
would break all commands."""

_Signature = tuple[int, int, int, int]


def check_name(path: Path) -> None:
    """Raise Conflict for a name that belongs to a database or a home."""
    if path.name in HOME_FILES:
        raise Conflict(
            f"{path} would be mistaken for one of the home's own files: choose another file"
        )
    for ending in SIDE_FILES:
        base = path.name.removesuffix(ending)
        if base not in ("", path.name) and path.with_name(base).is_file():
            raise Conflict(
                f"{path} would be mistaken for part of the database {base}: choose another file"
            )


def check_free(path: Path, remedy: str = "choose another file") -> None:
    """Raise Conflict if the name is taken, even by a dangling link."""
    check_name(path)
    if path.is_symlink():
        raise Conflict(f"{path} is a symbolic link, which is not followed: {remedy}")
    if os.path.lexists(path):
        raise Conflict(f"{path} already exists: {remedy}")


def flush(path: Path) -> None:
    """Flush the file, or a folder's list of names, to the disk.

    Do not use it for an open database: closing a second descriptor would release the database's
    locks (pitfalls S1).
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def place(new: Path, path: Path) -> None:
    """Rename the file durably to a free name. Raises Conflict if the name is taken."""
    flush(new)
    try:
        os.link(new, path)
    except FileExistsError:
        raise Conflict(f"{path} already exists: choose another file") from None
    except OSError:  # the disk does not support hard links
        check_free(path)
        new.rename(path)
    else:
        new.unlink()  # a file with two names cannot be opened as a store
    flush(path.parent)


def replace(new: Path, path: Path) -> None:
    """Rename the file durably, and replace the old file."""
    flush(new)
    new.replace(path)
    flush(path.parent)


@contextlib.contextmanager
def drafted(
    path: Path, finish: Callable[[Path, Path], object], *, mode: int = 0o600
) -> Iterator[BinaryIO]:
    """Open a new file next to the path for the block. After the block, `finish` renames it to the
    path.

    Only the owner can read the file, unless `mode` (with the umask) allows more. If the block or
    `finish` fails, the file is removed. Raises OSError.
    """
    draft = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(draft, flags, mode), "wb") as file:
            yield file
        finish(draft, path)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def reserved(path: Path) -> Iterator[None]:
    """Reserve the path during the block. Raises OSError, and Conflict if it is already reserved.

    The mark is an empty, locked, hidden file next to the path. The mark of a killed process is not
    locked and is ignored. On a disk without hard links, nothing is reserved.
    """
    digest = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]
    mark, own = (path.with_name(f".{name}.part") for name in (digest, secrets.token_hex(8)))
    with contextlib.ExitStack() as stack:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(own, flags, 0o600)
        stack.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            while not _is_linked(own, mark):
                if _is_locked(mark):
                    raise Conflict(f"{path} is being written: choose another file")
                mark.unlink(missing_ok=True)
        finally:
            own.unlink()
        stack.callback(mark.unlink, missing_ok=True)
        yield


def _is_linked(own: Path, mark: Path) -> bool:
    """Give the file the name of the mark. Return False if the name is taken."""
    try:
        os.link(own, mark)
    except FileExistsError:
        return False
    except OSError:  # the disk does not support hard links
        pass
    return True


def _is_locked(mark: Path) -> bool:
    try:
        descriptor = os.open(mark, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Convert an OSError in the block to an InvalidArgument that names the file to be written."""
    try:
        yield
    except OSError as error:
        raise InvalidArgument(f"Cannot write {path}: {error.strerror}") from error


class OutputFile:
    """A new file that a command is to write.

    If the name is taken, Conflict is raised with a message that ends with `remedy`. A regular file
    is replaced instead if `may_replace` returns True for it.

    Create this object before a store is opened: the path might be the store's own file, and closing
    that file would release the store's locks (pitfalls S1).
    """

    def __init__(
        self, path: Path, *, remedy: str, may_replace: Callable[[BinaryIO], bool] = lambda _: False
    ) -> None:
        self.path = path
        self._replaced: _Signature | None = None
        with explained(self.path):
            check_name(path)
            if (found := _find_signature(path)) is not None:
                with path.open("rb") as file:
                    self._replaced = found if may_replace(file) else None
            if self._replaced is None:
                check_free(path, remedy)

    def put(self, draft: Path) -> None:
        """Rename the draft, which is complete and on the same disk, to the file's name.

        Raises InvalidArgument if this fails, and Conflict if the name was taken or the file to be
        replaced was changed in the meantime.
        """
        with explained(self.path):
            if self._replaced is not None and _find_signature(self.path) == self._replaced:
                replace(draft, self.path)
            else:
                place(draft, self.path)

    @contextlib.contextmanager
    def opened(self, *, mode: int = 0o600) -> Iterator[BinaryIO]:
        """Open the file for the block, after which it appears. Raises the errors of `put`."""

        def finish(draft: Path, path: Path) -> None:
            self.put(draft)

        with explained(self.path), drafted(self.path, finish, mode=mode) as file:
            yield file


def _find_signature(path: Path) -> _Signature | None:
    """Return a signature that changes with the file, or None if it is not a regular file."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
