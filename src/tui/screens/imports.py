"""The imports screen: the list, retry, release, the resumes of a file, its detail."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from textual import on, work
from textual.binding import BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget

from resumes.errors import InvalidArgument, NotFound
from resumes.health.findings import installation_of
from resumes.import_reasons import plain_words
from resumes.store import accounts, import_history, import_ledger, import_requests
from resumes.store.import_history import ORDER, FileCount, FileRow
from resumes.store.import_ledger import FileOutcome, Item
from resumes.store.import_requests import STATES, RequestKind
from resumes.store.store import Store
from resumes.text import counted
from tui import clipboard
from tui.editor import edit
from tui.keys import Place, Target, bindings
from tui.screens.base import NEWEST_FIRST, ModeScreen, Order, PageRead, RowScreen, SplitScreen
from tui.screens.dialogs import Chooser, ConfirmDialog, CopyDialog, Fact
from tui.screens.import_detail import FileRead, FileView, copyables, folders_of, why_not
from tui.screens.import_rows import ImportRow, columns, outcome_content, position, read_page
from tui.screens.importers import Overview
from tui.session import UiSession
from tui.store_calls import Failure, call, is_running, store_work
from tui.text import safe, tell
from tui.widgets.bars import ErrorLine, KeyLine
from tui.widgets.paged_list import ListColumn, PagedList, text_cell

FOLLOWED: Final = "followed"
"""The group of the workers that look for the outcome of queued files."""

MAX_FOLLOWED: Final = 20
"""Others are seen only in the list."""

MAX_NAME_CHARS: Final = 60
"""A message has one line."""


def read_ended(store: Store, *, files: Sequence[FileRow]) -> list[FileRow]:
    """Return those of the files that have finished since they were read, as they are now."""
    now = [found for file in files if (found := _find(store, file)) is not None]
    before = {file.claim_id: file.finished_at for file in files}
    return [
        file for file in now if file.finished_at != before[file.claim_id] and not file.is_under_way
    ]


def _find(store: Store, file: FileRow) -> FileRow | None:
    try:
        return import_history.get_file(store, file.claim_id, account_id=file.account_id)
    except NotFound:
        return None


def ending(file: FileRow) -> str:
    """Return `Done: ana/cv.json` or `Failed, not a valid resume: ana/cv.json`."""
    why = "" if file.reason is None else f", {plain_words(file.reason)}"
    return f"{file.outcome.capitalize()}{why}: {file.name[-MAX_NAME_CHARS:]}"


MAX_CHOICES = 10_000
"""Resumes of a file that are offered; the list of resumes has them all."""

ITEM_COLUMNS: tuple[ListColumn[Item], ...] = (
    ListColumn("ITEM", 7, lambda item: safe(f"{item.item:>7,}")),
    ListColumn("OUTCOME", 10, lambda item: safe(item.outcome)),
    ListColumn("RESUME", 0, lambda item: text_cell(item.resume_id)),
)


class ResumeChooser(Chooser[Item]):
    """Gives one of the resumes of a file of several, None when nothing was chosen."""

    def __init__(self, store: Store, file: FileRow) -> None:
        super().__init__(
            store,
            title="Choose resume",
            columns=ITEM_COLUMNS,
            key=lambda item: f"{item.item}",
            read=partial(list_resumes, account_id=file.account_id, claim_id=file.claim_id),
        )


def list_resumes(store: Store, *, account_id: str, claim_id: str) -> Sequence[Item]:
    """Return the first of the resumes that the file became or repeats, in its order."""
    return import_ledger.find_items(store, account_id, claim_id, limit=MAX_CHOICES)


async def open_resume(page: ModeScreen, read: FileRead) -> None:
    """Show the resume of the file; ask which, if there are several."""
    if not read.resumes:
        tell(page, f"No resume: this file {STATES[read.file.outcome]}.")
        return
    item: Item | None = read.resumes[0]
    if len(read.resumes) > 1:
        item = await page.app.push_screen_wait(ResumeChooser(page.session.store, read.file))
    if item is not None:
        page.follow_link(Target("resumes", read.file.account, opens=item.resume_id))


def read_linked(store: Store, *, account: str | None, claim_id: str) -> FileRow:
    """Return the file of this account, or of any. Raises NotFound."""
    return import_history.get_file(store, claim_id, account_id=_account_id(store, account))


COUNT: Final = "count"
"""The group of the workers that count what an action is for."""

MAX_REASONS: Final = 6
"""Reasons that a question names one by one."""

VERBS: Final = {RequestKind.RETRY: "Retry", RequestKind.RELEASE: "Release"}
QUESTIONS: Final = {
    RequestKind.RETRY: "Retry all failed files?",
    RequestKind.RELEASE: "Release all held files?",
}
CONSEQUENCES: Final = {
    RequestKind.RETRY: "Files that you have not fixed will fail again.",
    RequestKind.RELEASE: "Files that fit the plan are imported now; the rest stay held.",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """How many files were queued. `start` says how to start an importer; None: one is running."""

    files: int
    start: str | None


async def ask(page: ModeScreen, files: Sequence[FileRow], action: RequestKind) -> Sequence[FileRow]:
    """Ask for the action, for those of the files that it fits; return them. Raises Failure."""
    fitting = [file for file in files if why_not(file, action) is None]
    if not fitting:
        tell(page, why_not(files[0], action) or "")
        return []
    asked = await call(
        page.session.store, ask_for, session=page.session, files=fitting, action=action
    )
    tell_asked(page, asked, action)
    return fitting


async def dismiss(page: ModeScreen, files: Sequence[FileRow]) -> bool:
    """Ask whether to take the failed ones of the files off the list; return whether. Raises Failure."""
    failed = [file for file in files if why_not(file, RequestKind.RETRY) is None]
    if not failed:
        tell(page, "Only failed files can be dismissed.")
        return False
    what = failed[0].name if len(failed) == 1 else counted(len(failed), "failed file")
    dialog = ConfirmDialog(
        f"Dismiss {what[-MAX_NAME_CHARS:]}?",
        [],
        consequence="It no longer counts as failed, and leaves this list. The file stays where it is.",
        verb="Dismiss",
    )
    if not await page.app.push_screen_wait(dialog):
        return False
    await call(page.session.store, import_requests.dismiss_files, failed)
    tell(page, f"Dismissed {what[-MAX_NAME_CHARS:]}.")
    return True


async def copy(page: ModeScreen, read: FileRead) -> None:
    """Ask what of the file to copy, and send that to the clipboard."""
    one = await page.app.push_screen_wait(CopyDialog(page.session.store, copyables(read)))
    if one is not None:
        clipboard.send(page, one.text, what=one.what)


async def edit_file(page: ModeScreen, read: FileRead) -> Sequence[FileRow]:
    """Edit the failed file, and ask for a retry if it was changed; return it then. Raises Failure."""
    refusal = why_not(read.file, RequestKind.RETRY)
    if refusal is None and read.path is None:
        refusal = f"The file is not in {folders_of(read.file)[0]} of {read.file.root} any more."
    if refusal is None and read.path is not None and read.path.suffix in COMPRESSED:
        refusal = "A compressed file cannot be edited as text."
    if refusal is not None or read.path is None:
        tell(page, refusal or "")
        return []
    mark = None if read.source is None else read.source.mark
    try:
        is_changed = edit(page.app, read.path, None if mark is None else mark.line)
    except InvalidArgument as error:
        tell(page, f"{error.message}.", "error")
        return []
    finally:
        # Nobody could undo a deletion in the meantime.
        page.session.deletions.put_off()
    if not is_changed:
        tell(page, "The file was not changed.")
        return []
    return await ask(page, [read.file], RequestKind.RETRY)


def refused(file: FileRow) -> Mapping[str, str]:
    """Return what would be refused for the file, as labels that hide it."""
    hidden = {action.value: "" for action in RequestKind if why_not(file, action) is not None}
    return hidden | ({"edit_file": ""} if RequestKind.RETRY in hidden else {})


def tell_asked(screen: Screen[None], asked: Asked, action: RequestKind) -> None:
    """Say how many files were queued, and how to start an importer where none is running."""
    what = f"Queued {counted(asked.files, 'file')} for {action}"
    if asked.start is None:
        them = "it" if asked.files == 1 else "them"
        tell(screen, f"{what}; the importer will process {them} within a second.")
    else:
        text = f"{what}, but no importer is running: {asked.start}."
        tell(screen, text, "warning")


def facts(account: str | None, found: Sequence[FileCount]) -> list[Fact]:
    """Return how many files it is about, of which account, and their reasons."""
    most = sorted(found, key=lambda tally: -tally.files)
    reasons = [
        ("" if number else "Reason", f"{plain_words(tally.reason or 'none')} ({tally.files:,})")
        for number, tally in enumerate(most[:MAX_REASONS])
    ]
    files = sum(tally.files for tally in found)
    return [("Files", f"{files:,}"), ("Account", account or "all accounts"), *reasons]


def count_fitting(store: Store, *, account: str | None, action: RequestKind) -> list[FileCount]:
    """Count the files that the action is for, by reason."""
    account_id = _account_id(store, account)
    found = import_history.count_files(store, account_id=account_id, not_done_only=True)
    return [tally for tally in found if tally.outcome is import_requests.FITS[action]]


def ask_for(
    store: Store, *, session: UiSession, files: Sequence[FileRow], action: RequestKind
) -> Asked:
    """Request the action for the files. Raises Conflict if the outcome of one has changed."""
    import_requests.request_files(store, files, action)
    roots = {file.root for file in files}
    unwatched = [root for root in import_requests.list_unwatched_roots(store) if root in roots]
    return _asked(store, session, len(files), unwatched)


def ask_for_all(
    store: Store, *, session: UiSession, account: str | None, action: RequestKind
) -> Asked:
    """Request the action for all files that it is for, of an account or of all."""
    files = import_requests.request_all_files(store, action, account_id=_account_id(store, account))
    return _asked(store, session, files, import_requests.list_unwatched_roots(store))


def _account_id(store: Store, account: str | None) -> str | None:
    return None if account is None else accounts.get_account(store, account).id


def _asked(store: Store, session: UiSession, files: int, unwatched: Sequence[str | None]) -> Asked:
    if not unwatched:
        return Asked(files, None)
    installation = installation_of(store, session.settings, session.program)
    return Asked(files, installation.how_to_watch(unwatched[0]))


REFRESH_S: Final = 1.0

FILE_ACTION: Final = "file action"
"""The group of the workers that read a file to act on it."""

COMPRESSED: Final = (".gz", ".zip")

FILE: Final = "file"
"""The group of the workers that read a file in full."""


class FileScreen(RowScreen):
    """A file of the list. `neighbour` moves in that list and gives the file there."""

    MODE = "imports"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.FILE)
    DEFAULT_CSS = """
    FileScreen FileView { layout: horizontal; }
    FileScreen FileView > TextPane { width: 2fr; height: 1fr; }
    FileScreen FileView > SourceLines { width: 3fr; height: 1fr; }
    FileScreen.-narrow FileView { layout: vertical; }
    FileScreen.-narrow FileView > TextPane { width: 1fr; height: 2fr; }
    FileScreen.-narrow FileView > SourceLines { width: 1fr; height: 3fr; }
    """

    def __init__(
        self,
        session: UiSession,
        file: FileRow,
        neighbour: Callable[[int], FileRow | None],
        *,
        is_linked: bool,
    ) -> None:
        super().__init__(session, is_linked=is_linked)
        self._file = file
        """What is seen, and acted on: the file as the list had it, then as it was read last."""
        self._wanted = file
        """What is to be seen: another file from the key that asks for it until it is read."""
        self._neighbour = neighbour
        self._view = FileView(can_focus_text=True)

    @property
    def name_here(self) -> str:
        return self._file.name

    def body(self) -> Iterable[Widget]:
        yield self._view

    def on_mount(self) -> None:
        self._view.focus_text()
        self.set_interval(self.session.refresh_s or REFRESH_S, self._refresh_file)
        self._read()

    def _refresh_file(self) -> None:
        if self.is_active and not self.query_one(ErrorLine).has_failure:
            self._read()

    @on(ErrorLine.RetryDue)
    def _read(self) -> None:
        wanted = self._wanted
        # Asked again, the call that is under way would be for nothing.
        if not is_running(self, FILE, wanted.claim_id):
            reading = self._show(self._view.reading(wanted))
            self.run_worker(reading, name=wanted.claim_id, group=FILE, exclusive=True)

    async def _show(self, reading: Callable[[Store], FileRead]) -> None:
        try:
            read = await call(self.session.store, reading)
        except Failure as failure:
            self.show_failure(failure)
            return
        self._file = self._wanted = read.file
        self.query_one(ErrorLine).clear()
        self._view.entitle(self.titled(), outcome_content(read.file, read.request))
        self._view.show(read)
        self.query_one(KeyLine).labels = {
            **refused(read.file),
            **({} if read.resumes else {"open_resume": ""}),
            **({} if read.source else {"next_pane": ""}),
        }

    def action_reload(self) -> None:
        """Read the file again, and clear the error."""
        self.query_one(ErrorLine).clear()
        self._read()

    def action_neighbour(self, rows: int) -> None:
        """Show the file that many rows further down the list."""
        found = self._neighbour(rows)
        if found is None:
            tell(self, f"{'Last' if rows > 0 else 'First'} file in the list.")
            return
        self._wanted = found
        self._read()

    def action_next_pane(self) -> None:
        """Focus the other part."""
        if not self._view.focus_other():
            tell(self, "The source of imported files is not kept.")

    def action_retry(self) -> None:
        """Request a retry of the file, if it failed."""
        self._ask(RequestKind.RETRY)

    def action_release(self) -> None:
        """Request the release of the file, if it is held."""
        self._ask(RequestKind.RELEASE)

    @store_work()
    async def _ask(self, action: RequestKind) -> None:
        if self._is_wanted_seen() and await ask(self, [self._file], action):
            self._read()

    def _is_wanted_seen(self) -> bool:
        """Return whether the file is the one that is shown; if not, say why."""
        if self._wanted.claim_id == self._file.claim_id:
            return True
        if is_running(self, FILE):
            tell(self, "Loading the next file…")
        else:
            tell(self, "Could not load the next file. Press r to retry.")
        return False

    @work
    async def action_copy(self) -> None:
        """Ask what of the file to copy."""
        if (read := self._seen()) is not None:
            await copy(self, read)

    @store_work()
    async def action_dismiss_files(self) -> None:
        """Take the file off the list, if it failed."""
        if self._is_wanted_seen() and await dismiss(self, [self._file]):
            self.dismiss()

    @store_work()
    async def action_edit_file(self) -> None:
        """Edit the file, and retry it if it was changed."""
        if (read := self._seen()) is not None and await edit_file(self, read):
            self._read()

    @work
    async def action_open_resume(self) -> None:
        """Show the resume that the file became; ask which, where it became several."""
        if (read := self._seen()) is not None:
            await open_resume(self, read)

    def _seen(self) -> FileRead | None:
        """Return the file as it is shown; None while another is being read, and say so."""
        if not self._is_wanted_seen():
            return None
        if self._view.read is None:
            tell(self, "Loading the file…")
        return self._view.read


SHOWN: Final = (None, *ORDER)
"""What can be shown alone, after failed first."""


class ImportsScreen(SplitScreen[ImportRow]):
    """The files of an account or of all, and a preview of the one at the cursor."""

    MODE = "imports"
    ORDERS = (Order("failed first"), NEWEST_FIRST)
    OF_ALL = "all accounts"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.IMPORTS)
    DEFAULT_CSS = """
    ImportsScreen #split > PagedList, ImportsScreen #split > .pane { width: 1fr; }
    """

    def __init__(self, session: UiSession) -> None:
        self.view = FileView(can_focus_text=False)
        super().__init__(session, self.view)
        self._outcome: FileOutcome | None = None
        self.overview = Overview(session)
        self._followed: dict[str, FileRow] = {}
        """The files that were queued, by claim: their outcome is shown once."""

    # The list.

    def body(self) -> Iterable[Widget]:
        yield self.overview
        yield from super().body()

    def columns(self) -> Sequence[ListColumn[ImportRow]]:
        return columns(self.session.store.clock, self.account, has_preview=self.is_split)

    def labels(self) -> Mapping[str, str]:
        row = self.list.current
        if row is None:
            return {"choose": "", "retry": "", "release": ""}
        return refused(row.file)

    def row_key(self, row: ImportRow) -> str:
        return position(row, is_newest_first=self.is_newest_first)

    def reading(self, cursor: str) -> Callable[[Store], PageRead[ImportRow]]:
        return partial(
            read_page,
            account=self.account,
            outcome=self._outcome,
            is_newest_first=self.is_newest_first,
            terms=self.list.terms,
            cursor=cursor,
        )

    def page_arrived(self, read: PageRead[ImportRow]) -> None:
        self.list.say_when_empty(*self._when_empty())

    def _when_empty(self) -> Sequence[Content]:
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

    def refresh_rows(self) -> None:
        # Of many files looking through all again takes long.
        if not self.filter.text:
            super().refresh_rows()
        if self.is_active and not self.query_one(ErrorLine).has_failure:
            self.overview.read(self.account)
            if self._followed and not is_running(self, FOLLOWED):
                self._tell_ended()
            self.refresh_preview()

    @work(group=FOLLOWED)
    async def _tell_ended(self) -> None:
        # The list says what is wrong; it is looked again with it.
        with suppress(Failure):
            files = list(self._followed.values())
            for file in await call(self.session.store, read_ended, files=files):
                del self._followed[file.claim_id]
                tell(self, ending(file))
                self.list.refresh_rows(anew=True)

    def reload(self, *, row: str = "") -> None:
        super().reload(row=row)
        self.overview.read(self.account)
        self.refresh_preview()

    # Which files.

    def arrive(self, link: Target) -> None:
        """Show the files that the link leads to, or the one that it names on a page of its own."""
        self._outcome = FileOutcome(link.only) if link.only else None
        self.show_account(link.account)
        if link.opens:
            self._open_linked(link.opens)

    @store_work()
    async def _open_linked(self, claim_id: str) -> None:
        file = await call(self.session.store, read_linked, account=self.account, claim_id=claim_id)
        self._open(file, is_linked=True)

    def show_account(self, name: str | None) -> None:
        self.workers.cancel_group(self, COUNT)
        self.overview.restart(name)
        super().show_account(name)
        self.list.show_columns(self.columns())

    def action_next_outcome(self) -> None:
        """Show only the files of the next outcome; after the last one, all."""
        self._show_outcome(SHOWN[(SHOWN.index(self._outcome) + 1) % len(SHOWN)])

    def _show_outcome(self, outcome: FileOutcome | None) -> None:
        self._outcome = outcome
        self.restart()

    def peel(self) -> bool:
        # What a link showed alone is its own level.
        if super().peel():
            return True
        if self._outcome is None or self.session.trail:
            return False
        self._show_outcome(None)
        return True

    # The preview.

    def read_preview(self, row: ImportRow | None) -> None:
        if row is None:
            self.workers.cancel_group(self, FILE)
            self.view.show_nothing()
        # Asked again, the call that is under way would be for nothing.
        elif not is_running(self, FILE, row.file.claim_id):
            reading = self._show_preview(self.view.reading(row.file))
            self.run_worker(reading, name=row.file.claim_id, group=FILE, exclusive=True)

    async def _show_preview(self, reading: Callable[[Store], FileRead]) -> None:
        try:
            read = await call(self.session.store, reading)
        except Failure as failure:
            # While the store is away the list says so, and what was read stays.
            if not failure.is_passing:
                self.view.show_failure(failure)
        else:
            self.view.show(read)

    def action_scroll_pane(self, pages: int) -> None:
        """Scroll the preview."""
        self.view.scroll_text(pages)

    # What is done with the file at the cursor, and with many.

    @on(PagedList.Chosen)
    def open_file(self, chosen: PagedList.Chosen) -> None:
        """Show the file on a page of its own."""
        self._open(chosen.row.file)

    def _open(self, file: FileRow, *, is_linked: bool = False) -> None:
        self.app.push_screen(FileScreen(self.session, file, self._neighbour, is_linked=is_linked))

    def _neighbour(self, rows: int) -> FileRow | None:
        row: ImportRow | None = self.neighbour(rows)
        return None if row is None else row.file

    def action_retry(self) -> None:
        """Request a retry of the file, if it failed."""
        self._ask(RequestKind.RETRY)

    def action_release(self) -> None:
        """Request the release of the file, if it is held."""
        self._ask(RequestKind.RELEASE)

    @store_work()
    async def _ask(self, action: RequestKind) -> None:
        rows = self.list.chosen()
        if not rows:
            tell(self, f"No file to {action}.")
            return
        asked = await ask(self, [row.file for row in rows], action)
        self.list.unmark()
        self._follow_up(asked)

    def _follow_up(self, asked: Sequence[FileRow]) -> None:
        for file in asked[: MAX_FOLLOWED - len(self._followed)]:
            self._followed[file.claim_id] = file
        if asked:
            self.list.refresh_rows(anew=True)

    def action_retry_all(self) -> None:
        """Ask whether to retry all failed files."""
        self._count(RequestKind.RETRY)

    def action_release_all(self) -> None:
        """Ask whether to release all held files."""
        self._count(RequestKind.RELEASE)

    @store_work(group=COUNT, exclusive=True)
    async def _count(self, action: RequestKind) -> None:
        account = self.account
        found = await call(self.session.store, count_fitting, account=account, action=action)
        if not self.is_active:  # counting takes a while, and the reader went elsewhere
            return
        if not found:
            where = "" if account is None else f" in {account}"
            tell(self, f"No {import_requests.FITS[action]} files{where}: nothing to {action}.")
            return
        dialog = ConfirmDialog(
            QUESTIONS[action],
            facts(account, found),
            consequence=CONSEQUENCES[action],
            verb=VERBS[action],
        )
        if await self.app.push_screen_wait(dialog):
            self._ask_all(account, action)

    @store_work()
    async def _ask_all(self, account: str | None, action: RequestKind) -> None:
        tell(self, "Queuing…")  # many files take a while
        session = self.session
        asked = await call(
            session.store, ask_for_all, session=session, account=account, action=action
        )
        tell_asked(self, asked, action)
        self.refresh_rows()

    @store_work(group=FILE_ACTION, exclusive=True)
    async def action_copy(self) -> None:
        """Ask what of the file to copy."""
        if (read := await self._read_current("copy")) is not None:
            await copy(self, read)

    @store_work()
    async def action_dismiss_files(self) -> None:
        """Take the marked files, or this one, off the list, as far as they failed."""
        rows = self.list.chosen()
        if not rows:
            tell(self, "No file to dismiss.")
        elif await dismiss(self, [row.file for row in rows]):
            self.list.unmark()
            self.reload()

    @store_work()
    async def action_edit_file(self) -> None:
        """Edit the file at the cursor, and retry it if it was changed."""
        if (read := await self._read_current("edit")) is not None:
            self._follow_up(await edit_file(self, read))

    async def _read_current(self, verb: str) -> FileRead | None:
        """Return the file at the cursor as it is now; None, and say so, if there is none."""
        row = self.list.current
        if row is None:
            tell(self, f"No file to {verb}.")
            return None
        read = await call(self.session.store, self.view.reading(row.file))
        return read if self.is_active else None
