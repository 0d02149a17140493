"""psycopg's connections with a timeout on every call, and the classes of their errors.

A call fails immediately when the server is gone. It never ends when the server is frozen, whose kernel
still answers keepalives, or behind a network that drops packets (pitfalls S17). So each wait for the
socket checks the clock, and closes the connection after the timeout.
"""

import contextlib
import fcntl
import random
import select
import sys
import termios
import time
from collections.abc import Sequence
from enum import Enum, auto
from functools import partial
from typing import Any, Final, TypeVar

import psycopg
import sqlalchemy
from psycopg.abc import RV, PQGen
from sqlalchemy import Engine, NullPool
from sqlalchemy.exc import DBAPIError

from resumes.errors import ResumesError, StatementRefused, StoreUnavailable
from resumes.store.addresses import PostgresAddress
from resumes.store.statements import MESSAGE_BYTES, driver
from resumes.store.write_queue import LostRace

DRIVER_ERRORS: Final = (DBAPIError, psycopg.Error)
"""A driver's error, as SQLAlchemy wraps it and as statements that bypass SQLAlchemy raise it."""

CONNECT_TIMEOUT_S: Final = 3
"""How long connecting to one server may take, before the next one of the address is tried."""

INTERVAL_S: Final = 0.1
"""How often a wait is interrupted, for Ctrl-C."""


class ServerTimeout(psycopg.OperationalError):
    """The server did not answer in time; the connection is closed."""


_timed_out_s: dict[str, float] = {}
"""When each server last timed out, on the monotonic clock, so that the process's other connections to it
need not wait as well."""


LARGE_BYTES: Final = 64 * 1024
SLOWEST_BYTES_S: Final = 4 * 1024
"""The slowest rate at which a message above LARGE_BYTES may arrive."""

# The server's timeout begins when it has parsed the statement, while its values still arrive.
MORE_TIME: Final = (
    "SELECT set_config('statement_timeout', %s, true)"
    " WHERE current_setting('statement_timeout') != '0'"
)


class TimeoutConnection(psycopg.Connection[Any]):
    """A connection that waits for each answer, at most `timeout_s` seconds without any progress.

    Messages cost more than statements. So BEGIN is sent with the first statement of a transaction, and
    changes whose result is not needed yet are sent with the next one.
    """

    timeout_s: float = 30.0
    server: str = ""
    opened_s: float = 0.0

    def __init__(self, pgconn: Any, *arguments: Any, **named: Any) -> None:
        super().__init__(pgconn, *arguments, **named)
        self._begin = ""
        self._later: list[tuple[str, Sequence[Any], int]] = []
        self._later_bytes = 0

    def begin(self, statements: str) -> None:
        """Begin a transaction with these statements, which have no values."""
        self._begin = statements

    def run(self, sql: str, values: Sequence[Any] = ()) -> "psycopg.Cursor[Any]":
        """Run a statement, and return the cursor to fetch its rows from.

        If it is the first one of its transaction, its values are a part of its text, which the server logs
        if it fails: they must not be personal data.
        """
        if self._later or not self._begin:
            return self.execute(sql, values)
        cursor = psycopg.ClientCursor(self)
        begin, self._begin = self._begin, ""
        cursor.execute(f"{begin};{sql}", values)
        while cursor.nextset():
            pass
        return cursor

    def run_later(
        self, sql: str, values: Sequence[Any], *, size_bytes: int = 0, expected: int = -1
    ) -> None:
        """Run a change before the next statement.

        That raises the change's error, or LostRace unless it changes the expected number of rows.
        """
        if self._later_bytes + size_bytes > MESSAGE_BYTES:
            self._send()
        self._later.append((sql, values, expected))
        self._later_bytes += size_bytes

    def run_with_later(self, query: str) -> tuple[Any, ...]:
        """Return the first row of a query that is sent with the changes of `run_later` as one statement. It
        does not see them."""
        if self._begin:
            begin, self._begin = self._begin, ""
            super().cursor().execute(begin)
        later, self._later = self._later, []
        size_bytes, self._later_bytes = self._later_bytes, 0
        if size_bytes > LARGE_BYTES:
            super().cursor().execute(MORE_TIME, [f"{size_bytes // SLOWEST_BYTES_S}s"])
        changes: list[str] = []
        missing = ["0"]
        values: list[Any] = []
        for number, (sql, some, expected) in enumerate(later):
            if expected >= 0:
                sql += " RETURNING 1"
                missing.append(f"({expected} - (SELECT count(*) FROM c{number}))")
            changes.append(f"c{number} AS ({sql})")
            values += some
        together = f"WITH {', '.join(changes)} " if changes else ""
        together += f"SELECT {' + '.join(missing)}, q.* FROM ({query}) AS q"
        is_less, *row = super().cursor().execute(together, values).fetchone() or (0,)
        if is_less:
            raise LostRace
        return tuple(row)

    def _send(self) -> None:
        """Send what waits for the next statement."""
        if self._begin or self._later:
            self.run_with_later("SELECT")

    def cursor(self, *arguments: Any, **named: Any) -> Any:
        """Return a cursor, as psycopg does, after sending what waits. All of psycopg's statements pass
        through here."""
        self._send()
        return super().cursor(*arguments, **named)

    def commit(self) -> None:
        """Commit the transaction."""
        self._send()
        super().commit()

    def rollback(self) -> None:
        """Roll the transaction back."""
        self._begin = ""
        self._later.clear()
        self._later_bytes = 0
        super().rollback()

    def wait(
        self, gen: PQGen[RV], interval: float = INTERVAL_S, timeout: float | None = None
    ) -> RV:
        """Return the result of a call. Raises ServerTimeout, and what psycopg raises.

        All of psycopg's communication with the server passes through here.
        """
        return super().wait(_bounded(self, gen, timeout or self.timeout_s), interval)


