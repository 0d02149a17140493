"""The resumes of one account, page by page through the function that serves the API."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget

from resumes.store import accounts, search, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.store import Store
from resumes.store.stored_resumes import Entry
from tui.actions import Place, bindings
from tui.keymap import shown_key
from tui.notices import Failure
from tui.screens.accounts.absence import no_accounts
from tui.screens.accounts.chooser import AccountChooser, Choice
from tui.screens.list_screen import PageRead
from tui.screens.resumes import doing, opening_pdf
from tui.screens.resumes.detail import DetailScreen
from tui.screens.resumes.pane import ResumePane
from tui.screens.resumes.views import Shown, show
from tui.screens.split_screen import SplitScreen
from tui.session import Session
from tui.text import joined, safe
from tui.times import minute
from tui.toasts import tell
from tui.widgets.columns import Column, text_cell
from tui.widgets.filter_line import FilterLine
from tui.widgets.paged_list import PagedList

PAGE_SIZE = 100
TICK_S = 1.0
"""How often the time is drawn anew that is left to take a deletion back."""

RESUME = "resume"
"""The group of the calls that read the resume beside the list."""


@dataclass(frozen=True, slots=True)
class About:
    """Whose page it is, and how many resumes cannot be found yet since they are too new."""

    account: AccountInfo | None
    unindexed: int = 0


class ResumesScreen(SplitScreen[Entry]):
    """The resumes of the session's account, oldest first; beside them the one at the cursor."""

    MODE = "resumes"
    INSERTS = False
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.RESUMES)

    def __init__(self, session: Session) -> None:
        self.pane = ResumePane(can_focus_text=False)
        super().__init__(session, self.pane)
        self._account: AccountInfo | None = None
        self._asked_for = session.account
        self._unindexed = 0
        self.filter = FilterLine()

    # The list.

    def columns(self) -> Sequence[Column[Entry]]:
        # The title is last: a terminal that measures a letter otherwise than we do moves only
        # what stands to the right of it.
        return (
            Column("CREATED (UTC)", 16, lambda entry: text_cell(minute(entry.created_at)), 44),
            Column("ID", 24, lambda entry: text_cell(entry.id, "dim"), 130),
            Column("NAME", 22, lambda entry: text_cell(entry.name), 70),
            Column("FILENAME", 32, lambda entry: text_cell(entry.filename), 160),
            Column("TITLE", 0, self._title_cell),
        )

    def _title_cell(self, entry: Entry) -> Content:
        for deletion in self.session.deletions:
            if deletion.resume_id == entry.id:
                key = shown_key("everywhere.undo", self.session.keymap)
                left = (
                    f"deleted in {self.session.deletions.left_s(deletion):.0f} s, {key} keeps it "
                )
                return joined([safe(left, "bold $text-warning"), text_cell(entry.shown_title)])
        return text_cell(entry.shown_title)

    def row_key(self, row: Entry) -> str:
        return row.id

    def reading(self, cursor: str) -> Callable[[Store], PageRead[Entry]]:
        text = self.filter.text
        if self._account is not None and (cursor or text):
            return partial(read_page, account=self._account, text=text, cursor=cursor)
        return partial(read_first_page, name=self._asked_for, text=text)

    def page_arrived(self, read: PageRead[Entry]) -> None:
        self._account = read.about.account
        self._unindexed = read.about.unindexed
        if self._account is None:
            self.list.say_when_empty(*no_accounts(self.session))
            return
        self._asked_for = name = self._account.name
        if self.session.account is None:
            self.session.account = name
        if self.filter.text:
            self.list.say_when_empty(
                safe(f'No resume of {name} has "{self.filter.text}" in title, name or e-mail.'),
                safe("esc takes the filter away."),
            )
        else:
            self.list.say_when_empty(
                safe(f"{name} holds no resumes yet. This brings some in:"),
                safe(f"{self.session.program} import FILE --account {name}"),
            )

    def heading(self) -> Content:
        if self._account is None:
            return safe(self._asked_for or "No account", "bold")
        parts = [safe(self._account.name, "bold")]
        if self.filter.text:
            parts.append(safe(f'"{self.filter.text}"', "$text-accent"))
        parts.append(safe(self.extent("none found" if self.filter.text else "no resumes")))
        if self._unindexed:
            parts.append(safe(f"{self._unindexed:,} cannot be found yet", "$text-warning"))
        return joined(parts, by=" · ")

    def body(self) -> Iterable[Widget]:
        yield self.filter
        yield from super().body()

    def on_mount(self) -> None:
        self.set_interval(TICK_S, self._count_down)

    def _count_down(self) -> None:
        if self.session.deletions:
            self.list.refresh()

    def on_screen_resume(self) -> None:
        """Another account may have been asked for from another screen."""
        if self.session.account not in (None, self._asked_for):
            self._show_account(self.session.account)
        if self.session.open_id is not None and self.session.account is not None:
            opened, self.session.open_id = self.session.open_id, None
            self._open(opened)

    # Whose resumes, and which of them.

    def _show_account(self, name: str | None) -> None:
        self._account = None
        self._asked_for = self.session.account = name
        self.filter.close()
        self.restart()

    def action_choose_account(self) -> None:
        """A dialog asks which account to show."""
        chooser = AccountChooser(self.session, preset=self._asked_for)
        self.app.push_screen(chooser, self._account_chosen)

    def _account_chosen(self, choice: Choice | None) -> None:
        if choice is not None:
            self._show_account(choice.name)

    def action_filter(self) -> None:
        """The line to type a filter in is open."""
        self.filter.open()

    @on(FilterLine.Changed)
    def show_found(self) -> None:
        """What fits is being read."""
        self.restart(keeps_rows=True)

    @on(FilterLine.Left)
    def back_to_list(self) -> None:
        """The keys are the list's again."""
        self.list.focus()

    def peel(self) -> bool:
        if not self.filter.text:
            return False
        self.filter.close()
        return True

    # The resume beside the list.

    def read_beside(self, row: Entry | None) -> None:
        if row is None or self._asked_for is None:
            self.client.drop(RESUME)
            self.pane.show_nothing("This resume is deleted." if self.list.pages.count else "")
            return
        self.client.read(
            RESUME,
            partial(show, account=self._asked_for, resume_id=row.id, view=self.pane.view),
            then=self.pane.show,
            failed=self._beside_failed,
        )

    def _beside_failed(self, failure: Failure) -> None:
        # While the store is away the list says so, and what was read stays.
        if not failure.is_passing:
            self.pane.show_failure(failure)

    def action_next_view(self, views: int) -> None:
        """Another view of the resume beside the list."""
        if not self.is_split:
            tell(self, "There is no resume beside the list.")
            return
        self.pane.turn(views)
        self.refresh_beside()

    def action_scroll_pane(self, pages: int) -> None:
        """The resume beside the list is scrolled."""
        self.pane.scroll_pages(pages)

    # What is done with the resume at the cursor.

    @on(PagedList.Chosen)
    def open_resume(self, chosen: PagedList.Chosen) -> None:
        """The resume is open to read."""
        self._open(chosen.row.id)

    def _open(self, resume_id: str) -> None:
        if self.session.account is not None:
            detail = DetailScreen(
                self.session, self.session.account, resume_id, self.pane.view, self._neighbour
            )
            self.app.push_screen(detail, self._detail_closed)

    def _neighbour(self, rows: int) -> str | None:
        entry = self.neighbour(rows)
        return None if entry is None else entry.id

    def _detail_closed(self, _: None) -> None:
        self.refresh_rows()

    def action_delete(self) -> None:
        """The resume will be deleted, unless that is undone."""
        entry = self._current("delete")
        if entry is not None and self._asked_for is not None:
            doing.delete(self, self.session, self._asked_for, entry.id, entry.shown_title)
            self.list.refresh()

    def action_copy(self) -> None:
        """A dialog asks what of the resume to copy."""
        entry = self._current("copy")
        if entry is not None and self._asked_for is not None:
            self.client.read(
                "copy",
                partial(show, account=self._asked_for, resume_id=entry.id, view=self.pane.view),
                then=self._copy,
                failed=self.show_failure,
            )

    def _copy(self, shown: Shown) -> None:
        if self.is_active:
            doing.copy(self, self.session, shown)

    def action_open_pdf(self) -> None:
        """The resume is being drawn, to be seen in another program."""
        entry = self._current("open")
        if entry is not None and self._asked_for is not None:
            opening_pdf.open_pdf(
                self,
                self.session,
                self.client,
                self._asked_for,
                entry.id,
                place=Place.RESUMES,
                failed=self.show_failure,
            )

    def action_export(self) -> None:
        """A dialog asks what to export and where to."""
        entry = self._current("export")
        if entry is None or self._asked_for is None:
            return
        text = self.filter.text
        doing.export(
            self,
            self.session,
            self.client,
            self._asked_for,
            resume_id=entry.id,
            listed=f'all with "{text}"' if text else f"all of {self._asked_for}",
            text=text,
            failed=self.show_failure,
        )

    def _current(self, verb: str) -> Entry | None:
        entry = self.list.current
        if entry is None:
            tell(self, f"There is no resume here to {verb}.")
        return entry


def read_first_page(store: Store, name: str | None, text: str = "") -> PageRead[Entry]:
    """The account of this name, or the first that holds resumes, and its first page."""
    if name is not None:
        return read_page(store, accounts.get_account(store, name), text, "")
    known = accounts.list_accounts(store)
    if not known:
        return PageRead([], about=About(None))
    first = next((account for account in known if account.resume_count), known[0])
    return read_page(store, first, text, "")


def read_page(store: Store, account: AccountInfo, text: str, cursor: str) -> PageRead[Entry]:
    """The page after the cursor, of all or of those that fit the text."""
    if text:
        found = search.find_page(store, account.id, text, cursor=cursor, limit=PAGE_SIZE)
        return PageRead(found.page.entries, found.page.cursor, About(account, found.unindexed))
    page = stored_resumes.list_page(store, account.id, cursor=cursor, limit=PAGE_SIZE)
    return PageRead(page.entries, page.cursor, About(account))
