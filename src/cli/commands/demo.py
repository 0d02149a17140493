"""`resumes demo`: everything once, in a scratch home, with the sample files."""

import contextlib
import errno
import http.client
import json
import shlex
import shutil
import socket
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from cli.commands.keys import hand_over, make_first_key, write_key
from cli.commands.watch import as_json
from cli.errors import ExitCode, Failed
from cli.groups import PORT, command
from cli.output import Column, instant, put, put_json, put_table, safe_text, say
from cli.session import Session, pass_session, store_environment
from cli.signals import stop_event
from cli.supervisor import (
    check_address,
    find_or_make_account,
    serve_arguments,
    start_api,
    start_importer,
    supervising,
    watch_arguments,
)
from importer import service
from importer.service import FileReport
from resumes.errors import Conflict, InvalidKey, StoreUnavailable
from resumes.settings import Settings
from resumes.store import Store, accounts, api_keys, import_history
from resumes.store.accounts import AccountInfo
from resumes.store.stored_resumes import list_page
from resumes.text import counted


def find_samples() -> tuple[list[Traversable], list[Traversable]]:
    """Return good samples and bad ones, sorted by name. Raises Failed when this installation has none."""
    folder = _find_folder()
    return _files(folder), _files(folder / "bad")


def _find_folder() -> Traversable:
    """Return the folder of the samples: package data in a wheel, next to `src` in a checkout."""
    packaged = resources.files("resumes") / "sample_data"
    checkout = Path(__file__).parents[3] / "sample_data"
    for folder in (packaged, checkout):
        if folder.is_dir():
            return folder
    raise Failed("The sample files are missing from this installation. Reinstall it")


def _files(folder: Traversable) -> list[Traversable]:
    found = [file for file in folder.iterdir() if file.name.endswith(".json")]
    return sorted(found, key=lambda file: file.name)


def drop(sample: Traversable, folder: Path) -> None:
    """Put the sample into the folder, complete as soon as it can be seen there."""
    draft = folder / f".{sample.name}.part"
    draft.write_bytes(sample.read_bytes())
    draft.rename(folder / sample.name)


ACCOUNT = "demo"


@dataclass(slots=True)
class Demo:
    """What a demo has done so far. `secret` None: the account's key is not known here."""

    session: Session
    settings: Settings
    secret: str | None = None
    dropped: dict[str, bool] = field(default_factory=dict)
    """Names of samples that were dropped now, and whether each is a good one."""
    reports: list[FileReport] = field(default_factory=list)

    @property
    def is_as_expected(self) -> bool:
        """Return whether every good sample became a resume and every bad one was refused."""
        became = {Path(report.name).name: report.outcome for report in self.reports}
        return all(
            became.get(name) == ("done" if is_good else "failed")
            for name, is_good in self.dropped.items()
        )


COLUMNS = (Column("id"), Column("title", is_flexible=True), Column("created (UTC)"))
LIMIT = 100
TIMEOUT_S = 10.0
WIDTH = 78
WITHOUT_KEY = "the key of the first demo here, or a new one from `resumes keys create demo`"
BODY = '{"header": {"name": "Ada Lovelace"}, "sections": {}}'


def tell_imported(demo: Demo, *, is_kept: bool) -> None:
    """Print what was imported, read from the store: nothing is served.

    `is_kept`: the home stays, so there is more to try in it.
    """
    resumes = _from_store(demo)
    if demo.session.as_json:
        put_json(_as_json(demo, resumes, url=None))
        return
    _put_import(demo, resumes, "as the API lists them")
    put()
    if not is_kept:
        return
    put("What to try next:")
    put()
    put_step(1, "Open the terminal UI", demo.session.command_line("tui"))
    put_step(2, "See what happened to the files", demo.session.command_line("imports", "list"))
    put_step(3, "Serve the API", demo.session.command_line("serve"))


