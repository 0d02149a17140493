"""`resumes expire`: erase the resumes that are due, or list them."""

import click

from cli.groups import YES, account_option, command, confirm
from cli.output import Column, instant, put_json, put_table, say
from cli.progress import counting
from cli.session import Session, pass_session
from cli.signals import sigterm_as_interrupt
from resumes.store import accounts, retention
from resumes.store.plans import keep_text
from resumes.text import counted

COLUMNS = (
    Column("account", lambda due: due.account, is_flexible=True),
    Column("plan", lambda due: due.plan, is_flexible=True),
    Column("keeps", lambda due: keep_text(due.keep_days)),
    Column("due", lambda due: f"{due.resumes:,}", is_number=True),
    Column("oldest (UTC)", lambda due: instant(due.oldest_at)),
)


@command()
@account_option("Account to use. [default: all accounts]")
@click.option("--dry-run", is_flag=True, help="List what is due, without erasing anything.")
@YES
@pass_session
def expire(session: Session, account: str | None, dry_run: bool, yes: bool) -> None:
    """Erase resumes that are older than their plan allows.

    `resumes plans set NAME --keep-days N` says how long a plan keeps resumes. Services erase what is due
    every hour; this command does it now. It first lists what is due.
    """
    with sigterm_as_interrupt(), session.store() as store:
        if account is not None:
            accounts.get_account(store, account)
        due = retention.list_due(store, account)
        total, erased = sum(some.resumes for some in due), 0
        number = counted(total, "resume")
        if due and not session.as_json:
            put_table(COLUMNS, due)
        if due and not dry_run:
            if not yes:
                confirm(f"Permanently erase {number} from {counted(len(due), 'account')}?")
            with counting("resumes", total) as show:
                for some in due:
                    for count in retention.iter_erased(store, some.account_id):
                        erased += count
                        show("erased", erased)
    if session.as_json:
        rows = [
            {
                "account": some.account,
                "plan": some.plan,
                "keepDays": some.keep_days,
                "resumes": some.resumes,
                "oldestAt": some.oldest_at,
            }
            for some in due
        ]
        put_json({"due": rows, "erased": erased})
    elif not due:
        say("No resume is older than its plan allows.")
    elif dry_run:
        say(f"Dry run: {number} due, nothing was erased.")
    else:
        say(f"Erased {counted(erased, 'resume')}.")
