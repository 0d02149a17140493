"""`resumes doctor`: what is wrong, and what to do about it."""

from collections.abc import Sequence

import click

from cli.errors import ExitCode
from cli.groups import command
from cli.output import put, put_json, safe_text, say
from cli.session import Session, pass_session
from resumes.health.checks import iter_findings
from resumes.health.findings import Finding, Severity, as_json
from resumes.text import counted

MARKS = {
    Severity.OK: ("well ", "green"),
    Severity.WARNING: ("note ", "yellow"),
    Severity.ERROR: ("WRONG", "red"),
}


@command()
@click.pass_context
@pass_session
def doctor(session: Session, context: click.Context) -> None:
    """Check that all is well.

    Home, settings, disk, SQLite or the database server, store, counters, quotas, keys, inbox, files and importers; each
    finding with its remedy. What merely wants a look is no failure.
    """
    findings = []
    for finding in iter_findings(session.installation()):
        findings.append(finding)
        if not session.as_json:
            _put(finding)
    is_wrong = any(finding.severity is Severity.ERROR for finding in findings)
    if session.as_json:
        put_json({"ok": not is_wrong, "findings": [as_json(finding) for finding in findings]})
    else:
        say(_summary(findings))
    context.exit(ExitCode.FAILED if is_wrong else ExitCode.DONE)


def _put(finding: Finding) -> None:
    mark, colour = MARKS[finding.severity]
    put(f"{click.style(mark, fg=colour)}  {finding.subject:<8}  {safe_text(finding.text)}")
    if finding.remedy is not None:
        put(f"{' ' * 17}{safe_text(finding.remedy)}")


def _summary(findings: Sequence[Finding]) -> str:
    wrong = sum(finding.severity is Severity.ERROR for finding in findings)
    notices = sum(finding.severity is Severity.WARNING for finding in findings)
    if wrong:
        return f"{counted(wrong, 'thing')} to put right."
    return f"All is well; {counted(notices, 'thing')} to look at." if notices else "All is well."