class AsyncTimeoutConnection(psycopg.AsyncConnection[Any]):
    """The same for the reads of an event loop. A read that is cancelled closes it."""

    timeout_s: float = 30.0
    server: str = ""
    opened_s: float = 0.0

    async def wait(
        self, gen: PQGen[RV], interval: float = INTERVAL_S, timeout: float | None = None
    ) -> RV:
        """Return the result of a call, as TimeoutConnection does."""
        return await super().wait(_bounded(self, gen, timeout or self.timeout_s), interval)

    async def cancel_safe(self, *, timeout: float = 0.0) -> None:
        """Close the connection, where psycopg waits for a server that may be frozen."""
        self.pgconn.finish()


AnyConnection = TimeoutConnection | AsyncTimeoutConnection


def _bounded(connection: AnyConnection, gen: PQGen[RV], timeout_s: float) -> PQGen[RV]:
    """Wait as the generator does, unless there is no progress for `timeout_s` seconds.

    A large message may take long on a slow network although the server is not frozen.
    """
    unsent_bytes = 0
    ends_at = time.monotonic() + timeout_s
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if ready or unsent_bytes != (unsent_bytes := _count_unsent(connection.pgconn.socket)):
                ends_at = time.monotonic() + timeout_s
            elif time.monotonic() >= ends_at:
                # In the middle of an answer it is unusable.
                connection.pgconn.finish()
                _timed_out_s[connection.server] = time.monotonic()
                raise ServerTimeout(f"the server did not respond within {timeout_s:g} seconds")
            wanted = gen.send(ready)
    except StopIteration as end:
        result: RV = end.value
        return result


def _count_unsent(descriptor: int) -> int:
    """Return how many bytes that were written to the socket are not acknowledged yet."""
    try:
        unsent = fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0" * 4)
    except OSError:
        return 0  # a system that does not say
    return int.from_bytes(unsent, sys.byteorder)


def is_usable(connection: AnyConnection) -> bool:
    """Return False if the connection is known to have ended: an idle connection has no input.

    Also return False if its server did not answer another connection since this one was opened.
    """
    if connection.closed or connection.opened_s < _timed_out_s.get(connection.server, 0.0):
        return False
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return not poll.poll(0)


OPTIONS: Final[dict[str, Any]] = {
    # No session state: a pooler between us may give each transaction another server connection, which
    # knows neither settings nor prepared statements (pitfalls S18).
    "autocommit": True,
    "prepare_threshold": None,
    "connect_timeout": CONNECT_TIMEOUT_S,
    "client_encoding": "UTF8",
    "application_name": "resumes",
}


def connect(address: PostgresAddress, *, timeout_s: float) -> TimeoutConnection:
    """Return a connection that commits each statement separately. Raises what psycopg raises."""
    return _opened(TimeoutConnection.connect(address.url, **OPTIONS), timeout_s)


async def connect_async(address: PostgresAddress, *, timeout_s: float) -> AsyncTimeoutConnection:
    """Return such a connection for the running event loop. Raises what psycopg raises."""
    return _opened(await AsyncTimeoutConnection.connect(address.url, **OPTIONS), timeout_s)


Opened = TypeVar("Opened", TimeoutConnection, AsyncTimeoutConnection)


def _opened(connection: Opened, timeout_s: float) -> Opened:
    connection.timeout_s = timeout_s
    connection.server = f"{connection.info.host}:{connection.info.port}"
    connection.opened_s = time.monotonic()
    return connection


def postgres_engine(
    address: PostgresAddress, *, timeout_s: float, begin: str | None = None
) -> Engine:
    """Return an engine without a pool. `begin` has the statements that begin a transaction, with ";"
    between them; None: each statement is committed separately, as readers need it."""
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=partial(connect, address, timeout_s=timeout_s),
        paramstyle="format",
        poolclass=NullPool,
        # The text of an error may be logged, and the parameters are personal data.
        hide_parameters=True,
    )
    if begin is None:
        return engine.execution_options(isolation_level="AUTOCOMMIT")

    @sqlalchemy.event.listens_for(engine, "begin")
    def begin_transaction(connection: sqlalchemy.Connection) -> None:
        driver(connection).begin(begin)

    return engine


