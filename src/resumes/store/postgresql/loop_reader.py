"""Reads of an event loop, without threads: what is asked in one round goes to the server together.

A thread for each read and a round trip for each statement cost several times what the statements do.
Here all statements of a round are one message on one connection, which is one transaction to a
pooler; none has a name, so none outlives the message (pitfalls S18).

What a reader promises:
- Rows are as they were committed when they were asked for, or later.
- The event loop waits for nothing: no frozen server, no connection that is opened (pitfalls S17).
- What finds no server is asked again until its deadline, so that a switch from one server to another
  is a slow answer and no failed one. Then it is StoreUnavailable.
"""

import asyncio
import os
import random
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus

from resumes.errors import StoreUnavailable
from resumes.store.postgresql.connection import (
    PatientConnection,
    Trouble,
    Value,
    as_sent,
    explain,
    is_usable,
    numbered,
    trouble_of,
)
from resumes.store.store import Row

DEADLINE_S: Final = 10.0
"""How long rows are waited for, as long as a write."""

PAUSES_S: Final = (0.02, 0.05, 0.1, 0.2)
"""Before each further try; the last one goes on. A little chance is added."""

LOOK_AFTER_S: Final = 0.25
"""How often questions are looked for whose time is over: cheaper than a timer for each."""

BUSY: Final = "The store's database does not answer; nothing was done, try again"
CLOSED: Final = "The store is closed"


