"""`resumes db`: upgrade, copy, reopen, back up, restore and check the store."""

import contextlib
from pathlib import Path
from typing import Any

import click

from cli.errors import ExitCode
from cli.groups import NewPath, group
from cli.output import Column, put, put_json, put_table, safe_text, say
from cli.progress import copy_progress, counting
from cli.session import Session, make_home, pass_session, program
from cli.signals import sigterm_as_interrupt
from resumes import watched_folder
from resumes.errors import InvalidArgument, StoreUnavailable
from resumes.store import accounts, integrity, migrations, open_store
from resumes.store.addresses import (
    PostgresAddress,
    SqliteAddress,
    find_without_secrets,
    parse_address,
)
from resumes.store.integrity import Flaw
from resumes.store.store import reopen_store
from resumes.store.transfer import backups, copies
from resumes.text import counted, shell_line


@group("db")
def database() -> None:
    """Copy, back up, restore and check the store."""


@database.command()
@click.option(
    "--distribute",
    is_flag=True,
    help="Also distribute the accounts over the nodes of a Citus cluster.",
)
@pass_session
def upgrade(session: Session, distribute: bool) -> None:
    """Upgrade the store for this version of the program.

    If the store is in SQLite, the command first saves a backup of the store in the same folder.
    """
    address = parse_address(session.settings().database_url)
    if distribute and isinstance(address, SqliteAddress):
        raise InvalidArgument("A store in SQLite cannot be distributed: copy it to Citus first")
    # Opening would create a missing store, but here, a missing store means that the path is wrong.
    if isinstance(address, SqliteAddress) and not address.path.exists():
        raise StoreUnavailable(f"Database not found: {address.path}. Create one with `resumes up`")
    with open_store(session.settings().database_url) as store:
        label = store.label
    revision = migrations.list_revisions()[-1]
    answer: dict[str, Any] = {"database": label, "revision": revision}
    sentence = f"The store {safe_text(label)} is up to date (schema {revision})."
    if distribute and isinstance(address, PostgresAddress):
        from resumes.store.postgresql import sharding

        answer["distributed"] = tables = sharding.distribute(address)
        sentence += f" Tables distributed now: {', '.join(tables) or 'none'}."
    session.answer(answer, sentence)


COLUMNS = (
    Column("TABLE", lambda digest: digest.name),
    Column("ROWS", lambda digest: f"{digest.rows:,}", is_number=True),
    Column("SHA-256", lambda digest: digest.sha256),
)


@database.command()
@click.argument("source_url", metavar="FROM")
@click.argument("target_url", metavar="TO")
@pass_session
def copy(session: Session, source_url: str, target_url: str) -> None:
    """Copy one store to another, and verify that both are identical.

    FROM and TO are addresses such as sqlite:///PATH and postgresql://USER@HOST/NAME. The store TO must be
    empty, and stays empty if the copy fails. The store FROM is read-only during the copy. If the copy
    succeeds, FROM stays read-only; if the copy fails, FROM becomes writable again.
    """
    with (
        sigterm_as_interrupt(),
        open_store(source_url, upgrade=False) as source,
        copy_progress() as show,
    ):
        digests = copies.copy(source, target_url, on_progress=show)
        from_label, to_label = source.label, parse_address(target_url).label
    if session.as_json:
        tables = [{"name": row.name, "rows": row.rows, "sha256": row.sha256} for row in digests]
        put_json({"from": from_label, "to": to_label, "tables": tables})
    else:
        put_table(COLUMNS, digests)
    target = safe_text(to_label)
    say(
        f"The stores are identical. From now on, use {target}, with --database or RESUMES_DATABASE."
    )
    say(
        f"{safe_text(from_label)} is now read-only. To go back to it, leaving behind "
        f"anything added to the other store: {safe_text(reopening(source_url))}"
    )


def reopening(url: str) -> str:
    """Return how to make the store at this address writable again.

    This is a command, or words if the address contains a secret, which must not be repeated."""
    if parse_address(url) == parse_address(shown := find_without_secrets(url) or ""):
        return f"`{shell_line(program(), '--database', shown, 'db', 'reopen')}`"
    return f"`{program()} db reopen`, with RESUMES_DATABASE set to its address and password"


@database.command()
@pass_session
def reopen(session: Session) -> None:
    """Make the store writable again after a move.

    Changes that were made to the new store after the move are not copied back.
    """
    with open_store(session.settings().database_url, upgrade=False) as store:
        target = reopen_store(store)
        label = safe_text(store.label)
    sentence = f"{label} was not being moved, and is writable."
    if target is not None:
        moved = f"It had been moved, or was being moved, to {safe_text(target)}"
        sentence = f"{label} is writable again. {moved}."
    session.answer({"database": label, "movedTo": target}, sentence)


