"""One imported file on a page of its own, as it is now."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from resumes.store.import_ledger import FileRow
from resumes.store.import_requests import Action
from tui.actions import Place, bindings, changes_store
from tui.notices import Failure
from tui.screens.imports.becoming import open_resume
from tui.screens.imports.doing import Doing
from tui.screens.imports.reading import FileRead, read_file
from tui.screens.imports.rows import outcome_content
from tui.screens.imports.view import FileView
from tui.session import Session
from tui.store_client import Reply, StoreClient
from tui.text import joined, safe
from tui.toasts import tell
from tui.widgets.key_line import KeyLine
from tui.widgets.lines import ErrorLine, ModeLine, TitleLine

REFRESH_S: Final = 1.0
FILE: Final = "file"


class FileScreen(Screen[None]):
    """A file of the list. `neighbour` moves in that list and gives the file there."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.FILE)
    DEFAULT_CSS = """
    FileScreen FileView { layout: horizontal; }
    FileScreen FileView > TextPane { width: 2fr; height: 1fr; border-left: blank; }
    FileScreen FileView > SourcePane {
        width: 3fr; height: 1fr; border-top: none; border-left: vkey $panel;
    }
    FileScreen.-narrow FileView { layout: vertical; }
    FileScreen.-narrow FileView > TextPane { width: 1fr; height: 2fr; }
    FileScreen.-narrow FileView > SourcePane {
        width: 1fr; height: 3fr; border-left: blank; border-top: hkey $panel;
    }
    /* The bar says whose the keys are that scroll, without colours too. */
    FileScreen FileView.-two-parts > TextPane:focus { border-left: thick $accent; }
    FileScreen FileView > SourcePane:focus-within { border-left: thick $accent; }
    """

    def __init__(
        self, session: Session, file: FileRow, neighbour: Callable[[int], FileRow | None]
    ) -> None:
        super().__init__()
        self._session = session
        self._file = file
        """What is seen, and acted on: the file as the list had it, then as it was read last."""
        self._wanted = file
        """What is to be seen: another file from the key that asks for it until it is read."""
        self._read_id: str | None = None
        """The claim of the file that is being read; None when none is."""
        self._neighbour = neighbour
        self._client = StoreClient(session.store, self)
        self._doing = Doing(self, session, self._client, self._read, self._fail)
        self._view = FileView(can_focus_text=True)

    def compose(self) -> ComposeResult:
        yield ModeLine("imports", read_only=self._session.read_only)
        yield TitleLine(safe("…"))
        yield ErrorLine()
        yield self._view
        yield KeyLine()

    def on_mount(self) -> None:
        self._view.focus_text()
        self.set_interval(self._session.refresh_s or REFRESH_S, self._refresh_file)
        self._read()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing that changes the store exists while the session is read-only."""
        return not (self._session.read_only and changes_store(action))

    def _refresh_file(self) -> None:
        if self.is_active and not self.query_one(ErrorLine).has_failure:
            self._read()

    @on(ErrorLine.RetryDue)
    def _read(self) -> None:
        # Asked again, the call that is under way would be for nothing.
        if self._read_id == self._wanted.claim_id:
            return
        self._read_id = self._wanted.claim_id
        self._client.read(
            FILE,
            partial(
                read_file,
                account_id=self._wanted.account_id,
                claim_id=self._wanted.claim_id,
                before=self._view.read,
            ),
            then=self._show,
            failed=self._not_read,
        )

    @on(Reply)
    def deliver(self, reply: Reply) -> None:
        """A store call has ended."""
        self._client.deliver(reply)

    def _show(self, read: FileRead) -> None:
        self._read_id = None
        self._file = self._wanted = read.file
        parts = [safe(read.file.name, "bold"), outcome_content(read.file, read.request)]
        self.query_one(ErrorLine).clear()
        self.query_one(TitleLine).show(joined(parts, by=" · "))
        self._view.show(read)

    def _not_read(self, failure: Failure) -> None:
        self._read_id = None
        self._fail(failure)

    def _fail(self, failure: Failure) -> None:
        self.query_one(ErrorLine).show(failure)

    def action_reload(self) -> None:
        """The file is being read; an error is gone until the next one."""
        self.query_one(ErrorLine).clear()
        self._read()

    def action_neighbour(self, rows: int) -> None:
        """The file that many rows further down the list is shown."""
        found = self._neighbour(rows)
        if found is None:
            tell(self, "There is no further file in the list." if rows > 0 else "The first one.")
            return
        self._wanted = found
        self._read()

    def action_next_pane(self) -> None:
        """The keys that scroll are those of the other part."""
        if not self._view.focus_other():
            tell(self, "There is only this text: no source is kept of a file that is imported.")

    def action_retry(self) -> None:
        """The file is being asked to be tried again, if it failed."""
        self._ask(Action.RETRY)

    def action_release(self) -> None:
        """The file is being asked to be let in, if it is held."""
        self._ask(Action.RELEASE)

    def _ask(self, action: Action) -> None:
        if self._is_wanted_seen():
            self._doing.ask(self._file, action)

    def _is_wanted_seen(self) -> bool:
        """Whether the file that was asked for is the one that is seen; else the reader is told."""
        if self._wanted.claim_id == self._file.claim_id:
            return True
        if self._read_id is None:
            tell(self, "The next file could not be read: r tries again.")
        else:
            tell(self, "The next file is being read.")
        return False

    def action_copy(self) -> None:
        """The reason is on its way to the clipboard."""
        if self._is_wanted_seen():
            self._doing.copy_reason(self._file)

    def action_open_resume(self) -> None:
        """The resume that the file became is shown; a dialog asks which, where it became several."""
        if not self._is_wanted_seen():
            return
        if self._view.read is None:
            tell(self, "The file is being read.")
        else:
            open_resume(self, self._session, self._view.read)

    def action_back(self) -> None:
        """The list is back, where it was."""
        self.dismiss()
