"""Files that a command writes: complete or not at all, and never over another file by mistake (pitfalls S21).

A draft is written next to the file and gets its name at the end, by `place` or by `replace`.
`OutputFile` is for a path that a user names, where an earlier file of the same kind may exist.
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
"""The suffixes that SQLite appends to the name of a database. It treats a file with such a name as part
of the database, and applies or removes it (pitfalls S22)."""

SIDE_FILES: Final = (*JOURNALS, ".writer", ".lock")
"""These, and the suffixes of a store's locks."""

HOME_FILES: Final = ("config.toml", "first-key", "demo-key", "watched-folders")
"""The files that a home reads: a backup with the name `config.toml` would break all commands."""

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
    """Raise Conflict if anything has the name, even a dangling link."""
    check_name(path)
    if path.is_symlink():
        raise Conflict(f"{path} is a symbolic link, which is not followed: {remedy}")
    if os.path.lexists(path):
        raise Conflict(f"{path} already exists: {remedy}")


def flush(path: Path) -> None:
    """Wait until the file, or a folder's list of names, is on the disk.

    Do not use it for an open database: closing a second descriptor would drop its locks (pitfalls S1).
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def place(new: Path, path: Path) -> None:
    """Give the file a free name, durably. Raises Conflict if the name is not free."""
    flush(new)
    try:
        os.link(new, path)
    except FileExistsError:
        raise Conflict(f"{path} already exists: choose another file") from None
    except OSError:  # a disk without hard links
        check_free(path)
        new.rename(path)
    else:
        new.unlink()  # since a file with two names is not opened as a store
    flush(path.parent)


def replace(new: Path, path: Path) -> None:
    """Give the file the name, durably, replacing the old file."""
    flush(new)
    new.replace(path)
    flush(path.parent)


@contextlib.contextmanager
def drafted(
    path: Path, finish: Callable[[Path, Path], object], *, mode: int = 0o600
) -> Iterator[BinaryIO]:
    """Open a new file next to the path for the block, after which `finish` gives it the path.

    Only its owner may read it, unless `mode`, restricted by the umask, permits more. If the block or
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
    """Reserve the path during the block. Raises Conflict if another block has reserved it, and OSError.

    The mark is an empty, locked, hidden file next to the path; that of a killed process is not locked.
    A disk without hard links has no marks.
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
    """Give the file the name of the mark; return False if that is taken."""
    try:
        os.link(own, mark)
    except FileExistsError:
        return False
    except OSError:  # a disk without hard links
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
    """Raise InvalidArgument, which names the file to be written, for an OSError of the block."""
    try:
        yield
    except OSError as error:
        raise InvalidArgument(f"Cannot write {path}: {error.strerror}") from error


class OutputFile:
    """A new file that a command was told to write.

    If the name is taken, raise Conflict, with `remedy` at the end; but replace a regular file for whose
    content `may_replace` returns True.

    Create it before a store is opened: the file might be the store's own, and closing it would drop the
    store's locks (pitfalls S1).
    """

    def __init__(
        self,
        path: Path,
        *,
        remedy: str,
        may_replace: Callable[[BinaryIO], bool] = lambda _: False,
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
        """Give the draft, which is complete and on the same disk, the file's name.

        Raises InvalidArgument if that fails, and Conflict if the name was taken or the file to be
        replaced was changed in the meantime.
        """
        with explained(self.path):
            if self._replaced is not None and _find_signature(self.path) == self._replaced:
                replace(draft, self.path)
            else:
                place(draft, self.path)

    @contextlib.contextmanager
    def opened(self, *, mode: int = 0o600) -> Iterator[BinaryIO]:
        """Open the file for the block, at whose end it appears, complete. Raises the errors of `put`."""

        def finish(draft: Path, path: Path) -> None:
            self.put(draft)

        with explained(self.path), drafted(self.path, finish, mode=mode) as file:
            yield file


def _find_signature(path: Path) -> _Signature | None:
    """Return the signature of a regular file, which changes with it; None if there is none."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
