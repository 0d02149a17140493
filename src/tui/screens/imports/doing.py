"""What can be done with imported files, from the list as from a file's own page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from textual.screen import Screen

from resumes.health.findings import installation_of
from resumes.import_reasons import plain_words
from resumes.store import accounts, import_ledger, import_requests
from resumes.store.import_ledger import FileCount, FileRow
from resumes.store.import_requests import Action
from resumes.store.store import Store
from resumes.text import counted
from tui import clipboard
from tui.notices import Failure
from tui.screens.confirming import ConfirmDialog
from tui.screens.facts import Fact
from tui.screens.imports.file_text import copied_text, why_not
from tui.session import Session
from tui.store_client import StoreClient
from tui.toasts import tell

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
    Action.RETRY: "The importer judges each where it lies. What was not mended fails again.",
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
