"""The ways of looking at one resume, each read from the store and laid out in a thread."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from resumes.analyzer import whole_view
from resumes.store import accounts, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.store import Store
from resumes.store.stored_resumes import Entry, StoredResume
from tui.screens.resumes.history import history_paragraphs
from tui.screens.resumes.json_text import json_paragraphs
from tui.screens.resumes.reading import resume_paragraphs
from tui.screens.resumes.source import source_paragraphs
from tui.widgets.text_pane import Paragraph


class View(StrEnum):
    """A way of looking at a resume, as its tab calls it."""

    TEXT = "Text"
    JSON = "JSON"
    SOURCE = "Source"
    HISTORY = "History"


@dataclass(frozen=True, slots=True)
class Shown:
    """A resume, ready to be shown in one of the ways. `account` is the account's name."""

    account: str
    entry: Entry
    document: str
    view: View
    paragraphs: Sequence[Paragraph]


def show(store: Store, *, account: str, resume_id: str, view: View) -> Shown:
    """The stored resume, laid out. Raises NotFound."""
    owner = accounts.get_account(store, account)
    stored = stored_resumes.get_resume(store, owner.id, resume_id)
    return Shown(
        account, stored.entry, stored.document, view, _LAID_OUT[view](store, owner, stored)
    )


def _text(_: Store, __: AccountInfo, stored: StoredResume) -> list[Paragraph]:
    return resume_paragraphs(stored.document, stored.entry)


def _json(_: Store, __: AccountInfo, stored: StoredResume) -> list[Paragraph]:
    return json_paragraphs(whole_view(stored.document))


_LAID_OUT: Final[dict[View, Callable[[Store, AccountInfo, StoredResume], list[Paragraph]]]] = {
    View.TEXT: _text,
    View.JSON: _json,
    View.SOURCE: source_paragraphs,
    View.HISTORY: history_paragraphs,
}