@database.command()
@click.argument("destination", metavar="DEST", type=NewPath())
@click.option(
    "--keep",
    type=click.IntRange(1),
    metavar="N",
    help="After the new backup is verified, delete all but the N newest backups in the folder.",
)
@pass_session
def backup(session: Session, destination: str, keep: int | None) -> None:
    """Back up the store to a single file.

    The store can be in use during the backup. DEST is either a new file or an existing folder. If DEST is
    a folder, the name of the backup contains the current time. The backup is always a SQLite file, even
    if the store is in PostgreSQL. The command prints the path of the backup to standard output.
    """
    path = Path(destination)
    if destination.endswith("/") and not path.is_dir():
        raise InvalidArgument(f"Folder not found: {path}. Create it, or choose another")
    with sigterm_as_interrupt(), session.store() as store, copy_progress() as show:
        made = backups.back_up(store, path, keep=keep, on_progress=show)
    if session.as_json:
        put_json(
            {
                "path": str(made.path),
                "sizeBytes": made.size_bytes,
                "removed": [str(path) for path in made.removed],
            }
        )
        return
    put(safe_text(str(made.path)))
    removed = f", {counted(len(made.removed), 'older backup')} removed" if made.removed else ""
    say(f"Backed up and verified: {made.size_bytes / 1e6:,.1f} MB{removed}.")


@database.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@pass_session
def restore(session: Session, file: Path) -> None:
    """Replace the store with a backup.

    Before you restore a backup, stop all processes that use the store. If the store is in SQLite, the
    command keeps the old store in the same folder. If the store is in PostgreSQL, the database must be
    empty. All changes that were made after the backup are lost. New resumes never get IDs that were used
    before.
    """
    settings = session.settings()
    backups.check_file(file, "Backup")  # check this before the home is created
    if settings.database is None:
        make_home(settings.home)
    with sigterm_as_interrupt(), copy_progress() as show:
        restored = backups.restore(file, settings.database_url, on_progress=show)
    with contextlib.suppress(OSError):  # the importer then rejects the folder with a remedy
        owner = watched_folder.Owner(restored.store_id, restored.label)
        watched_folder.replace_owner(settings.inbox, restored.kept_id, owner)
    if session.as_json:
        kept = restored.kept
        put_json(
            {
                "database": restored.label,
                "resumes": restored.resumes,
                "kept": None if kept is None else str(kept),
                "erased": restored.erased,
            }
        )
        return
    say(f"Restored {safe_text(restored.label)}: {counted(restored.resumes, 'resume')}.")
    if restored.erased:
        count = counted(restored.erased, "resume")
        say(f"Erased {count} of people who were erased after the backup was made.")
    if restored.kept is not None:
        say(f"The previous store was kept as {safe_text(str(restored.kept))}.")
    if not restored.is_kept_readable:
        say("It could not be read, so new IDs start from the current time, not from its last ID.")


@database.command()
@pass_session
def check(session: Session) -> ExitCode:
    """Check the store's integrity.

    The command checks the database, and then each account's counters, documents, IDs, keys and import
    history. The command suggests a fix for each problem. The store can be in use during the check. The
    command does not change anything.
    """
    flaws: list[Flaw] = []
    account_count = resume_count = 0

    def note(flaw: Flaw) -> None:
        flaws.append(flaw)
        if not session.as_json:
            whose = "" if flaw.account is None else f"{flaw.account}: "
            what = safe_text(f"{whose}{flaw.what} ({flaw.count:,})")
            put(f"{click.style('fail', fg='red')}  {what}")
            put(f"      {safe_text(flaw.remedy)}")

    with session.store() as store:
        for flaw in integrity.iter_damage(store):
            note(flaw)
        if not any(flaw.defect is integrity.Defect.DAMAGED for flaw in flaws):
            total = len(accounts.list_accounts(store, include_closed=True))
            with counting("accounts", total) as count:
                for checked in integrity.iter_accounts(store):
                    account_count += 1
                    resume_count += checked.resumes
                    for flaw in checked.flaws:
                        note(flaw)
                    count("checked", account_count)
    document = {
        "ok": not flaws,
        "accounts": account_count,
        "resumes": resume_count,
        "findings": [as_json(flaw) for flaw in flaws],
    }
    looked_at = f"{counted(account_count, 'account')} with {counted(resume_count, 'resume')}"
    end = f"{counted(len(flaws), 'problem')} found" if flaws else "no problems"
    session.answer(document, f"Checked {looked_at}: {end}.")
    return ExitCode.FAILED if flaws else ExitCode.DONE


def as_json(flaw: Flaw) -> dict[str, Any]:
    """Return the flaw as `--json` prints it. `account` is null if it belongs to no account."""
    return {
        "defect": flaw.defect,
        "account": flaw.account,
        "count": flaw.count,
        "what": flaw.what,
        "remedy": flaw.remedy,
    }
