"""Prepare `up`: create or check the home, store, account `default`, its inbox and its key."""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cli.commands.keys import make_first_key, read_key, show_once_or_revoke, write_key
from cli.logs import narrating
from cli.output import put, say
from cli.session import Session, make_home
from cli.signals import STOPPING, stop_event
from cli.supervisor import Services, environment_of
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


def prepare_and_run(session: Session, **flags: Any) -> None:
    """Prepare the home, then replace the program in this process with the services' supervisor.

    The supervisor runs for months, and the modules that are imported here need five times its
    memory. Return if the process is asked to stop.
    """
    settings = session.settings(**flags)
    if not os.access(settings.home, os.F_OK):
        # Check the port first, so that an unusable port does not leave a new home behind.
        listen(settings.host, settings.port).close()
    make_home(settings.home)
    with alone(settings.home) as lock, stop_event() as stop:
        with narrating(as_json=settings.log_format == "json"):
            # Check the port only now: if another `up` runs in this home, that error is clearer.
            listen(settings.host, settings.port).close()
            inbox, key_file = _prepare(session, settings)
        services = Services.of(
            settings,
            inbox=str(inbox),
            key_file=None if key_file is None else str(key_file),
            hints=[session.command_line(word) for word in ("list", "tui")],
        )
        # Signals that arrive from now on wait for the supervisor.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        if stop.is_requested:
            return
        lock.keep_across_exec()
        as_json = ["--json"] if session.as_json else []
        command = ["-P", "-m", "cli", "up", *as_json, "--services", json.dumps(asdict(services))]
        sys.stdout.flush()
        os.execve(
            sys.executable, [sys.executable, *command], {**os.environ, **environment_of(settings)}
        )


@contextlib.contextmanager
def alone(home: Path) -> Iterator[FileLock]:
    """Lock this home against other `up` processes during the block. Raises Conflict if another is
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
        yield lock
    finally:
        lock.close()


def _prepare(session: Session, settings: Settings) -> tuple[Path, Path | None]:
    """Create the store, account, inbox and key. Return the paths of the inbox and any key file."""
    with session.store(create=True) as store:
        settings.inbox.mkdir(exist_ok=True)
        try:
            watched_folder.set_owner(settings.inbox, watched_folder.owner_of(store))
        except OSError as error:
            where = settings.inbox / OWN
            raise InvalidArgument(f"Cannot use {where}: {error.strerror}") from None
        account = accounts.find_owner(store, ACCOUNT)
        if account is None:
            with contextlib.suppress(Conflict):  # another machine may have created it
                accounts.create_account(store, ACCOUNT, plan=PLAN)
            account = accounts.find_owner(store, ACCOUNT)
            if account is None:
                # An interrupted deletion must not prevent the service from serving other accounts.
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
        # Standard output may be a journal, which must not contain the key.
        show_once_or_revoke(store, new, lambda secret: write_key(path, secret))
        return inbox, path


def _holds_valid_key(store: Store, path: Path) -> bool:
    """Return whether the file contains a valid key of this store that is not revoked."""
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
