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
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from functools import cache, partial
from typing import Any, Final, NamedTuple

import psycopg
import sqlalchemy
from psycopg import generators
from psycopg.abc import RV, PQGen
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGresult
from sqlalchemy import Engine, NullPool
from sqlalchemy.exc import DBAPIError

from resumes.errors import ResumesError, StatementRefused, StoreUnavailable
from resumes.store.addresses import PostgresAddress
from resumes.store.statements import driver
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


Value = str | int | bytes | bytearray | None
Sent = tuple[Sequence[Any], Sequence[bool]]
"""Values, and whether each is binary. Their types follow from the statement."""


class Rows(NamedTuple):
    """The result of a statement: its rows, or the number of rows that it changed."""

    rows: list[tuple[Any, ...]]
    rowcount: int

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows."""
        return self.rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the first row; None if there is none."""
        return self.rows[0] if self.rows else None


class _Statement(NamedTuple):
    sql: bytes
    rows: Sequence[Sent]
    check: Callable[[int], None] | None = None


LARGE_BYTES: Final = 64 * 1024
SLOWEST_BYTES_S: Final = 4 * 1024
"""The slowest rate at which a row with a value above LARGE_BYTES may arrive."""

# The server's timeout begins when it has parsed the statement, while the first row still arrives.
MORE_TIME: Final = (
    b"SELECT set_config('statement_timeout', $1, true)"
    b" WHERE current_setting('statement_timeout') != '0'"
)


class TimeoutConnection(psycopg.Connection[Any]):
    """A connection that waits for each answer, at most `timeout_s` seconds without any progress.

    Statements of `run` and `run_later` share messages (libpq's pipeline mode), so that a transaction costs
    few round trips. They are unnamed, so they do not outlive a message.
    """

    timeout_s: float = 30.0
    server: str = ""
    opened_s: float = 0.0

    def __init__(self, pgconn: Any, *arguments: Any, **named: Any) -> None:
        super().__init__(pgconn, *arguments, **named)
        self._later: list[_Statement] = []
        self._transformer = Transformer(self)

    def run_later(
        self,
        sql: str,
        rows: Iterable[Sequence[Value]],
        check: Callable[[int], None] | None = None,
    ) -> None:
        """Run the statement for each of the rows, before the next call that needs a result.

        Its errors are raised by that call, as are those of `check`, which is called with the number of
        rows that each run changed.
        """
        if sent := [as_sent(row) for row in rows]:
            values, are_binary = sent[0]
            if True in are_binary:
                size_bytes = max(map(len, filter(None, values)))
                if size_bytes > LARGE_BYTES:
                    allowed = b"%ds" % (size_bytes // SLOWEST_BYTES_S)
                    self._later.append(_Statement(MORE_TIME, [([allowed], [False])]))
            self._later.append(_Statement(numbered(sql), sent, check))

    def forget(self) -> None:
        """Discard the statements of `run_later`."""
        self._later.clear()

    def run(self, sql: str, values: Sequence[Value]) -> Rows:
        """Return the result of the statement, after running those of `run_later`."""
        return self.run_each(sql, [values])[0]

    def run_each(self, sql: str, rows: Iterable[Sequence[Value]]) -> list[Rows]:
        """Return the results of the statement for each of the rows, which are sent in one message."""
        self.run_later(sql, rows)
        return self._run_together()

    def load_rows(self, result: PGresult) -> list[tuple[Any, ...]]:
        """Return the rows of a result as Python values."""
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)

    def _run_together(self) -> list[Rows]:
        """Return the results of the last statement. Raises what psycopg and the checks raise."""
        statements, self._later = self._later, []
        try:
            results = self._wait(_converse(self.pgconn, statements), self.timeout_s)
        except BaseException:
            self.pgconn.finish()  # in the middle of an answer it is unusable
            raise
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise error_from_result(result)
        answers = iter(results)
        for statement in statements:
            mine = [next(answers) for _ in statement.rows]
            if statement.check is not None:
                for result in mine:
                    statement.check(result.command_tuples or 0)
        return [Rows(self.load_rows(result), result.command_tuples or 0) for result in mine]

    def wait(
        self, gen: PQGen[RV], interval: float = INTERVAL_S, timeout: float | None = None
    ) -> RV:
        """Return the result of a call. Raises ServerTimeout, and what psycopg raises.

        All of psycopg's communication with the server passes through here.
        """
        if self._later:
            self._run_together()
        return self._wait(gen, self.timeout_s if timeout is None else timeout, interval)

    def _wait(self, gen: PQGen[RV], timeout_s: float, interval: float = INTERVAL_S) -> RV:
        return super().wait(self._bounded(gen, timeout_s), interval)

    def _bounded(self, gen: PQGen[RV], timeout_s: float) -> PQGen[RV]:
        """Wait as the generator does, unless there is no progress for `timeout_s` seconds.

        A large message may take long on a slow network although the server is not frozen.
        """
        unsent_bytes = 0
        ends_at = time.monotonic() + timeout_s
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready or unsent_bytes != (unsent_bytes := _count_unsent(self.pgconn.socket)):
                    ends_at = time.monotonic() + timeout_s
                elif time.monotonic() >= ends_at:
                    raise self.abandon(timeout_s)
                wanted = gen.send(ready)
        except StopIteration as end:
            result: RV = end.value
            return result

    def abandon(self, timeout_s: float) -> ServerTimeout:
        """Close the connection to a server that does not answer, and return the error to raise."""
        # In the middle of an answer it is unusable.
        self.pgconn.finish()
        _timed_out_s[self.server] = time.monotonic()
        return ServerTimeout(f"the server did not respond within {timeout_s:g} seconds")


