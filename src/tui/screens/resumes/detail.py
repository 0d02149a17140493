"""One resume on a page of its own."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from tui.actions import Place, bindings, changes_store
from tui.notices import Failure
from tui.screens.resumes import doing, opening_pdf
from tui.screens.resumes.pane import ResumePane
from tui.screens.resumes.views import Shown, View, show
from tui.session import Session
from tui.store_client import Reply, StoreClient
from tui.text import joined, safe
from tui.times import minute
from tui.toasts import tell
from tui.widgets.key_line import KeyLine
from tui.widgets.lines import ErrorLine, ModeLine, TitleLine


class DetailScreen(Screen[None]):
    """A resume of the account's list. `neighbour` moves in that list and gives the id there."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.RESUME)

    def __init__(
        self,
        session: Session,
        account: str,
        resume_id: str,
        view: View,
        neighbour: Callable[[int], str | None],
    ) -> None:
        super().__init__()
        self._session = session
        self._account = account
        self._resume_id = resume_id
        self._neighbour = neighbour
        self._client = StoreClient(session.store, self)
        self._pane = ResumePane(can_focus_text=True)
        self._pane.view = view

    def compose(self) -> ComposeResult:
        yield ModeLine("resumes", read_only=self._session.read_only)
        yield TitleLine(safe("…"))
        yield ErrorLine()
        yield self._pane
        yield KeyLine()

    def on_mount(self) -> None:
        self.action_reload()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing that changes the store exists while the session is read-only."""
        return not (self._session.read_only and changes_store(action))

    @on(ErrorLine.RetryDue)
    def action_reload(self) -> None:
        """The resume is being read."""
        self._client.read(
            "resume",
            partial(show, account=self._account, resume_id=self._resume_id, view=self._pane.view),
            then=self._show,
            failed=self._fail,
        )

    @on(Reply)
    def deliver(self, reply: Reply) -> None:
        """A store call has ended."""
        self._client.deliver(reply)

    def action_next_view(self, views: int) -> None:
        """Another way of showing it."""
        self._pane.turn(views)
        self.action_reload()

    def action_neighbour(self, rows: int) -> None:
        """The resume that many rows further down the list is shown, once it is read."""
        found = self._neighbour(rows)
        if found is None:
            tell(self, "There is no further resume in the list." if rows > 0 else "The first one.")
            return
        self._resume_id = found
        self.action_reload()

    def action_copy(self) -> None:
        """A dialog asks what of the resume to copy."""
        if (shown := self._seen()) is not None:
            doing.copy(self, self._session, shown)

    def action_open_pdf(self) -> None:
        """The resume is being drawn, to be seen in another program."""
        if (shown := self._seen()) is not None:
            opening_pdf.open_pdf(
                self,
                self._session,
                self._client,
                self._account,
                shown.entry.id,
                place=Place.RESUME,
                failed=self._fail,
            )

    def action_export(self) -> None:
        """A dialog asks where to export it."""
        if (shown := self._seen()) is not None:
            doing.export(
                self,
                self._session,
                self._client,
                self._account,
                resume_id=shown.entry.id,
                failed=self._fail,
            )

    def action_delete(self) -> None:
        """The resume will be deleted, unless that is undone."""
        if (shown := self._seen()) is not None:
            entry = shown.entry
            doing.delete(self, self._session, self._account, entry.id, entry.shown_title)

    def _seen(self) -> Shown | None:
        """The resume that keys are about: the one that is seen, not one that is still being read."""
        shown = self._pane.shown
        if shown is None or shown.entry.id != self._resume_id:
            tell(self, "The resume is still being read.")
            return None
        return shown

    def action_back(self) -> None:
        """The list is back, where it was."""
        self.dismiss()

    def _show(self, shown: Shown) -> None:
        entry = shown.entry
        parts = [self._account, entry.shown_title, minute(entry.created_at)]
        self.query_one(ErrorLine).clear()
        self.query_one(TitleLine).show(joined([safe(part, "bold") for part in parts], by=" · "))
        self._pane.show(shown)

    def _fail(self, failure: Failure) -> None:
        self.query_one(ErrorLine).show(failure)
