"""Where an importer keeps its claims, and how others know whether it lives.

    ROOT/.work/<importer id>/lease               locked by `flock` for as long as it runs
    ROOT/.work/<importer id>/<account id>/...    its claims

A lock ends with its process however that ends, and is the sole authority: no pid is read. The
lease's name is compared with what was locked, since a folder may be tidied away meanwhile.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from importer.reading import find_signature, signature_of

LEASE = "lease"


class Workspace:
    """An importer's folder of claims, its lease held by this process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._is_left = False

    @property
    def is_held(self) -> bool:
        """Whether the lease that we locked is still the one that others find."""
        found = find_signature(self.path / LEASE)
        return found is not None and found.inode == os.fstat(self._descriptor).st_ino

    def account_folder(self, account_id: str) -> Path:
        """The folder of an account's claims; it exists."""
        folder = self.path / account_id
        folder.mkdir(exist_ok=True)
        return folder

    def account_folders(self) -> Iterator[Path]:
        """The folders of accounts that have or had claims here."""
        with contextlib.suppress(FileNotFoundError):
            yield from sorted(path for path in self.path.iterdir() if path.name != LEASE)

    def leave(self) -> None:
        """The lease is free. What holds no claim any more is gone; the rest is for the next one.

        Safe to call twice.
        """
        if self._is_left:
            return
        self._is_left = True
        with contextlib.suppress(OSError):
            for folder in self.account_folders():
                folder.rmdir()
            if self.is_held and os.listdir(self.path) == [LEASE]:  # noqa: PTH208  (one call)
                (self.path / LEASE).unlink()
                self.path.rmdir()
        os.close(self._descriptor)


def make(work: Path, importer_id: str) -> Workspace | None:
    """A new folder of claims under `work`; None when another importer tidied it away at once."""
    path = work / importer_id
    work.mkdir(exist_ok=True)
    path.mkdir(exist_ok=True)
    return take_over(path)


def take_over(path: Path) -> Workspace | None:
    """The folder of an importer that is gone; None while it runs, or when another took it."""
    try:
        descriptor = os.open(path / LEASE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found = find_signature(path / LEASE)
        if found is not None and found.inode == signature_of(os.fstat(descriptor)).inode:
            return Workspace(path, descriptor)
    except BlockingIOError:
        pass
    os.close(descriptor)
    return None


def iter_abandoned(work: Path) -> Iterator[Workspace]:
    """The folders of importers that are gone, now ours, the oldest first."""
    try:
        paths = sorted(work.iterdir())
    except FileNotFoundError:
        return
    for path in paths:
        workspace = take_over(path)
        if workspace is not None:
            yield workspace
