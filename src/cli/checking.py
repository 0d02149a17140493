"""`resumes db check`: whether all that the store holds fits together."""

from typing import TYPE_CHECKING, Any

import click

from cli.commands import command
from cli.counting import counting
from cli.exits import ExitCode
from cli.output import put, put_json, say
from cli.session import Session, pass_session
from cli.text import safe_text
from resumes.text import counted

if TYPE_CHECKING:
    from resumes.store import Store
    from resumes.store.checking import Finding


@command()
@click.pass_context
@pass_session
def check(session: Session, context: click.Context) -> None:
    """Check that all the store holds fits together.

    The file itself, counters, documents, ids, keys and the history of imports, account by account;
    each finding with its remedy. Programs may go on meanwhile. Nothing is changed.
    """
    with session.store() as store:
        findings, account_count, resume_count = _look(session, store)
    if session.as_json:
        put_json(
            {
                "ok": not findings,
                "accounts": account_count,
                "resumes": resume_count,
                "findings": [as_json(finding) for finding in findings],
            }
        )
    else:
        looked_at = f"{counted(account_count, 'account')} with {counted(resume_count, 'resume')}"
        end = f"{counted(len(findings), 'thing')} to put right" if findings else "all is well"
        say(f"Looked at {looked_at}: {end}.")
    context.exit(ExitCode.FAILED if findings else ExitCode.DONE)


def _look(session: Session, store: "Store") -> tuple[list["Finding"], int, int]:
    """What is wrong, and how many accounts and resumes were looked at."""
    from resumes.store import account_checking, accounts, checking

    findings: list[Finding] = []
    account_count = resume_count = 0

    def found(finding: "Finding") -> None:
        findings.append(finding)
        if not session.as_json:
            _put(finding)

    for finding in checking.iter_damage(store):
        found(finding)
    if any(finding.defect is checking.Defect.DAMAGED for finding in findings):
        return findings, 0, 0
    total = len(accounts.list_accounts(store, closed_too=True))
    with counting("accounts", total) as count:
        for checked in account_checking.iter_accounts(store):
            account_count += 1
            resume_count += checked.resumes
            for finding in checked.findings:
                found(finding)
            count("looked at", account_count)
    return findings, account_count, resume_count


def _put(finding: "Finding") -> None:
    whose = "" if finding.account is None else f"{finding.account}: "
    put(
        f"{click.style('WRONG', fg='red')}  {safe_text(f'{whose}{finding.what} ({finding.count:,})')}"
    )
    put(f"       {safe_text(finding.remedy)}")


def as_json(finding: "Finding") -> dict[str, Any]:
    """The finding as `--json` prints it. `account` null: it is not an account's."""
    return {
        "defect": finding.defect,
        "account": finding.account,
        "count": finding.count,
        "what": finding.what,
        "remedy": finding.remedy,
    }
