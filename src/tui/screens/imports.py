"""The imports screen: list, retry, release, a file's page and its resumes."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Final

from textual import on, work
from textual.content import Content
from textual.widget import Widget

from resumes.editor import edit
from resumes.errors import InvalidArgument, NotFound
from resumes.health.findings import installation_of
from resumes.import_reasons import plain_words
from resumes.store import import_history, import_ledger, import_requests
from resumes.store.import_history import ORDER, FileRow
from resumes.store.import_ledger import FileOutcome, Item
from resumes.store.import_requests import STATES, RequestKind
from resumes.store.store import Store
from resumes.text import counted, in_bytes
from tui.keys import Place, Target, bindings
from tui.screens.base import (
    NEWEST_FIRST,
    ModeScreen,
    Order,
    RowPane,
    RowScreen,
    SplitScreen,
)
from tui.screens.dialogs import Chooser, ConfirmDialog, copy_one
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
"""Queued files whose outcome is announced; others only appear in the list."""

MAX_NAME_CHARS: Final = 60
"""Longest file name in a message, which has one line."""


def read_now(store: Store, *, files: Sequence[FileRow]) -> list[FileRow]:
    """Return the current state of the files that are still in the list."""
    found = []
    for file in files:
        with suppress(NotFound):
            found.append(import_history.get_file(store, file.claim_id, account_id=file.account_id))
    return found


MAX_CHOICES = 10_000
"""Most resumes of a file to offer; the list of resumes has them all."""

MAX_REASONS: Final = 6
"""Most reasons that a question names."""

CONSEQUENCES: Final = {
    RequestKind.RETRY: "Files that you have not fixed will fail again.",
    RequestKind.RELEASE: "Files that fit the plan are imported now; the rest stay held.",
}


def refused(file: FileRow) -> Sequence[str]:
    """Return the actions (Textual's names) that would be refused for the file."""
    hidden = [f"ask('{kind}')" for kind in RequestKind if why_not(file, kind) is not None]
    return [*hidden, "edit_file"] if "ask('retry')" in hidden else hidden


def how_to_watch(
    store: Store, *, session: UiSession, roots: Collection[str | None] | None
) -> str | None:
    """Return how to start an importer on an unwatched folder, of `roots` if given; or None."""
    for root in import_requests.list_unwatched_roots(store):
        if roots is None or root in roots:
            installation = installation_of(store, session.settings, session.program)
            return installation.how_to_watch(root)
    return None


REFRESH_S: Final = 1.0

BINARY: Final = (".gz", ".zip", ".pdf", ".doc", ".docx", ".odt")


class FileActions(ModeScreen):
    """The actions on files, in the list and on a file's page."""

    pane: FileView

    @abstractmethod
    def chosen_files(self, verb: str) -> Sequence[FileRow]:
        """Return the files to act on; if there are none, show why."""

    @abstractmethod
    async def find_read(self, verb: str) -> FileRead | None:
        """Return the file to act on and its details; if there is none, show why, return None."""

    @abstractmethod
    def follow_up(self, files: Sequence[FileRow]) -> None:
        """Show the requests for these files."""

    @abstractmethod
    def leave(self) -> None:
        """Show the list without the dismissed files."""

    @store_work()
    async def action_ask(self, kind: str) -> None:
        """Request a retry or a release of the files."""
        if files := await self._read_chosen(kind):
            asked = await self._ask_for(files, RequestKind(kind))
            self.unmark()
            self.follow_up(asked)

    async def _read_chosen(self, verb: str) -> Sequence[FileRow]:
        """Return the current state of the files to act on; marked ones may have changed."""
        if not (chosen := self.chosen_files(verb)):
            return []
        files = await call(self.session.store, read_now, files=chosen)
        if not files:
            show_message(self, "No longer in the list: dismissed meanwhile.")
            self.unmark()
        return files

    async def _ask_for(self, files: Sequence[FileRow], action: RequestKind) -> Sequence[FileRow]:
        """Request the action for the files that it applies to; return those."""
        fitting = [file for file in files if why_not(file, action) is None]
        if not fitting:
            show_message(self, why_not(files[0], action) or "")
            return []
        await call(self.session.store, import_requests.request_files, fitting, action)
        await self.show_queued(len(fitting), action, {file.root for file in fitting})
        return fitting

    async def show_queued(
        self, files: int, action: RequestKind, roots: Collection[str | None] | None = None
    ) -> None:
        """Show how many files were queued, and how to start an importer if none is running."""
        session = self.session
        start = await call(session.store, how_to_watch, session=session, roots=roots)
        what = f"Queued {counted(files, 'file')} for {action}"
        if start is None:
            them = "it" if files == 1 else "them"
            show_message(self, f"{what}; the importer will process {them} within a second.")
        else:
            show_message(self, f"{what}, but no importer is running: {start}.", "warning")

    @store_work()
    async def action_dismiss_files(self) -> None:
        """Dismiss the failed ones of the files, after asking."""
        files = await self._read_chosen("dismiss")
        if not files or not self.is_active:
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
        if await self.app.push_screen_wait(dialog):
            await call(self.session.store, import_requests.dismiss_files, failed)
            show_message(self, f"Dismissed {what[-MAX_NAME_CHARS:]}.")
            self.leave()

    @store_work(exclusive=True)
    async def action_copy(self) -> None:
        if (read := await self.find_read("copy")) is not None:
            await copy_one(self, self.session.store, copyables(read))

    @store_work()
    async def action_edit_file(self) -> None:
        """Open the failed file in the editor, and request a retry if it was changed."""
        read = await self.find_read("edit")
        if read is not None and self._edit(read):
            self.follow_up(await self._ask_for([read.file], RequestKind.RETRY))

    def _edit(self, read: FileRead) -> bool:
        """Open the editor; return whether the file was changed, and if not, show why."""
        refusal = why_not(read.file, RequestKind.RETRY)
        if refusal is None and read.path is None:
            refusal = f"The file is no longer in {folder_of(read.file)} of {read.file.root}."
        if refusal is None and read.path is not None and read.path.suffix in BINARY:
            refusal = "This kind of file cannot be edited as text."
        if refusal is not None or read.path is None:
            show_message(self, refusal or "")
            return False
        mark = None if read.source is None else read.source.mark
        try:
            line = None if mark is None else mark.line
            is_changed = edit(read.path, line, self.handed_over)
        except InvalidArgument as error:
            show_message(self, f"{error.message}.", "error")
            return False
        if not is_changed:
            show_message(self, "The file was not changed.")
        return is_changed


class FileScreen(RowScreen[FileRow], FileActions):
    """A file's page."""

    pane: FileView
    MODE = "imports"
    WAITED_FOR = (
        FileActions.action_ask,
        FileActions.action_dismiss_files,
        FileActions.action_edit_file,
    )
    BINDINGS = bindings(Place.FILE)
    DEFAULT_CSS = """
    FileScreen FileView { layout: horizontal; }
    FileScreen FileView > TextPane { width: 2fr; height: 1fr; }
    FileScreen FileView > SourceLines { width: 3fr; height: 1fr; }
    FileScreen.-narrow FileView { layout: vertical; }
    FileScreen.-narrow FileView > TextPane { width: 1fr; height: 2fr; }
    FileScreen.-narrow FileView > SourceLines { width: 1fr; height: 3fr; }
    """

    def __init__(self, listed: "ImportsScreen", file: FileRow, *, is_linked: bool) -> None:
        super().__init__(
            listed,
            FileView(listed.session, can_focus_text=True),
            file,
            is_linked=is_linked,
        )
        self._file = file
        """The file shown and acted on: as in the list, later as last read."""

    @property
    def name_here(self) -> str:
        return self._file.name

    def on_mount(self) -> None:
        self.set_interval(self.session.refresh_s or REFRESH_S, self._refresh_file)

    def _refresh_file(self) -> None:
        if self.is_active and self.query_one(ErrorLine).failure is None:
            self.refresh_pane()

    @on(RowPane.Shown)
    def _show_file(self, shown: RowPane.Shown) -> None:
        read: FileRead = shown.read
        self._file = self.wanted = read.file
        self.pane.text.border_title = self.titled(outcome_content(read.file, read.request))
        hidden = [
            *refused(read.file),
            *(["open_resume"] if all(resume.is_deleted for resume in read.resumes) else []),
            *([] if read.source else ["next_pane"]),
        ]
        self.query_one(KeyLine).labels = dict.fromkeys(hidden, "")

    def action_next_pane(self) -> None:
        if not self.pane.focus_other():
            show_message(self, "The source of imported files is not kept.")

    def chosen_files(self, verb: str) -> Sequence[FileRow]:
        return [self._file] if self._is_wanted_seen() else []

    def follow_up(self, files: Sequence[FileRow]) -> None:
        if files:
            self.refresh_pane()

    def leave(self) -> None:
        self.dismiss()

    def _is_wanted_seen(self) -> bool:
        """Return whether the requested file is shown already; if not, show why."""
        if self.pane.key_of(self.wanted) == self.pane.key_of(self._file):
            return True
        if self.pane.is_reading:
            show_message(self, "Loading the next file…")
        else:
            show_message(self, "Could not load the next file. Press r to retry.")
        return False

    async def find_read(self, verb: str) -> FileRead | None:
        if not self._is_wanted_seen():
            return None
        if self.pane.read is None:
            show_message(self, "Loading the file…")
        return self.pane.read

    @work
    async def action_open_resume(self) -> None:
        """Open the file's resume; of a bundle, ask which."""
        if (read := await self.find_read("open")) is None:
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
            item = await self.app.push_screen_wait(chooser)
        if item is not None and item.is_deleted:
            show_message(self, "This resume was deleted.")
        elif item is not None:
            self.follow_link(Target("resumes", file.account, opens=item.resume_id))


class ImportsScreen(SplitScreen[ImportRow, FileRow], FileActions):
    """The files of one account or of all, and a preview of the file at the cursor."""

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
        self._followed: dict[object, FileRow] = {}
        """Queued files by account and claim, whose outcome will be announced once."""
        self._questions = 0
        """Counts the uses of `action_ask_all`; a later one replaces an earlier one."""

    # The list.

    def body(self) -> Iterable[Widget]:
        yield self.overview
        yield from super().body()

    def columns(self) -> Sequence[ListColumn[ImportRow]]:
        account = self.account
        # The preview shows the reason.
        reason = () if self.is_split else (ListColumn("REASON", 20, reason_cell, 54),)
        return (
            ListColumn("OUTCOME", 11, lambda row: outcome_content(row.file, row.request)),
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
        self.overview.read(self.account)

    def on_screen_resume(self) -> None:
        # The file's outcome may have changed on its page.
        if self.filter.text:
            super().refresh_rows()

    def refresh_rows(self) -> None:
        # Filtering many files again takes long.
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
                key = self.pane.key_of(file)
                if file.is_under_way or file.finished_at == self._followed[key].finished_at:
                    continue
                del self._followed[key]
                why = "" if file.reason is None else f", {plain_words(file.reason)}"
                show_message(
                    self, f"{file.outcome.capitalize()}{why}: {file.name[-MAX_NAME_CHARS:]}"
                )
                self.list.refresh_rows(reloads=True)
                self.overview.read(self.account, recounts=True)

    def action_reload(self, *, row: str = "") -> None:
        super().action_reload(row=row)
        self.overview.read(self.account, recounts=True)
        self.refresh_pane()

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
        # The next and previous file come from the list.
        self.restart(keeps_rows=True, row=self.row_key(ImportRow(file)))
        if self.is_active:  # the user may have left the screen
            self._open(file, is_linked=True)

    def show_account(self, name: str | None) -> None:
        self.overview.restart(name)
        super().show_account(name)
        self.list.show_columns(self.columns())

    def action_next_outcome(self) -> None:
        shown = [None, *ORDER]
        self._outcome = shown[(shown.index(self._outcome) + 1) % len(shown)]
        self.restart()

    def close_top_layer(self) -> bool:
        # A list narrowed by a link is a layer of its own.
        if super().close_top_layer():
            return True
        if self._outcome is None or self.session.trail:
            return False
        self._outcome = None
        self.restart()
        return True

    def wanted_of(self, row: ImportRow) -> FileRow:
        return row.file

    # Actions on the file at the cursor, and on many.

    def open_row(self, row: ImportRow) -> None:
        self._open(row.file)

    def _open(self, file: FileRow, *, is_linked: bool = False) -> None:
        self.app.push_screen(FileScreen(self, file, is_linked=is_linked))

    def chosen_files(self, verb: str) -> Sequence[FileRow]:
        return [row.file for row in self.chosen_rows(verb)]

    async def find_read(self, verb: str) -> FileRead | None:
        if (row := self.current_row(verb)) is None:
            return None
        read = await call(self.session.store, self.pane.reading(row.file))
        return read if self.is_active else None

    def follow_up(self, files: Sequence[FileRow]) -> None:
        for file in files[: MAX_FOLLOWED - len(self._followed)]:
            self._followed[self.pane.key_of(file)] = file
        if files:
            self.list.refresh_rows(reloads=True)

    def leave(self) -> None:
        self.unmark()
        self.action_reload()

    @store_work()
    async def action_ask_all(self, kind: str) -> None:
        """Retry or release all files that the action applies to, after asking."""
        action = RequestKind(kind)
        account, store = self.account, self.session.store
        self._questions += 1
        question = self._questions
        account_id = await call(store, find_account_id, account)
        counts = await call(
            store, import_history.count_files, account_id=account_id, not_done_only=True
        )
        fitting = import_requests.FITS[action]
        found = [tally for tally in counts if tally.outcome is fitting]
        # During the count the user left the screen or asked for something else.
        if not self.is_active or account != self.account or question != self._questions:
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
        if not await self.app.push_screen_wait(dialog):
            return
        show_message(self, "Queuing…")  # many files take time
        request = import_requests.request_all_files
        files = await call(store, request, action, account_id=account_id)
        await self.show_queued(files, action)
        if self.is_active:
            self.action_reload()
