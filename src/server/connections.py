"""All connections of a process: their number, and the memory of their bodies."""

import asyncio
import contextlib
import resource
from collections.abc import Callable

from resumes.settings import Settings

RESERVED_FILES = 128
"""Open files that are not connections: those of the store and the event loop, and the listener."""

REFUSED_AT_ONCE = 100
"""Connections beyond the limit that are kept briefly, so that their clients get the answer."""

MAX_PER_POLL = 1_000
"""With more connections, one turn of the event loop may poll for requests twice: libuv does so
after 1,024 events, and the process has a few other open files."""

MIB = 1024 * 1024

BODY_MEMORY_BYTES = 64 * MIB
"""Memory for request bodies in a process; beyond it, requests are refused."""


Check = Callable[[float], None]
"""The method that identifies a connection: it refuses or cuts off a client that is too slow."""


class Connections:
    """The connections of a process, and the bytes of bodies that they hold in memory."""

    def __init__(self, settings: Settings) -> None:
        self.max_open = find_room(settings.max_connections)
        self.max_body_bytes = max(BODY_MEMORY_BYTES, settings.max_body_bytes + MIB)
        """The maximum size of all bodies in memory; at least one body of the largest size fits."""
        self.client_timeout_s = settings.client_timeout_s
        self.body_bytes = 0
        """The current size of all bodies in memory."""
        self._open: set[Check] = set()
        self._refused: set[Check] = set()
        self.served: set[Callable[[], None]] = set()
        """For each connection with HTTP begun, a function to end it after pending answers."""
        self.is_stopping = False
        """Whether the server is stopping: then new connections are ended as well."""
        self.tasks: set[asyncio.Task[None]] = set()
        """The tasks that answer requests asynchronously."""
        self._interval_s = min(1.0, settings.client_timeout_s / 10)

    def __len__(self) -> int:
        """Return the number of open connections, without refused ones."""
        return len(self._open)

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return len(self._open) >= self.max_open

    @property
    def may_poll_twice(self) -> bool:
        """Whether one turn of the event loop may poll for requests twice."""
        return len(self._open) + len(self._refused) > MAX_PER_POLL

    @property
    def is_overrun(self) -> bool:
        """Whether too many connections are being refused to answer each."""
        return len(self._refused) >= REFUSED_AT_ONCE

    def add(self, check: Check, *, is_refused: bool = False) -> None:
        """Count the connection."""
        (self._refused if is_refused else self._open).add(check)

    def discard(self, check: Check) -> None:
        """Stop counting the connection, which is closed."""
        self._open.discard(check)
        self._refused.discard(check)

    async def check(self) -> None:
        """Wait for a second or less, then check every connection: a timer for each request would
        cost more than a page of the list."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await asyncio.sleep(self._interval_s)
        now_s = loop.time()
        # After a stall of this process, timeouts are checked only once it has caught up.
        if now_s - began_s < 2 * self._interval_s:
            with contextlib.suppress(MemoryError):  # the next check is in a second
                for check in (*self._open, *self._refused):
                    loop.call_soon(check, now_s)  # isolates errors


def find_room(wanted: int) -> int:
    """Return how many connections this process may open: `wanted`, or as many as the system allows.

    Raise the process's limit of open files if needed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    needed = wanted + RESERVED_FILES + REFUSED_AT_ONCE
    if soft < needed:
        higher = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):  # a system may allow less than it reports
            resource.setrlimit(resource.RLIMIT_NOFILE, (higher, hard))
            soft = higher
    return max(1, min(wanted, soft - RESERVED_FILES - REFUSED_AT_ONCE))
