"""Connections that give up: psycopg's, with a deadline on every call.

A server that is gone ends a call at once. One that is frozen, or behind a network that swallows
packets, ends none: its kernel goes on answering, keepalives too (pitfalls S17). So whoever waits
for the socket looks at the clock, and drops the connection when it has waited long enough.
"""

import select
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
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

from resumes.errors import ResumesError, StoreUnavailable
from resumes.store.addresses import PostgresAddress
from resumes.store.statements import driver
from resumes.store.write_queue import LostRace

DRIVER_ERRORS: Final = (DBAPIError, psycopg.Error)
"""A driver's error as SQLAlchemy passes it on, and as it comes from statements run beside it."""

CONNECT_S: Final = 3
"""How long one server is given to let us in; the next of the address is tried then."""


INTERVAL_S: Final = 0.1
"""How often who waits looks up, for Ctrl-C."""


class ServerSilent(psycopg.OperationalError):
    """The server did not answer in time; the connection is closed."""


_silences_s: dict[str, float] = {}
"""When each server was found silent last, on the monotonic clock. What one connection has waited
for in vain, the others of the process need not wait for."""


Value = str | int | bytes | bytearray | None
Sent = tuple[Sequence[Any], Sequence[bool]]
"""Values, and which of them are binary: the server knows their types by the statement."""


class Rows:
    """What a statement came to: its rows, or the number of those that it changed."""

    def __init__(self, rows: list[tuple[Any, ...]], rowcount: int) -> None:
        self._rows = rows
        self.rowcount = rowcount

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._rows)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows."""
        return self._rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row; None when there is none."""
        return self._rows[0] if self._rows else None


class _Statement(NamedTuple):
    sql: bytes
    rows: Sequence[Sent]
    check: Callable[[int], None] | None = None


class PatientConnection(psycopg.Connection[Any]):
    """A connection that waits at most `patience_s` seconds for each answer.

    Statements that go through `run` and `run_later` share messages (libpq's pipeline mode), so that a
    transaction costs few round trips. They have no names, and nothing of them outlives a message.
    """

    patience_s: float = 30.0
    server: str = ""
    opened_s: float = 0.0

    def __init__(self, pgconn: Any, *arguments: Any, **named: Any) -> None:
        super().__init__(pgconn, *arguments, **named)
        self._later: list[_Statement] = []
        self._load = Transformer(self)

    def run_later(
        self,
        sql: str,
        rows: Iterable[Sequence[Value]],
        check: Callable[[int], None] | None = None,
    ) -> None:
        """The statement is run for each of the rows, before whatever this connection is asked next.

        What is wrong with it is raised then, also by `check`, which is told how many rows each one
        changed.
        """
        if sent := [as_sent(row) for row in rows]:
            self._later.append(_Statement(numbered(sql), sent, check))

    def forget(self) -> None:
        """What was to be run later is not."""
        self._later.clear()

    def run(self, sql: str, values: Sequence[Value]) -> Rows:
        """What the statement comes to. What was to be run later is run before it."""
        return self.run_each(sql, [values])[0]

    def run_each(self, sql: str, rows: Iterable[Sequence[Value]]) -> list[Rows]:
        """What the statement comes to with each of the rows, which go in one message."""
        self.run_later(sql, rows)
        return self._run_together()

    def rows_of(self, result: PGresult) -> list[tuple[Any, ...]]:
        """The rows of a result, as Python has them."""
        self._load.set_pgresult(result)
        return self._load.load_rows(0, result.ntuples, tuple)

    def _run_together(self) -> list[Rows]:
        """What the last statement comes to. Raises what psycopg raises, and what the checks raise."""
        statements, self._later = self._later, []
        if not statements:
            return []
        try:
            results = self._wait(_converse(self.pgconn, statements), self.patience_s)
        except BaseException:
            self.pgconn.finish()  # in the middle of an answer, it is of no further use
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
        return [Rows(self.rows_of(result), result.command_tuples or 0) for result in mine]

    def wait(
        self, gen: PQGen[RV], interval: float = INTERVAL_S, timeout: float | None = None
    ) -> RV:
        """What the call comes to. Raises ServerSilent, and what psycopg raises.

        psycopg passes everything that it says to the server through here.
        """
        if self._later:
            self._run_together()
        return self._wait(gen, self.patience_s if timeout is None else timeout, interval)

    def _wait(self, gen: PQGen[RV], patience_s: float, interval: float = INTERVAL_S) -> RV:
        ends_at = time.monotonic() + patience_s
        try:
            return super().wait(gen, interval, timeout=patience_s)
        except psycopg.Error as error:
            if time.monotonic() < ends_at:
                raise
            raise self.give_up(patience_s) from error

    def give_up(self, patience_s: float) -> ServerSilent:
        """The server is taken for frozen. What to raise; the connection is closed."""
        # In the middle of an answer, it is of no further use.
        self.pgconn.finish()
        _silences_s[self.server] = time.monotonic()
        return ServerSilent(f"the server did not answer within {patience_s:g} seconds")


