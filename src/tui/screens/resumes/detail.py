"""One resume: to read, or as the JSON that is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import orjson
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from resumes.store import accounts, listing
from resumes.store.engine import Store
from resumes.store.listing import Entry
from tui.actions import Place, bindings
from tui.notices import Failure
from tui.screens.resumes.json_text import json_paragraphs
from tui.screens.resumes.reading import resume_paragraphs
from tui.session import Session
from tui.store_client import Reply, StoreClient
from tui.text import joined, safe
from tui.times import minute
from tui.widgets.lines import ErrorLine, KeyLine, ModeLine, TitleLine
from tui.widgets.text_pane import Paragraph, TextPane


@dataclass(frozen=True, slots=True)
class Opened:
    """A resume, ready to be shown either way."""

    entry: Entry
    text: Sequence[Paragraph]
    json: Sequence[Paragraph]


class DetailScreen(Screen[None]):
    """A resume, from the account's list."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.RESUME)

    def __init__(self, session: Session, account: str, resume_id: str) -> None:
        super().__init__()
        self._session = session
        self._account = account
        self._resume_id = resume_id
        self._client = StoreClient(session.store, self)
        self._opened: Opened | None = None
        self._shows_json = False

    def compose(self) -> ComposeResult:
        yield ModeLine("resumes", read_only=self._session.read_only)
        yield TitleLine(safe("…"))
        yield ErrorLine()
        yield TextPane()
        yield KeyLine()

    def on_mount(self) -> None:
        self.action_reload()

    def action_reload(self) -> None:
        """The resume is being read."""
        self._client.read(
            "resume",
            partial(open_resume, account=self._account, resume_id=self._resume_id),
            then=self._show,
            failed=self._fail,
        )

    @on(Reply)
    def deliver(self, reply: Reply) -> None:
        """The store call has ended."""
        self._client.deliver(reply)

    def action_toggle_json(self) -> None:
        """The other way of showing it."""
        self._shows_json = not self._shows_json
        if self._opened is not None:
            self._show(self._opened)

    def action_back(self) -> None:
        """The list is back, where it was."""
        self.dismiss()

    def _show(self, opened: Opened) -> None:
        self._opened = opened
        entry = opened.entry
        parts = [self._account, entry.shown_title, minute(entry.created_at)]
        self.query_one(ErrorLine).clear()
        self.query_one(TitleLine).show(joined([safe(part, "bold") for part in parts], by=" · "))
        self.query_one(TextPane).show(opened.json if self._shows_json else opened.text)

    def _fail(self, failure: Failure) -> None:
        self.query_one(ErrorLine).show(failure)


def open_resume(store: Store, account: str, resume_id: str) -> Opened:
    """The stored resume, laid out. Raises NotFound."""
    stored = listing.get_resume(store, accounts.get_account(store, account).id, resume_id)
    document = orjson.loads(stored.document)
    return Opened(
        stored.entry, resume_paragraphs(document, stored.entry), json_paragraphs(document)
    )
