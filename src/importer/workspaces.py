"""Where an importer keeps its claims, and how others know whether it lives.

    ROOT/.work/<importer id>/lease               locked by `flock` for as long as it runs
    ROOT/.work/<importer id>/<...>.journal       what is known of its claims
    ROOT/.work/<importer id>/<account id>/...    its claims

A lock ends with its process however that ends, and is the sole authority: no pid is read. The
lease's name is compared with what was locked, since a folder may be tidied away meanwhile. Each
process has a workspace of its own, worker processes too, so that none is taken over that still
works (pitfalls I8).
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
        self._account_folders: dict[str, str] = {}

    @property
    def is_held(self) -> bool:
        """Whether the lease that we locked is still the one that others find."""
        if self._is_left:
            return False
        found = find_signature(self.path / LEASE)
        return found is not None and found.inode == os.fstat(self._descriptor).st_ino

    def account_folder(self, account_id: str) -> str:
        """Where an account's claims lie."""
        folder = self._account_folders.get(account_id)
        if folder is None:
            folder = self._account_folders[account_id] = f"{self.path}/{account_id}"
        return folder

    def iter_claim_ids(self) -> Iterator[tuple[str, str]]:
        """The files that lie among the claims: the account's folder and the name of each."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self.path) as folders:
            for folder in folders:
                if folder.is_dir(follow_symlinks=False):
                    with os.scandir(folder.path) as entries:
                        for entry in entries:
                            yield folder.path, entry.name

    def leave(self) -> None:
        """The lease is free. What holds no claim any more is gone; the rest is for the next one.

        Safe to call twice.
        """
        if self._is_left:
            return
        with contextlib.suppress(OSError):
            self._tidy()
        self._is_left = True
        os.close(self._descriptor)

    def _tidy(self) -> None:
        with os.scandir(self.path) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        for name in names:
            with contextlib.suppress(OSError):  # it holds a claim still
                (self.path / name).rmdir()
        if self.is_held and os.listdir(self.path) == [LEASE]:  # noqa: PTH208  (one call)
            (self.path / LEASE).unlink()
            self.path.rmdir()


def make(work: Path, importer_id: str) -> Workspace | None:
    """A new folder of claims under `work`; None when another importer tidied it away at once."""
    path = work / importer_id
    work.mkdir(exist_ok=True)
    path.mkdir(exist_ok=True)
    return take_over(path)


def take_over(path: Path) -> Workspace | None:
    """The folder of an importer that is gone; None while it runs, or when another took it."""
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path / LEASE, flags, 0o600)
    except OSError:
        return None  # gone, or nothing that an importer made
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found = find_signature(path / LEASE)
        if found is not None and found.inode == signature_of(os.fstat(descriptor)).inode:
            return Workspace(path, descriptor)
    except OSError:
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
        is_folder = path.is_dir() and not path.is_symlink()
        if is_folder and (workspace := take_over(path)) is not None:
            yield workspace
