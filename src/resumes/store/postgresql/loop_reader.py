"""Reads of an event loop, without threads: coroutines that wait for the same statement share a message.

A thread per read and a round trip per statement would cost several times more than the statements. Here
what waits becomes one statement with arrays of values, on one connection (`Prepared.in_arrays`). Each is a
transaction of its own to a pooler, and is unnamed (pitfalls S18).

A reader promises:
- Rows are as they were committed when `fetch` was called, or later.
- The event loop never blocks, neither for a frozen server nor while a connection is opened (pitfalls
  S17).
- A query is sent again until its deadline if there is no server, so that a failover delays answers
  instead of making them fail. After the deadline it raises StoreUnavailable.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import psycopg
from sqlalchemy import Dialect

from resumes.errors import StoreUnavailable
from resumes.store.postgresql.connection import (
    DRIVER_ERRORS,
    AsyncTimeoutConnection,
    ErrorClass,
    classify_error,
    explain,
    is_usable,
    jittered,
)
from resumes.store.statements import Prepared, by_number, columns_of
from resumes.store.store import Row
from resumes.store.write_queue import EXPIRY_INTERVAL_S

DEADLINE_S: Final = 10.0
"""How long a query may take in total, the same as a write."""

RETRY_DELAYS_S: Final = (0.02, 0.05, 0.1, 0.2)
"""The delays before each retry; the last one repeats. Jitter is added."""

BATCH_LIMIT: Final = 64
"""How many queries share a message, so that one answer does not keep the loop busy for long."""

LASTING: Final = (ErrorClass.REFUSED, ErrorClass.OTHER)
"""The classes of errors that a retry would raise again."""

BUSY: Final = "The store's database is not responding, so nothing was done; try again"
CLOSED: Final = "The store is closed"


class _Query:
    """A statement with its values, and the coroutines that wait for its rows."""

    __slots__ = ("ends_at", "goes_alone", "statement", "values", "waiters")

    def __init__(self, statement: Prepared, values: Mapping[str, Any]) -> None:
        self.statement = statement
        self.values = values
        self.ends_at = time.monotonic() + DEADLINE_S
        self.waiters: list[asyncio.Future[Sequence[Row]]] = []
        self.goes_alone = False
        """Whether it failed once, so that it must not make others fail again."""

    @property
    def is_wanted(self) -> bool:
        """True if a coroutine still waits."""
        return not all(waiter.done() for waiter in self.waiters)

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
        connect: Callable[[], Awaitable[AsyncTimeoutConnection]],
        dialect: Dialect,
        label: str,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._connect = connect
        self._dialect = dialect
        self._label = label
        self._loop = loop
        self._connection: AsyncTimeoutConnection | None = None
        self._cursors: dict[str, psycopg.AsyncCursor[Any]] = {}
        """The cursors by statement. A cursor that is used again knows the types of its values, but keeps its
        last result."""
        self._unsent: dict[Any, _Query] = {}
        """The queries to send next, by statement and values, so that coroutines with the same query share
        the rows; by the query itself if it is sent again."""
        self._sent: Sequence[_Query] = ()
        self._task: asyncio.Task[None] | None = None
        """Sends the queries as long as there are any."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def fetch(self, statement: Prepared, values: Mapping[str, Any]) -> Sequence[Row]:
        """Return the rows of the statement. Raises StoreUnavailable."""
        if self._is_closed:
            raise StoreUnavailable(CLOSED)
        key = (statement, *values.items())
        query = self._unsent.get(key)
        if query is None:
            query = self._unsent[key] = _Query(statement, values)
            if self._task is None:
                # It begins in the next iteration of the loop, after all that is asked in this one.
                self._task = self._loop.create_task(self._send())
            if self._timer is None:
                self._timer = self._loop.call_later(EXPIRY_INTERVAL_S, self._expire)
        waiter: asyncio.Future[Sequence[Row]] = self._loop.create_future()
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
        for query in (*self._sent, *self._unsent.values()):
            query.fail(StoreUnavailable(CLOSED))
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
        tries = 0
        try:
            while self._unsent:
                self._sent = self._take()
                try:
                    await self._answer(self._sent)
                    tries = 0
                except Exception as error:  # noqa: BLE001 - handed on, or retried
                    await self._retry(error, tries)
                    tries += 1
                self._sent = ()
        finally:
            self._task = None
            if self._is_closed or self._sent:
                self._drop()

    def _take(self) -> Sequence[_Query]:
        """Return the query that has waited longest, with others of the same statement."""
        waiting = self._unsent.values()
        first = next(iter(waiting))
        same = (
            query
            for query in waiting
            if query.statement is first.statement and not query.goes_alone
        )
        taken = {first} if first.goes_alone else dict.fromkeys(islice(same, BATCH_LIMIT))
        self._unsent = {key: query for key, query in self._unsent.items() if query not in taken}
        return [query for query in taken if query.is_wanted]

    async def _answer(self, queries: Sequence[_Query]) -> None:
        if not queries:
            return
        if self._connection is None or not is_usable(self._connection):
            self._drop()
            self._connection = await self._connect()
        statement, values = queries[0].statement, [query.values for query in queries]
        if len(queries) == 1:
            queries[0].answer(await self._run(*statement.bound(self._dialect, values[0])))
            return
        found = await self._run(*statement.in_arrays(self._dialect, columns_of(values)))
        for query, rows in zip(queries, by_number(found, len(queries)), strict=True):
            query.answer(rows)

    async def _run(self, sql: str, values: Sequence[Any]) -> list[Row]:
        assert self._connection is not None
        cursor = self._cursors.get(sql)
        if cursor is None:
            cursor = self._cursors[sql] = self._connection.cursor()
        await cursor.execute(sql, values)
        return await cursor.fetchall()

    async def _retry(self, error: Exception, tries: int) -> None:
        """Send the queries again, after a delay if that helps; fail those whose deadline is before that, or
        for which it does not help."""
        failed, self._sent = self._sent, ()
        is_drivers = isinstance(error, DRIVER_ERRORS)
        error_class = classify_error(error)
        is_lasting = error_class in LASTING
        delay_s = 0.0 if is_lasting else jittered(RETRY_DELAYS_S, tries)
        now = time.monotonic()
        for query in failed:
            if (is_lasting and len(failed) == 1) or now + delay_s >= query.ends_at:
                query.fail(explain(error, self._label) if is_drivers else error)
                continue
            query.goes_alone = error_class is not ErrorClass.UNAVAILABLE
            self._unsent[query] = query
        if error_class is ErrorClass.UNAVAILABLE:
            self._drop()
        if not is_lasting:
            await asyncio.sleep(delay_s)

    def _expire(self) -> None:
        self._cursors.clear()
        now = time.monotonic()
        for query in (*self._sent, *self._unsent.values()):
            if query.ends_at <= now:
                query.fail(StoreUnavailable(BUSY))
        is_idle = self._task is None
        self._timer = None if is_idle else self._loop.call_later(EXPIRY_INTERVAL_S, self._expire)
