"""Copying a store to another, of whatever engines, and proving that both hold the same.

The source takes no writes from the beginning on, and after a copy that ended well never again, so
that nobody writes to the wrong one (pitfalls S13). A copy that was killed leaves both marked, and
goes on when it is called again. One that failed gives the source back.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection

from resumes.errors import InvalidArgument, OutcomeUnknown, ResumesError
from resumes.store.engine import Store
from resumes.store.moving import filling, marking
from resumes.store.moving.filling import Origin
from resumes.store.moving.marking import Departure
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


def copy(source: Store, target: Store, *, watcher: Watcher = nobody) -> list[TableDigest]:
    """The target holds what the source holds, which is proved; what each table holds.

    Raises InvalidArgument for a store and itself; Conflict for a target that holds something else,
    for a source that is being moved elsewhere, and when both turn out to differ; and what reading
    and writing raise. After an error the source takes writes again, unless it cannot be reached.
    """
    own, label = source.database.label, target.database.label
    if own == label:
        raise InvalidArgument(f"{own} cannot be copied to itself: name another target")
    departure = marking.plan_departure(source, label)
    filling.begin(target, Origin(own, departure.move))
    is_ending = False
    try:
        marking.depart(source, departure)
        with source.read() as connection:
            digests = transfer(connection, target, watcher)
        marking.check_departed(source, departure)
        is_ending = True
        filling.finish(target)
    except OutcomeUnknown:
        # The target may turn out to be usable: the source stays closed until somebody has looked.
        if not is_ending:
            _give_back(source, departure)
        raise
    except BaseException:
        if not _has_ended(target, if_unknown=is_ending):
            _give_back(source, departure)
        raise
    return digests


def _give_back(source: Store, departure: Departure) -> None:
    with contextlib.suppress(ResumesError):
        marking.give_back(source, departure.move)


def _has_ended(target: Store, *, if_unknown: bool) -> bool:
    """Whether the target can be used, by whatever copy: never may both be written to."""
    try:
        with target.read() as connection:
            return not marking.read_marks(connection).filled_from
    except ResumesError:
        return if_unknown


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
    check_same(ours, theirs, target.database.label)
    return theirs
