"""The imports screen: list, retry, release, a file's page and its resumes."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Final

from textual import on, work
from textual.content import Content
from textual.widget import Widget

from resumes.clock import timestamp
from resumes.editor import edit
from resumes.errors import InvalidArgument, NotFound
from resumes.health.findings import installation_of
from resumes.import_reasons import plain_words
from resumes.store import import_history, import_ledger, import_requests
from resumes.store.import_history import ORDER, FileRow
from resumes.store.import_ledger import FileOutcome, Item
from resumes.store.import_requests import (
    STATES,
    RequestKind,
    describe_queued,
    request_all_files,
    request_files,
)
from resumes.store.store import Store
from resumes.text import counted, in_bytes
from tui.keys import Place, Target, bindings
from tui.screens.base import (
    NEWEST_FIRST,
    ListScreen,
    ModeScreen,
    Order,
    RowPane,
    RowScreen,
    SplitScreen,
)
from tui.screens.dialogs import Chooser, ConfirmDialog, ask, copy_one
from tui.screens.file_views import (
    FileRead,
    FileView,
    ImportRow,
    copyables,
    file_cell,
    find_account_id,
    folder_of,
    outcome_content,
    outcome_of,
    position,
    read_page,
    reason_cell,
    why_not,
)
from tui.screens.importers import Overview
from tui.session import UiSession
from tui.store_calls import Failure, call, is_running, store_work
from tui.text import safe, show_message
from tui.widgets.bars import ErrorLine, KeyLine
from tui.widgets.paged_list import ListColumn, age_column, text_cell
from tui.widgets.window import PageRead

MAX_FOLLOWED: Final = 20
"""The most queued files whose outcomes are announced; others are only updated in the list."""

MAX_NAME_CHARS: Final = 60
"""The maximum length of a file name in a message, which must fit on one line."""


def read_now(store: Store, *, files: Sequence[FileRow]) -> list[FileRow]:
    """Return the current state of these files, except those that are no longer listed."""
    found = []
    for file in files:
        with suppress(NotFound):
            found.append(import_history.get_file(store, file.claim_id, account_id=file.account_id))
    return found


MAX_CHOICES = 10_000
"""The most resumes of a file to choose from; the list of resumes contains all of them."""

MAX_REASONS: Final = 6
"""The most reasons to list in a confirmation dialog."""

CONSEQUENCES: Final = {
    RequestKind.RETRY: "Files that you have not fixed will fail again.",
    RequestKind.RELEASE: "Files that fit the plan are imported now; the rest stay held.",
}


def refused(file: FileRow) -> Sequence[str]:
    """Return the actions, by Textual's names, that do not apply to the file."""
    hidden = [f"ask('{kind}')" for kind in RequestKind if why_not(file, kind) is not None]
    return [*hidden, "edit_file"] if "ask('retry')" in hidden else hidden


REFRESH_S: Final = 1.0

BINARY: Final = (".gz", ".zip", ".pdf", ".doc", ".docx", ".odt")


