"""From an imported file to the resumes that it became, or that it repeats."""

from collections.abc import Sequence
from functools import partial

from textual.screen import Screen

from resumes.store import import_ledger
from resumes.store.import_ledger import FileRow, Item
from resumes.store.import_requests import STATES
from resumes.store.store import Store
from tui.messages import ModeAsked
from tui.screens.chooser import Chooser
from tui.screens.imports.reading import FileRead
from tui.session import Session
from tui.text import safe
from tui.toasts import tell
from tui.widgets.columns import Column, text_cell

MOST_CHOICES = 10_000
"""Resumes of a file that are offered; the list of resumes has them all."""

COLUMNS: tuple[Column[Item], ...] = (
    Column("ITEM", 7, lambda item: safe(f"{item.item:>7,}")),
    Column("OUTCOME", 10, lambda item: safe(item.outcome)),
    Column("RESUME", 0, lambda item: text_cell(item.resume_id)),
)


class ResumeChooser(Chooser[Item]):
    """Gives one of the resumes of a file of several, None when nothing was chosen."""

    def __init__(self, store: Store, file: FileRow) -> None:
        super().__init__(
            store,
            question="Which of its resumes?",
            columns=COLUMNS,
            key=lambda item: f"{item.item}",
            read=partial(list_resumes, account_id=file.account_id, claim_id=file.claim_id),
        )


def list_resumes(store: Store, *, account_id: str, claim_id: str) -> Sequence[Item]:
    """The first of the resumes that the file became or repeats, in its order."""
    return import_ledger.find_items(store, account_id, claim_id, limit=MOST_CHOICES)


def open_resume(screen: Screen[None], session: Session, read: FileRead) -> None:
    """The resume is shown among those of its account; a dialog asks which, if there are several."""

    def show(item: Item | None) -> None:
        if item is not None:
            session.account, session.open_id = read.file.account, item.resume_id
            screen.post_message(ModeAsked("resumes"))

    if not read.resumes:
        tell(screen, f"This file became no resume: it {STATES[read.file.outcome]}.")
    elif len(read.resumes) == 1:
        show(read.resumes[0])
    else:
        screen.app.push_screen(ResumeChooser(session.store, read.file), show)
