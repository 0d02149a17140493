"""psycopg connections with a timeout for every call, and the classification of their errors.

A call fails immediately if the server has stopped. Without a timeout, a call would never end if the
server is frozen, because its kernel still answers keepalives, or if the network drops packets
(pitfalls S17). Therefore each wait checks the clock and closes the connection after the timeout.
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
from typing import Any, ClassVar, Final

import psycopg
import sqlalchemy
from psycopg.abc import RV, PQGen
from psycopg.pq import TransactionStatus
from sqlalchemy import Engine, NullPool
from sqlalchemy.exc import DBAPIError, DisconnectionError

from resumes.errors import ResumesError, StatementRefused, StoreUnavailable
from resumes.store.addresses import PostgresAddress
from resumes.store.statements import MESSAGE_BYTES, driver
from resumes.store.write_queue import LostRace

DRIVER_ERRORS: Final = (DBAPIError, psycopg.Error, LostRace)
"""The driver's errors, wrapped by SQLAlchemy or raised by statements that bypass it, and lost races."""

CONNECT_TIMEOUT_S: Final = 3
"""How long connecting to a server may take before the next server of the address is tried."""

RETRY_DELAYS_S: Final = (0.02, 0.05, 0.1, 0.2)
"""The delays before each retry of a read or a write; the last delay repeats."""


class ServerTimeout(psycopg.OperationalError):
    """The server did not answer in time; the connection is closed."""


LARGE_BYTES: Final = 256 * 1024
"""The size above which a message has more time to arrive than the usual timeout of the server."""
SLOWEST_BYTES_S: Final = 4 * 1024
"""The slowest rate at which a message above LARGE_BYTES may arrive."""

# The server's timeout begins after it has parsed the statement, while values are still arriving.
MORE_TIME: Final = (
    "SELECT set_config('statement_timeout', %s, true)"
    " WHERE current_setting('statement_timeout') != '0'"
)


class _Bounded(psycopg.BaseConnection[Any]):
    """A connection that waits for an answer for at most `timeout_s` seconds without progress."""

    timeout_s: float = 30.0

    silent_since_s: ClassVar[float] = 0.0
    """The start of this process's last call that timed out, on the monotonic clock: connections that
    have had no answer since then need not wait for the server as well."""

    _answered_s: float | None = None

    @property
    def is_usable(self) -> bool:
        """False if the connection has ended, or if its last transaction has not ended.

        Also False if a call on another connection timed out, and this connection has had no answer
        since that call began. A new connection is usable until its first statement fails.
        """
        if self._answered_s is None:
            return not self.closed
        is_idle = self.pgconn.transaction_status == TransactionStatus.IDLE  # and not closed
        if not is_idle or self._answered_s < _Bounded.silent_since_s:
            return False
        poll = select.poll()
        poll.register(self.pgconn.socket, select.POLLIN)
        return not poll.poll(0)

    def _bound(self, gen: PQGen[RV]) -> PQGen[RV]:
        """Wait like the generator, but fail after `timeout_s` seconds without progress.

        A large message may take long on a slow network although the server is not frozen.
        """
        unsent_bytes, timeout_s = 0, self.timeout_s
        ends_at = time.monotonic() + timeout_s
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready or unsent_bytes != (unsent_bytes := _count_unsent(self.pgconn.socket)):
                    ends_at = time.monotonic() + timeout_s
                elif time.monotonic() >= ends_at:
                    # A connection in the middle of an answer cannot be used again.
                    self.pgconn.finish()
                    _Bounded.silent_since_s = ends_at - timeout_s
                    raise ServerTimeout(f"the server did not respond within {timeout_s:g} seconds")
                wanted = gen.send(ready)
        except StopIteration as end:
            self._answered_s = time.monotonic()
            result: RV = end.value
            return result


