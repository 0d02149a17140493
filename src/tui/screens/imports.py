"""The imports screen: the list, retry, release, the resumes of a file, its detail."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget

from resumes.errors import NotFound
from resumes.health.findings import installation_of
from resumes.import_reasons import plain_words
from resumes.store import accounts, import_ledger, import_requests
from resumes.store.import_ledger import ORDER, FileCount, FileOutcome, FileRow, Item
from resumes.store.import_requests import STATES, Action
from resumes.store.store import Store
from resumes.text import counted
from tui import clipboard
from tui.keys import ModeAsked, Place, bindings, changes_store
from tui.notices import Failure
from tui.screens.base import PageRead, SplitScreen
from tui.screens.dialogs import AccountChooser, Choice, Chooser, ConfirmDialog, Fact
from tui.screens.import_detail import FileRead, FileView, copied_text, read_file, why_not
from tui.screens.import_rows import COLUMNS, Row, outcome_content, position, read_page
from tui.screens.importers import Overview
from tui.session import Session
from tui.store_calls import Reply, StoreClient
from tui.text import joined, safe, tell
from tui.widgets.bars import ErrorLine, KeyLine, ModeLine, TitleLine
from tui.widgets.paged_list import Column, PagedList, text_cell

FOLLOWED: Final = "followed"

MOST_FOLLOWED: Final = 20
"""Further ones are seen in the list alone."""

MOST_NAME_CHARS: Final = 60
"""A message has one line."""


class Followed:
    """What became of a file that was asked for is told once, wherever in the list it is by then."""

    def __init__(self, client: StoreClient, tell: Callable[[str], None]) -> None:
        self._client = client
        self._tell = tell
        self._files: dict[str, FileRow] = {}
        self._is_looking = False

    def add(self, file: FileRow) -> None:
        """The file was asked for."""
        if len(self._files) < MOST_FOLLOWED:
            self._files[file.claim_id] = file

    def look(self) -> None:
        """Whatever came to a new end is being told."""
        # Asked again, the call that is under way would be for nothing.
        if self._files and not self._is_looking:
            self._is_looking = True
            self._client.read(
                FOLLOWED,
                partial(read_ended, files=list(self._files.values())),
                then=self._ended,
                failed=self._failed,
            )

    def _ended(self, ended: Sequence[FileRow]) -> None:
        self._is_looking = False
        for file in ended:
            if self._files.pop(file.claim_id, None) is not None:
                self._tell(ending(file))

    def _failed(self, _: Failure) -> None:
        # It is looked again soon, and the list says what is wrong.
        self._is_looking = False


def read_ended(store: Store, *, files: Sequence[FileRow]) -> list[FileRow]:
    """Those of the files that came to an end since they were read, as they are now."""
    now = [found for file in files if (found := _find(store, file)) is not None]
    before = {file.claim_id: file.finished_at for file in files}
    return [
        file for file in now if file.finished_at != before[file.claim_id] and not file.is_under_way
    ]


def _find(store: Store, file: FileRow) -> FileRow | None:
    try:
        return import_ledger.get_file(store, file.claim_id, account_id=file.account_id)
    except NotFound:
        return None


def ending(file: FileRow) -> str:
    """`Done: ana/cv.json`, `Failed, not a valid resume: ana/cv.json`."""
    why = "" if file.reason is None else f", {plain_words(file.reason)}"
    return f"{file.outcome.capitalize()}{why}: {file.name[-MOST_NAME_CHARS:]}"


MOST_CHOICES = 10_000
"""Resumes of a file that are offered; the list of resumes has them all."""

ITEM_COLUMNS: tuple[Column[Item], ...] = (
    Column("ITEM", 7, lambda item: safe(f"{item.item:>7,}")),
    Column("OUTCOME", 10, lambda item: safe(item.outcome)),
    Column("RESUME", 0, lambda item: text_cell(item.resume_id)),
)


class ResumeChooser(Chooser[Item]):
    """Gives one of the resumes of a file of several, None when nothing was chosen."""

    def __init__(self, store: Store, file: FileRow) -> None:
        super().__init__(
            store,
            question="Which of its resumes?",
            columns=ITEM_COLUMNS,
            key=lambda item: f"{item.item}",
            read=partial(list_resumes, account_id=file.account_id, claim_id=file.claim_id),
        )


def list_resumes(store: Store, *, account_id: str, claim_id: str) -> Sequence[Item]:
    """The first of the resumes that the file became or repeats, in its order."""
    return import_ledger.find_items(store, account_id, claim_id, limit=MOST_CHOICES)


def open_resume(screen: Screen[None], session: Session, read: FileRead) -> None:
    """The resume is shown among those of its account; a dialog asks which, if there are several."""

    def show(item: Item | None) -> None:
        if item is not None:
            session.account, session.open_id = read.file.account, item.resume_id
            screen.post_message(ModeAsked("resumes"))

    if not read.resumes:
        tell(screen, f"This file became no resume: it {STATES[read.file.outcome]}.")
    elif len(read.resumes) == 1:
        show(read.resumes[0])
    else:
        screen.app.push_screen(ResumeChooser(session.store, read.file), show)


COUNT: Final = "count"
"""The group of the calls that count what an action is for."""

MOST_REASONS: Final = 6
"""Reasons that a question names one by one."""

VERBS: Final = {Action.RETRY: "Try again", Action.RELEASE: "Let in"}
QUESTIONS: Final = {
    Action.RETRY: "Try all these failed files again?",
    Action.RELEASE: "Let all these held files in?",
}
CONSEQUENCES: Final = {
    Action.RETRY: "The importer judges each where it lies. What was not fixed fails again.",
    Action.RELEASE: "As far as the plan has room, ahead of their turn; the others are held again.",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """So many files were asked for. `start` says how to come by an importer; None: there is one."""

    files: int
    start: str | None


@dataclass(frozen=True, slots=True)
class Doing:
    """Who asks, and what is done when something was asked or could not be."""

    screen: Screen[None]
    session: Session
    client: StoreClient
    asked: Callable[[], None]
    failed: Callable[[Failure], None]

    def ask(self, file: FileRow, action: Action) -> bool:
        """Whether the action is being asked for; else the reader is told why it cannot be."""
        refusal = why_not(file, action)
        if refusal is not None:
            tell(self.screen, refusal)
            return False
        self.client.change(
            partial(ask_for, session=self.session, file=file, action=action),
            then=self._tell,
            failed=self.failed,
        )
        return True

    def ask_all(self, action: Action) -> None:
        """A dialog asks whether to, once it is known how many files it is about."""
        account = self.session.imports_account
        self.client.read(
            COUNT,
            partial(count_fitting, account=account, action=action),
            then=partial(self._confirm, action, account),
            failed=self.failed,
        )

    def forget(self) -> None:
        """Nothing will be asked about the files that are being counted."""
        self.client.drop(COUNT)

    def _confirm(self, action: Action, account: str | None, found: Sequence[FileCount]) -> None:
        if not self.screen.is_active:  # counting takes a while, and the reader went elsewhere
            return
        if not found:
            whose = account or "any account"
            state = import_requests.STATES[import_requests.FITS[action]]
            tell(self.screen, f"No file of {whose} {state}: nothing to {action}.")
            return
        dialog = ConfirmDialog(
            QUESTIONS[action],
            facts(account, found),
            consequence=CONSEQUENCES[action],
            verb=VERBS[action],
        )
        self.screen.app.push_screen(dialog, partial(self._answered, action, account))

    def _answered(self, action: Action, account: str | None, is_sure: bool | None) -> None:
        if is_sure:
            tell(self.screen, "Asking…")  # many files take a while
            self.client.change(
                partial(ask_for_all, session=self.session, account=account, action=action),
                then=self._tell,
                failed=self.failed,
            )

    def _tell(self, asked: Asked) -> None:
        them = "it" if asked.files == 1 else "them"
        what = f"Asked for {counted(asked.files, 'file')}"
        if asked.start is None:
            tell(self.screen, f"{what}; the importer takes {them} up within a second.")
        else:
            text = f"{what}, but no importer is running for {them}: {asked.start}."
            tell(self.screen, text, "warning")
        self.asked()

    def copy_reason(self, file: FileRow) -> None:
        """The terminal was asked to put the reason on the clipboard; it gives no answer."""
        text = copied_text(file)
        if text is None:
            tell(self.screen, f"This file has no reason to copy: it is {file.outcome}.")
            return
        clipboard.send(self.screen, text, what="reason")


def facts(account: str | None, found: Sequence[FileCount]) -> list[Fact]:
    """How many files it is about, whose, and why they are where they are."""
    most = sorted(found, key=lambda tally: -tally.files)
    reasons = [
        ("" if number else "Reasons", f"{tally.files:,} {plain_words(tally.reason or 'none')}")
        for number, tally in enumerate(most[:MOST_REASONS])
    ]
    files = sum(tally.files for tally in found)
    return [("Files", f"{files:,}"), ("Whose", account or "all accounts"), *reasons]


def count_fitting(store: Store, *, account: str | None, action: Action) -> list[FileCount]:
    """The files that the action is for, by reason."""
    account_id = _account_id(store, account)
    found = import_ledger.count_files(store, account_id=account_id, not_done_only=True)
    return [tally for tally in found if tally.outcome is import_requests.FITS[action]]


def ask_for(store: Store, *, session: Session, file: FileRow, action: Action) -> Asked:
    """The action is asked for the file. Raises Conflict when it has come to another end."""
    import_requests.request_files(store, [file], action)
    unwatched = [root for root in import_requests.list_unwatched_roots(store) if root == file.root]
    return _asked(store, session, 1, unwatched)


def ask_for_all(store: Store, *, session: Session, account: str | None, action: Action) -> Asked:
    """The action is asked for all files that it is for, of an account or of all."""
    files = import_requests.request_all_files(store, action, account_id=_account_id(store, account))
    return _asked(store, session, files, import_requests.list_unwatched_roots(store))


def _account_id(store: Store, account: str | None) -> str | None:
    return None if account is None else accounts.get_account(store, account).id


def _asked(store: Store, session: Session, files: int, unwatched: Sequence[str | None]) -> Asked:
    if not unwatched:
        return Asked(files, None)
    installation = installation_of(store, session.settings, session.program)
    return Asked(files, installation.how_to_watch(unwatched[0]))


REFRESH_S: Final = 1.0
FILE_READ: Final = "file"


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
            FILE_READ,
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
