"""Pending deletions of resumes, which can still be undone.

A deletion is carried out a while after it was asked for. Until then nothing has happened: undo
takes it back, and so does the end of the program.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final

GRACE_S: Final = 10.0
"""How long a deletion can be undone."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """A resume that will be deleted at `due_s`, by the clock of `Deletions`."""

    account: str
    resume_id: str
    title: str
    due_s: float


class Deletions:
    """The pending deletions, oldest first."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, Deletion] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, resume_id: object) -> bool:
        return resume_id in self._waiting

    def __iter__(self) -> Iterator[Deletion]:
        return iter(list(self._waiting.values()))

    def add(self, account: str, resume_id: str, title: str) -> Deletion:
        """Add a deletion that is due after the grace. Adding it twice does not postpone it."""
        asked = Deletion(account, resume_id, title, self._clock() + GRACE_S)
        return self._waiting.setdefault(resume_id, asked)

    def undo(self) -> Deletion | None:
        """Remove and return the deletion that was added last; None if there is none."""
        if not self._waiting:
            return None
        return self._waiting.popitem()[1]

    def left_s(self, deletion: Deletion) -> float:
        """Return how long the deletion can still be undone."""
        return max(0.0, deletion.due_s - self._clock())

    def put_off(self) -> None:
        """Restart the grace of all: nobody could undo them while the process was stopped."""
        due_s = self._clock() + GRACE_S
        self._waiting = {one.resume_id: replace(one, due_s=due_s) for one in self}

    def take_due(self) -> list[Deletion]:
        """Remove and return those that are due; they can no longer be undone."""
        due = [one for one in self._waiting.values() if not self.left_s(one)]
        for one in due:
            del self._waiting[one.resume_id]
        return due