class TimeoutConnection(_Bounded, psycopg.Connection[Any]):
    """The connection of a thread.

    Messages cost more than statements. Therefore BEGIN is sent with the first statement of a
    transaction, and changes whose result is not needed yet are sent with the next statement.
    """

    first_timeout_s: float | None = None
    """The timeout of a transaction's first message, if it differs from that of the other messages.
    Before the first message, nothing is locked, so another connection can be used instead."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._begin = ""
        self._later: list[tuple[str, Sequence[Any], int, int]] = []

    def begin(self, statements: str) -> None:
        """Begin a transaction with these statements. If they are empty, do not begin one."""
        self._begin = statements

    def execute(self, query: Any, params: Any = None, **options: Any) -> psycopg.Cursor[Any]:
        """Run a statement, and return the cursor to fetch its rows from.

        The values of a transaction's first statement become part of its text, which the server logs
        if the statement fails. Such values must not be personal data.
        """
        if self._later or not self._begin:
            return super().execute(query, params, **options)
        cursor = psycopg.ClientCursor(self)
        begin, self._begin = self._begin, ""
        timeout_s, self.timeout_s = self.timeout_s, self.first_timeout_s or self.timeout_s
        try:
            cursor.execute(f"{begin};{query}", params)
        finally:
            self.timeout_s = timeout_s
        cursor.set_result(-1)
        return cursor

    def run_later(
        self, sql: str, values: Sequence[Any], *, size_bytes: int = 0, expected: int = -1
    ) -> None:
        """Run a change together with the next statement.

        That statement raises the change's error, or LostRace if the change does not affect the
        expected number of rows.
        """
        if sum(change[-1] for change in self._later) + size_bytes > MESSAGE_BYTES:
            self._send()
        self._later.append((sql, values, expected, size_bytes))

    def run_with_later(self, query: str) -> tuple[Any, ...]:
        """Send the changes of `run_later` and a query as one statement, and return the query's first
        row. The query does not see the changes."""
        later, self._later = self._later, []
        if (size_bytes := sum(change[-1] for change in later)) > LARGE_BYTES:
            self.execute(MORE_TIME, [f"{size_bytes // SLOWEST_BYTES_S}s"])
        self._send()
        changes: list[str] = []
        missing = ["0"]
        values: list[Any] = []
        for number, (sql, some, expected, _) in enumerate(later):
            if expected >= 0:
                sql += " RETURNING 1"
                missing.append(f"({expected} - (SELECT count(*) FROM c{number}))")
            changes.append(f"c{number} AS ({sql})")
            values += some
        together = f"WITH {', '.join(changes)} " if changes else ""
        together += f"SELECT {' + '.join(missing)}, q.* FROM ({query}) AS q"
        is_less, *row = self.execute(together, values).fetchone() or (0,)
        if is_less:
            raise LostRace("the data has changed")
        return tuple(row)

    def _send(self) -> None:
        """Send BEGIN and the changes that are waiting for the next statement."""
        if self._later:
            self.run_with_later("SELECT")
        elif self._begin:
            self.execute("")

    def cursor(self, *arguments: Any, **named: Any) -> Any:
        """Send BEGIN and the waiting changes, then return psycopg's cursor. All of psycopg's
        statements call this method."""
        self._send()
        return super().cursor(*arguments, **named)

    def commit(self) -> None:
        """Commit the transaction."""
        self._send()
        super().commit()

    def rollback(self) -> None:
        """Roll the transaction back, or close the connection so that the server does so."""
        self._begin = ""
        self._later.clear()
        self._answered_s = self._answered_s or 0.0  # it is no longer new
        status = self.pgconn.transaction_status
        if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            with contextlib.suppress(psycopg.Error):
                super().rollback()
        elif status != TransactionStatus.IDLE:
            self.close()  # it is locked by an unfinished stream of rows

    def wait(self, gen: PQGen[RV], *arguments: Any, **options: Any) -> RV:
        """Return the result of a call. Raises ServerTimeout, and what psycopg raises.

        All of psycopg's communication with the server passes through this method.
        """
        try:
            return super().wait(self._bound(gen), *arguments, **options)
        except (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.FeatureNotSupported) as error:
            if classify_error(error) is ErrorClass.UNAVAILABLE:
                self.close()  # it may lead to a standby, and a new one to the primary
            raise


class AsyncTimeoutConnection(_Bounded, psycopg.AsyncConnection[Any]):
    """The connection of an event loop, for reads. Canceling a read closes the connection."""

    async def wait(self, gen: PQGen[RV], *arguments: Any, **options: Any) -> RV:
        """Return the result of a call, like `TimeoutConnection.wait`."""
        return await super().wait(self._bound(gen), *arguments, **options)

    async def cancel_safe(self, *, timeout: float = 0.0) -> None:
        """Close the connection; psycopg would wait for the server, which may be frozen."""
        self.pgconn.finish()


def _count_unsent(descriptor: int) -> int:
    """Return how many bytes written to the socket have not been acknowledged yet."""
    try:
        unsent = fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0" * 4)
    except OSError:
        return 0  # the system cannot report it
    return int.from_bytes(unsent, sys.byteorder)


OPTIONS: Final[dict[str, Any]] = {
    # Use no session state: a pooler may run each transaction on a different server connection,
    # which has neither our settings nor our prepared statements (pitfalls S18).
    "autocommit": True,
    "prepare_threshold": None,
    "connect_timeout": CONNECT_TIMEOUT_S,
    "client_encoding": "UTF8",
    "application_name": "resumes",
}


def connect(address: PostgresAddress, *, timeout_s: float) -> TimeoutConnection:
    """Return a connection that commits each statement separately. Raises psycopg's errors."""
    connection = TimeoutConnection.connect(address.url, **OPTIONS)
    connection.timeout_s = timeout_s
    return connection


