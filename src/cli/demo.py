"""`resumes demo`: everything once, in a scratch home, with the sample files."""

import contextlib
import errno
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli import story
from cli.children import household, start_api, start_importer
from cli.commands import PORT, command
from cli.demonstration import ACCOUNT, Demo
from cli.exits import ExitCode
from cli.first_key import make_first_key, write_key
from cli.handover import hand_over
from cli.output import say
from cli.samples import drop, find_samples
from cli.services import (
    check_address,
    find_or_make_account,
    serve_arguments,
    store_environment,
    watch_arguments,
)
from cli.session import Session, pass_session
from cli.signals import stop_event
from cli.text import safe_text
from resumes.errors import Conflict

if TYPE_CHECKING:
    from resumes.settings import Settings
    from resumes.store import Store
    from resumes.store.accounts import AccountInfo

KEY_FILE = "demo-key"
DATABASE_FILE = "resumes.db"
SETTLE_S = 0.1
"""Samples are dropped whole, so one that does not parse need not be waited for."""


@command()
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The demo's home, which is kept. [default: a temporary folder]",
)
@click.option(
    "--port", type=PORT, metavar="N", help="Where the API listens. [default: 8000, else a free one]"
)
@click.option("--once", is_flag=True, help="End after the import, and keep the home.")
@click.pass_context
@pass_session
def demo(
    session: Session, context: click.Context, /, home: Path | None, port: int | None, once: bool
) -> None:
    """Try everything in a scratch home.

    It makes an account on the business plan with a key, drops the sample files into the inbox,
    imports them, and serves the API until Ctrl-C. Begun again in the same home it changes
    nothing that is there; a home with other accounts is refused.
    """
    with stop_event() as stop, _scratch(session, home or session.home, keeps=once) as own:
        demo = Demo(own, own.settings(port=port))
        if port is not None and not once:
            check_address(demo.settings)
        _refuse_others(own, demo.settings)
        _import(demo, stop)
        if stop.is_set():
            context.exit(ExitCode.INTERRUPTED)
        if once:
            story.tell_imported(demo)
        else:
            _serve(demo, stop, is_port_given=port is not None)
        context.exit(ExitCode.DONE if demo.is_as_expected else ExitCode.FAILED)


@contextlib.contextmanager
def _scratch(session: Session, home: Path | None, *, keeps: bool) -> Iterator[Session]:
    """A session whose store lies in its home, whatever the environment says.

    Without a home it is a temporary one, removed afterwards unless the demo `keeps` it.
    """
    is_temporary = home is None
    home = home or Path(tempfile.mkdtemp(prefix="resumes-demo-"))
    own = Session(home=home, as_json=session.as_json)
    if own.settings().database is not None:
        own.database = f"sqlite:///{home.absolute() / 'resumes.db'}"
    try:
        yield own
    finally:
        if is_temporary and not keeps:
            shutil.rmtree(home, ignore_errors=True)
            say("The demo's home is removed; `resumes demo --home DIR` keeps one.")
        elif is_temporary:
            say(f"The demo's home {safe_text(str(home))} is kept: remove it when you are done.")


def _refuse_others(session: Session, settings: "Settings") -> None:
    """The home is a demo's, or has no account yet. Raises Conflict for somebody's own."""
    from resumes.store import accounts

    if not (settings.home / DATABASE_FILE).exists():
        return
    # Nothing is changed by looking, not even a store of an older version.
    with session.store() as store:
        others = [one.name for one in accounts.list_accounts(store) if one.name != ACCOUNT]
    if others:
        shown = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if others[3:] else "")
        raise Conflict(
            f"{settings.home} is not a demo's home: it has the accounts {shown}. Name a new folder "
            "with --home, or none"
        )


def _import(demo: Demo, stop: threading.Event) -> None:
    """The account is there with its key, and what lay in the inbox is imported."""
    from importer import service

    settings = demo.settings
    with demo.session.store(makes=True) as store:
        account = find_or_make_account(store, settings.inbox, ACCOUNT)
        demo.secret = _find_or_make_key(store, settings.home / KEY_FILE)
        if _is_unused(store, account):
            demo.dropped = _drop_samples(settings.inbox / ACCOUNT)
        service.watch(
            store,
            settings.inbox,
            service.Options(
                account=None,
                once=True,
                settle_s=SETTLE_S,
                scan_s=settings.scan_s,
                format=settings.format,
                max_file_bytes=settings.max_file_bytes,
            ),
            stop=stop,
            on_file=demo.reports.append,
            on_notice=lambda notice: say(safe_text(str(notice))),
        )


def _find_or_make_key(store: "Store", path: Path) -> str | None:
    """The account's first key. A demo keeps it in its home, so that the next one has it too."""
    from resumes.errors import InvalidKey
    from resumes.store import api_keys

    new = make_first_key(store, ACCOUNT)
    if new is not None:
        hand_over(store, new, lambda secret: write_key(path, secret))
        return new.secret
    with contextlib.suppress(OSError, UnicodeError, InvalidKey):
        secret = path.read_text(encoding="ascii").strip()
        api_keys.authenticate(store, secret)
        return secret
    return None


def _is_unused(store: "Store", account: "AccountInfo") -> bool:
    """Whether the account never had a resume or a file, also none that has gone since."""
    from resumes.store import import_ledger

    return not account.resume_count and not import_ledger.list_files(
        store, account_id=account.id, limit=1
    )


def _drop_samples(folder: Path) -> dict[str, bool]:
    good, bad = find_samples()
    for sample in (*good, *bad):
        drop(sample, folder)
    return {sample.name: sample in good for sample in (*good, *bad)}


def _serve(demo: Demo, stop: threading.Event, *, is_port_given: bool) -> None:
    """The API was served and the inbox watched until we were asked to stop."""
    settings = demo.settings
    if not is_port_given and _is_taken(settings.host, settings.port):
        settings = demo.session.settings(port=0)
    with household() as house:
        environment = store_environment(settings.database)
        url = start_api(house, serve_arguments(settings), stop, environment=environment)
        if url is None:
            return
        start_importer(house, watch_arguments(settings), environment=environment)
        story.tell_served(demo, url)
        house.look_after(stop)


def _is_taken(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False
