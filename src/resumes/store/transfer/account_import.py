"""Importing an account from its file.

The file is untrusted, so an import makes a private copy and checks it completely before anything is
stored. The rows are then stored in slices, in a closed account whose name users cannot choose.
After they have been read again and compared, the last transaction gives the account its name and
opens it. If an import is interrupted, the next import removes its account.
"""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, NoReturn
from zlib import crc32

from sqlalchemy import Connection, Table, func, literal, select
from sqlmodel import Session

from resumes.analyzer import check_stored
from resumes.analyzer.person import person_of
from resumes.clock import timestamp
from resumes.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    ResumesError,
    StoreIncompatible,
    StoreUnavailable,
)
from resumes.store import identifiers, integrity, open_store
from resumes.store.accounts import (
    ARRIVING,
    AccountInfo,
    add_account,
    check_name,
    check_plan,
    delete_account,
    find_account,
    get_account,
    take_name,
)
from resumes.store.forgotten import is_forgotten
from resumes.store.row_bounds import YEAR_US
from resumes.store.schema import (
    Account,
    AccountBase,
    account_usage,
    accounts,
    api_keys,
    documents,
    imported_digests,
    imported_files,
    imported_items,
    key_directory,
    metadata,
    plans,
    replaced_resumes,
    resumes,
    store_facts,
)
from resumes.store.sqlite.files import check_room, examine, scratch_in
from resumes.store.sqlite.place import APPLICATION_ID
from resumes.store.sqlite.store import describe, sqlite_engine
from resumes.store.sqlite.writer import DRIVER_ERRORS
from resumes.store.statements import insert_into
from resumes.store.store import Row, Store, change_count, read_fact, session_on
from resumes.store.transfer.account_files import check_account_file, contents_of, mark
from resumes.store.transfer.backups import copy_privately
from resumes.store.transfer.copies import (
    TABLES,
    OnProgress,
    Selection,
    Stage,
    TableDigest,
    count_progress,
    count_rows,
    digest_tables,
    ignore,
    iter_rows,
)
from resumes.store.versions import OnNewer

TOGETHER: Final = (
    (api_keys,),
    (key_directory,),
    # A resume must never be without its document, even in an account that is still closed.
    (resumes, documents),
    (imported_files,),
    (imported_items,),
    (imported_digests,),
    (replaced_resumes,),
)
"""The tables whose rows are imported, in this order. Rows of one group are stored together."""

MOVED: Final = tuple(table for table in TABLES if table in chain(*TOGETHER))
FILLED: Final = (plans, accounts, account_usage, store_facts, *MOVED)
"""The tables that may have rows in an account file."""

MAX_VALUE_BYTES: Final = 64 * 1024 * 1024
"""The maximum size of a value, which is far above the size of any document."""

MAX_LOG_BYTES: Final = 64 * 1024 * 1024
"""The maximum size of a store's log during many writes."""

SLICE_ROWS: Final = 500
"""How many rows one transaction inserts, so that other writers do not wait long."""

SLICE_BYTES: Final = 4 * 1024 * 1024
"""The size at which a slice ends even if it has fewer rows."""