def tell_served(demo: Demo, url: str) -> None:
    """Print what was imported, read from the API, and how to use that."""
    resumes = _from_store(demo) if demo.secret is None else ask_api(url, demo.secret)
    if demo.session.as_json:
        put_json(_as_json(demo, resumes, url=url))
        return
    _put_import(demo, resumes, f"as GET {url}/api/v1/resumes lists them")
    put()
    put(f"The API is running at {url}, and the importer is watching the inbox.")
    put("What to try next, in another terminal:")
    put()
    _put_steps(demo, url)
    put("Press Ctrl-C to stop.")


def ask_api(url: str, secret: str) -> list[dict[str, Any]]:
    """Return the first page of resumes, asked of the API. Raises StoreUnavailable."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=TIMEOUT_S)
    try:
        connection.request(
            "GET", f"/api/v1/resumes?limit={LIMIT}", headers={"Authorization": f"Bearer {secret}"}
        )
        answer = connection.getresponse()
        body = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise StoreUnavailable(f"The API at {url} does not answer: {error}") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise StoreUnavailable(f"The API at {url} answered {answer.status}: {body.get('error')}")
    resumes: list[dict[str, Any]] = body["resumes"]
    return resumes


def _from_store(demo: Demo) -> list[dict[str, Any]]:
    with demo.session.store() as store:
        page = list_page(store, accounts.get_account(store, ACCOUNT).id, limit=LIMIT)
    resumes: list[dict[str, Any]] = page.as_json(limit=LIMIT)["resumes"]
    return resumes


def _put_import(demo: Demo, resumes: list[dict[str, Any]], how: str) -> None:
    put(f"The demo's home is {safe_text(str(demo.settings.home))}.")
    if demo.dropped:
        good = sum(demo.dropped.values())
        bad = len(demo.dropped) - good
        put(f'Dropped {good} good samples and {bad} bad ones into the inbox of account "demo".')
    else:
        put("The samples were dropped earlier; nothing was changed.")
    put()
    put(f"{counted(len(resumes), 'resume')}, {how}:")
    put()
    put_table(COLUMNS, ([one["id"], one["title"], instant(one["createdAt"])] for one in resumes))
    _put_failed(demo)


def _put_failed(demo: Demo) -> None:
    failed = [report for report in demo.reports if report.outcome == "failed"]
    if not failed:
        return
    put()
    put(f"{counted(len(failed), 'file')} could not be imported. See the reports in")
    put(f"{_inbox(demo, '_failed')}:")
    put()
    for report in sorted(failed, key=lambda report: report.name):
        put(safe_text(Path(report.name).name))
        put(_indented(report.message or ""))


def _indented(text: str) -> str:
    return textwrap.fill(
        safe_text(text), WIDTH, initial_indent="    ", subsequent_indent="    ",
        break_on_hyphens=False,
    )  # fmt: skip


def _put_steps(demo: Demo, url: str) -> None:
    put(f"   KEY={demo.secret or WITHOUT_KEY}")
    put(f"   API={url}/api/v1/resumes")
    put()
    put_step(1, "List the resumes", 'curl -H "Authorization: Bearer $KEY" $API')
    put_step(
        2,
        "Create one",
        """curl -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\""",
        f"     -d {shlex.quote(BODY)} $API",
    )
    put_step(3, "Open the terminal UI", demo.session.command_line("tui"))


def put_step(number: int, what: str, *lines: str) -> None:
    """Print a numbered thing to try, and the command for it."""
    put(f"{number}. {what}:")
    for line in lines:
        put(f"   {line}")
    put()


def _inbox(demo: Demo, folder: str) -> str:
    return safe_text(str(demo.settings.inbox / folder))


def _as_json(demo: Demo, resumes: list[dict[str, Any]], *, url: str | None) -> dict[str, Any]:
    return {
        "home": str(demo.settings.home),
        "url": url,
        "key": demo.secret,
        "resumes": resumes,
        "files": [as_json(report) for report in demo.reports],
    }


KEY_FILE = "demo-key"
DATABASE_FILE = "resumes.db"
SETTLE_S = 0.1
"""Samples are dropped whole, so one that does not parse need not be waited for."""


@command()
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Home of the demo, which is kept. [default: a temporary folder]",
)
@click.option(
    "--port", type=PORT, metavar="N", help="Port of the API. [default: 8000, or a free one]"
)
@click.option("--once", is_flag=True, help="Exit after the import.")
@click.pass_context
@pass_session
def demo(
    session: Session, context: click.Context, /, home: Path | None, port: int | None, once: bool
) -> None:
    """Try everything in a scratch home.

    Creates an account on the business plan with a key, drops the sample files into the inbox,
    imports them, and serves the API until Ctrl-C. Running it again in the same home changes nothing.
    A home that has other accounts is refused.
    """
    home = home or session.home
    with stop_event() as stop, _scratch(session, home) as own:
        demo = Demo(own, own.settings(port=port))
        if port is not None and not once:
            check_address(demo.settings)
        _refuse_others(own, demo.settings)
        _import(demo, stop)
        if stop.is_set():
            context.exit(ExitCode.INTERRUPTED)
        if once:
            tell_imported(demo, is_kept=home is not None)
        else:
            _serve(demo, stop, is_port_given=port is not None)
        context.exit(ExitCode.DONE if demo.is_as_expected else ExitCode.FAILED)


@contextlib.contextmanager
def _scratch(session: Session, home: Path | None) -> Iterator[Session]:
    """Yield a session whose store is in its home, whatever the environment says.

    Without a home it is a temporary one, removed afterwards.
    """
    is_temporary = home is None
    home = home or Path(tempfile.mkdtemp(prefix="resumes-demo-"))
    own = Session(home=home, as_json=session.as_json)
    if own.settings().database is not None:
        own.database = f"sqlite:///{home.absolute() / 'resumes.db'}"
    try:
        yield own
    finally:
        if is_temporary:
            shutil.rmtree(home, ignore_errors=True)
            say("Removed the demo's home. To keep one, use `resumes demo --home DIR`.")


def _refuse_others(session: Session, settings: Settings) -> None:
    """Raise Conflict if the home has accounts other than the demo's."""
    if not (settings.home / DATABASE_FILE).exists():
        return
    # Nothing is changed by looking, not even a store of an older version.
    with session.store() as store:
        others = [one.name for one in accounts.list_accounts(store) if one.name != ACCOUNT]
    if others:
        shown = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if others[3:] else "")
        raise Conflict(
            f"{settings.home} is not a demo's home: it has the accounts {shown}. Choose a new folder "
            "with --home, or omit it"
        )


