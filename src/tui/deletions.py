"""Pending deletions of resumes, which can still be undone.

A deletion is carried out some seconds after the request. Until then nothing has happened: undo
takes it back, and so does the end of the program.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final

from resumes.store import accounts, stored_resumes
from resumes.store.entry import Entry
from resumes.store.store import Store
from resumes.text import counted
from tui.text import safe

GRACE_S: Final = 10.0
"""How long a deletion can be undone."""


@dataclass(slots=True)
class Deletion:
    """A resume that will be deleted at `due_s`, by the clock of `Deletions`."""

    account: str
    resume_id: str
    title: str
    due_s: float
    batch: int
    """What was requested together is undone together."""

    @property
    def key(self) -> tuple[str, str]:
        """What tells its resume from others: an account that was imported has the IDs of another."""
        return self.account, self.resume_id


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
    """The pending deletions, and those that were carried out."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._batches = 0
        self.waiting: dict[tuple[str, str], Deletion] = {}
        """The pending deletions by accounts and the IDs of their resumes, oldest first."""

        self.under_way: Deletion | None = None
        """The one that is being carried out: it can no longer be undone."""

        self.gone: set[tuple[str, str]] = set()
        """The accounts and IDs of the resumes that were deleted."""

    def add(self, account: str, entries: Iterable[Entry]) -> list[Deletion]:
        """Add and return deletions that are due after the grace, except those that are waiting already."""
        due_s, self._batches = self._clock() + GRACE_S, self._batches + 1
        added = [
            Deletion(account, entry.id, entry.shown_title, due_s, self._batches)
            for entry in entries
            if (account, entry.id) not in self.waiting
        ]
        self.waiting |= {one.key: one for one in added}
        return added

    def undo(self) -> list[Deletion]:
        """Remove and return the deletions that were added last; none if there are none."""
        last = max((one.batch for one in self.waiting.values()), default=0)
        return self._take(lambda one: one.batch == last)

    def forget(self, account: str) -> None:
        """Remove those of an account that was deleted, and its resumes with it."""
        self._take(lambda one: one.account == account)

    def left_s(self, deletion: Deletion) -> float:
        """Return how long the deletion can still be undone."""
        return max(0.0, deletion.due_s - self._clock())

    def put_off(self) -> None:
        """Restart the grace of all: nobody could undo them while the process was stopped."""
        for one in self.waiting.values():
            one.due_s = self._clock() + GRACE_S

    def begin_due(self) -> Deletion | None:
        """Return the oldest that is due, which is under way from now on; None if none is.

        The others can still be undone, and so can the end of the program: nothing was done about them.
        """
        due = next((one for one in self.waiting.values() if not self.left_s(one)), None)
        self.under_way = due and self.waiting.pop(due.key)
        return due

    def _take(self, is_meant: Callable[[Deletion], bool]) -> list[Deletion]:
        return [self.waiting.pop(one.key) for one in [*self.waiting.values()] if is_meant(one)]


def carry_out(store: Store, deletion: Deletion) -> None:
    """Delete the resume. Raises NotFound if it is already deleted."""
    account = accounts.get_account(store, deletion.account)
    stored_resumes.delete_resume(store, account.id, deletion.resume_id)
