"""Writes that coroutines wait for.

A busy event loop and the lane's thread take the interpreter from one another at every statement,
which costs more than the statements do. So a loop begins the lane's turns itself, between two
of its rounds, and leaves only the commit to the thread; it reads the next requests meanwhile,
which make the next batch.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any

from resumes.errors import OutcomeUnknown, StoreUnavailable
from resumes.store.writes import BUSY, Apply, Lane, Write

logger = logging.getLogger("resumes.store")

QUIET_ROUNDS = 2
"""A turn is begun when so many rounds of the loop have brought no further write,"""

ENOUGH_WRITES = 64
"""or so many wait. A commit costs as much as several writes, and one for two in the place of one
for thirty costs all of them more than the little while."""

LOOK_AFTER_S = 0.25
"""How often writes are looked for whose time is over: cheaper than a timer for each."""


class SoonWriter:
    """The writes of one event loop. Its methods are for that loop, but for those that say so."""

    def __init__(
        self, lane: Lane, loop: asyncio.AbstractEventLoop, *, commit_grace_s: float
    ) -> None:
        self._lane = lane
        self._loop = loop
        self._commit_grace_s = commit_grace_s
        self._pending: set[Write] = set()
        self._is_turn_due = False
        self._seen_writes = self._quiet_rounds = 0
        """What waited in the last round, and how many rounds brought no more."""
        self._timer: asyncio.TimerHandle | None = None

    async def write(self, apply: Apply, request: Any, *, deadline_s: float) -> Any:
        """What the write came to: its result or its error, StoreUnavailable when it was not taken
        by the deadline, or OutcomeUnknown when it was and its commit takes too long.

        Cancelled while it waits, it is withdrawn if it was not taken.
        """
        waiter: asyncio.Future[Any] = self._loop.create_future()
        write = Write(
            apply, request, deadline=time.monotonic() + deadline_s, mailbox=self, waiter=waiter
        )
        self._lane.offer(write)
        self._pending.add(write)
        self._plan_turn()
        if self._timer is None:
            self._timer = self._loop.call_later(LOOK_AFTER_S, self._look_after)
        try:
            return await waiter
        except asyncio.CancelledError:
            self._lane.withdraw(write)
            self._pending.discard(write)
            raise

    def _plan_turn(self) -> None:
        if not self._is_turn_due:
            self._is_turn_due = True
            self._loop.call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        waiting = self._lane.waiting
        if waiting and self._is_gathering(waiting):
            self._loop.call_soon(self._begin_turn)
            return
        self._seen_writes = self._quiet_rounds = 0
        self._is_turn_due = False
        if waiting:
            self._lane.begin_turn(self)

    def _is_gathering(self, waiting: int) -> bool:
        if waiting > self._seen_writes:
            self._seen_writes, self._quiet_rounds = waiting, 0
        else:
            self._quiet_rounds += 1
        return waiting < ENOUGH_WRITES and self._quiet_rounds < QUIET_ROUNDS

    def deliver(self, writes: Sequence[Write]) -> None:
        """Each waiting coroutine goes on; those that are gone are skipped. From any thread."""
        try:
            self._loop.call_soon_threadsafe(self._wake, writes)
        except RuntimeError:
            # The loop is closed: its requests were abandoned, and the writes stand.
            logger.warning("%d writes finished after their event loop", len(writes))

    def lane_is_free(self) -> None:
        """What waits gets its turn. From any thread."""
        try:
            self._loop.call_soon_threadsafe(self._plan_turn)
        except RuntimeError:
            self._lane.ask()  # the loop is closed, and others may wait

    def _wake(self, writes: Sequence[Write]) -> None:
        for write in writes:
            self._settle(write, write.outcome)

    def _settle(self, write: Write, outcome: Any) -> None:
        # Handed over at once: the lane may come to another outcome before the coroutine goes on.
        self._pending.discard(write)
        if not write.waiter.done():
            write.waiter.set_result(outcome)

    def _look_after(self) -> None:
        now = time.monotonic()
        overdue = [write for write in self._pending if write.deadline <= now]
        for write in overdue:
            if self._lane.withdraw(write):
                self._settle(write, StoreUnavailable(BUSY))
            elif write.deadline + self._commit_grace_s <= now:
                self._settle(write, OutcomeUnknown())
        self._timer = (
            self._loop.call_later(LOOK_AFTER_S, self._look_after) if self._pending else None
        )
