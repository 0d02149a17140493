"""The lanes of accounts: how one process writes to PostgreSQL.

Every write of an account locks the account's row first, and a transaction holds one account, so
that a busy one never keeps others waiting (pitfalls S8). The writes of an account that wait
together share a transaction (group commit), and one thread at a time works for it: a second one
would only wait for the row. Writes that concern no account, or several, stand alone.

What the lanes promise each caller:
- A request that was not taken by its deadline is withdrawn: nothing was done (pitfalls S3).
- What was taken has the outcome that `resumes.store.postgresql.writer` promises.
"""

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import Final

from sqlalchemy import Engine

from resumes.errors import OutcomeUnknown, StoreUnavailable
from resumes.store.postgresql.writer import Writer
from resumes.store.writes import BATCH_LIMIT, BUSY, PENDING, Listener, Write, deliver

logger = logging.getLogger("resumes.store")

WRITERS: Final = 4
"""Threads that write, and so connections, of a process."""

EXPIRE_S: Final = 0.25
"""How often threads without work look for writes whose time is over."""


class AccountLanes:
    """Threads that write, over an engine whose transactions wait for locks a short while only."""

    def __init__(self, engine: Engine, label: str, *, writers: int = WRITERS) -> None:
        self.observe: Callable[[int, float], None] = lambda writes, took_s: None
        self._engine = engine
        self._label = label
        self._queues: dict[Hashable, deque[Write]] = {}
        """What waits, by account. A queue stays while somebody works for its account."""
        self._ready: deque[Hashable] = deque()
        """The accounts that nobody works for, in the order in which they came."""
        self._waiting = 0
        self._working = 0
        self._changed = threading.Condition()
        self._is_left = False
        self._closing = False
        self._threads = [
            threading.Thread(target=self._live, name=f"store-lane-{number}", daemon=True)
            for number in range(1, writers + 1)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """How many writes wait for their turn."""
        return self._waiting

    @property
    def is_alive(self) -> bool:
        """Whether writes are being taken."""
        return not self._closing and any(thread.is_alive() for thread in self._threads)

    def offer(self, write: Write) -> None:
        """The write waits until a thread is free, or `ask` wakes one: what comes together is written
        together. Raises StoreUnavailable once this is closed."""
        with self._changed:
            if self._closing:
                raise StoreUnavailable("The store is closed")
            account: Hashable = write.account_id or object()
            queue = self._queues.get(account)
            if queue is None:
                queue = self._queues[account] = deque()
                self._ready.append(account)
            queue.append(write)
            self._waiting += 1

    def ask(self) -> None:
        """What was offered is being done, as far as there are threads."""
        with self._changed:
            # No more than have something to do: a thread that wakes takes the interpreter from others.
            self._changed.notify(len(self._ready))

    def begin_turn(self, listener: Listener) -> None:
        """As `ask`: nothing here is done by the caller."""
        self.ask()

    def withdraw(self, write: Write) -> bool:
        """Whether the write was still waiting; then it will not happen."""
        with self._changed:
            for queue in self._queues.values():
                if write in queue:
                    queue.remove(write)
                    self._waiting -= 1
                    return True
        return False

    @contextlib.contextmanager
    def left(self) -> Iterator[None]:
        """No write runs during the block, so the process may be stopped in it (pitfalls S9)."""
        with self._changed:
            self._is_left = True
            self._changed.wait_for(lambda: self._working == 0)
        try:
            yield
        finally:
            with self._changed:
                self._is_left = False
                self._changed.notify_all()

    def close(self) -> None:
        """What was waiting is written, and the threads have ended. Safe to call twice."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._engine.dispose()

    def _live(self) -> None:
        writer = Writer(self._engine, self._label)
        while (taken := self._take()) is not None:
            account, batch = taken
            began_s = time.monotonic()
            try:
                writer.write(batch)
                self.observe(len(batch), time.monotonic() - began_s)
            except BaseException:
                # Whatever it was, the thread outlives it (pitfalls S7).
                logger.exception("A write lane met an error it does not know")
            finally:
                for write in batch:
                    if write.outcome is PENDING:
                        write.outcome = OutcomeUnknown()
                self._leave(account)
                deliver(batch)
        writer.close()

    def _take(self) -> tuple[Hashable, list[Write]] | None:
        """The next account's writes, which are this thread's now; None when all is over."""
        while True:
            with self._changed:
                overdue = self._expired()
                if not overdue:
                    if self._ready and not self._is_left:
                        account = self._ready.popleft()
                        if batch := self._begin(account):
                            return account, batch
                        continue  # all that waited there was withdrawn, or is over
                    if self._closing and not self._waiting:
                        return None
                    self._changed.wait(EXPIRE_S if self._waiting else None)
                    continue
            deliver(overdue)

    def _begin(self, account: Hashable) -> list[Write]:
        queue = self._queues[account]
        batch = [queue.popleft() for _ in range(min(len(queue), BATCH_LIMIT))]
        self._waiting -= len(batch)
        if batch:
            self._working += 1
        else:
            del self._queues[account]
        return batch

    def _leave(self, account: Hashable) -> None:
        with self._changed:
            self._working -= 1
            if self._queues[account]:
                self._ready.append(account)
            else:
                del self._queues[account]
            # Whoever leaves takes the next account itself.
            if self._is_left or self._closing:
                self._changed.notify_all()

    def _expired(self) -> list[Write]:
        """Writes whose time is over wait no longer. Called with `_changed` held."""
        now = time.monotonic()
        overdue: list[Write] = []
        for queue in self._queues.values():
            while queue and queue[0].deadline <= now:
                overdue.append(queue.popleft())
        for write in overdue:
            write.outcome = StoreUnavailable(BUSY)
        self._waiting -= len(overdue)
        return overdue
