"""The resumes screen: the list, the filter, the preview, copy, delete."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import orjson
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import get_current_worker

from resumes.analyzer import whole_view
from resumes.store import accounts, search, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.store import Store
from resumes.store.stored_resumes import Entry
from resumes.text import escaped_json
from tui import clipboard
from tui.deletions import GRACE_S
from tui.keys import Place, bindings, changes_store, shown_key
from tui.screens import export_dialog, resume_pdf
from tui.screens.base import PageRead, SplitScreen
from tui.screens.dialogs import AccountChooser, Chooser, no_accounts
from tui.screens.export_dialog import Export, ExportDialog, ExportWish
from tui.screens.resume_views import Shown, View, show
from tui.session import UiSession
from tui.store_calls import Failure, call, store_work
from tui.text import AGE_CELLS, age, joined, minute, safe, tell
from tui.widgets.bars import ErrorLine, HeaderLine, KeyLine
from tui.widgets.filter_bar import FilterLine
from tui.widgets.paged_list import ListColumn, PagedList, text_cell
from tui.widgets.text_pane import Paragraph, TextPane


@dataclass(frozen=True, slots=True)
class Copyable:
    """Something that can be copied, and what it is called."""

    what: str
    text: str


COLUMNS: tuple[ListColumn[Copyable], ...] = (
    ListColumn("WHAT", 10, lambda one: safe(one.what)),
    ListColumn("", 0, lambda one: text_cell(one.text)),
)


def copyables(shown: Shown, pdf: Path | None) -> list[Copyable]:
    """Return what can be copied of the resume. `pdf`: where its PDF is."""
    document = whole_view(shown.document)
    header = document["header"]
    found = [
        Copyable("ID", shown.entry.id),
        Copyable("name", header.get("name") or ""),
        Copyable("e-mail", header.get("email") or ""),
        Copyable("phone", header.get("phone") or ""),
        Copyable("file name", shown.entry.filename),
        Copyable("PDF", "" if pdf is None else str(pdf)),
        Copyable("JSON", escaped_json(orjson.dumps(document).decode())),
    ]
    return [one for one in found if one.text]


class CopyDialog(Chooser[Copyable]):
    """Gives what to copy, None if it was canceled."""

    def __init__(self, store: Store, shown: Shown, pdf: Path | None) -> None:
        def read(_: Store) -> Sequence[Copyable]:
            return copyables(shown, pdf)

        super().__init__(store, title="Copy", columns=COLUMNS, key=lambda one: one.what, read=read)


def delete(
    screen: Screen[None], session: UiSession, account: str, resume_id: str, title: str
) -> None:
    """Delete the resume after the grace, unless that is undone."""
    undo = shown_key("everywhere.undo", session.keymap)
    if resume_id in session.deletions:
        tell(screen, f'Already deleting "{title}". Press {undo} to undo.')
        return
    session.deletions.add(account, resume_id, title)
    tell(screen, f'Deleting "{title}" in {GRACE_S:.0f} s. Press {undo} to undo.', "warning")


async def copy(screen: Screen[None], session: UiSession, shown: Shown) -> None:
    """Ask what of the resume to copy, and send that to the clipboard."""
    dialog = CopyDialog(session.store, shown, session.pdfs.find(shown.entry.id))
    one = await screen.app.push_screen_wait(dialog)
    if one is not None:
        clipboard.send(screen, one.text, what=one.what, instead="press x to export it")


async def export(
    screen: Screen[None],
    session: UiSession,
    account: str,
    *,
    resume_id: str,
    listed: str | None = None,
    text: str = "",
) -> None:
    """Ask what to export and where to, and do it. `listed`: what "all" is. Raises Failure."""
    wish = await screen.app.push_screen_wait(ExportDialog(listed=listed))
    if wish is None:
        return
    tell(screen, "Exporting…")
    said = await call(
        session.store,
        _export,
        account=account,
        resume_id=None if wish.is_all else resume_id,
        text=text,
        wish=wish,
        session=session,
    )
    tell(screen, said)


def _export(
    store: Store,
    *,
    account: str,
    resume_id: str | None,
    text: str,
    wish: ExportWish,
    session: UiSession,
) -> str:
    worker = get_current_worker()
    export = Export(
        account,
        resume_id,
        text,
        wish,
        session.settings.format,
        session.settings.home,
        lambda: worker.is_cancelled,
    )
    return export_dialog.carry_out(store, export)


VIEWS = tuple(View)


def view_tabs(current: View) -> Content:
    """Return the names of the views, the current one reversed."""
    return joined(
        [safe(f" {view} ", "bold reverse" if view is current else "dim") for view in View]
    )


class ResumePane(TextPane):
    """A resume in one of its views, whose names are the title."""

    def __init__(self, *, can_focus_text: bool) -> None:
        super().__init__()
        self.view = View.TEXT
        self._shown: Shown | None = None
        self.can_focus = can_focus_text
        self.add_class("panel")
        self.border_title = view_tabs(self.view)

    @property
    def shown(self) -> Shown | None:
        """What is shown; None when it is nothing, or a failure."""
        return self._shown

    def turn(self, views: int) -> None:
        """Switch that many views further; what is shown stays until the new view is read."""
        self.view = VIEWS[(VIEWS.index(self.view) + views) % len(VIEWS)]
        self.border_title = view_tabs(self.view)

    def show_resume(self, shown: Shown) -> None:
        """Show the resume, from its start unless it was shown before."""
        if shown == self._shown:
            return
        before = self._shown
        stays = before is not None and (before.entry.id, before.view) == (
            shown.entry.id,
            shown.view,
        )
        self._shown = shown
        self.show(shown.paragraphs, from_start=not stays)

    def show_failure(self, failure: Failure) -> None:
        """Show the failure in place of the resume."""
        self._shown = None
        self.show([Paragraph(failure.content)])

    def show_nothing(self, line: str = "") -> None:
        """Show no resume, but this line."""
        self._shown = None
        self.show([Paragraph(safe(line, "dim"))])


RESUME = "resume"
"""The group of the workers that read the resume to be shown."""


class DetailScreen(Screen[None]):
    """A resume of the account's list. `neighbour` moves in that list and gives the id there."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.RESUME)

    def __init__(
        self,
        session: UiSession,
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
        self._pane = ResumePane(can_focus_text=True)
        self._pane.view = view

    def compose(self) -> ComposeResult:
        yield HeaderLine("resumes", read_only=self._session.read_only)
        yield ErrorLine()
        yield self._pane
        yield KeyLine()

    def on_mount(self) -> None:
        self.action_reload()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable actions that change the store in a read-only session."""
        return not (self._session.read_only and changes_store(action))

    @on(ErrorLine.RetryDue)
    @store_work(group=RESUME, exclusive=True)
    async def action_reload(self) -> None:
        """Read the resume, and show it."""
        shown = await call(
            self._session.store,
            show,
            account=self._account,
            resume_id=self._resume_id,
            view=self._pane.view,
        )
        entry = shown.entry
        parts = [self._account, entry.shown_title, minute(entry.created_at)]
        self.query_one(ErrorLine).clear()
        tabs = [view_tabs(self._pane.view), *(safe(part, "bold") for part in parts)]
        self._pane.border_title = joined(tabs, by=" · ")
        self._pane.show_resume(shown)

    def action_next_view(self, views: int) -> None:
        """Switch to another view."""
        self._pane.turn(views)
        self.action_reload()

    def action_neighbour(self, rows: int) -> None:
        """Show the resume that many rows further down the list."""
        found = self._neighbour(rows)
        if found is None:
            tell(self, f"{'Last' if rows > 0 else 'First'} resume in the list.")
            return
        self._resume_id = found
        self.action_reload()

    @work
    async def action_copy(self) -> None:
        """Ask what of the resume to copy."""
        if (shown := self._seen()) is not None:
            await copy(self, self._session, shown)

    @store_work()
    async def action_open_pdf(self) -> None:
        """Draw the resume, to be seen in another program."""
        if (shown := self._seen()) is not None:
            await resume_pdf.open_pdf(
                self, self._session, self._account, shown.entry.id, place=Place.RESUME
            )

    @store_work()
    async def action_export(self) -> None:
        """Ask where to export it."""
        if (shown := self._seen()) is not None:
            await export(self, self._session, self._account, resume_id=shown.entry.id)

    def action_delete(self) -> None:
        """Delete the resume after the grace, unless that is undone."""
        if (shown := self._seen()) is not None:
            entry = shown.entry
            delete(self, self._session, self._account, entry.id, entry.shown_title)

    def _seen(self) -> Shown | None:
        """Return the resume that is shown; None while another one is being read."""
        shown = self._pane.shown
        if shown is None or shown.entry.id != self._resume_id:
            tell(self, "Loading the resume…")
            return None
        return shown

    def action_back(self) -> None:
        """Go back to the list."""
        self.dismiss()

    def show_failure(self, failure: Failure) -> None:
        """Show the failure above the resume, which stays."""
        self.query_one(ErrorLine).show(failure)


COPY = "copy"
"""The group of the workers that read the resume to copy from."""

PAGE_SIZE = 100
TICK_S = 1.0
"""How often the time left to undo a deletion is drawn."""


@dataclass(frozen=True, slots=True)
class About:
    """Whose page it is, and how many resumes cannot be found yet since they are too new."""

    account: AccountInfo | None
    unindexed: int = 0


class ResumesScreen(SplitScreen[Entry]):
    """The resumes of the session's account, oldest first, and a preview of one."""

    MODE = "resumes"
    INSERTS = False
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.RESUMES)

    def __init__(self, session: UiSession) -> None:
        self.pane = ResumePane(can_focus_text=False)
        super().__init__(session, self.pane)
        self._account: AccountInfo | None = None
        self._asked_for = session.account
        self._unindexed = 0
        self.filter = FilterLine()

    # The list.

    def columns(self) -> Sequence[ListColumn[Entry]]:
        clock = self.session.store.clock
        return (
            ListColumn("NAME", 0, lambda entry: text_cell(entry.name, "bold"), at_most=32),
            ListColumn("TITLE", 0, self._title_cell),
            ListColumn("FILENAME", 32, lambda entry: text_cell(entry.filename, "dim"), 120),
            ListColumn("ID", 24, lambda entry: text_cell(entry.id, "dim"), 150),
            ListColumn(
                "AGE",
                AGE_CELLS,
                lambda entry: safe(age(entry.created_at, clock()), "dim"),
                is_right=True,
            ),
        )

    def _title_cell(self, entry: Entry) -> Content:
        for deletion in self.session.deletions:
            if deletion.resume_id == entry.id:
                key = shown_key("everywhere.undo", self.session.keymap)
                left_s = self.session.deletions.left_s(deletion)
                left = f"Deleting in {left_s:.0f} s ({key} to undo) "
                return joined([safe(left, "bold $text-warning"), text_cell(entry.shown_title)])
        return text_cell(entry.shown_title, "dim")

    def labels(self) -> Mapping[str, str]:
        hidden = [] if self.is_split else ["next_view(1)"]
        if self.list.current is None:
            hidden += ["choose", "next_view(1)", "open_pdf", "export", "delete"]
        return dict.fromkeys(hidden, "")

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
                safe(f'No matches for "{self.filter.text}" in {name}.'),
                safe("Press esc to clear the filter."),
            )
        else:
            self.list.say_when_empty(
                safe(f"{name} has no resumes yet. Import some with:"),
                safe(f"{self.session.program} import FILE --account {name}"),
            )

    def heading(self) -> Content:
        if self._account is None:
            return safe(f"Resumes · {self._asked_for or 'No account'}")
        parts = [safe("Resumes"), safe(self._account.name)]
        if self.filter.text:
            parts.append(safe(f'"{self.filter.text}"', "$text-accent"))
        parts.append(safe(self.extent("no matches" if self.filter.text else "no resumes")))
        if self._unindexed:
            parts.append(safe(f"{self._unindexed:,} not searchable yet", "$text-warning"))
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
        """Show the account or resume that another screen asked for, if any."""
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

    @work
    async def action_choose_account(self) -> None:
        """Ask which account to show."""
        chooser = AccountChooser(self.session, preset=self._asked_for)
        choice = await self.app.push_screen_wait(chooser)
        if choice is not None:
            self._show_account(choice.name)

    def action_filter(self) -> None:
        """Open the filter line."""
        self.filter.open()

    @on(FilterLine.Changed)
    def show_found(self) -> None:
        """Read the resumes that match."""
        self.restart(keeps_rows=True)

    @on(FilterLine.Left)
    def back_to_list(self) -> None:
        """Focus the list."""
        self.list.focus()

    def peel(self) -> bool:
        if not self.filter.text:
            return False
        self.filter.close()
        return True

    # The preview.

    def read_preview(self, row: Entry | None) -> None:
        if row is None or self._asked_for is None:
            self.workers.cancel_group(self, RESUME)
            self.pane.show_nothing("This resume was deleted." if self.list.pages.count else "")
        else:
            self._read_resume(self._asked_for, row.id)

    @work(group=RESUME, exclusive=True)
    async def _read_resume(self, account: str, resume_id: str) -> None:
        try:
            shown = await call(
                self.session.store,
                show,
                account=account,
                resume_id=resume_id,
                view=self.pane.view,
            )
        except Failure as failure:
            # While the store is away the list says so, and what was read stays.
            if not failure.is_passing:
                self.pane.show_failure(failure)
        else:
            self.pane.show_resume(shown)

    def action_next_view(self, views: int) -> None:
        """Switch the preview to another view."""
        if not self.is_split:
            tell(self, "No preview is shown. Press enter to open the resume.")
            return
        self.pane.turn(views)
        self.refresh_preview()

    def action_scroll_pane(self, pages: int) -> None:
        """Scroll the preview."""
        self.pane.action_scroll_pages(pages)

    # What is done with the resume at the cursor.

    @on(PagedList.Chosen)
    def open_resume(self, chosen: PagedList.Chosen) -> None:
        """Show the resume on a page of its own."""
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
        """Delete the resume after the grace, unless that is undone."""
        entry = self._current("delete")
        if entry is not None and self._asked_for is not None:
            delete(self, self.session, self._asked_for, entry.id, entry.shown_title)
            self.list.refresh()

    @store_work(group=COPY, exclusive=True)
    async def action_copy(self) -> None:
        """Ask what of the resume to copy."""
        entry = self._current("copy")
        if entry is not None and self._asked_for is not None:
            shown = await call(
                self.session.store,
                show,
                account=self._asked_for,
                resume_id=entry.id,
                view=self.pane.view,
            )
            if self.is_active:
                await copy(self, self.session, shown)

    @store_work()
    async def action_open_pdf(self) -> None:
        """Draw the resume, to be seen in another program."""
        entry = self._current("open")
        if entry is not None and self._asked_for is not None:
            await resume_pdf.open_pdf(
                self, self.session, self._asked_for, entry.id, place=Place.RESUMES
            )

    @store_work()
    async def action_export(self) -> None:
        """Ask what to export and where to."""
        entry = self._current("export")
        if entry is None or self._asked_for is None:
            return
        text = self.filter.text
        await export(
            self,
            self.session,
            self._asked_for,
            resume_id=entry.id,
            listed=f'all matching "{text}"' if text else f"all of {self._asked_for}",
            text=text,
        )

    def _current(self, verb: str) -> Entry | None:
        entry = self.list.current
        if entry is None:
            tell(self, f"No resume to {verb}.")
        return entry


def read_first_page(store: Store, name: str | None, text: str = "") -> PageRead[Entry]:
    """Return the first page of this account, or of the first that holds resumes."""
    if name is not None:
        return read_page(store, accounts.get_account(store, name), text, "")
    known = accounts.list_accounts(store)
    if not known:
        return PageRead([], about=About(None))
    first = next((account for account in known if account.resume_count), known[0])
    return read_page(store, first, text, "")


def read_page(store: Store, account: AccountInfo, text: str, cursor: str) -> PageRead[Entry]:
    """Return the page after the cursor, of all resumes or those that match the text."""
    if text:
        found = search.find_page(store, account.id, text, cursor=cursor, limit=PAGE_SIZE)
        return PageRead(found.page.entries, found.page.cursor, About(account, found.unindexed))
    page = stored_resumes.list_page(store, account.id, cursor=cursor, limit=PAGE_SIZE)
    return PageRead(page.entries, page.cursor, About(account))
