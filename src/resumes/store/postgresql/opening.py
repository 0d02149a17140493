"""Opening a PostgreSQL store: made, or brought up to date, by one of those who want it."""

from typing import Final

from resumes.errors import StoreIncompatible
from resumes.store.addresses import PostgresAddress
from resumes.store.postgresql import upgrading
from resumes.store.postgresql.database import READ_PATIENCE_S, PostgresDatabase
from resumes.store.postgresql.driver import DRIVER_ERRORS, postgres_engine
from resumes.store.postgresql.troubles import explain

LOOK_PATIENCE_S: Final = 15.0
"""What is only looked at, or made in a moment, has its answer by then."""

UPGRADE_PATIENCE_S: Final = 3_600.0
"""A migration of a large store takes its time."""


def open_database(
    address: PostgresAddress, *, upgrade: bool, read_patience_s: float | None = None
) -> PostgresDatabase:
    """The store in a database, made or brought up to date first when `upgrade` allows.

    Raises StoreIncompatible and StoreUnavailable.
    """
    try:
        _prepare(address, upgrade=upgrade)
    except DRIVER_ERRORS as error:
        raise explain(error, address.label) from error
    return PostgresDatabase(address, read_patience_s=read_patience_s or READ_PATIENCE_S)


def _prepare(address: PostgresAddress, *, upgrade: bool) -> None:
    plain = postgres_engine(address, patience_s=LOOK_PATIENCE_S)
    with plain.connect() as connection:
        state = upgrading.find_state(connection, address.label)
    if state == "current":
        return
    if not upgrade:
        what = "empty" if state == "empty" else "older than this program"
        raise StoreIncompatible(f"The store {address.label} is {what}. Run `resumes db upgrade`")
    transactional = postgres_engine(address, patience_s=UPGRADE_PATIENCE_S, begin="BEGIN")
    upgrading.upgrade_database(plain, transactional, address.label)
