"""`resumes watch`: the importer alone, on a folder."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.candidates import account_names
from cli.commands import command
from cli.exits import ExitCode
from cli.logs import set_up_logs
from cli.outcomes import line, summary
from cli.output import put_json_line, say
from cli.session import Session, pass_session
from cli.signals import end_with_standard_input, stop_event
from cli.text import safe_text

if TYPE_CHECKING:
    from importer.service import FileReport


@command()
@click.argument(
    "root", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--account",
    metavar="NAME",
    shell_complete=account_names,
    help="Whose files in ROOT itself are.",
)
@click.option("--once", is_flag=True, help="Import what is there, then end.")
@click.option(
    "--settle",
    "settle_s",
    type=click.FloatRange(0, 3_600),
    metavar="S",
    help="Seconds of quiet before a file that is no whole resume is judged. [default: 5]",
)
@click.option("--until-stdin-ends", is_flag=True, hidden=True)
@click.pass_context
@pass_session
def watch(
    session: Session,
    context: click.Context,
    /,
    root: Path | None,
    account: str | None,
    once: bool,
    settle_s: float | None,
    until_stdin_ends: bool,
) -> None:
    """Run the importer alone, until Ctrl-C.

    It imports what is dropped into ROOT/ACCOUNT, and puts each file away beside it: in _done,
    _failed, _duplicate or _held, with a report. ROOT is the home's inbox unless named.
    """
    if until_stdin_ends:
        end_with_standard_input()
    set_up_logs()
    settings = session.settings(settle_s=settle_s)
    with session.store(makes=True) as store:
        from importer import service

        if root is None:
            root = settings.inbox
            root.mkdir(exist_ok=True)
        options = service.Options(
            account=account,
            once=once,
            settle_s=settings.settle_s,
            scan_s=settings.scan_s,
            format=settings.format,
        )
        if not once and not until_stdin_ends:
            say(f"Watching {safe_text(str(root))}. Ctrl-C stops it.")
        with stop_event() as stop:
            done = service.watch(
                store,
                root,
                options,
                stop=stop,
                on_file=lambda report: tell(session, report),
                on_notice=lambda notice: say(safe_text(str(notice))),
            )
    if once:
        say(f"{summary(asdict(done))}.")
        context.exit(_exit_code(failed=done.failed, was_interrupted=stop.is_set()))


def _exit_code(*, failed: int, was_interrupted: bool) -> ExitCode:
    if was_interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.FAILED if failed else ExitCode.DONE


def tell(session: Session, report: "FileReport") -> None:
    """The file's outcome: data with `--json`, a line of narration without."""
    if session.as_json:
        put_json_line(as_json(report))
    else:
        say(line(report.outcome, report.name, report.message))


def as_json(report: "FileReport") -> dict[str, Any]:
    """The file's outcome as `--json` prints it, on a line of its own; `warnings` counts them."""
    return {
        "account": report.account,
        "name": report.name,
        "outcome": report.outcome,
        "reason": report.reason,
        "message": report.message,
        "filedAs": str(report.filed_as),
        "resumeId": report.resume_id,
        "warnings": report.warnings,
    }
