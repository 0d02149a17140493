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
import stat
import threading
from pathlib import Path
from typing import Final

from resumes.errors import StoreUnavailable
from resumes.mounts import is_mount_point
from resumes.output_files import SIDE_FILES

logger = logging.getLogger("resumes.store")

LOGS: Final = ("-wal", "-shm")
"""A database's log and its index: one with the file (a log that is left alone would be taken for that
of the next file of its name)."""

_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}

FileId = tuple[int, int]
"""Device and inode, by which SQLite tells files apart, too."""


def refuse_special_files(path: Path) -> None:
    """Raise StoreUnavailable if a pipe, a folder or the like has the name of one of a store's other
    files: SQLite waits for a writer of a pipe without end, or removes it."""
    for file in (path.with_name(path.name + ending) for ending in SIDE_FILES):
        with contextlib.suppress(OSError):
            mode = file.stat().st_mode
            if not stat.S_ISREG(mode):
                what = _KINDS.get(stat.S_IFMT(mode), "a device")
                raise StoreUnavailable(
                    f"{file} is {what}, where only a file of the store {path} may be. Move it away, "
                    "or name another database"
                )


def refuse_second_name(path: Path) -> None:
    """Raise StoreUnavailable if a store's file, or its log, can be opened under another name too.

    That is a file with more than one hard link, as a snapshot by `cp -al` makes. A log counts like
    the file: SQLite reads whatever lies beside a file under the log's name, and two files with one
    log take each other's commits for their own.
    """
    for file in (path, *_logs_of(path)):
        # What is not there, or cannot be seen, has its error from whoever opens it.
        with contextlib.suppress(OSError):
            if file.stat().st_nlink > 1:
                raise StoreUnavailable(_describe_second_name(file))


def refuse_mount_point(path: Path) -> None:
    """Raise StoreUnavailable if the file itself is mounted, as a container's volume of a single file
    is: it has another name that cannot be seen from here."""
    if is_mount_point(path):
        raise StoreUnavailable(
            f"The database {path} is mounted by itself, so its log lies elsewhere and commits can be "
            "lost. Mount the folder that holds the file"
        )


def _logs_of(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in LOGS]


def _describe_second_name(file: Path) -> str:
    what = "log" if file.name.endswith(LOGS) else "database"
    other = _find_sibling(file)
    return (
        f"The {what} {file} has another name{f', {other}' if other else ''}: programs that use "
        "different names lose each other's commits. Stop those that use the other one and remove it, "
        f"with its -wal and -shm files (`find / -samefile {shlex.quote(str(file))}` lists all names)"
    )


def _find_sibling(file: Path) -> str | None:
    """Return another name of the file in its folder."""
    with contextlib.suppress(OSError), os.scandir(file.parent) as entries:
        inode = file.stat().st_ino
        for entry in entries:
            if entry.inode() == inode and entry.name != file.name:
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
        self._logs = [(str(log), _id_of(str(log))) for log in _logs_of(path) if log.exists()]
        self._noticing = threading.Lock()
        self._lost: str | None = None
        self._doubled: str | None = None
        """Which of the files was found to have a second name when they were last looked at."""

    def check_in_place(self) -> int:
        """Return how many hard links the file has. Raise StoreUnavailable unless the file that is
        open lies under its name: nothing that is written to it stays, and until a restart no call
        succeeds."""
        return self._check(
            self._name, self._file_id, "put it back or restore a backup of the store, "
        )

    def check(self) -> None:
        """Raise StoreUnavailable unless the file lies under its name, and under no other. A second
        name is an error for as long as it is there."""
        if self.check_in_place() > 1 or self._doubled is not None:
            self.check_all()

    def check_all(self) -> None:
        """Check its log and the log's index too, if it had them. Raise StoreUnavailable; where these
        alone are lost, closing the store still brings what is in the log into the file."""
        links = {self._name: self.check_in_place()}
        for name, file_id in self._logs:
            links[name] = self._check(name, file_id, "")
        doubled = next((name for name, count in links.items() if count > 1), None)
        self._note_second_name(doubled)

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
        if name != self._name:
            self.check_in_place()  # it may have gone first, since it was looked at: that says more
        sentence = self._lose(
            f"{name} was {what} while the store is in use, so nothing is read or written any more. "
            f"Stop every program that uses it, {remedy}then start them again"
        )
        raise StoreUnavailable(sentence)

    def _note_second_name(self, doubled: str | None) -> None:
        """Raise StoreUnavailable if one of the files has a second name. The log has a line when that
        is noticed, and one when it is over."""
        with self._noticing:
            is_news = doubled != self._doubled
            self._doubled = doubled
        if doubled is None:
            if is_news:
                logger.warning("The files of the store %s have one name each again", self._path)
            return
        sentence = _describe_second_name(Path(doubled))
        if is_news:
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