def _count_unsent(descriptor: int) -> int:
    """Return how many bytes that were written to the socket are not acknowledged yet."""
    try:
        unsent = fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0" * 4)
    except OSError:
        return 0  # a system that does not say
    return int.from_bytes(unsent, sys.byteorder)


def _converse(pgconn: Any, statements: Iterable[_Statement]) -> PQGen[list[PGresult]]:
    pgconn.enter_pipeline_mode()
    for statement in statements:
        if len(statement.rows) > 1:
            # Unnamed; it is parsed once, not with each row.
            pgconn.send_prepare(b"", statement.sql)
        for values, formats in statement.rows:
            if len(statement.rows) > 1:
                pgconn.send_query_prepared(b"", values, formats)
            else:
                pgconn.send_query_params(statement.sql, values, None, formats)
    pgconn.pipeline_sync()
    yield from generators.send(pgconn)
    results: list[PGresult] = []
    while True:
        result = yield from generators.fetch(pgconn)
        if result is None:
            if pgconn.status != ConnStatus.OK:
                raise psycopg.OperationalError(pgconn.get_error_message())
        elif result.status == ExecStatus.PIPELINE_SYNC:
            pgconn.exit_pipeline_mode()
            return results
        elif result.status != ExecStatus.COMMAND_OK or result.command_status:
            results.append(result)


@cache
def numbered(sql: str) -> bytes:
    """Return a statement with $1, $2, … in place of its parameters %s."""
    first, *rest = sql.split("%s")
    return "".join([first, *(f"${n}{part}" for n, part in enumerate(rest, 1))]).encode()


def as_sent(values: Iterable[Value]) -> Sent:
    """Return the values in the protocol's form. Raises UnicodeEncodeError and psycopg.DataError."""
    sent: list[Any] = []
    formats = []
    for value in values:
        is_binary = isinstance(value, bytes | bytearray)
        if not is_binary and value is not None:
            value = str(value).encode()
            if b"\0" in value:  # where libpq would cut it off
                raise psycopg.DataError("PostgreSQL text cannot contain a NUL")
        sent.append(value)
        formats.append(is_binary)
    return sent, formats


def is_usable(connection: TimeoutConnection) -> bool:
    """Return False if the connection is known to have ended: an idle connection has no input.

    Also return False if its server did not answer another connection since this one was opened.
    """
    if connection.closed or connection.opened_s < _timed_out_s.get(connection.server, 0.0):
        return False
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return not poll.poll(0)


def connect(address: PostgresAddress, *, timeout_s: float) -> TimeoutConnection:
    """Return a connection that commits each statement separately. Raises what psycopg raises."""
    connection = TimeoutConnection.connect(
        address.url,
        # No session state: a pooler between us may give each transaction another server
        # connection, which knows neither settings nor prepared statements (pitfalls S18).
        autocommit=True,
        prepare_threshold=None,
        connect_timeout=CONNECT_TIMEOUT_S,
        client_encoding="UTF8",
        application_name="resumes",
    )
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
        for statement in begin.split(";"):
            driver(connection).run_later(statement, [()])

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
