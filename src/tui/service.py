"""Running the terminal UI: what `resumes tui` calls."""

import sys
from typing import Final

from resumes.errors import InvalidArgument, NotFound
from resumes.store import accounts, listing
from resumes.store.engine import Store
from tui.app import ResumesApp
from tui.held_logs import held_logs
from tui.modes import MODES
from tui.session import Session

NO_TERMINAL: Final = (
    "resumes tui needs a terminal for input, output and errors. "
    "Elsewhere use `resumes list`, `resumes show` and the other commands, with --json.\n"
)
USAGE: Final = 2


def run(
    store: Store,
    *,
    screen: str = "resumes",
    account: str | None = None,
    open_id: str | None = None,
    read_only: bool = False,
) -> int:
    """The terminal UI has run to its end; the exit code: 0, 1 after a crash, 2 without a terminal.

    `screen` is resumes, accounts or keys. `account` names whose resumes and keys are shown; None
    means the first one's resumes and all keys. `open_id` is a resume to open at once, on the
    screen resumes; without an account it is looked for in all. Raises InvalidArgument for the
    screen and NotFound for account and resume, before anything is drawn.
    """
    session = prepare(store, screen=screen, account=account, open_id=open_id, read_only=read_only)
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        sys.stderr.write(NO_TERMINAL)
        return USAGE
    app = ResumesApp(session, screen=screen if open_id is None else "resumes")
    with held_logs():
        app.run()
    return app.return_code or 0


def prepare(
    store: Store,
    *,
    screen: str,
    account: str | None,
    open_id: str | None,
    read_only: bool,
) -> Session:
    """The session that was asked for; account and resume exist. Raises as `run` does."""
    names = [mode.name for mode in MODES]
    if screen not in names:
        raise InvalidArgument(f'Unknown screen "{screen[:80]}": use {", ".join(names)}')
    if account is not None:
        accounts.get_account(store, account)
    if open_id is not None:
        account = find_owner(store, open_id, account)
    return Session(
        store, read_only=read_only, account=account, keys_account=account, open_id=open_id
    )


def find_owner(store: Store, resume_id: str, account: str | None) -> str:
    """The name of the account that holds the resume. Raises NotFound."""
    for candidate in accounts.list_accounts(store):
        if account not in (None, candidate.name):
            continue
        try:
            listing.get_resume(store, candidate.id, resume_id)
        except NotFound:
            continue
        return candidate.name
    where = "any account" if account is None else f'account "{account}"'
    raise NotFound(f'Resume not found in {where}: "{resume_id[:80]}". `resumes list` shows all')