class FileActions(ModeScreen):
    """The actions on files, in the list and on a file's page."""

    pane: FileView

    @abstractmethod
    def chosen_rows(self, verb: str, *, one: bool = False) -> Sequence[ImportRow]:
        """Return the files to act on, or only `one`; if there are none, show why."""

    def follow_up(self, files: Sequence[FileRow]) -> None:
        """Show the requests for these files."""
        self.action_reload()

    @store_work()
    async def action_ask(self, kind: str) -> None:
        """Request a retry or a release of the files."""
        if files := await self._find_now(kind):
            await self._request(files, RequestKind(kind))
            self.unmark()

    async def _find_now(self, verb: str) -> Sequence[FileRow]:
        """Return the current state of the files to act on; marked files may have changed."""
        if not (chosen := [row.file for row in self.chosen_rows(verb)]):
            return []
        files = await call(self.session.store, read_now, files=chosen)
        if not files:
            show_message(self, "No longer in the list: dismissed meanwhile.")
            self.unmark()
        return files

    async def _request(self, files: Sequence[FileRow], action: RequestKind) -> None:
        """Request the action for the files that it applies to; if there are none, show why."""
        fitting = [file for file in files if why_not(file, action) is None]
        if fitting:
            await self.queue(action, partial(request_files, files=fitting, action=action))
            self.follow_up(fitting)
        else:
            show_message(self, why_not(files[0], action) or "")

    async def queue(self, action: RequestKind, request: Callable[[Store], int]) -> None:
        """Make the requests; show how many files were queued and, if no importer is running, how to
        start one."""
        session, since = self.session, timestamp(self.session.store.clock())
        how_to = installation_of(session.store, session.settings, session.program).how_to_watch
        describe = partial(describe_queued, action=action, since=since, how_to_watch=how_to)
        text, is_watched = await call(session.store, lambda store: describe(store, request(store)))
        show_message(self, text, "information" if is_watched else "warning")

    @store_work()
    async def action_dismiss_files(self) -> None:
        """Dismiss the chosen files that failed, after confirmation."""
        if not (files := await self._find_now("dismiss")):
            return
        failed = [file for file in files if why_not(file, RequestKind.RETRY) is None]
        if not failed:
            show_message(self, "Only failed files can be dismissed.")
            return
        what = failed[0].name if len(failed) == 1 else counted(len(failed), "failed file")
        dialog = ConfirmDialog(
            f"Dismiss {what[-MAX_NAME_CHARS:]}?",
            [],
            consequence="Dismissed files no longer count as failed and disappear from this list. The files themselves stay where they are.",
            verb="Dismiss",
        )
        if await ask(self, dialog):
            await call(self.session.store, import_requests.dismiss_files, failed)
            show_message(self, f"Dismissed {what[-MAX_NAME_CHARS:]}.")
            self.unmark()
            if isinstance(self, ListScreen):
                self.action_reload()
            else:
                self.dismiss()

    async def read_chosen(self, verb: str) -> FileRead | None:
        """Return the details of the file to act on; if there is none, show why and return None."""
        for row in self.chosen_rows(verb, one=True):
            read = await call(self.session.store, self.pane.reading(row))
            return read if self.is_active else None
        return None

    @store_work(exclusive=True)
    async def action_copy(self) -> None:
        if (read := await self.read_chosen("copy")) is not None:
            await copy_one(self, self.session.store, copyables(read))

    @store_work()
    async def action_edit_file(self) -> None:
        """Open the failed file in the editor, and request a retry if it was changed."""
        read = await self.read_chosen("edit")
        if read is not None and self._edit(read):
            await self._request([read.file], RequestKind.RETRY)

    def _edit(self, read: FileRead) -> bool:
        """Open the editor and return whether the file was changed; if it was not, show why."""
        file, path = read.file, read.path
        mark = None if read.source is None else read.source.mark
        line = None if mark is None else mark.line
        if (refusal := why_not(file, RequestKind.RETRY)) is not None:
            show_message(self, refusal)
        elif path is None:
            show_message(self, f"The file is no longer in {folder_of(file)} of {file.root}.")
        elif path.suffix in BINARY:
            show_message(self, "This kind of file cannot be edited as text.")
        else:
            try:
                if edit(path, line, self.handed_over):
                    return True
                show_message(self, "The file was not changed.")
            except InvalidArgument as error:
                show_message(self, f"{error.message}.", "error")
        return False


class FileScreen(RowScreen[ImportRow], FileActions):
    """A file's page."""

    pane: FileView
    MODE = "imports"
    BINDINGS = bindings(Place.FILE)
    DEFAULT_CSS = """
    FileScreen FileView { layout: horizontal; }
    FileScreen FileView > TextPane { width: 2fr; height: 1fr; }
    FileScreen FileView > SourceLines { width: 3fr; height: 1fr; }
    FileScreen.-narrow FileView { layout: vertical; }
    FileScreen.-narrow FileView > TextPane { width: 1fr; height: 2fr; }
    FileScreen.-narrow FileView > SourceLines { width: 1fr; height: 3fr; }
    """

    def __init__(self, listed: "ImportsScreen", row: ImportRow, *, is_linked: bool) -> None:
        pane = FileView(listed.session, can_focus_text=True)
        super().__init__(listed, pane, row, is_linked=is_linked)

    @property
    def name_here(self) -> str:
        return (self.pane.read or self.wanted).file.name

    def on_mount(self) -> None:
        self.set_interval(self.session.refresh_s or REFRESH_S, self._refresh_file)

    def _refresh_file(self) -> None:
        if self.is_active and self.query_one(ErrorLine).failure is None:
            self.refresh_pane()

    @on(RowPane.Shown)
    def _show_file(self, shown: RowPane.Shown) -> None:
        read: FileRead = shown.read
        self.wanted = read
        self.pane.text.border_title = self.titled(outcome_content(read))
        hidden = [
            *refused(read.file),
            *(["open_resume"] if all(resume.is_deleted for resume in read.resumes) else []),
            *([] if read.source else ["next_pane"]),
        ]
        self.query_one(KeyLine).labels = dict.fromkeys(hidden, "")

    def action_next_pane(self) -> None:
        before = self.focused
        if self.focus_next() is before:
            show_message(self, "The source of imported files is not kept.")

    def chosen_rows(self, verb: str, *, one: bool = False) -> Sequence[ImportRow]:
        pane = self.pane
        if pane.read is None or pane.key_of(pane.read) == pane.key_of(self.wanted):
            return [self.wanted]
        if pane.is_reading:
            show_message(self, "Loading the next file…")
        else:
            show_message(self, "Could not load the next file. Press r to retry.")
        return []

    @store_work()
    async def action_open_resume(self) -> None:
        """Open the file's resume; if there are several, ask which one to open."""
        # Reading again could take long, and `esc` does not leave the page meanwhile.
        shown = self.wanted if isinstance(self.wanted, FileRead) else None
        if (read := shown or await self.read_chosen("open")) is None:
            return
        file = read.file
        if not read.resumes:
            show_message(self, f"No resume: this file {STATES[file.outcome]}.")
            return
        item: Item | None = read.resumes[0]
        if len(read.resumes) > 1:
            chooser = Chooser(
                self.session.store,
                title="Choose resume",
                columns=(
                    ListColumn("ITEM", 7, lambda item: safe(f"{item.item:>7,}")),
                    ListColumn("OUTCOME", 10, lambda item: safe(outcome_of(item))),
                    ListColumn("RESUME", 0, lambda item: text_cell(item.resume_id)),
                ),
                key=lambda item: f"{item.item}",
                read=lambda store: import_ledger.find_items(
                    store, file.account_id, file.claim_id, limit=MAX_CHOICES
                ),
            )
            item = await ask(self, chooser)
        if item is not None and item.is_deleted:
            show_message(self, "This resume was deleted.")
        elif item is not None:
            self.follow_link(Target("resumes", file.account, opens=item.resume_id))


