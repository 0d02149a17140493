"""Reads of an event loop, without threads: coroutines with the same statement share a message.

A thread for each read and a round trip for each statement would cost several times more than the
statements. Instead, waiting queries become one statement with arrays of values, on one connection
(`Prepared.in_arrays`). Each statement is unnamed, and a separate transaction for a pooler (pitfalls
S18).

A reader promises:
- The rows are at least as new as the last commit before `fetch` was called.
- The event loop never blocks, neither for a frozen server nor while a connection is opened
  (pitfalls S17).
- If there is no server, a query is sent again until its deadline, so that a failover delays answers
  instead of making them fail. The query fails with StoreUnavailable after the deadline. Without a
  pooler, it fails as soon as no server of the address has responded to a new connection.
- One connection that does not respond, or one slow query, delays other queries for about a second.
  Then they are sent again, each alone, on a second connection. There, a slow query may delay the
  other queries of its message for two more seconds.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import psycopg
from sqlalchemy import Dialect

from resumes.errors import StoreUnavailable
from resumes.store.addresses import PostgresAddress
from resumes.store.postgresql.connection import (
    DRIVER_ERRORS,
    OPTIONS,
    AsyncTimeoutConnection,
    ErrorClass,
    ServerTimeout,
    classify_error,
    explain,
    retry_delay_s,
)
from resumes.store.statements import Prepared, by_number, columns_of
from resumes.store.store import Row
from resumes.store.write_queue import CLOSED, EXPIRY_INTERVAL_S

DEADLINE_S: Final = 10.0
"""How long a query may take in total, the same as a write."""

ANSWER_TIMEOUTS_S: Final = (1.0, 2.0, 4.0)
"""How long each attempt of a query waits for the server; the last value repeats. Queries take
milliseconds, unless the server is overloaded, which shorter timeouts would make worse. Queries that
share a message are at their first attempt."""

BATCH_LIMIT: Final = 64
"""The most queries in a message, so that one answer does not keep the event loop busy for long."""

BUSY: Final = "The store's database is not responding, so nothing was done; try again"


@dataclass(slots=True, eq=False)
class _Query:
    """A statement with its values, and the coroutines that wait for its rows."""

    statement: Prepared
    values: Mapping[str, Any]
    ends_at: float
    waiters: list[asyncio.Future[Sequence[Row]]] = field(default_factory=list)
    tries: int = 0

    @property
    def is_done(self) -> bool:
        """True if no coroutine is waiting for the rows."""
        return all(waiter.done() for waiter in self.waiters)

    def answer(self, rows: Sequence[Any]) -> None:
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
        address: PostgresAddress,
        dialect: Dialect,
        is_sharded: bool,
        loop: asyncio.AbstractEventLoop,
        is_second: bool = False,
    ) -> None:
        self._address = address
        self._dialect = dialect
        self._second = self if is_second else LoopReader(address, dialect, is_sharded, loop, True)
        """Sends queries that have failed, so that they do not make others wait or fail again. It
        has a connection only while it is needed."""
        self._batch_limit = 1 if is_sharded or is_second else BATCH_LIMIT
        self._loop = loop
        self._connection: AsyncTimeoutConnection | None = None
        self._cursors: dict[str, psycopg.AsyncCursor[Any]] = {}
        """The cursors by statement. A reused cursor knows the types of its values, but it keeps its
        last result in memory."""
        self._unsent: dict[Any, _Query] = {}
        """The queries to send next, by statement and values, so that coroutines with the same query
        share the rows. A query that is sent again is its own key."""
        self._sent: Sequence[_Query] = ()
        self._task: asyncio.Task[None] | None = None
        """Sends the queries until none are left."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_direct = False
        """Whether the address has no pooler. A pooler lets new connections wait during a failover."""
        self._is_frozen = False
        """Whether there is no pooler, and none of the address's servers responded to the last attempt
        to connect."""
        self._is_closed = False

    async def fetch(self, statement: Prepared, values: Mapping[str, Any]) -> Sequence[Row]:
        """Return the rows of the statement. Raises StoreUnavailable."""
        reader = self._second if self._second.is_asked(values.get("account_id")) else self
        return await reader._wait(statement, values)

    def is_asked(self, account_id: str | None) -> bool:
        """Return whether a query of this account waits here, so that another query should too."""
        waiting = (*self._sent, *self._unsent.values()) if self._task is not None else ()
        return any(query.values.get("account_id", "") == account_id for query in waiting)

    async def _wait(self, statement: Prepared, values: Mapping[str, Any]) -> Sequence[Row]:
        key = (statement, *values.items())
        query = self._unsent.get(key) or _Query(statement, values, time.monotonic() + DEADLINE_S)
        waiter: asyncio.Future[Sequence[Row]] = self._loop.create_future()
        query.waiters.append(waiter)
        if len(query.waiters) == 1:
            self._add(key, query)
        return await waiter

    def _add(self, key: Any, query: _Query) -> None:
        if self._is_closed:
            query.fail(StoreUnavailable(CLOSED))
            return
        self._unsent[key] = query
        if self._task is None:
            self._task = self._loop.create_task(self._send())
        if self._timer is None:
            self._timer = self._loop.call_later(EXPIRY_INTERVAL_S, self._expire)

    def close(self) -> None:
        """Fail the waiting queries and close the connection, from any thread."""
        self._is_closed = True
        if self._second is not self:
            self._second.close()
        if self._loop.is_running():
            self._loop.call_soon_threadsafe(self._end)
        else:
            self._drop()

    def _end(self) -> None:
        self._fail_overdue()
        if self._task is None:
            self._drop()
        else:
            self._task.cancel()

    def _drop(self) -> None:
        self._cursors.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.pgconn.finish()

    async def _send(self) -> None:
        try:
            # Wait one iteration of the loop for more queries: fewer messages cost less.
            while await asyncio.sleep(0, result=True) and self._unsent:
                self._sent = self._take()
                try:
                    await self._answer(self._sent)
                except Exception as error:  # noqa: BLE001 - handed on, or retried
                    await asyncio.sleep(self._retry(error))
                self._sent = ()
        finally:
            self._task, self._is_frozen = None, False
            if self._is_closed or self._sent or self._second is self:
                self._drop()

    def _take(self) -> Sequence[_Query]:
        """Return the query that has waited longest, with others of the same statement."""
        first = next(iter(self._unsent.values()))
        same = (key for key, query in self._unsent.items() if query.statement is first.statement)
        return [self._unsent.pop(key) for key in [*islice(same, self._batch_limit)]]

    async def _answer(self, queries: Sequence[_Query]) -> None:
        tries = queries[0].tries if self._second is self else 0
        timeout_s = ANSWER_TIMEOUTS_S[min(tries, len(ANSWER_TIMEOUTS_S) - 1)]
        if self._connection is None or not self._connection.is_usable:
            self._drop()
            self._connection = await AsyncTimeoutConnection.connect(self._address.url, **OPTIONS)
            self._connection.timeout_s = timeout_s
            ((backend_pid,),) = await self._run("SELECT pg_backend_pid()", ())
            is_direct = backend_pid == self._connection.info.backend_pid
            self._is_direct = self._second._is_direct = is_direct
            self._is_frozen = False
        self._connection.timeout_s = timeout_s
        statement, values = queries[0].statement, [query.values for query in queries]
        found: Sequence[Sequence[Any]]
        if len(queries) == 1:
            found = [await self._run(*statement.bound(self._dialect, values[0]))]
        else:
            together = await self._run(*statement.in_arrays(self._dialect, columns_of(values)))
            found = by_number(together, len(queries))
        for query, rows in zip(queries, found, strict=True):
            query.answer(rows)

    async def _run(self, sql: str, values: Sequence[Any]) -> list[Row]:
        assert self._connection is not None
        cursor = self._cursors.get(sql)
        if cursor is None:
            cursor = self._cursors[sql] = self._connection.cursor()
        await cursor.execute(sql, values)
        return await cursor.fetchall()

    def _retry(self, error: Exception) -> float:
        """Send the queries again, and return the delay before this. Fail queries whose deadline is
        earlier, or that would fail again."""
        failed, self._sent = self._sent, ()
        error_class = classify_error(error)
        is_lasting = error_class in (ErrorClass.REFUSED, ErrorClass.OTHER)
        self._is_frozen = self._is_direct and isinstance(error, psycopg.errors.ConnectionTimeout)
        is_outage = error_class is ErrorClass.UNAVAILABLE and not isinstance(error, ServerTimeout)
        # Over an open connection, a coordinator reports a lost worker: other accounts must not wait.
        is_shard = self._connection is not None and not self._connection.closed
        reader = self if is_outage and not is_shard else self._second
        is_at_once = is_lasting or reader is not self
        delay_s = 0.0 if is_at_once else retry_delay_s(max(query.tries for query in failed))
        for query in failed:
            if query.is_done:
                continue
            query.tries += 1
            is_late = time.monotonic() + delay_s >= query.ends_at
            if is_late or (is_lasting and len(failed) == 1):
                is_drivers = isinstance(error, DRIVER_ERRORS)
                query.fail(explain(error, self._address.label) if is_drivers else error)
            else:
                reader._add(query, query)
        return delay_s

    def _expire(self) -> None:
        self._cursors.clear()
        self._fail_overdue()
        is_idle = self._task is None
        self._timer = None if is_idle else self._loop.call_later(EXPIRY_INTERVAL_S, self._expire)

    def _fail_overdue(self) -> None:
        """Fail the queries whose time is over, or all queries if waiting is pointless."""
        is_over = self._is_closed or self._is_frozen
        now = time.monotonic()
        for query in (*self._sent, *self._unsent.values()):
            if is_over or query.ends_at <= now:
                query.fail(StoreUnavailable(CLOSED if self._is_closed else BUSY))
        self._unsent = {key: query for key, query in self._unsent.items() if not query.is_done}