def import_account(
    store: Store,
    file: Path,
    *,
    name: str | None = None,
    plan: str | None = None,
    on_progress: OnProgress = ignore,
    slice_rows: int = SLICE_ROWS,
) -> tuple[AccountInfo, dict[str, int]]:
    """Import the account in the file, with its IDs and times, under its name or `name`.

    Return the account, and the number of imported rows by table. Each transaction stores
    `slice_rows` rows. All resumes are imported even if the plan allows fewer. Raises
    InvalidArgument if the file cannot be read, StoreIncompatible if it is damaged or cannot have
    been written by this service, Conflict if a name or a key is taken, NotFound if the plan does
    not exist, and the same errors as `Store.write`. After an error, the next call
    removes the rows that are left; after OutcomeUnknown, the account may have been imported.
    """
    check_account_file(file)
    size_bytes = file.stat().st_size
    parent = Path(tempfile.gettempdir()) if store.path is None else store.path.parent
    if store.path is not None:
        check_room(parent, 2 * size_bytes + min(size_bytes, MAX_LOG_BYTES))
    with scratch_in(parent) as folder:
        copy = copy_privately(file, folder)
        source, digests = _judge(copy, file, store.clock(), on_progress)
        with _reading(copy, file) as connection:
            _check_forgotten(store, connection, file)
        chosen = check_name(source.name if name is None else name)
        # The account until it is opened; `closed_at` identifies this import.
        new = AccountBase(
            id=identifiers.account_id(),
            name=chosen + ARRIVING,
            plan=plan or source.plan,
            created_at=source.created_at,
            on_newer=source.on_newer,
            first_month=source.first_month,
            closed_at=timestamp(store.clock()),
        )
        if find_account(store, new.name, include_closed=True) is not None:
            delete_account(store, new.name, with_resumes=True)
        store.write(partial(_begin, new, source.last_id_us))
        try:
            with _reading(copy, file) as connection:
                _fill(store, new, source.id, connection, slice_rows, digests, on_progress)
                _check_forgotten(store, connection, file)  # again: `forget` may have run meanwhile
            store.write(partial(_open, new), account_id=new.id)
        except OutcomeUnknown:
            raise  # the account may have been opened
        except Exception as error:
            _remove(store, new.name, new.id, error)
            raise
    return get_account(store, chosen), {table.name: table.rows for table in digests}


# Checking the file


def _refuse(file: Path, why: str) -> NoReturn:
    raise StoreIncompatible(
        f"{file} is not a complete account export: {why}. Nothing was stored. Export the account "
        "again with `resumes accounts export`"
    )


@contextlib.contextmanager
def _reading(copy: Path, file: Path) -> Iterator[Connection]:
    """Yield a connection for reading the copy. Raises StoreIncompatible if the file is damaged."""
    try:
        with sqlite_engine(copy, transactions=False, query_only=True).connect() as connection:
            yield connection
    except DRIVER_ERRORS as error:
        _refuse(file, f"it is damaged ({describe(error)})")


def _judge(
    copy: Path, file: Path, now_us: int, on_progress: OnProgress
) -> tuple[Any, list[TableDigest]]:
    """Return the account in the file with its last ID, and the digests of the tables to import.

    Raises StoreIncompatible if the file is damaged, or this service cannot have written it.
    """
    model = copy.with_name("model.db")
    open_store(f"sqlite:///{model}").close()
    mark(copy, APPLICATION_ID)
    # Check this first: reading a foreign table or index would run the expressions in it.
    with _reading(model, model) as ours, _reading(copy, file) as connection:
        if _list_schema(ours) != _list_schema(connection):
            _refuse(file, "its tables are not those of this version")
    examine(copy, file)
    with _reading(copy, file) as connection:
        _check_sizes(connection, file)
        total = sum(count_rows(connection, table) for table in TABLES)
        on_rows = count_progress(on_progress, Stage.CHECKING, total)
        digests = digest_tables(connection, on_rows, foreign=str(file))
        if read_fact(session_on(connection), "contents") != contents_of(digests):
            _refuse(file, "its contents have changed since it was written")
        account = _check_account(connection, file, now_us)
        _check_documents(connection, file)
    with open_store(f"sqlite:///{copy}") as opened:
        for flaw in integrity.iter_damage(opened):
            _refuse(file, f"{flaw.what[0].lower()}{flaw.what[1:]}")
    return account, [one for one in digests if metadata.tables[one.name] in MOVED]


def _list_schema(connection: Connection) -> Sequence[Any]:
    return connection.exec_driver_sql(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name, sql"
    ).all()


def _check_sizes(connection: Connection, file: Path) -> None:
    """Reject values that do not fit into memory, and rows in tables that must be empty."""
    for table in metadata.sorted_tables:
        sizes = select(*(func.max(func.octet_length(column)) for column in table.columns))
        for size, column in zip(connection.execute(sizes).one(), table.columns, strict=True):
            if size is not None and table not in FILLED:
                _refuse(file, f"it has rows in {table.name}")
            if size is not None and size > MAX_VALUE_BYTES:
                value = f'"{column.name}" in {table.name}'
                _refuse(file, f"{value} has {size:,} bytes; the maximum is {MAX_VALUE_BYTES:,}")


def _check_account(connection: Connection, file: Path, now_us: int) -> Any:
    """Return the account's row with its last ID. Reject content that no account file may have."""
    statement = select(*accounts.columns, account_usage.c.last_id_us).outerjoin(account_usage)
    found = connection.execute(statement.limit(2)).all()
    if len(found) != 1:
        _refuse(file, f"it contains {'several accounts' if found else 'no account'}")
    (account,) = found
    if account.closed_at is not None or account.last_id_us is None:
        _refuse(file, "its account is closed, or has no counter")
    if account.last_id_us > now_us + YEAR_US:
        why = "more than a year after this machine's clock (check the clock)"
        _refuse(file, f'"last_id_us" is {account.last_id_us:,}, {why}')
    last = identifiers.resume_id(account.last_id_us, "f" * 8)
    key_id = key_directory.c.key_id
    found_too = {
        f"a resume later than the last ID in {ids.table.name}": select(ids).where(ids > last)
        for ids in (
            imported_files.c.resume_id,
            imported_items.c.resume_id,
            replaced_resumes.c.resume_id,
        )
    }
    found_too |= {
        "a revoked key": select(api_keys.c.id).where(api_keys.c.revoked_at.is_not(None)),
        "a resume that no newer version would replace": select(resumes.c.id).where(
            resumes.c.is_person_indexed.is_(None), literal(account.on_newer == OnNewer.REPLACE)
        ),
        "several hashes of a key": select(key_id).group_by(key_id).having(func.count() > 1),
    }
    for what, statement in found_too.items():
        if (value := connection.scalar(statement.limit(1))) is not None:
            _refuse(file, f"it has {what}, {value}")
    return account


def _check_documents(connection: Connection, file: Path) -> None:
    """Reject documents that this service cannot have stored, or that contradict their rows."""
    is_same = (documents.c.account_id == resumes.c.account_id) & (documents.c.id == resumes.c.id)
    columns = *resumes.c["id", "title", "name", "person"], *documents.c["crc32", "document"]
    for row in connection.execute(select(*columns).join(documents, is_same)):
        content = row.document.encode()
        try:
            known = check_stored(content)
        except InvalidInput as error:
            _refuse(file, f"the document of the resume {row.id} cannot be stored: {error}")
        if (row.title, row.name, row.crc32) != (known.title, known.name, crc32(content)):
            _refuse(
                file,
                f"the document of the resume {row.id} does not match its title, name or CRC-32",
            )
        if row.person not in (None, person_of(known.email, known.name)):
            _refuse(file, f"the document of the resume {row.id} is of another person")


def _check_forgotten(store: Store, connection: Connection, file: Path) -> None:
    """Raise Conflict if a resume belongs to a person who was erased from the entire store."""
    is_same = (documents.c.account_id == resumes.c.account_id) & (documents.c.id == resumes.c.id)
    rows = select(*resumes.c["id", "name"], documents.c.document).join(documents, is_same)
    with store.read() as target:
        for row in connection.execute(rows):
            if is_forgotten(target, "", row.document, row.name):
                raise Conflict(
                    f"{file} has the resume {row.id} of a person who was erased from this store. Nothing was "
                    "stored. Erase the person where the file is from, and export the account again"
                )


# Filling the new account


def _check_name(session: Session, name: str) -> None:
    try:
        take_name(session, name)
    except Conflict as error:
        what = error.message.partition(". ")[0]
        raise Conflict(f"{what}: choose another name with --name") from None


def _begin(new: AccountBase, last_id_us: int, session: Session) -> None:
    check_plan(session, new.plan, hint="Choose one with --plan")
    name = new.name.removesuffix(ARRIVING)
    _check_name(session, name)
    if session.scalar(select(accounts.c.id).where(accounts.c.name == new.name)) is not None:
        raise Conflict(f'Another process is already importing the account "{name}"')
    add_account(session, Account.model_validate(new), last_id_us=last_id_us)


