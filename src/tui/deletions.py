"""Pending deletions of resumes, which can still be undone.

A deletion is carried out some seconds after the request. Until then nothing has happened: undo
takes it back, and so does the end of the program.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final

from resumes.store import accounts, stored_resumes
from resumes.store.store import Store
from resumes.store.stored_resumes import Entry
from resumes.text import counted
from tui.text import safe

GRACE_S: Final = 10.0
"""How long a deletion can be undone."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """A resume that will be deleted at `due_s`, by the clock of `Deletions`."""

    account: str
    resume_id: str
    title: str
    due_s: float
    batch: int
    """What was requested together is undone together."""


TITLE_CELLS = 24
"""With so much of a title, the key that undoes its deletion is still in a line of 80 cells."""


def quoted(title: str) -> str:
    """Return the title in quotation marks, as far as a message has room for it."""
    return f'"{safe(title).truncate(TITLE_CELLS, ellipsis=True).plain}"'


def named(deletions: Sequence[Deletion]) -> str:
    """Return the title of one, the number of several."""
    if len(deletions) == 1:
        return quoted(deletions[0].title)
    return counted(len(deletions), "resume")


class Deletions:
    """The pending deletions, oldest first."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, Deletion] = {}
        self._batches = 0
        self.gone: set[str] = set()
        """The IDs of the resumes that were deleted."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Deletion]:
        return iter(list(self._waiting.values()))

    def add(self, account: str, entries: Iterable[Entry]) -> list[Deletion]:
        """Add and return deletions that are due after the grace, except those that are waiting already."""
        due_s, self._batches = self._clock() + GRACE_S, self._batches + 1
        added = [
            Deletion(account, entry.id, entry.shown_title, due_s, self._batches)
            for entry in entries
            if entry.id not in self._waiting
        ]
        self._waiting |= {one.resume_id: one for one in added}
        return added

    def find(self, resume_id: str) -> Deletion | None:
        """Return the pending deletion of this resume; None if there is none."""
        return self._waiting.get(resume_id)

    def undo(self) -> list[Deletion]:
        """Remove and return the deletions that were added last; none if there are none."""
        last = max((one.batch for one in self), default=0)
        undone = [one for one in self if one.batch == last]
        for one in undone:
            del self._waiting[one.resume_id]
        return undone

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


def carry_out(store: Store, deletion: Deletion) -> None:
    """Delete the resume. Raises NotFound if it is already deleted."""
    account = accounts.get_account(store, deletion.account)
    stored_resumes.delete_resume(store, account.id, deletion.resume_id)