class ImportsScreen(SplitScreen[ImportRow, ImportRow], FileActions):
    """The files of one account or of all accounts, and a preview of the file at the cursor."""

    pane: FileView
    MODE = "imports"
    ROW = "file"
    IS_PAGED = True
    ORDERS = (Order("failed first"), NEWEST_FIRST)
    ALL_LABEL = "all accounts"
    BINDINGS = bindings(Place.IMPORTS)
    DEFAULT_CSS = """
    ImportsScreen #split > PagedList, ImportsScreen #split > .pane { width: 1fr; }
    """

    def __init__(self, session: UiSession) -> None:
        super().__init__(session, FileView(session, can_focus_text=False))
        self._outcome: FileOutcome | None = None
        self.overview = Overview(session)
        self._followed: dict[tuple[str, str], FileRow] = {}
        """Queued files, by account ID and claim ID, whose outcomes are still to be announced."""

    # The list.

    def body(self) -> Iterable[Widget]:
        yield self.overview
        yield from super().body()

    def columns(self) -> Sequence[ListColumn[ImportRow]]:
        account = self.account
        # The preview shows the reason.
        reason = () if self.is_split else (ListColumn("REASON", 20, reason_cell, 54),)
        return (
            ListColumn("OUTCOME", 11, outcome_content),
            ListColumn("FILE", 0, lambda row: file_cell(row, account)),
            *reason,
            ListColumn(
                "SIZE", 9, lambda row: safe(in_bytes(row.file.size_bytes), "dim"), 90, is_right=True
            ),
            age_column("AGE", attrgetter("file.claimed_at"), self.session.store.clock),
        )

    def hidden(self) -> Iterable[str]:
        row = self.list.current
        return ("choose", "ask('retry')", "ask('release')") if row is None else refused(row.file)

    def row_key(self, row: ImportRow) -> str:
        return position(row, is_newest_first=self.is_newest_first)

    def reading(self, cursor: str) -> Callable[[Store], PageRead[ImportRow]]:
        return partial(
            read_page,
            account=self.account,
            outcome=self._outcome,
            is_newest_first=self.is_newest_first,
            filtered_by=self.filter.text,
            cursor=cursor,
        )

    def page_arrived(self, read: PageRead[ImportRow]) -> Sequence[Content]:
        whose = self.account
        if self._outcome is not None:
            where = "" if whose is None else f" in {whose}"
            return safe(f"No {self._outcome} files{where}."), safe("Press o for the next outcome.")
        inbox = self.session.settings.inbox / (whose or "ACCOUNT")
        return (
            safe("No files imported from the inbox yet."),
            safe("Drop resume files into"),
            safe(f"{inbox}/", "bold"),
        )

    def heading(self) -> Iterable[Content]:
        if self._outcome is None or self.is_newest_first:
            yield safe(self.order.label)
        if self._outcome is not None:
            yield safe(f"only {self._outcome}")
        yield safe(self.extent("no files"))

    def on_mount(self) -> None:
        self.overview.read(self.account, recounts=True)

    def on_screen_resume(self) -> None:
        # A filtered list is not refreshed regularly, but an outcome may have changed on a page.
        if self.filter.text:
            super().refresh_rows()

    def refresh_rows(self) -> None:
        # Filtering many files repeatedly would take too long.
        if not self.filter.text:
            super().refresh_rows()
        if self.is_active and self.query_one(ErrorLine).failure is None:
            self.overview.read(self.account)
            if self._followed and not is_running(self, self._announce_ended):
                self._announce_ended()
            self.refresh_pane()

    @work
    async def _announce_ended(self) -> None:
        # The list shows failures; the next refresh tries again.
        with suppress(Failure):
            files = list(self._followed.values())
            for file in await call(self.session.store, read_now, files=files):
                key = file.account_id, file.claim_id
                if file.is_under_way or file.finished_at == self._followed[key].finished_at:
                    continue
                del self._followed[key]
                why = "" if file.reason is None else f", {plain_words(file.reason)}"
                show_message(
                    self, f"{file.outcome.capitalize()}{why}: {file.name[-MAX_NAME_CHARS:]}"
                )
                self.action_reload()

    def action_reload(self, *, row: str = "") -> None:
        super().action_reload(row=row)
        self.overview.read(self.account, recounts=True)

    # Which files are shown.

    def open_link(self, link: Target) -> None:
        """Show the link's files, or open the link's file on its own page."""
        self._outcome = FileOutcome(link.only) if link.only else None
        self.show_account(link.account)
        if link.opens:
            self._open_linked(link.opens)

    @store_work()
    async def _open_linked(self, claim_id: str) -> None:
        store = self.session.store
        account_id = await call(store, find_account_id, self.account)
        file = await call(store, import_history.get_file, claim_id, account_id=account_id)
        # The file's page finds the next and the previous file in the list.
        self.list.restart(keeps_rows=True, row=self.row_key(ImportRow(file)))
        if self.is_active:  # the user may have left the screen
            self.open_row(ImportRow(file), is_linked=True)

    def show_account(self, name: str | None) -> None:
        self.overview.read(name, recounts=True)
        super().show_account(name)
        self.list.show_columns(self.columns())

    def action_next_outcome(self) -> None:
        shown = [None, *ORDER]
        self._outcome = shown[(shown.index(self._outcome) + 1) % len(shown)]
        self.list.restart()

    def close_top_layer(self) -> bool:
        # After a link was followed, `esc` must go back instead of clearing the outcome.
        if super().close_top_layer():
            return True
        if self._outcome is None or self.session.trail:
            return False
        self._outcome = None
        self.list.restart()
        return True

    def wanted_of(self, row: ImportRow) -> ImportRow:
        return row

    # Actions on the file at the cursor, and on many files.

    def open_row(self, row: ImportRow, *, is_linked: bool = False) -> None:
        self.app.push_screen(FileScreen(self, row, is_linked=is_linked))

    def follow_up(self, files: Sequence[FileRow]) -> None:
        for file in files[: MAX_FOLLOWED - len(self._followed)]:
            self._followed[file.account_id, file.claim_id] = file
        super().follow_up(files)

    @store_work()
    async def action_ask_all(self, kind: str) -> None:
        """Retry or release all files that the action applies to, after confirmation."""
        action = RequestKind(kind)
        account, store = self.account, self.session.store
        account_id = await call(store, find_account_id, account)
        counts = await call(
            store, import_history.count_files, account_id=account_id, not_done_only=True
        )
        fitting = import_requests.FITS[action]
        found = [tally for tally in counts if tally.outcome is fitting]
        if account != self.account:  # the user chose another account during the count
            return
        if not found:
            where = "" if account is None else f" in {account}"
            show_message(self, f"No {fitting} files{where}: nothing to {action}.")
            return
        most = sorted(found, key=lambda tally: -tally.files)
        reasons = [
            ("" if number else "Reason", f"{plain_words(tally.reason or 'none')} ({tally.files:,})")
            for number, tally in enumerate(most[:MAX_REASONS])
        ]
        count = f"{sum(tally.files for tally in found):,}"
        dialog = ConfirmDialog(
            f"{action.capitalize()} all {fitting} files?",
            [("Files", count), ("Account", account or self.ALL_LABEL), *reasons],
            consequence=CONSEQUENCES[action],
            verb=action.capitalize(),
        )
        if not await ask(self, dialog):
            return
        show_message(self, "Queuing…")  # queuing many files takes time
        request = partial(request_all_files, action=action, account_id=account_id)
        await self.queue(action, request)
        if self.is_active:
            self.action_reload()
