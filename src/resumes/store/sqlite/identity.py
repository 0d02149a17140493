"""Which files a store has open, held against those that lie under its names by now.

A file that is removed or replaced while it is open is written to all the same: every commit
succeeds, and all of it is gone when the last process closes the file. A new file under the name
meets the log of the old one, which damages it ("How To Corrupt An SQLite Database File"). SQLite
looks at that only where it keeps no write-ahead log. A file that is open under two names has two
logs and two sets of locks, ours among them: each program writes over what the other one committed
(pitfalls S19).
"""

import contextlib
import logging
import os
import shlex
import threading
from pathlib import Path
from typing import Final, NoReturn

from resumes.errors import StoreUnavailable
from resumes.mounts import is_mount_point

logger = logging.getLogger("resumes.store")

LOGS: Final = ("-wal", "-shm")
"""A database's log and its index: one with the file (a log that is left alone would be taken for that
of the next file of its name)."""

FileId = tuple[int, int]
"""Device and inode, by which SQLite tells files apart, too."""


def refuse_second_name(path: Path) -> None:
    """Raise StoreUnavailable if the file can be opened under another name too.

    That is a file with more than one hard link, as a snapshot by `cp -al` makes, or one that is
    itself a mount point, as a container's volume of a single file is.
    """
    if is_mount_point(path):
        raise StoreUnavailable(
            f"The database {path} is mounted by itself, so its log lies elsewhere and commits can be "
            "lost. Mount the folder that holds the file"
        )
    try:
        found = path.stat()
    except FileNotFoundError:
        return
    if found.st_nlink > 1:
        raise StoreUnavailable(_second_name_sentence(path, found.st_ino))


def _second_name_sentence(path: Path, inode: int) -> str:
    other = _find_sibling(path, inode)
    return (
        f"The database {path} has another name{f', {other}' if other else ''}: programs that use it "
        "by different names lose each other's commits. Remove the other hard link, or put a copy in "
        f"its place (`find / -samefile {shlex.quote(str(path))}` lists all names)"
    )


def _find_sibling(path: Path, inode: int) -> str | None:
    """Return the name in the same folder that is a hard link to the file."""
    with contextlib.suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if entry.name != path.name and entry.inode() == inode:
                return entry.path
    return None


class Identity:
    """The files of a store that is open, as they are when this is made. Any thread may ask.

    What was removed or replaced once counts as lost for good: while it was away, another program
    may have made or changed what is there now.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = str(path)
        self._file_id = _id_of(self._name)
        logs = (path.with_name(path.name + suffix) for suffix in LOGS)
        self._logs = [(str(log), _id_of(str(log))) for log in logs if log.exists()]
        self._noticing = threading.Lock()
        self._lost: str | None = None
        self._has_second_name = False

    def check(self) -> None:
        """Raise StoreUnavailable unless the file that is open lies under its name, and no other.

        Nothing that is written to a file that was removed or replaced stays, so until a restart no
        call succeeds. A second name is an error for as long as it is there.
        """
        links = self._check(
            self._name, self._file_id, "put it back or restore a backup of the store, "
        )
        if links > 1:
            self._refuse_second_name()
        self._has_second_name = False

    def check_all(self) -> None:
        """Check its log and the log's index too, if it had them. Raise StoreUnavailable; where these
        alone are lost, closing the store still brings what is in the log into the file."""
        self.check()
        for name, file_id in self._logs:
            self._check(name, file_id, "")

    def check_known(self) -> None:
        """Raise StoreUnavailable if one of them was found to be lost before; look at nothing."""
        if self._lost is not None:
            raise StoreUnavailable(self._lost)

    def _check(self, name: str, file_id: FileId, remedy: str) -> int:
        """Return how many hard links the file has."""
        self.check_known()
        try:
            found = os.stat(name)  # noqa: PTH116  (twice for every commit)
            if (found.st_dev, found.st_ino) == file_id:
                return found.st_nlink
        except FileNotFoundError:
            what = "removed or renamed"
        except OSError as error:  # whatever it is, it may pass
            raise StoreUnavailable(
                f"The store {self._path} cannot be looked at ({error.strerror}); nothing was done, "
                "try again"
            ) from error
        else:
            what = "replaced by another file"
        sentence = self._lose(
            f"{name} was {what} while the store is in use, so nothing is read or written any more. "
            f"Stop every program that uses it, {remedy}then start them again"
        )
        raise StoreUnavailable(sentence)

    def _refuse_second_name(self) -> NoReturn:
        sentence = _second_name_sentence(self._path, self._file_id[1])
        with self._noticing:
            if not self._has_second_name:
                self._has_second_name = True
                logger.error("%s", sentence)
        raise StoreUnavailable(sentence)

    def _lose(self, sentence: str) -> str:
        """Return the sentence that counts: the first."""
        with self._noticing:
            if self._lost is None:
                self._lost = sentence
                logger.error("%s", sentence)
            return self._lost


def _id_of(name: str) -> FileId:
    found = os.stat(name)  # noqa: PTH116  (as in Identity)
    return found.st_dev, found.st_ino
