"""Which files a store has open, held against those that lie under its names by now.

A file that is removed or replaced while it is open is written to all the same: every commit
succeeds, and all of it is gone when the last process closes the file. A new file under the name
meets the log of the old one, which damages it ("How To Corrupt An SQLite Database File"). SQLite
looks at that only where it keeps no write-ahead log.
"""

import logging
import os
import threading
from pathlib import Path
from typing import Final

from resumes.errors import StoreUnavailable

logger = logging.getLogger("resumes.store")

LOGS: Final = ("-wal", "-shm")
"""A database's log and its index: one with the file (a log that is left alone would be taken for that
of the next file of its name)."""

FileId = tuple[int, int]
"""Device and inode, by which SQLite tells files apart, too."""


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

    def check(self) -> None:
        """The file that is open lies under its name. Raises StoreUnavailable: nothing that is
        written to it stays, and until a restart no call succeeds."""
        self._check(self._name, self._file_id, "put it back or restore a backup of the store, ")

    def check_all(self) -> None:
        """So do its log and the log's index, if it had them. Raises StoreUnavailable; where these
        alone are lost, closing the store still brings what is in the log into the file."""
        self.check()
        for name, file_id in self._logs:
            self._check(name, file_id, "")

    def check_known(self) -> None:
        """None of them was found to be lost before; nothing is looked at."""
        if self._lost is not None:
            raise StoreUnavailable(self._lost)

    def _check(self, name: str, file_id: FileId, remedy: str) -> None:
        self.check_known()
        try:
            if _id_of(name) == file_id:
                return
        except FileNotFoundError:
            what = "removed or renamed"
        except OSError as error:  # whatever it is, it may pass
            raise StoreUnavailable(
                f"The store {self._path} cannot be looked at ({error.strerror}); nothing was done, "
                "try again"
            ) from error
        else:
            what = "replaced by another file"
        self._lose(
            f"{name} was {what} while the store is in use, so nothing is read or written any more. "
            f"Stop every program that uses it, {remedy}then start them again"
        )
        self.check_known()

    def _lose(self, sentence: str) -> None:
        with self._noticing:
            if self._lost is None:
                self._lost = sentence
                logger.error("%s", sentence)


def _id_of(name: str) -> FileId:
    found = os.stat(name)  # noqa: PTH116  (twice for every commit)
    return found.st_dev, found.st_ino
