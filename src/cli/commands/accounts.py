"""`resumes accounts`: create, list, show, rename, change, delete, export and import accounts."""

from pathlib import Path
from typing import Any, Final

import click

from cli.groups import YES, confirm, group
from cli.output import Column, instant, put_fields, put_json, put_table, safe_text, say
from cli.progress import copy_progress
from cli.session import Session, pass_session
from cli.signals import sigterm_as_interrupt
from resumes.errors import Conflict, InvalidArgument
from resumes.output_files import OutputFile
from resumes.store import accounts as store_accounts
from resumes.store import search_index
from resumes.store.accounts import FIRST_MONTHS, AccountInfo
from resumes.store.plans import keep_text, kept_text, listing_text, maximum_text
from resumes.store.retention import list_due
from resumes.store.transfer.account_files import check_account_file, export_account, is_account_file
from resumes.store.transfer.account_import import import_account
from resumes.store.versions import OnNewer
from resumes.text import counted

ROWS: Final = {
    "resume": "resumes",
    "file": "imported_files",
    "item": "imported_items",
    "digest": "imported_digests",
    "key": "api_keys",
}
"""The names in `--json` for the numbers of rows in these tables."""

CATCH_UP_TIMEOUT_S = 30.0
"""The time limit for indexing an account that will replace resumes. A service indexes the rest."""

COLUMNS = (
    Column("account", lambda account: account.name, is_flexible=True),
    Column("plan", lambda account: account.plan, is_flexible=True),
    Column("resumes", lambda account: f"{account.resume_count:,}", is_number=True),
    Column("of", lambda account: maximum_text(account.max_resumes), is_number=True),
    Column("created (UTC)", lambda account: instant(account.created_at)),
)


FORCE = click.option(
    "--force", is_flag=True, help="Take the name and its folder from an account that had it before."
)


@group()
def accounts() -> None:
    """Create and manage accounts."""


@accounts.command()
@click.argument("name")
@click.option("--plan", metavar="PLAN", default="free", show_default=True, help="Initial plan.")
@FORCE
@pass_session
def create(session: Session, name: str, plan: str, force: bool) -> None:
    """Create the account NAME."""
    with session.store(create=True) as store:
        account = store_accounts.create_account(store, name, plan=plan, takes_folder=force)
    session.answer(as_json(account), f'Created account "{account.name}" (plan: {account.plan}).')
    _make_inbox(session, account)
    if not session.as_json:
        say(f"Create an API key: {session.command_line('keys', 'create', account.name)}")


@accounts.command()
@click.argument("name")
@click.argument("new", metavar="NEW")
@FORCE
@pass_session
def rename(session: Session, name: str, new: str, force: bool) -> None:
    """Rename the account NAME to NEW.

    The account keeps its resumes, its keys and its import history. Files in the folder NAME still belong
    to it, until another account takes the name.
    """
    with session.store() as store:
        account = store_accounts.rename_account(store, name, new, takes_folder=force)
    session.answer(as_json(account), f'Renamed account "{name}" to "{account.name}".')
    _make_inbox(session, account)


def _make_inbox(session: Session, account: AccountInfo) -> None:
    """Create the account's inbox, and print its path."""
    inbox = session.settings().inbox / account.name
    try:
        inbox.mkdir(parents=True, exist_ok=True)
    except OSError as error:  # the account was created or renamed nevertheless
        say(f"Its inbox {safe_text(str(inbox))} could not be made: {error.strerror}.")
        return
    if not session.as_json:
        former = " or ".join(account.former_names.split())
        also = f", or into {former} beside it" if former else ""
        say(f"Drop its files into {safe_text(str(inbox))}{also}")


@accounts.command("list")
@pass_session
def list_(session: Session) -> None:
    """List all accounts."""
    with session.store() as store:
        found = store_accounts.list_accounts(store, include_closed=True)
    known = [account for account in found if not account.is_closed]
    if session.as_json:
        put_json({"accounts": [as_json(account) for account in known]})
    elif known:
        put_table(COLUMNS, known)
    else:
        say(f"No accounts yet. Create one: {session.command_line('accounts', 'create', 'NAME')}")
    for account in found:
        if not account.is_closed:
            continue
        held = counted(account.resume_count, "resume")
        if account.is_arriving:
            going = f'"{account.name.partition("~")[0]}" is being imported ({held} so far)'
            again = "import it again, or delete it"
        else:
            going, again = f'"{account.name}" is being deleted ({held} left)', "finish deleting it"
        line = session.command_line("accounts", "delete", account.name, "--with-resumes", "--yes")
        say(f"Account {going}. If that was interrupted, {again}: {line}")


