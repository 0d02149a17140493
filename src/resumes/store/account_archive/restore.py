"""An account on its way in, from the lines of a file (resumes.store.account_archive.file_format).

The file is read whole and checked, line by line, before anything is stored. Then its rows go, slice
by slice, into an account that is closed and has a name that nobody can choose; the last transaction
opens it under its own. So it is there whole or not at all, also where a row turns out to contradict
another, and whoever was cut off begins anew.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, BinaryIO, Final, NoReturn

import orjson
from sqlalchemy import Connection, bindparam, insert, select, update

from resumes.analyzer import check_stored
from resumes.clock import timestamp
from resumes.errors import (
    Conflict,
    InvalidInput,
    InvalidJson,
    NotFound,
    OutcomeUnknown,
    ResumesError,
    StoreUnavailable,
)
from resumes.filesystems import free_bytes
from resumes.store import identifiers
from resumes.store.account_archive import file_format
from resumes.store.account_archive.file_format import (
    COLUMNS,
    DOCUMENT,
    FORMAT,
    KEYS,
    VERSION,
    Column,
    Header,
    Kind,
    Row,
    Rule,
    json_name,
)
from resumes.store.accounts import (
    ARRIVING,
    AccountInfo,
    check_name,
    delete_account,
    delete_by_id,
    find_account,
    get_account,
    lock_account,
)
from resumes.store.creation import ADD_DOCUMENT
from resumes.store.identifiers import POSITION_DIGITS
from resumes.store.schema import (
    account_usage,
    accounts,
    api_keys,
    imported_digests,
    imported_files,
    imported_items,
    key_directory,
    plans,
    resumes,
)
from resumes.store.statements import Prepared, blob
from resumes.store.store import Store, each

LOG_BYTES: Final = 64 * 1024 * 1024
"""What the log beside a store may come to while much is written,"""

LEAST_BYTES: Final = 256 * 1024
"""and what a store needs for its tables and indexes, however little comes in."""

SLICE_TIMES: Final = 3
"""A slice is written to the log and copied into the store; and what it takes to let go of it."""


def check_room(store: Store, size_bytes: int) -> None:
    """There is room for an account whose file has so many bytes. Raises StoreUnavailable.

    Of a server's disk nothing is known.
    """
    _check_room_for(store, size_bytes + min(size_bytes, LOG_BYTES))


def check_room_for_slice(store: Store, size_bytes: int) -> None:
    """There is room for rows of so many bytes, and to delete them again. Raises StoreUnavailable."""
    _check_room_for(store, SLICE_TIMES * size_bytes)


def _check_room_for(store: Store, needed_bytes: int) -> None:
    if store.path is None:
        return
    needed_bytes += LEAST_BYTES
    free = free_bytes(store.path.parent)
    if free < needed_bytes:
        raise StoreUnavailable(
            f"{store.path.parent} has {free / 1e6:,.1f} MB of free space, and about "
            f"{needed_bytes / 1e6:,.1f} MB are needed. Make room, then import the file again"
        )


SLICE_ROWS: Final = 500
"""Rows that go in one transaction, so that others get their turn,"""

SLICE_BYTES: Final = 4 * 1024 * 1024
"""unless so many bytes are reached first."""

DELETED: Final = "The account was deleted while it was imported, or its import begun anew"

ADD: Final = {
    Kind.RESUME: Prepared(insert(resumes)),
    Kind.FILE: Prepared(insert(imported_files)),
    Kind.ITEM: Prepared(insert(imported_items)),
    Kind.DIGEST: Prepared(insert(imported_digests)),
    Kind.KEY: Prepared(insert(api_keys)),
}
ADD_TO_DIRECTORY: Final = Prepared(insert(key_directory))
OWNER: Final = Prepared(
    select(key_directory.c.key_id).where(key_directory.c.key_hash == bindparam("key_hash"))
)


def add_rows(
    store: Store,
    account_id: str,
    since: str,
    rows: Iterable[Row],
    told: Callable[[int], None],
    *,
    slice_rows: int = SLICE_ROWS,
) -> None:
    """Add the rows to the account, which is arriving since then.

    `told` is called with their number so far. Raises Conflict if somebody has begun to delete the
    account or a key counts already, InvalidJson for a digest without its resume, and what
    `Store.write` raises; some of the rows are there then.
    """
    added = 0
    for some in iter_slices(rows, slice_rows):
        check_room_for_slice(store, sum(row.size_bytes for row in some))
        store.write(_add, _Slice(account_id, since, some))
        added += len(some)
        told(added)


def iter_slices(rows: Iterable[Row], slice_rows: int = SLICE_ROWS) -> Iterator[list[Row]]:
    """The rows, some at a time, each time of one kind."""
    some: list[Row] = []
    size_bytes = 0
    for row in rows:
        is_full = len(some) >= slice_rows or size_bytes >= SLICE_BYTES
        if some and (is_full or row.kind is not some[0].kind):
            yield some
            some, size_bytes = [], 0
        some.append(row)
        size_bytes += row.size_bytes
    if some:
        yield some


@dataclass(frozen=True, slots=True)
class _Slice:
    account_id: str
    since: str
    rows: Sequence[Row]


@each
def _add(connection: Connection, some: _Slice) -> None:
    lock_arriving(connection, some.account_id, some.since)
    kind = some.rows[0].kind
    if kind is Kind.DIGEST:
        _refuse_strays(connection, some)
    ADD[kind].run_many(
        connection, [row.values | {"account_id": some.account_id} for row in some.rows]
    )
    if kind is Kind.RESUME:
        _add_documents(connection, some)
    elif kind is Kind.KEY:
        _add_to_directory(connection, some)


def _add_documents(connection: Connection, some: _Slice) -> None:
    ADD_DOCUMENT.run_many(
        connection,
        (
            {
                "account_id": some.account_id,
                "id": row.values["id"],
                "document": blob(row.document),
            }
            for row in some.rows
        ),
    )
    connection.execute(
        update(account_usage)
        .where(account_usage.c.account_id == some.account_id)
        .values(resume_count=account_usage.c.resume_count + len(some.rows))
    )


def _refuse_strays(connection: Connection, digests: _Slice) -> None:
    """Each content that counts as stored is: otherwise its files would be put aside as duplicates."""
    ids = {row.values["resume_id"] for row in digests.rows}
    mine = select(resumes.c.id).where(
        resumes.c.account_id == digests.account_id, resumes.c.id.in_(ids)
    )
    for stray in sorted(ids - set(connection.execute(mine).scalars())):
        raise InvalidJson(
            f"This is no whole export of an account: it has the digest of the resume {stray}, and "
            "not the resume"
        )


def _add_to_directory(connection: Connection, some: _Slice) -> None:
    refuse_known_keys(connection, some.rows)
    ADD_TO_DIRECTORY.run_many(
        connection,
        (
            row.values | {"account_id": some.account_id, "key_id": row.values["id"]}
            for row in some.rows
        ),
    )


def refuse_known_keys(connection: Connection, rows: Sequence[Row]) -> None:
    """None of the keys counts in this store, nor another one under the id of one of them.

    Raises Conflict.
    """
    for row in rows:
        if OWNER.run(connection, key_hash=row.values["key_hash"]).fetchone() is not None:
            raise _known(row.values["id"])
    # By its id a key is revoked, whoever's it is.
    ids = [row.values["id"] for row in rows]
    taken = select(key_directory.c.key_id).where(key_directory.c.key_id.in_(ids))
    for key_id in connection.execute(taken.limit(1)).scalars():
        raise _known(key_id)


def _known(key_id: str) -> Conflict:
    return Conflict(
        f"The key {key_id} counts in this store already. Revoke it here, or export the account "
        "without --with-keys"
    )


def lock_arriving(connection: Connection, account_id: str, since: str) -> None:
    """Lock the row of the account, which is arriving since then, for this transaction.

    Raises Conflict for one that is being deleted, or is gone: whoever deletes it, to begin anew, has
    closed it once more, and nothing may come in behind what they have removed.
    """
    lock_account(connection, account_id)
    is_arriving = (accounts.c.id == account_id, accounts.c.closed_at == since)
    if connection.execute(select(accounts.c.id).where(*is_arriving)).first() is None:
        raise Conflict(DELETED)


LONGEST_LINE: Final = 64 * 1024 * 1024
"""Bytes. A resume is a small part of it."""

SHOWN_CHARS: Final = 60
"""Of a value that is wrong."""


class Reader:
    """An export that is read once, from its first byte. Iterating gives its rows.

    Each field of a row is one that a store may have written, and so is its document, unless these
    are known from an earlier reading. Raises InvalidJson for what is no export, of a newer version,
    cut off or changed; the last two only when the last row was given.
    """

    def __init__(self, file: BinaryIO, *, are_documents_known: bool = False) -> None:
        self._file = file
        self._are_documents_known = are_documents_known
        self._sha256 = hashlib.sha256()
        self._line = 0
        self._offset = self._next_offset = 0
        self._last: tuple[int, tuple[Any, ...]] = (0, ())
        self.counts = dict.fromkeys(Kind, 0)
        self.header = self._read_header()

    def __iter__(self) -> Iterator[Row]:
        while True:
            before = self._sha256.hexdigest()
            content, document = self._read()
            if content.get("kind") == "end":
                self._check_end(content, before)
                return
            row = self._row(content, document)
            self._check_order(row)
            self.counts[row.kind] += 1
            yield row

    @property
    def sha256(self) -> str:
        """The digest of all that was read."""
        return self._sha256.hexdigest()

    def _read(self) -> tuple[dict[str, Any], bytes]:
        """The next line: what it says, and the document at its end, if there is one."""
        line = self._file.readline(LONGEST_LINE)
        self._line += 1
        self._offset = self._next_offset
        self._next_offset += len(line)
        if not line.endswith(b"\n"):
            self._refuse("it ends before its last line")
        self._sha256.update(line)
        head, found, rest = line.rstrip(b"\n").partition(DOCUMENT)
        try:
            content = orjson.loads(head + b"}" if found else head)
        except ValueError:
            content = None
        if type(content) is not dict or (found and not rest.endswith(b"}")):
            self._refuse("a line is no JSON object")
        return content, rest[:-1]

    def _read_header(self) -> Header:
        content, _ = self._read()
        if content.get("format") != FORMAT:
            self._refuse(f'its first line does not say "format":"{FORMAT}"')
        if content.get("version") != VERSION:
            version = _shown(content.get("version"))
            self._refuse(f"it is of version {version}, this program reads {VERSION}")
        values = {
            field.name: self._value(
                content,
                Column(field.name, json_name(field.name), field.type, is_nullable=False),  # type: ignore[arg-type]  # a dataclass says its types as it was told them
                file_format.HEADER[field.name],
            )
            for field in fields(Header)
        }
        return Header(**values)

    def _row(self, content: dict[str, Any], document: bytes) -> Row:
        name = content.get("kind")
        if type(name) is not str or name not in set(Kind):
            self._refuse(f"there are no rows of the kind {_shown(name)}")
        kind = Kind(name)
        rules = file_format.ROWS[kind]
        values = {one.column: self._value(content, one, rules[one.column]) for one in COLUMNS[kind]}
        row = Row(kind, values, document)
        if bool(document) is not (kind is Kind.RESUME):
            self._refuse("a document stands at the end of each resume's line, and of no other")
        if kind is Kind.RESUME:
            self._check_resume(row)
        return row

    def _value(self, content: Mapping[str, Any], column: Column, rule: Rule) -> Any:
        said = value = content.get(column.name)
        if value is None:
            if not column.is_nullable:
                self._refuse(f'"{column.name}" is missing, which is {rule.words}')
            return None
        if column.type is bytes and type(value) is str:
            try:
                value = bytes.fromhex(value)
            except ValueError:
                self._refuse(f'"{column.name}" is {_shown(said)}, which is not hexadecimal')
        if type(value) is not column.type or not rule.allows(value):
            self._refuse(f'"{column.name}" is {_shown(said)}, and has to be {rule.words}')
        return value

    def _check_resume(self, row: Row) -> None:
        values = row.values
        if int(values["id"][:POSITION_DIGITS], 16) > self.header.last_id_us:
            self._refuse(f'the resume {values["id"]} is newer than "lastIdUs" of the first line')
        try:
            if self._are_documents_known:
                row.document.decode()
                return
            known = check_stored(row.document)
        except (InvalidInput, UnicodeDecodeError) as error:
            self._refuse(f'"document" is none that a store has: {error}')
        for column, said in (("title", known.title), ("name", known.name)):
            if values[column] != said:
                self._refuse(f'"{column}" is {_shown(values[column])}, its document says otherwise')

    def _check_order(self, row: Row) -> None:
        # Which also says that no row comes twice.
        place = (list(Kind).index(row.kind), tuple(row.values[key] for key in KEYS[row.kind]))
        if place <= self._last:
            self._refuse(f"its {row.kind} rows are not in order, or one comes twice")
        self._last = place

    def _check_end(self, content: Mapping[str, Any], sha256: str) -> None:
        counts = {kind.value: count for kind, count in self.counts.items()}
        if content.get("sha256") != sha256 or content.get("counts") != counts:
            self._refuse("it is not what was written: its SHA-256 or its counts differ")
        if self._file.read(1):
            self._refuse("something follows its last line")

    def _refuse(self, why: str) -> NoReturn:
        raise InvalidJson(
            f"This is no whole export of an account: {why} (line {self._line:,}, at byte "
            f"{self._offset:,}). `resumes accounts export` writes one",
            offset=self._offset,
        )


def _shown(value: Any) -> str:
    """A value of a line, as people are told of it."""
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    said = repr(value)
    return said if len(said) <= SHOWN_CHARS else f"{said[:SHOWN_CHARS]}…"


TellStep = Callable[[str, int], None]
"""Is told "checked" or "stored", and the rows so far."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """What has come in, by kind of row."""

    account: AccountInfo
    counts: dict[Kind, int]

    @property
    def keys(self) -> int:
        """How many keys count here from now on."""
        return self.counts[Kind.KEY]


def import_account(
    store: Store,
    file: BinaryIO,
    *,
    name: str | None = None,
    plan: str | None = None,
    told: TellStep = lambda step, rows: None,
    slice_rows: int = SLICE_ROWS,
) -> Arrived:
    """The account of the export is in the store, with its ids and times, under its name or `name`.

    `file` is read twice, from where it stands; `slice_rows` go in one transaction. What it holds
    is kept even where its plan allows less. Raises InvalidJson for a file that is not whole,
    Conflict for a name or a key that is taken, NotFound for a plan that is not there, and what
    `Store.write` raises; nothing is there then but what the next call removes, or after
    OutcomeUnknown perhaps the account.
    """
    began = file.tell()
    reader = Reader(file)
    header = reader.header
    chosen = check_name(header.account if name is None else name)
    if find_account(store, chosen, closed_too=True) is not None:
        raise _taken(chosen)
    if find_account(store, chosen + ARRIVING, closed_too=True) is not None:
        delete_account(store, chosen + ARRIVING, with_resumes=True)
    sha256 = _check(store, reader, told, slice_rows)
    check_room(store, _size_bytes(file, began))
    new = _NewAccount(
        identifiers.account_id(), chosen, plan or header.plan, header, timestamp(store.clock())
    )
    file.seek(began)
    store.write(_begin, new)
    counts = _fill(store, new, file, sha256, told, slice_rows)
    return Arrived(get_account(store, chosen), counts)


def _check(store: Store, reader: Reader, told: TellStep, slice_rows: int) -> str:
    """The digest of a file that can be imported as a whole."""
    hashes: set[bytes] = set()
    checked = 0
    for some in iter_slices(reader, slice_rows):
        if some[0].kind is Kind.KEY:
            with store.read() as connection:
                refuse_known_keys(connection, some)
            _refuse_repeated(some, hashes)
        checked += len(some)
        told("checked", checked)
    return reader.sha256


def _refuse_repeated(keys: Sequence[Row], hashes: set[bytes]) -> None:
    """The keys differ from each other and from those of the hashes, which are theirs as well then."""
    for row in keys:
        if row.values["key_hash"] in hashes:
            raise InvalidJson(f"The file has the key {row.values['id']} under another id as well")
        hashes.add(row.values["key_hash"])


def _size_bytes(file: BinaryIO, began: int) -> int:
    """How much of the file there is after its beginning."""
    return file.seek(0, os.SEEK_END) - began


def _taken(name: str) -> Conflict:
    return Conflict(f'Account "{name}" exists already: choose another name with --name')


@dataclass(frozen=True, slots=True)
class _NewAccount:
    account_id: str
    name: str
    plan: str
    header: Header
    now: str


@each
def _begin(connection: Connection, new: _NewAccount) -> None:
    known = connection.execute(select(plans.c.name).order_by(plans.c.name)).scalars().all()
    if new.plan not in known:
        raise NotFound(
            f'Plan not found: "{new.plan[:80]}". Choose one with --plan: {", ".join(known)}'
        )
    taken = select(accounts.c.id).where(accounts.c.name == new.name + ARRIVING)
    if connection.execute(taken).first() is not None:
        raise Conflict(f'Somebody else imports the account "{new.name}" at this moment')
    connection.execute(
        insert(accounts).values(
            id=new.account_id,
            name=new.name + ARRIVING,
            plan=new.plan,
            created_at=new.header.created_at,
            closed_at=new.now,
        )
    )
    connection.execute(
        insert(account_usage).values(
            account_id=new.account_id, resume_count=0, last_id_us=new.header.last_id_us
        )
    )


def _fill(
    store: Store,
    new: _NewAccount,
    file: BinaryIO,
    sha256: str,
    told: TellStep,
    slice_rows: int,
) -> dict[Kind, int]:
    """How many rows of each kind the account has, which is open; on an error it is gone."""
    try:
        reader = Reader(file, are_documents_known=True)
        add_rows(
            store,
            new.account_id,
            new.now,
            reader,
            lambda stored: told("stored", stored),
            slice_rows=slice_rows,
        )
        if reader.sha256 != sha256:
            raise InvalidJson("The file was changed while it was imported; import it again")
        store.write(_open, new)
    except OutcomeUnknown:
        raise  # it may have arrived
    except (ResumesError, OSError) as error:
        _remove(store, new, error)
        raise
    return reader.counts


def _remove(store: Store, new: _NewAccount, why: ResumesError | OSError) -> None:
    """Nothing of the account is there. Raises StoreUnavailable where something stays."""
    arriving = new.name + ARRIVING
    try:
        delete_by_id(store, new.account_id, arriving, with_resumes=True)
    except NotFound:
        pass  # somebody else did, and may have begun to import it anew
    except ResumesError as error:
        raise StoreUnavailable(
            f"{str(why).rstrip('.')}. A part of the account is in the store, where nobody sees it: "
            f"when that is put right, import it again, or let go of that part by `resumes accounts "
            f"delete {arriving} --with-resumes --yes`"
        ) from error


@each
def _open(connection: Connection, new: _NewAccount) -> None:
    lock_arriving(connection, new.account_id, new.now)
    taken = connection.execute(select(accounts.c.id).where(accounts.c.name == new.name)).first()
    if taken is not None:
        raise _taken(new.name)
    connection.execute(
        update(accounts)
        .where(accounts.c.id == new.account_id)
        .values(name=new.name, closed_at=None)
    )
