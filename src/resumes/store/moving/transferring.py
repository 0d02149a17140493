"""All rows of a store put into another, proved to be there, and how far that is."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection

from resumes.store.engine import Store
from resumes.store.moving import filling
from resumes.store.moving.proving import TableDigest, check_same, digest_tables
from resumes.store.moving.tables import READERS


class Stage(StrEnum):
    """What is being done."""

    COPYING = "copying"
    PROVING = "proving"
    BACKING_UP = "backing up"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far something is. Rows, or bytes for a backup of a file; `total` is about right."""

    stage: Stage
    what: str
    done: int
    total: int


Watcher = Callable[[Progress], None]


def nobody(progress: Progress) -> None:
    """Watches nothing."""


class Count:
    """Counts what is handled in a stage, and tells the watcher."""

    def __init__(self, watcher: Watcher, stage: Stage, total: int) -> None:
        self._watcher = watcher
        self._stage = stage
        self._total = total
        self._done = 0

    def __call__(self, table: str, rows: int) -> None:
        """So many more rows of a table were handled."""
        self._done += rows
        self._watcher(Progress(self._stage, table, self._done, self._total))


def transfer(source: Connection, target: Store, watcher: Watcher) -> list[TableDigest]:
    """All that the connection reads is in the target, and proved to be; nobody writes to either.

    Raises Conflict when they differ.
    """
    total = sum(reader.count(source) for reader in READERS.values())
    filling.fill(source, target, Count(watcher, Stage.COPYING, total))
    proof = Count(watcher, Stage.PROVING, 2 * total)
    ours = digest_tables(source, proof)
    with target.read() as connection:
        theirs = digest_tables(connection, proof)
    check_same(ours, theirs, target.label)
    return theirs
