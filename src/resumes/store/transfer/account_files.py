"""Account files: files with one account, which can be imported into any store (account_import).

An account file is a SQLite store with one account and a mark of its own, so that it is never
mistaken for a store or a backup (docs/decisions/0019). It is written and compared like a backup,
from a snapshot of the store.
"""

import hashlib
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO, Final

from sqlalchemy import Column, ColumnElement, and_, false, func, select

from resumes.errors import InvalidArgument, StoreIncompatible
from resumes.output_files import OutputFile
from resumes.store import open_store
from resumes.store.accounts import IS_OPEN, unknown_account
from resumes.store.api_keys import IS_SAME_KEY
from resumes.store.schema import (
    account_usage,
    accounts,
    api_keys,
    documents,
    imported_digests,
    imported_files,
    imported_items,
    key_directory,
    plans,
    replaced_resumes,
    resumes,
)
from resumes.store.sqlite.files import examine, scratch_in, transaction_in
from resumes.store.statements import looked_up
from resumes.store.store import Store, session_on, set_facts
from resumes.store.transfer.backups import MAGIC, check_file
from resumes.store.transfer.copies import TABLES, OnProgress, Selection, TableDigest, ignore, load

ACCOUNT_FILE_ID: Final = 0x52534D41
"""The mark of an account file ("RSMA"), which replaces the mark of a store."""

MARK_AT: Final = 68
"""The offset of the mark in a SQLite file, in bytes."""

NDJSON: Final = b'{"format":"resumes-account"'
"""The first bytes of the account files of version 1.0."""


def is_account_file(file: BinaryIO) -> bool:
    """Return whether the file begins like an account file; it may be incomplete."""
    head = file.read(MARK_AT + 4)
    return head.startswith(MAGIC) and head[MARK_AT:] == ACCOUNT_FILE_ID.to_bytes(4)


def mark(path: Path, application_id: int) -> None:
    """Set the mark of a database file that no process has open."""
    with path.open("r+b") as file:
        file.seek(MARK_AT)
        file.write(application_id.to_bytes(4))


def check_account_file(file: Path) -> None:
    """Raise InvalidArgument if the file is unreadable, StoreIncompatible if it is no account file.

    Call this before opening a store: the file might be the store's file, and closing it would drop
    the store's locks (pitfalls S1).
    """
    check_file(file, "Account file")
    with file.open("rb") as opened:
        if is_account_file(opened):
            return
        opened.seek(0)
        if opened.read(len(NDJSON)) == NDJSON:
            raise StoreIncompatible(
                f"{file} was written by version 1.0, as NDJSON. Export the account again with this "
                "version, or import the file with version 1.0 and then upgrade that store"
            )
    raise StoreIncompatible(
        f"{file} is not an account file. Create one with `resumes accounts export`; a backup of a store "
        "is restored with `resumes db restore`"
    )


# Export


def export_account(
    store: Store,
    name: str,
    output: OutputFile,
    *,
    with_keys: bool = False,
    on_progress: OnProgress = ignore,
) -> None:
    """Write a snapshot of the account to the file.

    With `with_keys`, the file includes the SHA-256 of active keys, which then work wherever the
    account is imported. Raises NotFound, StoreUnavailable, InvalidArgument and Conflict for the
    output file, and StoreIncompatible for a damaged row.
    """
    path = output.path
    with scratch_in(path.parent, refused=InvalidArgument) as folder:
        new = folder / "account.db"
        open_store(f"sqlite:///{new}").close()
        with store.snapshot() as source, transaction_in(new, draft_of=path) as target:
            this = select(accounts.c.id, accounts.c.plan).where(accounts.c.name == name, IS_OPEN)
            account = source.execute(this).first()
            if account is None:
                raise unknown_account(name)
            digests = load(
                lambda: nullcontext(source),
                target,
                str(path),
                on_progress,
                foreign=store.label,
                selection=_rows_of(*account, with_keys=with_keys),
            )
            set_facts(session_on(target), contents=contents_of(digests))
        examine(new, path)
        mark(new, ACCOUNT_FILE_ID)
        output.put(new)


def _rows_of(account_id: str, plan: str, *, with_keys: bool) -> Selection:
    """Return queries for the rows of an account file.

    Leave out incomplete resumes, which a damaged store may have (`db check` lists them), and count
    the resumes again.
    """

    def whole(resume_id: Column[str]) -> ColumnElement[bool]:
        table = resume_id.table
        others = (other for other in (resumes, documents) if other is not table)
        found = (looked_up(other.c.id, other, table.c.account_id, resume_id) for other in others)
        return and_(table.c.account_id == account_id, *(each.is_not(None) for each in found))

    is_key = IS_SAME_KEY & api_keys.c.revoked_at.is_(None) & (api_keys.c.account_id == account_id)
    conditions = {
        plans: plans.c.name == plan,
        accounts: accounts.c.id == account_id,
        account_usage: account_usage.c.account_id == account_id,
        resumes: whole(resumes.c.id),
        documents: whole(documents.c.id),
        imported_files: imported_files.c.account_id == account_id,
        imported_items: imported_items.c.account_id == account_id,
        imported_digests: whole(imported_digests.c.resume_id),
        replaced_resumes: replaced_resumes.c.account_id == account_id,
    }
    if with_keys:
        conditions[api_keys] = select(key_directory.c.key_id).where(is_key).exists()
        conditions[key_directory] = select(api_keys.c.id).where(is_key).exists()
    count = select(func.count()).select_from(resumes).where(conditions[resumes]).scalar_subquery()
    columns = {account_usage.c.resume_count: count.label("resume_count")}
    return {
        table: select(*(columns.get(column, column) for column in table.columns)).where(
            conditions.get(table, false())
        )
        for table in TABLES
    }


def contents_of(digests: Sequence[TableDigest]) -> str:
    """Return the SHA-256 of all tables, which reveals whether the file was changed."""
    lines = (f"{table.name} {table.rows} {table.sha256}\n" for table in digests)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