def _fill(
    store: Store,
    new: AccountBase,
    source_id: str,
    source: Connection,
    slice_rows: int,
    digests: Sequence[TableDigest],
    on_progress: OnProgress,
) -> None:
    """Store the rows of the file, then read them again, and raise Conflict if they differ."""
    on_rows = count_progress(on_progress, Stage.COPYING, sum(table.rows for table in digests))
    for tables, rows in _iter_slices(source, _renamed(source_id, new.id), slice_rows):
        by_table = dict(zip(tables, zip(*rows, strict=True), strict=True))
        store.write(partial(_add, new, by_table), account_id=new.id)
        on_rows(tables[0].name, len(rows) * len(tables))
    with store.read() as connection:
        stored = digest_tables(connection, selection=_renamed(new.id, source_id))
    if stored != digests:
        raise Conflict("The account was changed during the import. Import it again")


def _renamed(account_id: str, other_id: str) -> Selection:
    """Return queries for the account's rows, in which `other_id` replaces the account's ID."""
    other = literal(other_id).label("account_id")
    return {
        table: select(
            *(other if column is table.c.account_id else column for column in table.columns)
        ).where(table.c.account_id == account_id)
        for table in MOVED
    }


def _iter_slices(
    source: Connection, selection: Selection, slice_rows: int
) -> Iterator[tuple[Sequence[Table], list[Sequence[Row]]]]:
    """Yield groups of tables, each with the rows that one transaction adds to them."""
    for tables in TOGETHER:
        some: list[Sequence[Row]] = []
        size_bytes = 0
        for rows in zip(*(iter_rows(source, table, selection) for table in tables), strict=True):
            some.append(rows)
            size_bytes += sum(len(part) for part in chain(*rows) if isinstance(part, str | bytes))
            if len(some) * len(tables) >= slice_rows or size_bytes >= SLICE_BYTES:
                yield tables, some
                some, size_bytes = [], 0
        if some:
            yield tables, some


def _add(new: AccountBase, by_table: Mapping[Table, Sequence[Row]], session: Session) -> None:
    _check_arriving(session, new)
    if keys := by_table.get(key_directory):
        _refuse_known_keys(session, keys)
    connection = session.connection()
    for table, rows in by_table.items():
        insert_into(table).run_rows(connection, rows)
    change_count(session, new.id, len(by_table.get(resumes, ())))


def _refuse_known_keys(session: Session, keys: Sequence[Row]) -> None:
    """Raise Conflict if a key is already valid in this store, or another key here has its ID."""
    hashes, _, ids = zip(*keys, strict=True)
    # A command to revoke a key specifies its ID, so IDs must be unique in the store.
    known = key_directory.c.key_id.in_(ids) | key_directory.c.key_hash.in_(hashes)
    owner = accounts.c.id == key_directory.c.account_id
    found = select(key_directory.c.key_id, accounts.c.name).outerjoin(accounts, owner).where(known)
    for key_id, name in session.connection().execute(found):
        if name is not None and name.endswith(ARRIVING):
            raise Conflict(
                f"The key {key_id} is already in use by an account that is being imported. If that was "
                f"interrupted, delete it: `resumes accounts delete {name} --with-resumes --yes`"
            )
        raise Conflict(
            f"The key {key_id} is already in use in this store. Revoke it here, or export the account "
            "without --with-keys"
        )


def _check_arriving(session: Session, new: AccountBase) -> Account:
    """Return the account, whose row `Store.write` has locked for this transaction.

    Raises Conflict if the account is being deleted or was deleted: another import that removes it
    closes it again first, and no rows may be added after that.
    """
    account = session.get(Account, new.id)
    if account is None or account.closed_at != new.closed_at:
        raise Conflict("The account was deleted during the import, or its import was restarted")
    return account


def _open(new: AccountBase, session: Session) -> None:
    account = _check_arriving(session, new)
    name = new.name.removesuffix(ARRIVING)
    _check_name(session, name)
    account.name, account.closed_at = name, None


def _remove(store: Store, arriving: str, account_id: str, why: Exception) -> None:
    """Delete the account's rows. Raises StoreUnavailable if some rows remain."""
    try:
        delete_account(store, arriving, account_id=account_id, with_resumes=True)
    except NotFound:
        pass  # another process has deleted it, and may be importing it again
    except ResumesError as error:
        raise StoreUnavailable(
            f"{str(why).rstrip('.')}. Part of the account remains in the store, but is not visible. Once "
            "the cause is fixed, import the account again, or delete that part with "
            f"`resumes accounts delete {arriving} --with-resumes --yes`"
        ) from error
