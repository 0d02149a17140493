"""`resumes watch`: run only the importer on a folder."""

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from cli.errors import ExitCode
from cli.groups import LOG_FORMAT, Seconds, account_option, command
from cli.logs import narrating
from cli.output import line, put_json_line, safe_text, say, summary, timed
from cli.progress import Meter, metered
from cli.session import Session, pass_session
from cli.signals import end_with_standard_input, stop_event
from importer import service
from importer.notices import FIELDS
from importer.service import FileReport, Ignored
from resumes import process_memory, watched_folder
from resumes.external_analyzer import ExternalAnalyzer
from resumes.store.retention import Sweeper
from resumes.store.search_index import Indexer


def _put_ignored(session: Session, file: Ignored) -> None:
    if session.as_json:
        values = (None, file.name, "ignored", file.why, file.why.sentence, None, None, 0)
        put_json_line(dict(zip(FIELDS, values, strict=True)))
    else:
        say(line("ignored", file.name, file.why.sentence))


@command()
@click.argument(
    "root", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@account_option("Account for files that are directly in ROOT.")
@click.option("--once", is_flag=True, help="Import the files that are now in ROOT, and then exit.")
@click.option("--adopt", is_flag=True, help="Take over a folder that belongs to another store.")
@click.option(
    "--dry-run", is_flag=True, help="Show what --once would do, without changing anything."
)
@click.option(
    "--settle",
    "settle_s",
    type=Seconds(),
    metavar="S",
    help="Reject an incomplete file if it has not changed for this many seconds. [default: 5]",
)
@click.option(
    "--poll", is_flag=True, help="Poll for new files. Use this option for network folders."
)
@click.option(
    "--done-keep",
    "done_keep_days",
    type=click.IntRange(0, 36_500),
    metavar="DAYS",
    help="Delete imported files after this many days. [default: never]",
)
@click.option("--on-import", metavar="COMMAND", help="Command to run after each batch of files.")
@LOG_FORMAT
@click.option("--until-stdin-ends", is_flag=True, hidden=True)
@pass_session
def watch(
    session: Session,
    /,
    root: Path | None,
    account: str | None,
    once: bool,
    adopt: bool,
    dry_run: bool,
    until_stdin_ends: bool,
    poll: bool,
    **flags: Any,
) -> ExitCode:
    """Run only the importer until you press Ctrl-C.

    The importer imports each file in ROOT/ACCOUNT into the account named ACCOUNT. It then moves the file to
    the folder _done, _failed, _duplicate or _held in ROOT. If a file was not imported, contained several
    resumes or caused warnings, the importer also writes a report. By default, ROOT is the inbox in the home.
    """
    if until_stdin_ends:
        end_with_standard_input()
    settings = session.settings(poll=poll or None, **flags)
    once = once or dry_run
    with (
        _narrating(
            session, is_alone=not until_stdin_ends, logs_json=settings.log_format == "json"
        ) as meter,
        session.store(create=not dry_run) as store,
        stop_event() as stop,
    ):
        if root is None:
            root = settings.inbox
            if not dry_run:
                root.mkdir(exist_ok=True)
        elif not dry_run:
            with contextlib.suppress(OSError):  # on failure, doctor ignores it
                watched_folder.note_watched(settings.home, root.resolve())
        commands = session.installation()
        options = service.Options(
            account=account,
            once=once,
            adopts=adopt,
            dry_run=dry_run,
            settle_s=settings.settle_s,
            poll=settings.poll,
            done_keep_days=settings.done_keep_days,
            on_import=settings.on_import or None,
            format=settings.format,
            max_file_bytes=settings.max_file_bytes,
            analyzer=ExternalAnalyzer(settings) if settings.analyzer else None,
            analyzers=settings.analyzers,
        )
        if not once and not until_stdin_ends:
            say(f"Watching {safe_text(str(root))}. Press Ctrl-C to stop.")
        background = contextlib.ExitStack()
        if not dry_run:
            background.enter_context(Indexer(store))
        if not (once or dry_run):
            background.enter_context(Sweeper(store))
        process_memory.tune_gc()
        with background, timed(is_wanted=not once and settings.log_format != "json"):
            ends = service.watch(
                store,
                root,
                options,
                stop=stop,
                on_file=lambda report: put_outcome(session, meter, report),
                on_notice=lambda notice: say(safe_text(commands.typeable(str(notice)))),
                on_progress=meter.put_progress,
                on_ignored=lambda file: _put_ignored(session, file),
            )
    if not once:
        return ExitCode.DONE
    counts = asdict(ends) | {"stuck": 0}  # stuck files were already reported and still wait
    say(f"{summary(counts)}{' (nothing was changed)' if dry_run else ''}.")
    if stop.is_set():
        return ExitCode.INTERRUPTED
    return ExitCode.FAILED if ends.failed or ends.stuck else ExitCode.DONE


@contextlib.contextmanager
def _narrating(session: Session, *, is_alone: bool, logs_json: bool) -> Iterator[Meter]:
    """Write logs during the block, and yield a meter that shows progress.

    Progress is not shown with `--json`, or if another process, such as `up`, writes to the
    terminal.
    """
    has_data = session.as_json and sys.stdout.isatty()
    is_wanted = is_alone and not has_data and not logs_json
    with metered(is_wanted=is_wanted) as meter, narrating(as_json=logs_json):
        yield meter


def put_outcome(session: Session, meter: Meter, report: FileReport) -> None:
    """Print the file's outcome as data with `--json`, otherwise as a message or in a count."""
    if session.as_json:
        put_json_line(report.as_json())
    else:
        again = " (retry)" if report.is_retry else ""
        meter.put_file(report.outcome, f"{report.name}{again}", report.message)
