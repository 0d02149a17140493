"""Reads of an event loop, without threads: the queries of one iteration are sent to the server together.

A thread per read and a round trip per statement would cost several times more than the statements. Here
all statements of an iteration are one message on one connection, which is one transaction to a pooler;
they are unnamed, so they do not outlive the message (pitfalls S18).

A reader promises:
- Rows are as they were committed when `fetch` was called, or later.
- The event loop never blocks, neither for a frozen server nor while a connection is opened (pitfalls
  S17).
- A query is sent again until its deadline if there is no server, so that a failover delays answers
  instead of making them fail. After the deadline it raises StoreUnavailable.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus

from resumes.errors import StoreUnavailable
from resumes.store.postgresql.connection import (
    DRIVER_ERRORS,
    ErrorClass,
    TimeoutConnection,
    Value,
    as_sent,
    classify_error,
    explain,
    is_usable,
    jittered,
    numbered,
)
from resumes.store.store import Row
from resumes.store.write_queue import EXPIRY_INTERVAL_S

DEADLINE_S: Final = 10.0
"""How long a query may take in total, the same as a write."""

RETRY_DELAYS_S: Final = (0.02, 0.05, 0.1, 0.2)
"""The delays before each retry; the last one repeats. Jitter is added."""

LASTING: Final = (ErrorClass.REFUSED, ErrorClass.OTHER)
"""The classes of errors that a retry would raise again."""

BUSY: Final = "The store's database is not responding, so nothing was done; try again"
CLOSED: Final = "The store is closed"


class _Query:
    """A statement with its values, and the coroutines that wait for its rows."""

    __slots__ = ("ends_at", "formats", "goes_alone", "sql", "tries", "values", "waiters")

    def __init__(self, sql: bytes, values: Sequence[Value]) -> None:
        self.sql = sql
        self.values, self.formats = as_sent(values)
        self.ends_at = time.monotonic() + DEADLINE_S
        self.waiters: list[asyncio.Future[list[Row]]] = []
        self.tries = 0
        self.goes_alone = False
        """Whether it was refused once, so that it must not make others fail again."""

    @property
    def is_wanted(self) -> bool:
        """True if a coroutine still waits."""
        return not all(waiter.done() for waiter in self.waiters)

    def answer(self, rows: list[Row]) -> None:
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(rows)

    def fail(self, error: Exception) -> None:
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_exception(error)


class LoopReader:
    """The reads of one event loop. Only `close` may be called from other threads."""

    def __init__(
        self,
        connect: Callable[[], TimeoutConnection],
        label: str,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._connect = connect
        self._label = label
        self._loop = loop
        self._connection: TimeoutConnection | None = None
        self._watched = -1
        """A duplicate of the connection's socket, since libpq may close its own at any time."""
        self._connecting: asyncio.Future[TimeoutConnection] | None = None
        self._unsent: dict[Any, _Query] = {}
        """The queries to send next, by statement and values, so that coroutines with the same query share
        the rows; by the query itself if it is sent again."""
        self._unanswered: set[_Query] = set()
        self._sent: list[_Query] = []
        """The queries that were sent and are not answered yet, in order."""
        self._results: list[Any] = []
        self._sent_at = 0.0
        self._is_send_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def fetch(self, sql: str, values: Sequence[Value]) -> list[Row]:
        """Return the rows of a statement whose parameters are %s. Raises StoreUnavailable."""
        if self._is_closed:
            raise StoreUnavailable(CLOSED)
        key = (sql, *values)
        query = self._unsent.get(key)
        if query is None:
            query = self._unsent[key] = _Query(numbered(sql), values)
            self._unanswered.add(query)
            self._plan_send()
        waiter: asyncio.Future[list[Row]] = self._loop.create_future()
        query.waiters.append(waiter)
        return await waiter

    def close(self) -> None:
        """Fail the waiting queries and close the connection, from any thread."""
        self._is_closed = True
        if self._loop.is_running():
            self._loop.call_soon_threadsafe(self._end)
        else:
            self._drop()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._drop()
        for query in self._unanswered:
            query.fail(StoreUnavailable(CLOSED))

    # To the server

    def _plan_send(self) -> None:
        """Send the waiting queries in the next iteration of the loop, unless a message is unanswered."""
        if self._timer is None:
            self._timer = self._loop.call_later(EXPIRY_INTERVAL_S, self._expire)
        if not (self._is_send_due or self._sent or self._connecting):
            self._is_send_due = True
            self._loop.call_soon(self._send)

    def _send(self) -> None:
        self._is_send_due = False
        if self._is_closed or not self._unsent:
            return
        if self._connection is None or not is_usable(self._connection):
            self._drop()
            self._connecting = self._loop.run_in_executor(None, self._connect)
            self._connecting.add_done_callback(self._connected)
            return
        self._sent = self._take()
        if not self._sent:
            return
        self._sent_at = time.monotonic()
        pgconn = self._connection.pgconn
        try:
            for sql, queries in groupby(self._sent, key=lambda query: query.sql):
                # Unnamed, so it is parsed again with each message, but not with each query.
                pgconn.send_prepare(b"", sql)
                for query in queries:
                    pgconn.send_query_prepared(b"", query.values, query.formats)
            pgconn.pipeline_sync()
            if pgconn.flush():
                self._loop.add_writer(self._watched, self._send_rest)
        except psycopg.Error as error:
            self._fail(error)

    def _take(self) -> list[_Query]:
        alone = next((query for query in self._unsent.values() if query.goes_alone), None)
        if alone is not None:  # it is sent again, so its key is the query itself
            del self._unsent[alone]
            return [alone] if alone.is_wanted else self._take()
        wanted = [query for query in self._unsent.values() if query.is_wanted]
        self._unsent.clear()
        return sorted(wanted, key=lambda query: query.sql)

    def _send_rest(self) -> None:
        """Send the part of a message that did not fit into the socket's buffer."""
        assert self._connection is not None
        try:
            if not self._connection.pgconn.flush():
                self._loop.remove_writer(self._watched)
        except psycopg.Error as error:
            self._fail(error)

    # From the server

    def _receive_more(self) -> None:
        self._sent_at = time.monotonic()  # a server that sends is not frozen
        self._receive()

    def _receive(self) -> None:
        assert self._connection is not None
        pgconn = self._connection.pgconn
        try:
            pgconn.consume_input()
            while self._sent and not pgconn.is_busy():
                result = pgconn.get_result()
                if result is None:
                    if pgconn.status != ConnStatus.OK:
                        raise psycopg.OperationalError(pgconn.get_error_message())
                elif result.status == ExecStatus.PIPELINE_SYNC:
                    self._answer()
                elif result.status != ExecStatus.COMMAND_OK:
                    self._results.append(result)
        except psycopg.Error as error:
            self._fail(error)

    def _answer(self) -> None:
        """Give each query its rows; send the first that failed and those after it again."""
        connection = self._connection
        assert connection is not None
        sent, results = self._sent, self._results
        self._sent, self._results = [], []
        for position, result in enumerate(results):
            query = sent[position]
            if result.status != ExecStatus.TUPLES_OK:
                error, aborted = error_from_result(result), sent[position:]
                if classify_error(error) in LASTING:
                    query.fail(explain(error, self._label))
                    del aborted[0]
                query.goes_alone = classify_error(error) is not ErrorClass.UNAVAILABLE
                self._retry(aborted, error)
                break
            try:
                query.answer(connection.load_rows(result))
            except Exception as error:  # noqa: BLE001 - the other queries are answered
                is_drivers = isinstance(error, DRIVER_ERRORS)
                query.fail(explain(error, self._label) if is_drivers else error)
            self._unanswered.discard(query)
        self._plan_send()

    # When it does not answer

    def _connected(self, connecting: "asyncio.Future[TimeoutConnection]") -> None:
        self._connecting = None
        error = connecting.exception()
        if error is not None:
            waiting = [*self._unsent.values()]
            self._unsent.clear()
            self._retry(waiting, error)
        elif self._is_closed:
            connecting.result().close()
        else:
            self._connection = connection = connecting.result()
            connection.pgconn.nonblocking = 1
            connection.pgconn.enter_pipeline_mode()
            self._watched = os.dup(connection.pgconn.socket)
            self._loop.add_reader(self._watched, self._receive_more)
            self._plan_send()

    def _fail(self, error: psycopg.Error) -> None:
        self._drop()
        sent, self._sent, self._results = self._sent, [], []
        self._retry(sent, error)
        self._plan_send()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._watched)
                self._loop.remove_writer(self._watched)
            os.close(self._watched)
            connection.close()

    def _retry(self, queries: list[_Query], error: BaseException) -> None:
        """Send each query again after a delay; fail those whose deadline is before that."""
        now = time.monotonic()
        for query in queries:
            delay_s = jittered(RETRY_DELAYS_S, query.tries)
            if now + delay_s >= query.ends_at or self._is_closed:
                query.fail(explain(error, self._label))
                continue
            query.tries += 1
            self._loop.call_later(delay_s, self._send_again, query)

    def _send_again(self, query: _Query) -> None:
        self._unsent[query] = query
        self._plan_send()

    def _expire(self) -> None:
        self._timer = None
        if self._connection is not None:
            self._receive()  # the answer may have arrived, and only this loop is late
        now = time.monotonic()
        connection = self._connection
        if self._sent and connection and self._sent_at + connection.timeout_s <= now:
            self._fail(connection.abandon(connection.timeout_s))
        for query in self._unanswered:
            if query.ends_at <= now:
                query.fail(StoreUnavailable(BUSY))
        self._unanswered = {query for query in self._unanswered if query.is_wanted}
        if self._unanswered:
            self._timer = self._loop.call_later(EXPIRY_INTERVAL_S, self._expire)