def postgres_engine(
    address: PostgresAddress,
    *,
    timeout_s: float,
    begin: str = "",
    is_sharded: bool = False,
    **pool: Any,
) -> Engine:
    """Return an engine whose transactions begin with these statements, separated by ";". If there are
    none, each statement is committed separately, as reads need. `pool` contains the options of
    SQLAlchemy's pool; without options there is no pool."""
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=partial(connect, address, timeout_s=timeout_s),
        paramstyle="format",
        # The text of an error may be logged, and the parameters are personal data.
        hide_parameters=True,
        execution_options={"is_sharded": is_sharded},
        **(pool or {"poolclass": NullPool}),
    )

    @sqlalchemy.event.listens_for(engine, "begin")
    def begin_transaction(connection: sqlalchemy.Connection) -> None:
        driver(connection).begin(begin)

    @sqlalchemy.event.listens_for(engine, "checkout")
    def replace_ended(connection: TimeoutConnection, *_: object) -> None:
        if not connection.is_usable:
            raise DisconnectionError
        connection.timeout_s = timeout_s  # snapshots change it

    return engine


class ErrorClass(Enum):
    """The classes of errors, by how to react to them."""

    UNAVAILABLE = auto()
    """The server is gone or read-only: retry with another connection, perhaps to another server."""

    RACE = auto()
    """Another transaction was faster: this transaction was rolled back and should be retried."""

    BUSY = auto()
    """Another transaction held the row for too long: nothing was done."""

    DISK_FULL = auto()
    """The server has no space: nothing was done."""

    REFUSED = auto()
    """The values are at fault: they are always rejected, but other values are not."""

    OTHER = auto()
    """The statement is at fault, or a permission or a table that it needs is missing."""


_BY_STATE: Final = {
    # The primary was demoted, but a pooler keeps our connection to it: a write can neither begin
    # nor end there.
    "25006": ErrorClass.UNAVAILABLE,
    "25P03": ErrorClass.UNAVAILABLE,  # idle in a transaction for too long
    "40001": ErrorClass.RACE,
    "40P01": ErrorClass.RACE,  # deadlock
    "23505": ErrorClass.RACE,  # another transaction took a unique name or number
    "53100": ErrorClass.DISK_FULL,
    "55P03": ErrorClass.BUSY,  # lock_timeout
    "57014": ErrorClass.BUSY,  # statement_timeout
    "XX000": ErrorClass.UNAVAILABLE,  # an internal error, such as that Citus has lost a worker
}
_BY_CLASS: Final = {
    # Failed connections, and servers that are stopping, starting or out of resources.
    **dict.fromkeys(("08", "57", "53"), ErrorClass.UNAVAILABLE),
    # Values, constraints, limits such as the size of an index entry, and triggers.
    **dict.fromkeys(("21", "22", "23", "44", "54", "P0"), ErrorClass.REFUSED),
}


def classify_error(error: BaseException) -> ErrorClass:
    """Return the class of a driver's error or of a LostRace."""
    cause: Any = getattr(error, "orig", error)
    state = getattr(cause, "sqlstate", None)
    if state is None:  # the server did not send the error
        if isinstance(cause, psycopg.DataError):
            return ErrorClass.REFUSED
        is_lost = isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError)
        return ErrorClass.UNAVAILABLE if is_lost else ErrorClass.OTHER
    # A standby rejects the setting READ WRITE with the code of unsupported statements.
    if state == "0A000" and cause.diag.source_function == "call_bool_check_hook":
        return ErrorClass.UNAVAILABLE
    return _BY_STATE.get(state) or _BY_CLASS.get(state[:2], ErrorClass.OTHER)


def retry_delay_s(tries: int) -> float:
    """Return the delay before the next try, with jitter to avoid repeated races."""
    return RETRY_DELAYS_S[min(tries, len(RETRY_DELAYS_S) - 1)] * random.uniform(0.5, 1.5)


def _locate(error: Any) -> str:
    """Return the kind and location of an error, but not its message, which may contain values."""
    kind = type(error).__name__ + (f" ({error.sqlstate})" if error.sqlstate else "")
    named = {key: getattr(error.diag, f"{key}_name") for key in ("table", "column", "constraint")}
    return ", ".join([kind, *(f'{key} "{name}"' for key, name in named.items() if name)])


def explain(error: BaseException, label: str) -> ResumesError:
    """Convert an error of the driver to an error of the store."""
    cause = getattr(error, "orig", error)
    state = getattr(cause, "sqlstate", None)
    # Use only the first line: other lines may contain the values.
    text = str(cause).strip().partition("\n")[0] + (f" ({state})" if state else "")
    match classify_error(error):
        case ErrorClass.REFUSED:
            return StatementRefused(f"The database {label} refused the values: {_locate(cause)}")
        case ErrorClass.RACE:
            return StoreUnavailable(f"The database {label} is busy: {text}; try again")
        case ErrorClass.OTHER:
            return StoreUnavailable(f"The database {label} cannot be used: {text}")
    return StoreUnavailable(f"The database {label} is unavailable: {text}")
