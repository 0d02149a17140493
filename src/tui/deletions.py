"""Pending deletions of resumes, which can still be undone.

A deletion is carried out some seconds after it was requested. Until then, undoing it or quitting
the program cancels it.
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
    """A resume to delete when the clock of `Deletions` reaches `due_s`."""

    account: str
    resume_id: str
    title: str
    due_s: float
    batch: int
    """The number of the request: deletions that were requested together are undone together."""

    @property
    def key(self) -> tuple[str, str]:
        """The account and the resume's ID; a copied account contains the same resume IDs."""
        return self.account, self.resume_id


TITLE_CELLS = 24
"""The maximum width of a title; the message about undoing the deletion must fit in 80 cells."""


def quoted(title: str) -> str:
    """Return the title in quotation marks, cut to TITLE_CELLS."""
    return f'"{safe(title).truncate(TITLE_CELLS, ellipsis=True).plain}"'


def named(deletions: Sequence[Deletion]) -> str:
    """Return the quoted title if there is one deletion, otherwise the number of resumes."""
    if len(deletions) == 1:
        return quoted(deletions[0].title)
    return counted(len(deletions), "resume")


class Deletions:
    """The pending deletions and the resumes already deleted."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._batches = 0
        self.waiting: dict[tuple[str, str], Deletion] = {}
        """The pending deletions by account and resume ID, oldest first."""

        self.under_way: Deletion | None = None
        """The deletion being carried out, which can no longer be undone."""

        self.gone: set[tuple[str, str]] = set()
        """The account and the ID of each deleted resume."""

    def add(self, account: str, entries: Iterable[Entry]) -> list[Deletion]:
        """Add and return deletions due in GRACE_S; skip resumes that have a pending deletion."""
        due_s, self._batches = self._clock() + GRACE_S, self._batches + 1
        added = [
            Deletion(account, entry.id, entry.shown_title, due_s, self._batches)
            for entry in entries
            if (account, entry.id) not in self.waiting
        ]
        self.waiting |= {deletion.key: deletion for deletion in added}
        return added

    def undo(self) -> list[Deletion]:
        """Remove and return the latest batch, which is empty if no deletion is pending."""
        last = max((pending.batch for pending in self.waiting.values()), default=0)
        return self._pop(lambda pending: pending.batch == last)

    def forget(self, account: str) -> None:
        """Remove the pending deletions of an account that was itself deleted."""
        self._pop(lambda pending: pending.account == account)

    def rename(self, account: str, new: str) -> None:
        """Assign the deletions of a renamed account to its new name."""
        for pending in self.waiting.values():
            if pending.account == account:
                pending.account = new
        self.waiting = {pending.key: pending for pending in self.waiting.values()}
        self.gone = {(new if name == account else name, gone_id) for name, gone_id in self.gone}

    def left_s(self, deletion: Deletion) -> float:
        """Return for how many seconds the deletion can still be undone."""
        return max(0.0, deletion.due_s - self._clock())

    def restart_grace(self) -> None:
        """Restart all countdowns, because nothing could be undone while the UI was suspended."""
        for pending in self.waiting.values():
            pending.due_s = self._clock() + GRACE_S

    def begin_due(self) -> Deletion | None:
        """Move the oldest due deletion to `under_way` and return it, or return None if none is due.

        The other deletions can still be undone."""
        due = next((pending for pending in self.waiting.values() if not self.left_s(pending)), None)
        self.under_way = due and self.waiting.pop(due.key)
        return due

    def _pop(self, is_meant: Callable[[Deletion], bool]) -> list[Deletion]:
        keys = [key for key, pending in self.waiting.items() if is_meant(pending)]
        return [self.waiting.pop(key) for key in keys]


def carry_out(store: Store, deletion: Deletion) -> None:
    """Delete the resume. Raises NotFound if it is already deleted."""
    account = accounts.get_account(store, deletion.account)
    stored_resumes.delete_resume(store, account.id, deletion.resume_id)
