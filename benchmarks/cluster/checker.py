"""What was acknowledged, held against what is stored."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from benchmarks.cluster.history import Creation, History, Walk


@dataclass(frozen=True, slots=True)
class Stored:
    """A resume in the store of the account."""

    id: str
    marker: str


@dataclass(frozen=True, slots=True)
class StoreContents:
    """All that an account has in the store."""

    resumes: Sequence[Stored]
    counter: int
    """How many it has by the count that its quota is held against."""


class Kind(StrEnum):
    """What can be wrong."""

    LOST = "lost"
    """Acknowledged, or a file that was put away as done, and not stored."""

    DOUBLED = "doubled"
    """Stored more than once, or acknowledged under several ids."""

    REFUSED = "refused"
    """Though nothing is wrong with it."""

    UNANSWERED = "unanswered"
    """Sent again and again until the end, without an answer that counts."""

    NOT_IMPORTED = "not imported"
    """A dropped file that is neither stored nor put away as done."""

    UNASKED = "unasked"
    """Stored, and never sent."""

    VANISHED = "vanished"
    """Shown on a page, and not stored."""

    DISORDERED = "disordered"
    """A page entry whose id is not above the one before it."""

    SKIPPED = "skipped"
    """Not on the pages of a walk that had to come by it."""

    MISCOUNTED = "miscounted"
    """The account's counter is not the number of its resumes."""

    FAILED = "failed"
    """A request, with 5xx, though the event was planned."""

    OUTAGE = "outage"
    """Longer than it may take until a leader is replaced and served."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong."""

    kind: Kind
    what: str


def check(history: History, contents: StoreContents) -> list[Finding]:
    """All that is wrong; nothing when all is well.

    The account began with nothing, and the load has ended.
    """
    ids = sorted(one.id for one in contents.resumes)
    times = Counter(one.marker for one in contents.resumes)
    known = history.creations.keys() | set(history.dropped)
    return [
        *_of_creations(history.creations.values(), set(ids), times),
        *_of_files(history, times),
        *(Finding(Kind.UNASKED, marker) for marker in sorted(times.keys() - known)),
        *(finding for walk in history.walks for finding in _of_walk(walk, ids)),
        *_of_counter(contents),
    ]


def _of_creations(
    creations: Iterable[Creation], ids: set[str], times: Counter[str]
) -> Iterator[Finding]:
    for creation in creations:
        marker = creation.marker
        for missing in sorted(set(creation.ids) - ids):
            yield Finding(Kind.LOST, f"{marker}, acknowledged as {missing}")
        if times[marker] > 1:
            yield Finding(Kind.DOUBLED, f"{marker}, stored {times[marker]} times")
        elif len(set(creation.ids)) > 1:
            yield Finding(Kind.DOUBLED, f"{marker}, acknowledged as {sorted(set(creation.ids))}")
        if creation.refusals:
            yield Finding(Kind.REFUSED, f"{marker}, with {creation.refusals}")
        elif not creation.ids:
            yield Finding(Kind.UNANSWERED, marker)


def _of_files(history: History, times: Counter[str]) -> Iterator[Finding]:
    for marker in history.dropped:
        if times[marker] == 0:
            kind = Kind.LOST if marker in history.done else Kind.NOT_IMPORTED
            yield Finding(kind, f"{marker}, a file")
        elif times[marker] > 1:
            yield Finding(Kind.DOUBLED, f"{marker}, a file, stored {times[marker]} times")


def _of_walk(walk: Walk, ids: Sequence[str]) -> Iterator[Finding]:
    where = f"in a walk at process {walk.process}"
    seen = set(walk.ids)
    for before, after in pairwise(walk.ids):
        if after <= before:
            yield Finding(Kind.DISORDERED, f"{after} after {before} {where}")
    for gone in sorted(seen.difference(ids)):
        yield Finding(Kind.VANISHED, f"{gone} {where}")
    # Nothing is deleted, and ids rise with commits: a page shows all that is below its last id.
    last = max(seen, default="")
    due = {resume_id for resume_id in ids if resume_id <= last}
    if walk.is_finished:
        due |= walk.acknowledged_before.intersection(ids)
    for missing in sorted(due - seen):
        yield Finding(Kind.SKIPPED, f"{missing} {where}")


def _of_counter(contents: StoreContents) -> Iterator[Finding]:
    count = len(contents.resumes)
    if contents.counter != count:
        yield Finding(Kind.MISCOUNTED, f"{contents.counter} counted, {count} stored")