def _import(demo: Demo, stop: threading.Event) -> None:
    """Create the account with its key, and import what is in the inbox."""
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


def _find_or_make_key(store: Store, path: Path) -> str | None:
    """Return the account's first key. A demo keeps it in its home, so that the next one has it too."""
    new = make_first_key(store, ACCOUNT)
    if new is not None:
        hand_over(store, new, lambda secret: write_key(path, secret))
        return new.secret
    with contextlib.suppress(OSError, UnicodeError, InvalidKey):
        secret = path.read_text(encoding="ascii").strip()
        api_keys.authenticate(store, secret)
        return secret
    return None


def _is_unused(store: Store, account: AccountInfo) -> bool:
    """Return whether the account never had a resume or a file, deleted ones included."""
    return not account.resume_count and not import_history.list_files(
        store, account_id=account.id, limit=1
    )


def _drop_samples(folder: Path) -> dict[str, bool]:
    good, bad = find_samples()
    for sample in (*good, *bad):
        drop(sample, folder)
    return {sample.name: sample in good for sample in (*good, *bad)}


def _serve(demo: Demo, stop: threading.Event, *, is_port_given: bool) -> None:
    """Serve the API and watch the inbox until asked to stop."""
    settings = demo.settings
    if not is_port_given and _is_taken(settings.host, settings.port):
        settings = demo.session.settings(port=0)
    with supervising() as supervisor:
        environment = store_environment(settings.database)
        url = start_api(supervisor, serve_arguments(settings), stop, environment=environment)
        if url is None:
            return
        start_importer(supervisor, watch_arguments(settings), environment=environment)
        tell_served(demo, url)
        supervisor.watch(stop)


def _is_taken(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False
