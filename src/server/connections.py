"""All connections of a process: how many there may be, and what they hold."""

import asyncio
import contextlib
import resource
from collections.abc import Callable

from resumes.settings import Settings

RESERVED_FILES = 128
"""Open files that are not for connections: the store's, the listener, those of the loop."""

REFUSED_AT_ONCE = 100
"""Connections beyond the limit that are kept for a moment, so that their clients see the answer."""

SEEN_AT_ONCE = 1_000
"""With more connections than these, one turn of the event loop may look for requests twice: libuv
does when 1,024 files have something, and the process has a few more."""

MIB = 1024 * 1024

BODY_MEMORY_BYTES = 64 * MIB
"""Request bodies that a process holds at a time; beyond that, requests are refused."""


Look = Callable[[float], None]
"""A connection, by what refuses or cuts off a client that has kept it waiting for too long."""


class Connections:
    """The connections of a process, and the bytes of bodies that they hold in memory."""

    def __init__(self, settings: Settings) -> None:
        self.max_open = find_room(settings.max_connections)
        self.max_body_bytes = max(BODY_MEMORY_BYTES, settings.max_body_bytes + MIB)
        """How much the bodies in memory may be in all; one of the largest always fits."""
        self.client_timeout_s = settings.client_timeout_s
        self.body_bytes = 0
        """How much they are."""
        self._open: set[Look] = set()
        self._refused: set[Look] = set()
        self.served: set[Callable[[], None]] = set()
        """What ends those in which HTTP has begun, after the answers to what was sent before."""
        self.is_stopping = False
        """Whether these were ended, and so is each in which HTTP begins from now on."""
        self.tasks: set[asyncio.Task[None]] = set()
        """What answers their requests that have to wait."""
        self._interval_s = min(1.0, settings.client_timeout_s / 10)

    def __len__(self) -> int:
        """Return how many are open, not counting those that were refused."""
        return len(self._open)

    @property
    def is_full(self) -> bool:
        """Whether one more would be too many."""
        return len(self._open) >= self.max_open

    @property
    def are_seen_twice(self) -> bool:
        """Whether one turn of the event loop may look for their requests twice."""
        return len(self._open) + len(self._refused) > SEEN_AT_ONCE

    @property
    def is_overrun(self) -> bool:
        """Whether too many are being refused for each to get an answer."""
        return len(self._refused) >= REFUSED_AT_ONCE

    def add(self, look: Look, *, is_refused: bool = False) -> None:
        """Count the connection."""
        (self._refused if is_refused else self._open).add(look)

    def discard(self, look: Look) -> None:
        """Forget the connection, which is gone."""
        self._open.discard(look)
        self._refused.discard(look)

    async def look(self) -> None:
        """Look at each connection, after a second or less: a timer for each request would cost more
        than a list's page."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await asyncio.sleep(self._interval_s)
        now_s = loop.time()
        # If this process was held up, timeouts are checked once it has caught up.
        if now_s - began_s < 2 * self._interval_s:
            with contextlib.suppress(MemoryError):  # the next look is in a second
                for look in (*self._open, *self._refused):
                    loop.call_soon(look, now_s)  # so that an error ends nothing else


def find_room(wanted: int) -> int:
    """Return how many connections this process may have open: as many as wanted, if the system allows.

    Raise the process's limit of open files as far as that needs.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    needed = wanted + RESERVED_FILES + REFUSED_AT_ONCE
    if soft < needed:
        higher = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):  # a system may allow less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (higher, hard))
            soft = higher
    return max(1, min(wanted, soft - RESERVED_FILES - REFUSED_AT_ONCE))
