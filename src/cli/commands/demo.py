"""`resumes demo`: a tour of the service in a temporary home, with the sample files."""

import contextlib
import importlib.util
import json
import re
import shlex
import shutil
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from operator import itemgetter
from pathlib import Path
from typing import Any

import click

from cli.commands.keys import check_key_file, make_first_key, show_once_or_revoke, write_key
from cli.errors import ExitCode, Failed
from cli.groups import PORT, Folder, command
from cli.output import Column, instant, put, put_json, put_table, safe_text, say
from cli.session import Session, pass_session
from cli.signals import stop_event
from cli.supervisor import Services, Supervisor, environment_of
from importer import service
from importer.service import FileReport
from resumes.errors import Conflict
from resumes.external_analyzer import ExternalAnalyzer
from resumes.listener import CannotListen, listen
from resumes.output_files import drafted, replace
from resumes.settings import ANALYZED_FILE, CONFIG_NAME, Settings
from resumes.store import accounts
from resumes.store.import_ledger import FileOutcome
from resumes.store.stored_resumes import list_page
from resumes.text import counted


def find_analyzer() -> Path | None:
    """Return the example analyzer, or None if pypdf, which it needs, is not installed."""
    places = (
        Path(str(resources.files("resumes"))) / "sample_data" / "analyzer.py",
        Path(__file__).parents[3] / "docs" / "examples" / "analyzer.py",
    )
    if importlib.util.find_spec("pypdf") is None:
        return None
    return next((path for path in places if path.is_file()), None)


def find_samples(
    endings: tuple[str, ...] = (".json",),
) -> tuple[list[Traversable], list[Traversable]]:
    """Return the good and the bad samples with these endings, sorted by name.

    Raises Failed if none are installed."""
    # In a wheel, samples are package data; in a checkout, they are next to `src`.
    for folder in (
        resources.files("resumes") / "sample_data",
        Path(__file__).parents[3] / "sample_data",
    ):
        if folder.is_dir():
            good, bad = (
                sorted(
                    (file for file in part.iterdir() if file.name.endswith(endings)),
                    key=lambda file: file.name,
                )
                for part in (folder, folder / "bad")
            )
            return good, bad
    raise Failed("The sample files are missing from this installation. Reinstall it")


def drop(sample: Traversable, folder: Path) -> None:
    """Copy the sample to the folder atomically."""
    draft = folder / f".{sample.name}.part"
    draft.write_bytes(sample.read_bytes())
    draft.rename(folder / sample.name)


ACCOUNT = "demo"
CLASS = "class-2026"
"""A folder in the account's inbox, which becomes the label of the resumes in it."""
CLASSMATES = re.compile("student|-porto-")
"""A pattern for the names of the samples in the folder CLASS."""
KEY_FILE = "demo-key"
DATABASE_FILE = "resumes.db"
SETTLE_S = 0.1
"""Samples appear atomically, so the importer need not wait long for one that cannot be parsed."""

COLUMNS = (
    Column("id", itemgetter("id")),
    Column("title", itemgetter("title"), is_flexible=True),
    Column("created (UTC)", lambda resume: instant(resume["createdAt"])),
)
LIMIT = 100
MARGIN = "    "
WIDTH = 78 - len(MARGIN)
BODY = '{"header": {"name": "Ada Lovelace"}, "sections": {}}'


@dataclass(slots=True)
class Demo:
    """The state of a demo."""

    session: Session
    settings: Settings
    secret: str = ""
    """The account's API key."""
    expected: dict[str, FileOutcome] = field(default_factory=dict)
    """The expected outcome of each sample by name. Good samples are imported, bad samples fail."""
    reports: list[FileReport] = field(default_factory=list)
    resumes: list[dict[str, Any]] = field(default_factory=list)
    """The resumes as the API lists them."""


@command()
@click.option(
    "--home",
    type=Folder(),
    metavar="DIR",
    help="Home folder for the demo. The folder is not deleted when the demo ends. [default: a temporary "
    "folder]",
)
@click.option(
    "--port",
    type=PORT,
    metavar="N",
    help="Port for the API. [default: 8000, or any free port if 8000 is in use]",
)
@click.option("--once", is_flag=True, help="Exit after the import.")
@pass_session
def demo(session: Session, home: Path | None, port: int | None, once: bool) -> ExitCode:
    """Try the service with sample files.

    The demo creates an account (on the business plan) and an API key, imports the sample files, and
    serves the API until you press Ctrl-C. By default, the demo uses a temporary folder as its home. The
    home must not already contain a store.
    """
    home = home or session.home
    with stop_event() as stop, _scratch(session, home) as own:
        demo = Demo(own, own.settings(port=port))
        if port is not None and not once:
            listen(demo.settings.host, demo.settings.port).close()
        if (demo.settings.home / DATABASE_FILE).exists():
            raise Conflict(
                f"{demo.settings.home} already has a store: run it with `{own.command_line('up')}`, "
                "or choose a new folder with --home"
            )
        # Check this before the store is created, because the demo rejects a home with a store.
        check_key_file(demo.settings.home / KEY_FILE)
        _import(demo, stop)
        if stop.is_set():
            return ExitCode.INTERRUPTED
        if once:
            _put_summary(demo, url=None, is_kept=home is not None)
        else:
            _serve(demo, stop, is_port_given=port is not None)
        became = {Path(report.name).name: report.outcome for report in demo.reports}
        return ExitCode.DONE if demo.expected.items() <= became.items() else ExitCode.FAILED