@accounts.command()
@click.argument("name")
@pass_session
def show(session: Session, name: str) -> None:
    """Show the account NAME."""
    with session.store() as store:
        account = store_accounts.get_account(store, name)
        has = store_accounts.get_summary(store, account.id)
        due = sum(some.resumes for some in list_due(store, name))
    if session.as_json:
        more = {
            "lastResumeAt": account.last_resume_at,
            "dueResumes": due,
            "keys": has.keys,
            "activeKeys": has.active_keys,
            "lastKeyUseAt": has.last_used_at,
            "filesHeld": has.files_held,
            "filesFailed": has.files_failed,
        }
        put_json(as_json(account) | more)
        return
    former = account.former_names.split()
    put_fields(
        [
            ("account", account.name),
            *([("former names", ", ".join(former))] if former else []),
            ("id", account.id),
            ("plan", account.plan),
            ("resumes", f"{account.resume_count:,} of {maximum_text(account.max_resumes)}"),
            ("API listing", listing_text(account.api_listing)),
            ("keeps resumes", kept_text(account.keep_days, due)),
            ("on newer", account.on_newer),
            ("first month", FIRST_MONTHS[account.first_month]),
            ("created", f"{instant(account.created_at)} UTC"),
            ("newest resume", instant(account.last_resume_at)),
            ("keys", f"{has.active_keys:,} active of {has.keys:,}"),
            ("key last used", instant(has.last_used_at)),
            ("files", f"{has.files_held:,} held, {has.files_failed:,} failed"),
        ]
    )


@accounts.command("set-plan")
@click.argument("name")
@click.argument("plan")
@pass_session
def set_plan(session: Session, name: str, plan: str) -> None:
    """Change the plan of the account NAME to PLAN.

    The change takes effect immediately.
    """
    with session.store() as store:
        before = store_accounts.get_account(store, name)
        store_accounts.set_plan(store, name, plan)
        account = store_accounts.get_account(store, name)
    if session.as_json:
        put_json(as_json(account))
        return
    say(f'Moved account "{account.name}" to plan {account.plan}.')
    if before.api_listing and not account.api_listing:
        say("It loses API listing: its keys can no longer list and read resumes.")
    if account.is_over:
        held = counted(account.resume_count, "resume")
        most = account.max_resumes
        until = f" until it has fewer than {maximum_text(most)}" if most else ""
        say(f"It keeps its {held}, but cannot add more{until}.")
    _say_kept(account)


def _say_kept(account: AccountInfo) -> None:
    """Print what happens to older resumes on the account's new plan."""
    if account.keep_days is not None:
        kept = keep_text(account.keep_days)
        say(f"The plan keeps resumes for {kept}; services erase older ones within the hour.")


@accounts.command("set")
@click.argument("name")
@click.option(
    "--on-newer",
    type=click.Choice([each.value for each in OnNewer]),
    help="What happens to the older resumes of a person of whom a newer one arrives: `keep` keeps them, "
    "`replace` deletes them. A person is known by email address and name.",
)
@click.option(
    "--first-month",
    type=click.Choice(["0", "1", "default"]),
    help="Number of January in the dates of the account's new resumes. With default, the setting "
    "first_month or the resume itself decides.",
)
@pass_session
def set_(session: Session, name: str, on_newer: str | None, first_month: str | None) -> None:
    """Change the options of the account NAME.

    Options that are not given stay as they are. The changes apply to resumes that are created from now on. With
    `--on-newer replace`, a newer resume needs no additional place in the plan, and older versions that are
    stored already are deleted once a newer one arrives.
    """
    options = store_accounts.AccountOptions()
    if on_newer is not None:
        options["on_newer"] = on_newer
    if first_month is not None:
        options["first_month"] = None if first_month == "default" else int(first_month)
    if not options:
        raise click.UsageError("Nothing to set: pass --on-newer or --first-month")
    with session.store() as store:
        if on_newer == OnNewer.REPLACE:
            account = store_accounts.get_account(store, name)
            search_index.catch_up(store, account.id, timeout_s=CATCH_UP_TIMEOUT_S)
        account = store_accounts.set_options(store, name, options)
    done = []
    if on_newer is not None:
        does = "replaces" if on_newer == OnNewer.REPLACE else "keeps"
        done.append(f'Account "{account.name}" {does} the older resumes of a person.')
    if first_month is not None:
        done.append(f'Account "{account.name}": first month {FIRST_MONTHS[account.first_month]}.')
    session.answer(as_json(account), "\n".join(done))


