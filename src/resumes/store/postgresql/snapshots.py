"""A PostgreSQL store as it was at one moment, whatever is written meanwhile."""

import contextlib
from collections.abc import Iterator
from typing import Final

from sqlalchemy import Connection

from resumes.store.addresses import PostgresAddress, parse_address
from resumes.store.postgresql.driver import DRIVER_ERRORS, postgres_engine
from resumes.store.postgresql.troubles import explain

PATIENCE_S: Final = 60.0

BEGIN_SNAPSHOT: Final = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
    # Between two statements the rows of the last one are being put away.
    "SET LOCAL idle_in_transaction_session_timeout = 0"
)


@contextlib.contextmanager
def snapshot_of(url: str) -> Iterator[Connection]:
    """A connection whose statements all see the same moment, and write nothing. Raises
    StoreUnavailable."""
    address = parse_address(url)
    assert isinstance(address, PostgresAddress)
    engine = postgres_engine(address, patience_s=PATIENCE_S, begin=BEGIN_SNAPSHOT)
    try:
        with engine.connect() as connection, connection.begin():
            yield connection
    except DRIVER_ERRORS as error:
        raise explain(error, address.label) from error
    finally:
        engine.dispose()
