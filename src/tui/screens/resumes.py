"""The resumes screen: the list, the filter, the resume beside it, copy, delete."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import orjson
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static
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
from tui.text import joined, minute, safe, tell
from tui.widgets.bars import ErrorLine, KeyLine, ModeLine, TitleLine
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
    """What can be copied of the resume; nothing that it does not have. `pdf`: where its PDF is."""
    document = whole_view(shown.document)
    header = document["header"]
    found = [
        Copyable("id", shown.entry.id),
        Copyable("name", header.get("name") or ""),
        Copyable("e-mail", header.get("email") or ""),
        Copyable("phone", header.get("phone") or ""),
        Copyable("file name", shown.entry.filename),
        Copyable("PDF", "" if pdf is None else str(pdf)),
        Copyable("JSON", escaped_json(orjson.dumps(document).decode())),
    ]
    return [one for one in found if one.text]


class CopyDialog(Chooser[Copyable]):
    """Gives what to copy, None when it was cancelled."""

    def __init__(self, store: Store, shown: Shown, pdf: Path | None) -> None:
        def read(_: Store) -> Sequence[Copyable]:
            return copyables(shown, pdf)

        super().__init__(
            store, question="Copy what?", columns=COLUMNS, key=lambda one: one.what, read=read
        )


def delete(
    screen: Screen[None], session: UiSession, account: str, resume_id: str, title: str
) -> None:
    """The resume will be deleted, unless that is undone."""
    undo = shown_key("everywhere.undo", session.keymap)
    if resume_id in session.deletions:
        tell(screen, f'"{title}" is about to be deleted already; {undo} keeps it.')
        return
    session.deletions.add(account, resume_id, title)
    tell(screen, f'"{title}" will be deleted in {GRACE_S:.0f} s. {undo} keeps it.', "warning")


async def copy(screen: Screen[None], session: UiSession, shown: Shown) -> None:
    """Ask what of the resume to copy, and send that to the clipboard."""
    dialog = CopyDialog(session.store, shown, session.pdfs.find(shown.entry.id))
    one = await screen.app.push_screen_wait(dialog)
    if one is not None:
        clipboard.send(screen, one.text, what=one.what, instead="x exports it")


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


class ViewLine(Static):
    """The views there are, and which this is."""

    DEFAULT_CSS = """
    ViewLine { height: 1; padding: 0 1; text-wrap: nowrap; }
    """

    def show(self, view: View) -> None:
        """The line marks this view."""
        self.update(view_tabs(view))


def view_tabs(current: View) -> Content:
    """The names of the views, the current one reversed."""
    return joined(
        [safe(f" {view} ", "bold reverse" if view is current else "dim") for view in View]
    )


class ResumePane(Vertical):
    """A resume in one of its views."""

    DEFAULT_CSS = """
    ResumePane { width: 1fr; height: 1fr; }
    """

    def __init__(self, *, can_focus_text: bool) -> None:
        super().__init__()
        self.view = View.TEXT
        self._shown: Shown | None = None
        self._text = TextPane()
        self._text.can_focus = can_focus_text

    def compose(self) -> ComposeResult:
        line = ViewLine()
        line.show(self.view)
        yield line
        yield self._text

    @property
    def shown(self) -> Shown | None:
        """What is shown; None when it is nothing, or a failure."""
        return self._shown

    def turn(self, views: int) -> None:
        """That many views further, round and round; what was shown stays until the new one is."""
        self.view = VIEWS[(VIEWS.index(self.view) + views) % len(VIEWS)]
        self.query_one(ViewLine).show(self.view)

    def show(self, shown: Shown) -> None:
        """The resume is shown; from its start, unless it was there before."""
        if shown == self._shown:
            return
        before = self._shown
        stays = before is not None and (before.entry.id, before.view) == (
            shown.entry.id,
            shown.view,
        )
        self._shown = shown
        self._text.show(shown.paragraphs, from_start=not stays)

    def show_failure(self, failure: Failure) -> None:
        """The failure stands where the resume would."""
        self._shown = None
        self._text.show([Paragraph(failure.content)])

    def show_nothing(self, line: str = "") -> None:
        """There is no resume to show."""
        self._shown = None
        self._text.show([Paragraph(safe(line, "dim"))])

    def scroll_pages(self, pages: int) -> None:
        """The text is that many screens further down."""
        self._text.action_scroll_pages(pages)


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
        self.query_one(TitleLine).show(joined([safe(part, "bold") for part in parts], by=" · "))
        self._pane.show(shown)

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
        """The resume will be deleted, unless that is undone."""
        if (shown := self._seen()) is not None:
            entry = shown.entry
            delete(self, self._session, self._account, entry.id, entry.shown_title)

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

    def show_failure(self, failure: Failure) -> None:
        """Show the failure above the resume, which stays."""
        self.query_one(ErrorLine).show(failure)


COPY = "copy"
"""The group of the workers that read the resume to copy from."""

PAGE_SIZE = 100
TICK_S = 1.0
"""How often the time is drawn anew that is left to take a deletion back."""


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

    def __init__(self, session: UiSession) -> None:
        self.pane = ResumePane(can_focus_text=False)
        super().__init__(session, self.pane)
        self._account: AccountInfo | None = None
        self._asked_for = session.account
        self._unindexed = 0
        self.filter = FilterLine()

    # The list.

    def columns(self) -> Sequence[ListColumn[Entry]]:
        # The title is last: a terminal that measures a letter otherwise than we do moves only
        # what stands to the right of it.
        return (
            ListColumn("CREATED (UTC)", 16, lambda entry: text_cell(minute(entry.created_at)), 44),
            ListColumn("ID", 24, lambda entry: text_cell(entry.id, "dim"), 130),
            ListColumn("NAME", 22, lambda entry: text_cell(entry.name), 70),
            ListColumn("FILENAME", 32, lambda entry: text_cell(entry.filename), 160),
            ListColumn("TITLE", 0, self._title_cell),
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

    @work
    async def action_choose_account(self) -> None:
        """Ask which account to show."""
        chooser = AccountChooser(self.session, preset=self._asked_for)
        choice = await self.app.push_screen_wait(chooser)
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
            self.workers.cancel_group(self, RESUME)
            self.pane.show_nothing("This resume is deleted." if self.list.pages.count else "")
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
            self.pane.show(shown)

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
            listed=f'all with "{text}"' if text else f"all of {self._asked_for}",
            text=text,
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
