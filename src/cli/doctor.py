"""`resumes doctor`: what is wrong, and what to do about it."""

from typing import Any

import click

from cli.checks import Finding, iter_findings
from cli.commands import command
from cli.exits import ExitCode
from cli.output import put, put_json, say
from cli.session import Session, pass_session
from cli.text import safe_text
from resumes.text import counted


@command()
@click.pass_context
@pass_session
def doctor(session: Session, context: click.Context) -> None:
    """Check that all is well.

    Home, settings, disk, SQLite, store, counters and inbox; each finding with its remedy.
    """
    findings = []
    for finding in iter_findings(session):
        findings.append(finding)
        if not session.as_json:
            _put(finding)
    wrong = [finding for finding in findings if finding.remedy is not None]
    if session.as_json:
        put_json({"ok": not wrong, "findings": [as_json(finding) for finding in findings]})
    else:
        say(f"{counted(len(wrong), 'thing')} to put right." if wrong else "All is well.")
    context.exit(ExitCode.FAILED if wrong else ExitCode.DONE)


def _put(finding: Finding) -> None:
    is_well = finding.remedy is None
    mark = click.style("well " if is_well else "WRONG", fg="green" if is_well else "red")
    put(f"{mark}  {finding.subject:<8}  {safe_text(finding.text)}")
    if finding.remedy is not None:
        put(f"{' ' * 17}{safe_text(finding.remedy)}")


def as_json(finding: Finding) -> dict[str, Any]:
    """The finding as `--json` prints it. `remedy` null: all is well."""
    return {
        "subject": finding.subject,
        "ok": finding.remedy is None,
        "text": finding.text,
        "remedy": finding.remedy,
    }
