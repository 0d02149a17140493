"""What became of the dropped files: what failed first, as it happens."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget

from resumes.store.import_ledger import ORDER, FileOutcome, FileRow
from resumes.store.import_requests import STATES, Action
from resumes.store.store import Store
from tui.actions import Place, bindings
from tui.notices import Failure
from tui.screens.accounts.chooser import AccountChooser, Choice
from tui.screens.imports.detail import FileScreen
from tui.screens.imports.doing import Doing
from tui.screens.imports.followed import Followed
from tui.screens.imports.overview import Overview
from tui.screens.imports.reading import FileRead, read_file
from tui.screens.imports.rows import COLUMNS, Row, position, read_page
from tui.screens.imports.view import FileView
from tui.screens.list_screen import PageRead
from tui.screens.split_screen import SplitScreen
from tui.session import Session
from tui.text import joined, safe
from tui.toasts import tell
from tui.widgets.columns import Column
from tui.widgets.lines import ErrorLine
from tui.widgets.paged_list import PagedList

FILE: Final = "file"
"""The group of the calls that read the file beside the list."""

SHOWN: Final = (None, *ORDER)
"""What can be shown alone, after failed first."""


class ImportsScreen(SplitScreen[Row]):
    """The files of an account or of all; beside them the one at the cursor."""

    MODE = "imports"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.IMPORTS)
    DEFAULT_CSS = """
    ImportsScreen #split > PagedList, ImportsScreen #split > .pane { width: 1fr; }
    """

    def __init__(self, session: Session) -> None:
        self.view = FileView(can_focus_text=False)
        super().__init__(session, self.view)
        self._outcome: FileOutcome | None = None
        self._asked_for = session.imports_account
        self.overview = Overview(session, self.client)
        self._read_id: str | None = None
        """The claim of the file that is being read for beside the list; None when none is."""
        self._followed = Followed(self.client, partial(tell, self))
        self._doing = Doing(self, session, self.client, self.refresh_rows, self.show_failure)

    # The list.

    def body(self) -> Iterable[Widget]:
        yield self.overview.lines
        yield from super().body()

    def columns(self) -> Sequence[Column[Row]]:
        return COLUMNS

    def row_key(self, row: Row) -> str:
        return position(row)

    def reading(self, cursor: str) -> Callable[[Store], PageRead[Row]]:
        return partial(read_page, account=self._asked_for, outcome=self._outcome, cursor=cursor)

    def page_arrived(self, read: PageRead[Row]) -> None:
        self.list.say_when_empty(*self._when_empty())

    def _when_empty(self) -> Sequence[Content]:
        whose = self._asked_for
        if self._outcome is not None:
            here = "" if whose is None else f" of {whose}"
            return safe(f"No file{here} {STATES[self._outcome]}."), safe(
                "o shows the next outcome."
            )
        inbox = self.session.settings.inbox / (whose or "ACCOUNT")
        return (
            safe("No file was imported from a watched folder yet."),
            safe("Drop what the analyzer wrote into"),
            safe(f"{inbox}/", "bold"),
        )

    def heading(self) -> Content:
        return joined(
            [
                safe(self._asked_for or "all accounts", "bold"),
                safe("failed first" if self._outcome is None else f"only {self._outcome}"),
                safe(self.extent("no files")),
            ],
            by=" · ",
        )

    def on_mount(self) -> None:
        self.overview.read(self._asked_for)

    def refresh_rows(self) -> None:
        super().refresh_rows()
        if self.is_active and not self.query_one(ErrorLine).has_failure:
            self.overview.read(self._asked_for)
            self._followed.look()
            self.refresh_beside()

    def action_reload(self) -> None:
        super().action_reload()
        self.overview.read(self._asked_for)
        self.refresh_beside()

    def on_screen_resume(self) -> None:
        """Another account may have been asked for from another screen."""
        if self.session.imports_account != self._asked_for:
            self._outcome = None
            self._show_account(self.session.imports_account)

    # Which files.

    def _show_account(self, name: str | None) -> None:
        self._asked_for = self.session.imports_account = name
        self._doing.forget()
        self.overview.restart(name)
        self.restart()

    def action_choose_account(self) -> None:
        """A dialog asks whose files to show."""
        chooser = AccountChooser(self.session, offer_all=True, preset=self._asked_for or "")
        self.app.push_screen(chooser, self._account_chosen)

    def _account_chosen(self, choice: Choice | None) -> None:
        if choice is not None:
            self._show_account(choice.name)

    def action_next_outcome(self) -> None:
        """The files of the next outcome are shown alone; after the last one, all."""
        self._show_outcome(SHOWN[(SHOWN.index(self._outcome) + 1) % len(SHOWN)])

    def _show_outcome(self, outcome: FileOutcome | None) -> None:
        self._outcome = outcome
        self.restart()

    def peel(self) -> bool:
        if self._outcome is None:
            return False
        self._show_outcome(None)
        return True

    # The file beside the list.

    def read_beside(self, row: Row | None) -> None:
        if row is None:
            self.client.drop(FILE)
            self._read_id = None
            self.view.show_nothing()
            return
        if self._read_id == row.file.claim_id:
            return  # asked again, the call that is under way would be for nothing
        self._read_id = row.file.claim_id
        self.client.read(
            FILE,
            partial(
                read_file,
                account_id=row.file.account_id,
                claim_id=row.file.claim_id,
                before=self.view.read,
            ),
            then=self._show_beside,
            failed=self._beside_failed,
        )

    def _show_beside(self, read: FileRead) -> None:
        self._read_id = None
        self.view.show(read)

    def _beside_failed(self, failure: Failure) -> None:
        self._read_id = None
        # While the store is away the list says so, and what was read stays.
        if not failure.is_passing:
            self.view.show_failure(failure)

    def action_scroll_pane(self, pages: int) -> None:
        """The file beside the list is scrolled."""
        self.view.scroll_text(pages)

    # What is done with the file at the cursor, and with many.

    @on(PagedList.Chosen)
    def open_file(self, chosen: PagedList.Chosen) -> None:
        """The file is shown on a page of its own."""
        file = chosen.row.file
        self.app.push_screen(FileScreen(self.session, file, self._neighbour), self._back_from_file)

    def _neighbour(self, rows: int) -> FileRow | None:
        row: Row | None = self.neighbour(rows)
        return None if row is None else row.file

    def _back_from_file(self, _: None) -> None:
        self.refresh_rows()

    def action_retry(self) -> None:
        """The file is being asked to be tried again, if it failed."""
        self._ask(Action.RETRY)

    def action_release(self) -> None:
        """The file is being asked to be let in, if it is held."""
        self._ask(Action.RELEASE)

    def _ask(self, action: Action) -> None:
        row = self.list.current
        if row is None:
            tell(self, f"There is no file here to {action}.")
        elif self._doing.ask(row.file, action):
            self._followed.add(row.file)

    def action_retry_all(self) -> None:
        """A dialog asks whether all that failed shall be tried again."""
        self._doing.ask_all(Action.RETRY)

    def action_release_all(self) -> None:
        """A dialog asks whether all that are held shall be let in."""
        self._doing.ask_all(Action.RELEASE)

    def action_copy(self) -> None:
        """The reason is on its way to the clipboard."""
        row = self.list.current
        if row is None:
            tell(self, "There is no file here.")
        else:
            self._doing.copy_reason(row.file)