@contextlib.contextmanager
def _scratch(session: Session, home: Path | None) -> Iterator[Session]:
    """Yield a session whose store is in its home, ignoring the environment.

    If `home` is None, use a temporary one and remove it afterwards.
    """
    is_temporary = home is None
    home = home or Path(tempfile.mkdtemp(prefix="resumes-demo-"))
    own = Session(home=home, as_json=session.as_json)
    try:
        if own.settings().database is not None:
            own.database = f"sqlite:///{home.absolute() / 'resumes.db'}"
        yield own
    finally:
        if is_temporary:
            shutil.rmtree(home, ignore_errors=True)
            say("Removed the demo's home. To keep it, use `resumes demo --home DIR`.")


def _import(demo: Demo, stop: threading.Event) -> None:
    """Create the account and its key, and import the samples."""
    with demo.session.store(create=True) as store:
        config = demo.settings.home / CONFIG_NAME
        endings: tuple[str, ...] = (".json",)
        if (analyzer := find_analyzer()) and not config.exists():
            # The services that the demo starts also use this analyzer.
            command = [sys.executable, str(analyzer), ANALYZED_FILE]
            with drafted(config, replace) as file:
                file.write(f"analyzer = {json.dumps(command)}\n".encode())
            demo.settings = demo.session.settings(port=demo.settings.port, analyzer=command)
            endings = (".json", ".pdf")
        settings = demo.settings
        account = accounts.create_account(store, ACCOUNT, plan="business")
        (settings.inbox / ACCOUNT / CLASS).mkdir(parents=True, exist_ok=True)
        new = make_first_key(store, ACCOUNT)
        assert new is not None  # the store is new
        show_once_or_revoke(store, new, lambda secret: write_key(settings.home / KEY_FILE, secret))
        demo.secret = new.secret
        good, bad = find_samples(endings)
        for samples, outcome in ((good, FileOutcome.DONE), (bad, FileOutcome.FAILED)):
            for sample in samples:
                demo.expected[sample.name] = outcome
                folder = CLASS if CLASSMATES.search(sample.name) else ""
                drop(sample, settings.inbox / ACCOUNT / folder)
        service.watch(
            store,
            settings.inbox,
            service.Options(
                account=None,
                once=True,
                settle_s=SETTLE_S,
                format=settings.format,
                max_file_bytes=settings.max_file_bytes,
                analyzer=ExternalAnalyzer(settings) if settings.analyzer else None,
            ),
            stop=stop,
            on_file=demo.reports.append,
            on_notice=lambda notice: say(safe_text(str(notice))),
        )
        page = list_page(store, account.id, limit=LIMIT)
    demo.resumes = page.as_json(limit=LIMIT)["resumes"]


def _serve(demo: Demo, stop: threading.Event, *, is_port_given: bool) -> None:
    """Serve the API and watch the inbox until asked to stop."""
    settings = demo.settings
    if not is_port_given:
        try:
            listen(settings.host, settings.port).close()
        except CannotListen:
            settings = demo.session.settings(port=0)
    with Supervisor(Services.of(settings), environment_of(settings)) as supervisor:
        url = supervisor.start(stop)
        if url is not None:
            _put_summary(demo, url=url, is_kept=True)
            supervisor.watch(stop)


def _put_summary(demo: Demo, *, url: str | None, is_kept: bool) -> None:
    """Print what was imported, and commands to try if the API is served or the home is kept.

    `url` is the API's address, or None if the API is not served.
    """
    if demo.session.as_json:
        put_json(
            {
                "home": str(demo.settings.home),
                "url": url,
                "key": demo.secret,
                "resumes": demo.resumes,
                "files": [report.as_json() for report in demo.reports],
            }
        )
        return
    command_line = demo.session.command_line
    _put_import(demo, "the API" if url is None else f"GET {url}/api/v1/resumes")
    put()
    if url is not None:
        put(f"The API is running at {url}, and the importer is watching the inbox.")
        put("What to try next, in another terminal:")
        put()
        put(f"   KEY={demo.secret}")
        put(f"   API={url}/api/v1/resumes")
        put()
        bearer = '-H "Authorization: Bearer $KEY"'
        put_step(1, "List the resumes", f"curl {bearer} $API")
        put_step(
            2,
            "Create one",
            f"curl {bearer} -H 'Content-Type: application/json' \\",
            f"     -d {shlex.quote(BODY)} $API",
        )
        put_step(3, "Open the terminal UI", command_line("tui"))
        put("Press Ctrl-C to stop.")
    elif is_kept:
        put("What to try next:")
        put()
        put_step(1, "Open the terminal UI", command_line("tui"))
        put_step(2, "See what happened to the files", command_line("imports", "list"))
        put_step(3, "Serve the API", command_line("serve"))


def _put_import(demo: Demo, lister: str) -> None:
    good, bad = map([*demo.expected.values()].count, (FileOutcome.DONE, FileOutcome.FAILED))
    put(f"The demo's home is {safe_text(str(demo.settings.home))}.")
    put(f'Dropped {good} good samples and {bad} bad ones into the inbox of account "demo".')
    put()
    put(f"{counted(len(demo.resumes), 'resume')}, as {lister} lists them:")
    put()
    put_table(COLUMNS, demo.resumes)
    failed = [report for report in demo.reports if report.outcome is FileOutcome.FAILED]
    if not failed:
        return
    put()
    put(f"{counted(len(failed), 'file')} could not be imported. See the reports in")
    put(f"{safe_text(str(demo.settings.inbox / '_failed'))}:")
    put()
    for report in sorted(failed, key=lambda report: report.name):
        put(safe_text(Path(report.name).name))
        message = textwrap.fill(safe_text(report.message or ""), WIDTH, break_on_hyphens=False)
        put(textwrap.indent(message, MARGIN))


def put_step(number: int, what: str, *lines: str) -> None:
    """Print a numbered step, followed by its commands."""
    put(f"{number}. {what}:")
    for line in lines:
        put(f"   {line}")
    put()
