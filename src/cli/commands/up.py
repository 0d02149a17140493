"""`resumes up`: the API and the importer together, the usual setup on one machine."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from cli.commands.keys import make_first_key, read_key, show_once_or_revoke, write_key
from cli.groups import ACCESS_LOG, LOG_FORMAT, PORT, command
from cli.output import put, put_json_line, safe_text, say, timed
from cli.session import Session, make_home, pass_session
from cli.signals import stop_event
from cli.supervisor import Supervisor
from resumes import watched_folder
from resumes.errors import Conflict, InvalidArgument, InvalidKey, StoreUnavailable
from resumes.listener import listen
from resumes.settings import Settings
from resumes.store import Store, accounts, api_keys
from resumes.store.locks import FileLock
from resumes.watched_names import OWN

ACCOUNT = "default"
PLAN = "business"
"""The plan of the account that the first run creates."""
KEY_FILE = "first-key"


@command()
@click.option(
    "--port",
    type=PORT,
    metavar="N",
    help="Port to listen on, or 0 for any free port. [default: 8000]",
)
@LOG_FORMAT
@ACCESS_LOG
@pass_session
def up(session: Session, /, **flags: Any) -> None:
    """Run the API and the importer until you press Ctrl-C.

    The first run creates the home, an account named "default", its inbox, and an API key. The command
    shows the key only once. If standard output is not a terminal, the command saves the key to a file in
    the home instead.
    """
    settings = session.settings(**flags)
    if not os.access(settings.home, os.F_OK):
        # Otherwise an unusable port would leave a home behind.
        listen(settings.host, settings.port).close()
    make_home(settings.home)
    with alone(settings.home), stop_event() as stop, Supervisor(settings) as supervisor:
        # Only now: if another `up` on this home uses the port, its error comes first.
        listen(settings.host, settings.port).close()
        inbox, key_file = _prepare(session, settings)
        url = supervisor.start(stop)
        if url is None:
            return
        _say_running(session, inbox, url, key_file)
        with timed(is_wanted=settings.log_format != "json"):
            supervisor.watch(stop)
            say("Stopping.")


@contextlib.contextmanager
def alone(home: Path) -> Iterator[None]:
    """Lock this home against other `up` processes during the block. Raises Conflict if one is
    running, and StoreUnavailable if the home is not writable."""
    try:
        lock = FileLock(home / "up.lock")
    except OSError as error:
        raise StoreUnavailable(
            f"Cannot write to the home {home}: {error.strerror}. Choose another with --home"
        ) from error
    try:
        if not lock.acquire(timeout_s=0):
            pids = ", ".join(map(str, lock.holders())) or "unknown"
            raise Conflict(
                f"Another `up` is already running for {home} (process {pids}). Stop it first"
            )
        yield
    finally:
        lock.close()


def _prepare(session: Session, settings: Settings) -> tuple[Path, Path | None]:
    """Create store, account, inbox and key; return the paths of the inbox, and of the key file or None."""
    with session.store(create=True) as store:
        settings.inbox.mkdir(exist_ok=True)
        try:
            watched_folder.set_owner(settings.inbox, watched_folder.owner_of(store))
        except OSError as error:
            where = settings.inbox / OWN
            raise InvalidArgument(f"Cannot use {where}: {error.strerror}") from None
        account = accounts.find_owner(store, ACCOUNT)
        if account is None:
            with contextlib.suppress(Conflict):  # another machine has just created it
                accounts.create_account(store, ACCOUNT, plan=PLAN)
            account = accounts.find_owner(store, ACCOUNT)
            if account is None:
                # An interrupted deletion must not keep other accounts from being served.
                line = session.command_line(
                    "accounts", "delete", ACCOUNT, "--with-resumes", "--yes"
                )
                say(f'Account "{ACCOUNT}" is being deleted. Finish deleting it: {line}')
                return settings.inbox / ACCOUNT, None
        inbox = settings.inbox / account.name
        inbox.mkdir(exist_ok=True)
        path = settings.home / KEY_FILE
        new = make_first_key(store, account.name)
        if new is None:
            return inbox, path if _holds_valid_key(store, path) else None
        if sys.stdout.isatty() and not session.as_json:
            show_once_or_revoke(store, new, _show)
            return inbox, None
        # Standard output may be a journal, in which the key must not end up.
        show_once_or_revoke(store, new, lambda secret: write_key(path, secret))
        return inbox, path


def _holds_valid_key(store: Store, path: Path) -> bool:
    """Return whether the file holds a valid key of this store, which is not revoked."""
    try:
        api_keys.authenticate(store, read_key(path) or "")
    except InvalidKey:
        return False
    return True


def _show(secret: str) -> None:
    say("Your API key (shown only once):")
    put(secret)
    sys.stdout.flush()
    say()


def _say_running(session: Session, inbox: Path, url: str, key_file: Path | None) -> None:
    if session.as_json:
        key_path = None if key_file is None else str(key_file)
        put_json_line({"url": url, "inbox": str(inbox), "keyFile": key_path})
        return
    say("Resumes is running. Press Ctrl-C to stop.")
    say()
    say(f"  API    {url}/api/v1/resumes")
    say(f"  Inbox  {safe_text(str(inbox))}")
    if key_file is not None:
        say(f"  Key    in {safe_text(str(key_file))}: copy it and delete the file")
    say()
    say("Drop resume files into the inbox. In another terminal:")
    say(f"  {session.command_line('list')}")
    say(f"  {session.command_line('tui')}")
    say()
