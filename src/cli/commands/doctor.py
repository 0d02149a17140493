"""`resumes doctor`: print problems of the installation, and their remedies."""

from collections import Counter

import click

from cli.errors import ExitCode
from cli.groups import command
from cli.output import put, safe_text
from cli.session import Session, pass_session
from resumes.health.checks import iter_findings
from resumes.health.findings import Severity, as_json
from resumes.text import counted

MARKS = {
    Severity.OK: ("ok  ", "green"),
    Severity.WARNING: ("warn", "yellow"),
    Severity.ERROR: ("fail", "red"),
}


@command()
@pass_session
def doctor(session: Session) -> ExitCode:
    """Check the installation.

    The command checks the settings, home, disk, store, counters, quotas, keys, folders, files, importers
    and fonts. The command suggests a fix for each problem. Warnings do not affect the exit code.
    """
    findings = []
    for finding in iter_findings(session.installation()):
        findings.append(finding)
        if session.as_json:
            continue
        mark, color = MARKS[finding.severity]
        put(f"{click.style(mark, fg=color)}  {finding.subject:<8}  {safe_text(finding.text)}")
        if finding.remedy is not None:
            put(f"{' ' * 16}{safe_text(finding.remedy)}")
    severities = Counter(finding.severity for finding in findings)
    problems, warnings = severities[Severity.ERROR], severities[Severity.WARNING]
    found = counted(problems, "problem") if problems else "No problems"
    session.answer(
        {"ok": not problems, "findings": [as_json(finding) for finding in findings]},
        f"{found}, {counted(warnings, 'warning')}." if warnings else f"{found}.",
    )
    return ExitCode.FAILED if problems else ExitCode.DONE
