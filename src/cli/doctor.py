"""`resumes doctor`: what is wrong, and what to do about it."""

import click

from cli.checks import iter_findings
from cli.commands import command
from cli.exits import ExitCode
from cli.findings import Finding, as_json
from cli.output import put, put_json, say
from cli.session import Session, pass_session
from cli.text import safe_text
from resumes.text import counted


@command()
@click.pass_context
@pass_session
def doctor(session: Session, context: click.Context) -> None:
    """Check that all is well.

    Home, settings, disk, SQLite, store, counters, inbox and importers; each finding with its
    remedy.
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