@accounts.command()
@click.argument("name")
@click.option("--with-resumes", is_flag=True, help="Also delete the account's resumes.")
@YES
@pass_session
def delete(session: Session, name: str, with_resumes: bool, yes: bool) -> None:
    """Delete the account NAME and its keys.

    The command also deletes the account's import history. This cannot be undone.
    """
    with session.store() as store:
        account = store_accounts.get_account(store, name, include_closed=True)
        held = counted(account.resume_count, "resume")
        if account.resume_count and not with_resumes:
            raise Conflict(f'Account "{name}" has {held}: add --with-resumes to delete them too')
        if not yes:
            confirm(f'Permanently delete account "{safe_text(name)}" ({held})?')
        gone = store_accounts.delete_account(
            store, name, account_id=account.id, with_resumes=with_resumes
        )
    sentence = f'Deleted account "{name}" ({counted(gone, "resume")}).'
    session.answer({"deleted": name, "resumes": gone}, sentence)


@accounts.command()
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--with-keys", is_flag=True, help="Include the account's API keys as SHA-256 hashes.")
@click.option(
    "--overwrite", is_flag=True, help="Replace FILE if it already exists and is an account export."
)
@pass_session
def export(session: Session, name: str, file: Path, with_keys: bool, overwrite: bool) -> None:
    """Export the account NAME to a new SQLite file named FILE.

    The export includes the account's resumes and import history. With --with-keys, the export also includes
    the API keys, which then work in any store into which the account is imported. The export does not include
    resumes that are added while the command is running.
    """
    if str(file) == "-":
        raise InvalidArgument(
            "An account file is a SQLite file, which cannot be written to standard output: choose a "
            "new file"
        )
    remedy = (
        "--overwrite only replaces account exports. Choose another file"
        if overwrite
        else "choose another file, or replace an earlier export with --overwrite"
    )
    output = OutputFile(
        file, remedy=remedy, may_replace=lambda earlier: overwrite and is_account_file(earlier)
    )
    with sigterm_as_interrupt(), session.store() as store, copy_progress() as on_progress:
        export_account(store, name, output, with_keys=with_keys, on_progress=on_progress)
    say(f'Exported account "{name}" to {safe_text(str(file))}.')


@accounts.command("import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--name", metavar="NEW", help="Name of the new account. [default: the exported account's name]"
)
@click.option(
    "--plan", metavar="PLAN", help="Plan of the new account. [default: the exported account's plan]"
)
@pass_session
def import_(session: Session, file: Path, name: str | None, plan: str | None) -> None:
    """Create an account from the export in FILE.

    FILE must have been created by `resumes accounts export`. The command checks the file before the import.
    The account is imported either completely or not at all. If the import is interrupted, run the same
    command again.
    """
    check_account_file(file)
    with session.store() as store, copy_progress() as on_progress:
        account, counts = import_account(store, file, name=name, plan=plan, on_progress=on_progress)
    if session.as_json:
        rows = {kind: counts[table] for kind, table in ROWS.items()}
        put_json(as_json(account) | {"rows": rows})
        return
    held = counted(account.resume_count, "resume")
    say(f'Imported account "{account.name}" (plan: {account.plan}, {held}).')
    if account.is_over:
        say(
            f"Its plan allows {maximum_text(account.max_resumes)}: it keeps them all but cannot add more."
        )
    _say_kept(account)
    if not counts[ROWS["key"]]:
        say(f"Create an API key: {session.command_line('keys', 'create', account.name)}")


def as_json(account: AccountInfo) -> dict[str, Any]:
    """Return the account as `--json` prints it.

    `maxResumes` and `freePlaces` are null if they are unlimited, `keepDays` is null if resumes are
    kept forever, and `firstMonth` is null if it is the default."""
    return {
        "id": account.id,
        "name": account.name,
        "formerNames": account.former_names.split(),
        "plan": account.plan,
        "createdAt": account.created_at,
        "resumes": account.resume_count,
        "maxResumes": account.max_resumes,
        "freePlaces": account.free_places,
        "apiListing": bool(account.api_listing),
        "keepDays": account.keep_days,
        "onNewer": account.on_newer,
        "firstMonth": account.first_month,
    }
