"""An account on its way in, from the lines of a file (resumes.store.account_file).

The file is read whole and checked, line by line, before anything is stored. Then its rows go, slice
by slice, into an account that is closed and has a name that nobody can choose; the last transaction
opens it under its own. So it is there whole or not at all, also where a row turns out to contradict
another, and whoever was cut off begins anew.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from sqlalchemy import Connection, insert, select, update

from resumes.clock import timestamp
from resumes.errors import (
    Conflict,
    InvalidJson,
    NotFound,
    OutcomeUnknown,
    ResumesError,
    StoreUnavailable,
)
from resumes.store import identifiers
from resumes.store.account_file import Header, Kind, Row
from resumes.store.account_file_reader import Reader
from resumes.store.account_room import check_room
from resumes.store.account_rows import (
    SLICE_ROWS,
    add_rows,
    iter_slices,
    lock_arriving,
    refuse_known_keys,
)
from resumes.store.accounts import (
    ARRIVING,
    AccountInfo,
    check_name,
    delete_account,
    delete_by_id,
    find_account,
    get_account,
)
from resumes.store.engine import Store, each
from resumes.store.schema import account_usage, accounts, plans

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
