"""Resumes that are about to be deleted, and can still be kept.

A deletion is carried out a while after it was asked for. Until then nothing has happened: undo
takes it back, and so does the end of the program.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final

GRACE_S: Final = 10.0
"""How long a deletion can be taken back."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """A resume that will be deleted at `due_s`, by the clock of `Deletions`."""

    account: str
    resume_id: str
    title: str
    due_s: float


class Deletions:
    """The deletions that were asked for and not carried out, in the order of asking."""

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
        """The resume will be due after the grace. Asking twice does not put it off."""
        asked = Deletion(account, resume_id, title, self._clock() + GRACE_S)
        return self._waiting.setdefault(resume_id, asked)

    def undo(self) -> Deletion | None:
        """The deletion that was asked for last is taken back; None when there is none."""
        if not self._waiting:
            return None
        return self._waiting.popitem()[1]

    def left_s(self, deletion: Deletion) -> float:
        """How long it can still be taken back."""
        return max(0.0, deletion.due_s - self._clock())

    def put_off(self) -> None:
        """Each can be taken back for the whole grace again: nobody could while we were stopped."""
        due_s = self._clock() + GRACE_S
        self._waiting = {one.resume_id: replace(one, due_s=due_s) for one in self}

    def take_due(self) -> list[Deletion]:
        """Those whose time has come; they can no longer be taken back."""
        due = [one for one in self._waiting.values() if not self.left_s(one)]
        for one in due:
            del self._waiting[one.resume_id]
        return due
