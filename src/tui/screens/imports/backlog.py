"""How fast the files that wait become fewer: from counts, as importers and the ledger give them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from resumes.durations import Pace
from resumes.store.importers import SeenImporter

PACE_S: Final = 60.0
"""The pace is that of the last minute: importers say only now and then how many files wait."""

FEW: Final = 10
"""Fewer files are through before anybody has read how long they take."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """So many files wait, of so many at most since none did. `files_per_s` None: not known."""

    waiting: int
    most: int
    files_per_s: float | None

    @property
    def left_s(self) -> float | None:
        """How long it takes at this pace; None when that is not known."""
        return None if self.files_per_s is None else self.waiting / self.files_per_s


class Backlog:
    """What waits, and how fast files come to their ends."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._pace = Pace(PACE_S)
        self._waiting = self._most = 0
        self._said_at = ""
        self._ended: int | None = None
        self._ended_before: int | None = None
        """How many files had come to their ends when it was said how many wait."""

    def note_waiting(self, waiting: int, said_at: str) -> None:
        """So many files waited when importers said so last."""
        if said_at != self._said_at:
            self._said_at, self._ended_before = said_at, self._ended
        self._waiting = waiting
        self._most = max(self._most, waiting) if waiting else 0

    def note_ended(self, files: int) -> None:
        """The ledger holds so many files now."""
        self._ended = files
        if self._ended_before is None:
            self._ended_before = files
        self._pace.note(self._monotonic(), files)

    def forget_pace(self) -> None:
        """The next counts are of another ledger, or of another part of it."""
        self._pace = Pace(PACE_S)
        self._ended = self._ended_before = None

    def find_outlook(self) -> Outlook | None:
        """How it stands, what ended since importers spoke counted; None while few files wait."""
        waiting = max(0, self._waiting - (self._ended or 0) + (self._ended_before or 0))
        if not waiting or self._most < FEW:
            return None
        return Outlook(waiting, self._most, self._pace.per_s(self._monotonic()))


def last_said(seen: Sequence[SeenImporter]) -> str:
    """When a live importer was heard of last; empty when none was."""
    return max((one.seen_at for one in seen if one.is_live), default="")
