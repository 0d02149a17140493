"""An account on its way in, from the lines of a file (resumes.store.account_file).

The file is read whole and checked before anything is stored. Then its rows go, slice by slice, into
an account that is closed and has a name that nobody can choose; the last transaction opens it under
its own. So it is there whole or not at all, and whoever was cut off begins anew.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from sqlalchemy import Connection, insert, select, update

from resumes.clock import timestamp
from resumes.errors import Conflict, InvalidJson, NotFound, OutcomeUnknown, ResumesError
from resumes.store import identifiers
from resumes.store.account_file import Header, Kind, Row
from resumes.store.account_file_reader import Reader
from resumes.store.account_rows import DELETED, add_rows, lock_arriving, refuse_known_key
from resumes.store.accounts import (
    ARRIVING,
    AccountInfo,
    check_name,
    delete_account,
    find_account,
    get_account,
)
from resumes.store.engine import Store, each
from resumes.store.identifiers import POSITION_DIGITS, RESUME_ID
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
) -> Arrived:
    """The account of the export is in the store, with its ids and times, under its name or `name`.

    `file` is read twice, from where it stands. What it holds is kept even where its plan allows
    less. Raises InvalidJson for a file that is not whole, Conflict for a name or a key that is
    taken, NotFound for a plan that is not there, and what `Store.write` raises; nothing is there
    then but what the next call removes, or after OutcomeUnknown perhaps the account.
    """
    began = file.tell()
    reader = Reader(file)
    header = reader.header
    chosen = check_name(header.account if name is None else name)
    if find_account(store, chosen, closed_too=True) is not None:
        raise _taken(chosen)
    if find_account(store, chosen + ARRIVING, closed_too=True) is not None:
        delete_account(store, chosen + ARRIVING, with_resumes=True)
    sha256 = _check(store, reader, told)
    new = _NewAccount(
        identifiers.account_id(), chosen, plan or header.plan, header, timestamp(store.clock())
    )
    file.seek(began)
    store.write(_begin, new)
    counts = _fill(store, new, file, sha256, told)
    return Arrived(get_account(store, chosen), counts)


def _check(store: Store, reader: Reader, told: TellStep) -> str:
    """The digest of a file that can be imported as a whole."""
    for rows, row in enumerate(reader, 1):
        if row.kind is Kind.RESUME:
            _check_resume(row, reader.header)
        elif row.kind is Kind.KEY:
            with store.read() as connection:
                refuse_known_key(connection, row)
        told("checked", rows)
    return reader.sha256


def _check_resume(row: Row, header: Header) -> None:
    resume_id = row.values["id"]
    if not RESUME_ID.fullmatch(resume_id):
        raise InvalidJson(f'The file has a resume with the id "{resume_id[:80]}", which is none')
    if int(resume_id[:POSITION_DIGITS], 16) > header.last_id_us:
        raise InvalidJson(
            f'The file has the resume {resume_id}, which is newer than its "lastIdUs"'
        )


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
    store: Store, new: _NewAccount, file: BinaryIO, sha256: str, told: TellStep
) -> dict[Kind, int]:
    """How many rows of each kind the account has, which is open; on an error it is gone."""
    try:
        reader = Reader(file)
        add_rows(store, new.account_id, reader, lambda stored: told("stored", stored))
        if reader.sha256 != sha256:
            raise InvalidJson("The file was changed while it was imported; import it again")
        store.write(_open, new)
    except OutcomeUnknown:
        raise  # it may have arrived
    except (ResumesError, OSError):
        # The next call would; where the store is away, only that one can.
        with contextlib.suppress(ResumesError):
            delete_account(store, new.name + ARRIVING, with_resumes=True)
        raise
    return reader.counts


@each
def _open(connection: Connection, new: _NewAccount) -> None:
    lock_arriving(connection, new.account_id)
    taken = connection.execute(select(accounts.c.id).where(accounts.c.name == new.name)).first()
    if taken is not None:
        raise _taken(new.name)
    opened = connection.execute(
        update(accounts)
        .where(
            accounts.c.id == new.account_id,
            accounts.c.name == new.name + ARRIVING,
            # Who deletes it, to begin anew, has closed it once more.
            accounts.c.closed_at == new.now,
        )
        .values(name=new.name, closed_at=None)
    )
    if opened.rowcount == 0:
        raise Conflict(DELETED)