class ThreadConnection:
    """A thread's connection: opened on first use, and again after it has ended."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.connection: sqlalchemy.Connection | None = None

    def get(self) -> sqlalchemy.Connection:
        """Return the connection. Raises what opening one raises."""
        # Another thread may discard it when the store is closed.
        found = self.connection
        if found is not None and (found.invalidated or not is_usable(driver(found))):
            self.discard()
            found = None
        if found is None:
            found = self.connection = self._engine.connect()
        return found

    def discard(self) -> None:
        """Close the connection, if there is one, with its open transaction."""
        connection, self.connection = self.connection, None
        if connection is not None:
            with contextlib.suppress(*DRIVER_ERRORS):
                connection.invalidate()
                connection.close()


class ErrorClass(Enum):
    """The classes of errors, by how to react to them."""

    UNAVAILABLE = auto()
    """The server is gone or read-only: retry with another connection, perhaps to another server."""

    RACE = auto()
    """Another transaction was first: this one was rolled back, and should be retried."""

    BUSY = auto()
    """Another transaction holds the row for too long: nothing was done."""

    DISK_FULL = auto()
    """The server has no space: nothing was done."""

    REFUSED = auto()
    """The values are at fault: they are refused each time, but other values are not."""

    OTHER = auto()
    """The statement is at fault, or a right or a table that it needs is missing."""


_BY_STATE: Final = {
    # A primary that has been demoted, seen through a pooler that keeps our connection: a write
    # can neither begin nor end there.
    "0A000": ErrorClass.UNAVAILABLE,
    "25006": ErrorClass.UNAVAILABLE,
    "25P03": ErrorClass.UNAVAILABLE,  # idle in a transaction for too long
    "40001": ErrorClass.RACE,
    "40P01": ErrorClass.RACE,  # deadlock
    "23505": ErrorClass.RACE,  # another transaction took a unique name or number
    "53100": ErrorClass.DISK_FULL,
    "55P03": ErrorClass.BUSY,  # lock_timeout
    "57014": ErrorClass.BUSY,  # statement_timeout
}
_BY_CLASS: Final = {
    # Failed connections, a server that stops or starts, and one that has no resources left.
    **dict.fromkeys(("08", "57", "53"), ErrorClass.UNAVAILABLE),
    # Values, constraints, limits such as that of an index, and triggers.
    **dict.fromkeys(("21", "22", "23", "44", "54", "P0"), ErrorClass.REFUSED),
}

LOST: Final = (psycopg.OperationalError, psycopg.InterfaceError)
"""The errors of a lost connection, or of no answer in time, if the server sent no error code."""


def classify_error(error: BaseException) -> ErrorClass:
    """Return the class of a driver's error or a LostRace."""
    if isinstance(error, LostRace):
        return ErrorClass.RACE
    cause = getattr(error, "orig", error)
    state = getattr(cause, "sqlstate", None)
    if state is None:
        if isinstance(cause, psycopg.DataError):
            return ErrorClass.REFUSED
        return ErrorClass.UNAVAILABLE if isinstance(cause, LOST) else ErrorClass.OTHER
    return _BY_STATE.get(state) or _BY_CLASS.get(state[:2], ErrorClass.OTHER)


def jittered(delays_s: Sequence[float], tries: int) -> float:
    """Return the delay before the next try: 0.5 to 1.5 times the next of the delays; the last one
    repeats."""
    return delays_s[min(tries, len(delays_s) - 1)] * random.uniform(0.5, 1.5)


def _locate(error: Any) -> str:
    """Return the kind and place of a refusal; its message may contain values."""
    kind = type(error).__name__
    if error.sqlstate is None:  # refused by the driver
        return kind
    places = {
        name: getattr(error.diag, f"{name}_name") for name in ("table", "column", "constraint")
    }
    named = [f'{name} "{place}"' for name, place in places.items() if place]
    return ", ".join([f"{kind} ({error.sqlstate})", *named])


def explain(error: BaseException, label: str) -> ResumesError:
    """Return the store's error for an error of the driver."""
    cause = getattr(error, "orig", error)
    state = getattr(cause, "sqlstate", None)
    # Only the first line: others may contain the values.
    text = str(cause).strip().partition("\n")[0] + (f" ({state})" if state else "")
    match classify_error(error):
        case ErrorClass.REFUSED:
            return StatementRefused(f"The database {label} refused the values: {_locate(cause)}")
        case ErrorClass.RACE:
            return StoreUnavailable(f"The database {label} is busy: {text}; try again")
        case ErrorClass.OTHER:
            return StoreUnavailable(f"The database {label} cannot be used: {text}")
    return StoreUnavailable(f"The database {label} is unavailable: {text}")