def _converse(pgconn: Any, statements: Iterable[_Statement]) -> PQGen[list[PGresult]]:
    """The statements are one message, and come to these results."""
    pgconn.enter_pipeline_mode()
    for statement in statements:
        if len(statement.rows) > 1:
            # Without a name; read once, not with each row.
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
    """A statement whose parameters are %s with $1, $2, … in their place."""
    first, *rest = sql.split("%s")
    return "".join([first, *(f"${n}{part}" for n, part in enumerate(rest, 1))]).encode()


def as_sent(values: Iterable[Value]) -> Sent:
    """The values as the protocol has them. Raises UnicodeEncodeError and psycopg.DataError."""
    sent: list[Any] = []
    formats = []
    for value in values:
        is_binary = isinstance(value, bytes | bytearray)
        if not is_binary and value is not None:
            value = str(value).encode()
            if b"\0" in value:  # where libpq would cut it off
                raise psycopg.DataError("PostgreSQL's texts cannot hold a NUL")
        sent.append(value)
        formats.append(is_binary)
    return sent, formats


def is_usable(connection: PatientConnection) -> bool:
    """Whether nothing tells that the connection has ended: an idle one has nothing to say.

    Nor is one whose server was silent to another connection since it was opened.
    """
    if connection.closed or connection.opened_s < _silences_s.get(connection.server, 0.0):
        return False
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return not poll.poll(0)


def connect(address: PostgresAddress, *, patience_s: float) -> PatientConnection:
    """A connection on which each statement stands for itself. Raises what psycopg raises."""
    connection = PatientConnection.connect(
        address.url,
        # By the simplest means alone: a pooler between us may give each transaction another
        # server, which knows neither settings nor prepared statements (pitfalls S18).
        autocommit=True,
        prepare_threshold=None,
        connect_timeout=CONNECT_S,
        client_encoding="UTF8",
        application_name="resumes",
    )
    connection.patience_s = patience_s
    connection.server = f"{connection.info.host}:{connection.info.port}"
    connection.opened_s = time.monotonic()
    return connection


def postgres_engine(
    address: PostgresAddress, *, patience_s: float, begin: str | None = None
) -> Engine:
    """Connections are closed when they are let go of. With `begin`, that is what begins a
    transaction; without, each statement stands for itself, as readers want it."""
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=partial(connect, address, patience_s=patience_s),
        paramstyle="format",
        poolclass=NullPool,
        # The text of an error ends in logs; what was to be written is personal data.
        hide_parameters=True,
    )
    if begin is None:
        return engine.execution_options(isolation_level="AUTOCOMMIT")

    @sqlalchemy.event.listens_for(engine, "begin")
    def begin_transaction(connection: sqlalchemy.Connection) -> None:
        for statement in begin.split(";"):
            driver(connection).run_later(statement, [()])

    return engine


class Trouble(Enum):
    """What can be done about an error."""

    GONE = auto()
    """The server, or its leave to write: try again with another connection, perhaps elsewhere."""

    RACE = auto()
    """Somebody else was first: undone, and to be tried again."""

    BUSY = auto()
    """Somebody holds the row for long: nothing was done."""

    FULL = auto()
    """There is no room: nothing was done."""

    OTHER = auto()
    """The statement itself."""


_BY_STATE: Final = {
    # A primary that is one no longer, seen through a pooler that keeps our connection: to write
    # cannot be begun there, nor done.
    "0A000": Trouble.GONE,
    "25006": Trouble.GONE,
    "25P03": Trouble.GONE,  # idle in a transaction for too long
    "40001": Trouble.RACE,
    "40P01": Trouble.RACE,  # deadlock
    "23505": Trouble.RACE,  # a unique name or number that somebody took at the same time
    "53100": Trouble.FULL,
    "55P03": Trouble.BUSY,  # lock_timeout
    "57014": Trouble.BUSY,  # statement_timeout
}
_BY_CLASS: Final = {"08": Trouble.GONE, "57": Trouble.GONE, "53": Trouble.GONE}
"""Connections, a server that stops or starts, and one that has no room for more connections."""

LOST: Final = (psycopg.OperationalError, psycopg.InterfaceError)
"""Without a word of the server: the connection is lost, or it fell silent."""


def trouble_of(error: BaseException) -> Trouble:
    """What can be done about it."""
    if isinstance(error, LostRace):
        return Trouble.RACE
    cause = getattr(error, "orig", error)
    state = getattr(cause, "sqlstate", None)
    if state is None:
        # Not the server's word: libpq lost it, or it fell silent.
        return Trouble.GONE if isinstance(cause, LOST) else Trouble.OTHER
    return _BY_STATE.get(state) or _BY_CLASS.get(state[:2], Trouble.OTHER)


def explain(error: BaseException, label: str) -> ResumesError:
    """What the driver's error is to those who use the store."""
    cause = getattr(error, "orig", error)
    text = str(cause).strip().partition("\n")[0]
    return StoreUnavailable(f"The database {label} cannot be used now: {text}")