class _Question:
    """A statement with its values, and those who wait for its rows."""

    __slots__ = ("ends_at", "formats", "goes_alone", "sql", "tries", "values", "waiters")

    def __init__(self, sql: bytes, values: Sequence[Value]) -> None:
        self.sql = sql
        self.values, self.formats = as_sent(values)
        self.ends_at = time.monotonic() + DEADLINE_S
        self.waiters: list[asyncio.Future[list[Row]]] = []
        self.tries = 0
        self.goes_alone = False
        """Whether it was refused: it must not fail others again."""

    @property
    def is_wanted(self) -> bool:
        """Whether somebody still waits."""
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
    """The reads of one event loop. Its methods are for that loop, but for `close`."""

    def __init__(
        self,
        connect: Callable[[], PatientConnection],
        label: str,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._connect = connect
        self._label = label
        self._loop = loop
        self._connection: PatientConnection | None = None
        self._watched = -1
        """The connection's socket under a number of our own: libpq closes its own at any time."""
        self._connecting: asyncio.Future[PatientConnection] | None = None
        self._new: dict[tuple[Any, ...], _Question] = {}
        """What is to be asked for the first time. Who wants the same shares the rows."""
        self._again: list[_Question] = []
        self._pausing: set[_Question] = set()
        """What is to be asked again: now, and after a pause."""
        self._asked: list[_Question] = []
        """What was sent and has no answer yet, in order."""
        self._results: list[Any] = []
        self._sent_at = 0.0
        self._is_send_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def fetch(self, sql: str, values: Sequence[Value]) -> list[Row]:
        """The rows of a statement whose parameters are %s. Raises StoreUnavailable."""
        if self._is_closed:
            raise StoreUnavailable(CLOSED)
        key = (sql, *values)
        question = self._new.get(key)
        if question is None:
            question = self._new[key] = _Question(numbered(sql), values)
            self._plan_send()
        waiter: asyncio.Future[list[Row]] = self._loop.create_future()
        question.waiters.append(waiter)
        return await waiter

    def close(self) -> None:
        """Nothing is read any more. From any thread."""
        self._is_closed = True
        if self._loop.is_running() and self._loop is not _running_loop():
            self._loop.call_soon_threadsafe(self._end)
        else:
            self._end()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._drop()
        if not self._loop.is_closed():
            for question in self._unanswered():
                question.fail(StoreUnavailable(CLOSED))

    def _unanswered(self) -> list[_Question]:
        return [*self._asked, *self._new.values(), *self._again, *self._pausing]

    # To the server

    def _plan_send(self) -> None:
        """What waits is sent after this round of the loop, unless a message has no answer yet."""
        if self._timer is None:
            self._timer = self._loop.call_later(LOOK_AFTER_S, self._look_after)
        if not (self._is_send_due or self._asked or self._connecting):
            self._is_send_due = True
            self._loop.call_soon(self._send)

    def _send(self) -> None:
        self._is_send_due = False
        if self._is_closed or not (self._new or self._again):
            return
        if self._connection is None or not is_usable(self._connection):
            self._drop()
            self._connecting = self._loop.run_in_executor(None, self._connect)
            self._connecting.add_done_callback(self._connected)
            return
        self._asked = self._take()
        if not self._asked:
            return
        self._sent_at = time.monotonic()
        pgconn = self._connection.pgconn
        try:
            for sql, questions in groupby(self._asked, key=lambda question: question.sql):
                # Without a name, and so read anew with each message, but not with each question.
                pgconn.send_prepare(b"", sql)
                for question in questions:
                    pgconn.send_query_prepared(b"", question.values, question.formats)
            pgconn.pipeline_sync()
            if pgconn.flush():
                self._loop.add_writer(self._watched, self._send_rest)
        except psycopg.Error as error:
            self._lose(error)

    def _take(self) -> list[_Question]:
        for position, question in enumerate(self._again):
            if question.goes_alone:
                return [self._again.pop(position)]
        taken = [*self._again, *self._new.values()]
        self._again.clear()
        self._new.clear()
        wanted = (question for question in taken if question.is_wanted)
        return sorted(wanted, key=lambda question: question.sql)

    def _send_rest(self) -> None:
        """What did not fit the socket is sent."""
        assert self._connection is not None
        try:
            if not self._connection.pgconn.flush():
                self._loop.remove_writer(self._watched)
        except psycopg.Error as error:
            self._lose(error)

    # From the server

    def _receive(self) -> None:
        assert self._connection is not None
        pgconn = self._connection.pgconn
        try:
            pgconn.consume_input()
            while self._asked and not pgconn.is_busy():
                result = pgconn.get_result()
                if result is None:
                    if pgconn.status != ConnStatus.OK:
                        raise psycopg.OperationalError(pgconn.get_error_message())
                elif result.status == ExecStatus.PIPELINE_SYNC:
                    self._answer()
                elif result.status != ExecStatus.COMMAND_OK:
                    self._results.append(result)
        except psycopg.Error as error:
            self._lose(error)

    def _answer(self) -> None:
        """Each question has its rows; from the first that was refused on, they are asked again."""
        connection = self._connection
        assert connection is not None
        asked, results = self._asked, self._results
        self._asked, self._results = [], []
        for position, result in enumerate(results):
            if result.status != ExecStatus.TUPLES_OK:
                error = error_from_result(result)
                refused, aborted = asked[position], asked[position + 1 :]
                match trouble_of(error):
                    case Trouble.GONE:
                        self._drop()
                        aborted = asked[position:]
                    case Trouble.OTHER:  # as it will be each time
                        refused.fail(explain(error, self._label))
                    case _:
                        refused.goes_alone = True
                        aborted = asked[position:]
                self._ask_again(aborted, error)
                break
            asked[position].answer(connection.rows_of(result))
        self._plan_send()

    # When it does not answer

    def _connected(self, connecting: "asyncio.Future[PatientConnection]") -> None:
        self._connecting = None
        error = connecting.exception()
        if error is not None:
            waiting = [*self._new.values(), *self._again]
            self._new.clear()
            self._again.clear()
            self._ask_again(waiting, error)
        elif self._is_closed:
            connecting.result().close()
        else:
            self._connection = connection = connecting.result()
            connection.pgconn.nonblocking = 1
            connection.pgconn.enter_pipeline_mode()
            self._watched = os.dup(connection.pgconn.socket)
            self._loop.add_reader(self._watched, self._receive)
            self._plan_send()

    def _lose(self, error: psycopg.Error) -> None:
        self._drop()
        asked, self._asked, self._results = self._asked, [], []
        self._ask_again(asked, error)
        self._plan_send()

    def _drop(self) -> None:
        """The connection is closed."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._watched)
                self._loop.remove_writer(self._watched)
            os.close(self._watched)
            connection.close()

    def _ask_again(self, questions: list[_Question], error: BaseException) -> None:
        """After a pause each; those with no time left for that have the error."""
        now = time.monotonic()
        for question in questions:
            pause_s = PAUSES_S[min(question.tries, len(PAUSES_S) - 1)] * random.uniform(0.5, 1.5)
            if now + pause_s >= question.ends_at or self._is_closed:
                question.fail(explain(error, self._label))
                continue
            question.tries += 1
            self._pausing.add(question)
            self._loop.call_later(pause_s, self._end_pause, question)

    def _end_pause(self, question: _Question) -> None:
        if question in self._pausing:
            self._pausing.remove(question)
            self._again.append(question)
            self._plan_send()

    def _look_after(self) -> None:
        self._timer = None
        if self._connection is not None:
            self._receive()  # it may be here, and only this loop late
        now = time.monotonic()
        connection = self._connection
        if self._asked and connection and self._sent_at + connection.patience_s <= now:
            self._lose(connection.give_up(connection.patience_s))
        for question in self._unanswered():
            if question.ends_at <= now:
                question.fail(StoreUnavailable(BUSY))
        if any(question.is_wanted for question in self._unanswered()):
            self._timer = self._loop.call_later(LOOK_AFTER_S, self._look_after)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
