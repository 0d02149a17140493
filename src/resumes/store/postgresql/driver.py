"""Connections that give up: psycopg's, with a deadline on every call.

A server that is gone ends a call at once. One that is frozen, or behind a network that swallows
packets, ends none: its kernel goes on answering, keepalives too (pitfalls S17). So whoever waits
for the socket looks at the clock, and drops the connection when it has waited long enough.
"""

import select
import time
from typing import Any, Final

import psycopg
import sqlalchemy
from psycopg.abc import RV, PQGen
from sqlalchemy import Engine, NullPool
from sqlalchemy.exc import DBAPIError

from resumes.store.addresses import PostgresAddress

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


class PatientConnection(psycopg.Connection[Any]):
    """A connection that waits at most `patience_s` seconds for each answer."""

    patience_s: float = 30.0
    server: str = ""
    opened_s: float = 0.0

    def wait(
        self, gen: PQGen[RV], interval: float = INTERVAL_S, timeout: float | None = None
    ) -> RV:
        """What the call comes to. Raises ServerSilent, and what psycopg raises.

        psycopg passes everything that it says to the server through here.
        """
        patience_s = self.patience_s if timeout is None else timeout
        ends_at = time.monotonic() + patience_s
        try:
            return super().wait(gen, interval, timeout=patience_s)
        except psycopg.Error as error:
            if time.monotonic() < ends_at:
                raise
            # In the middle of an answer, it is of no further use.
            self.pgconn.finish()
            _silences_s[self.server] = time.monotonic()
            raise ServerSilent(
                f"the server did not answer within {patience_s:g} seconds"
            ) from error


def is_usable(connection: PatientConnection) -> bool:
    """Whether nothing tells that the connection has ended: an idle one has nothing to say.

    Nor is one whose server was silent to another connection since it was opened.
    """
    if connection.closed or connection.opened_s < _silences_s.get(connection.server, 0.0):
        return False
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return not poll.poll(0)


def postgres_engine(
    address: PostgresAddress, *, patience_s: float, begin: str | None = None
) -> Engine:
    """Connections are closed when they are let go of. With `begin`, that is what begins a
    transaction; without, each statement stands for itself, as readers want it."""

    def connect() -> PatientConnection:
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

    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=connect,
        paramstyle="format",
        poolclass=NullPool,
        # The text of an error ends in logs; what was to be written is personal data.
        hide_parameters=True,
    )
    if begin is None:
        return engine.execution_options(isolation_level="AUTOCOMMIT")

    @sqlalchemy.event.listens_for(engine, "begin")
    def begin_transaction(connection: sqlalchemy.Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine
