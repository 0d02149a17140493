"""`resumes db check`: whether all that the store holds fits together."""

from typing import TYPE_CHECKING, Any

import click

from cli.commands import command
from cli.exits import ExitCode
from cli.output import put, put_json, say
from cli.session import Session, pass_session
from cli.steps import counting
from cli.text import safe_text
from resumes.text import counted

if TYPE_CHECKING:
    from resumes.store import Store
    from resumes.store.integrity import Flaw


@command()
@click.pass_context
@pass_session
def check(session: Session, context: click.Context) -> None:
    """Check that all the store holds fits together.

    The file itself, counters, documents, ids, keys and the history of imports, account by account;
    each finding with its remedy. Programs may go on meanwhile. Nothing is changed.
    """
    with session.store() as store:
        flaws, account_count, resume_count = _look(session, store)
    if session.as_json:
        put_json(
            {
                "ok": not flaws,
                "accounts": account_count,
                "resumes": resume_count,
                "findings": [as_json(flaw) for flaw in flaws],
            }
        )
    else:
        looked_at = f"{counted(account_count, 'account')} with {counted(resume_count, 'resume')}"
        end = f"{counted(len(flaws), 'thing')} to put right" if flaws else "all is well"
        say(f"Looked at {looked_at}: {end}.")
    context.exit(ExitCode.FAILED if flaws else ExitCode.DONE)


def _look(session: Session, store: "Store") -> tuple[list["Flaw"], int, int]:
    """What is wrong, and how many accounts and resumes were looked at."""
    from resumes.store import accounts, integrity

    flaws: list[Flaw] = []
    account_count = resume_count = 0

    def found(flaw: "Flaw") -> None:
        flaws.append(flaw)
        if not session.as_json:
            _put(flaw)

    for flaw in integrity.iter_damage(store):
        found(flaw)
    if any(flaw.defect is integrity.Defect.DAMAGED for flaw in flaws):
        return flaws, 0, 0
    total = len(accounts.list_accounts(store, closed_too=True))
    with counting("accounts", total) as count:
        for checked in integrity.iter_accounts(store):
            account_count += 1
            resume_count += checked.resumes
            for flaw in checked.flaws:
                found(flaw)
            count("looked at", account_count)
    return flaws, account_count, resume_count


def _put(flaw: "Flaw") -> None:
    whose = "" if flaw.account is None else f"{flaw.account}: "
    put(f"{click.style('WRONG', fg='red')}  {safe_text(f'{whose}{flaw.what} ({flaw.count:,})')}")
    put(f"       {safe_text(flaw.remedy)}")


def as_json(flaw: "Flaw") -> dict[str, Any]:
    """The flaw as `--json` prints it. `account` null: it is not an account's."""
    return {
        "defect": flaw.defect,
        "account": flaw.account,
        "count": flaw.count,
        "what": flaw.what,
        "remedy": flaw.remedy,
    }
