"""The connections of a process: their number, and the memory used by their bodies."""

import asyncio
import contextlib
import resource
from collections.abc import Callable

from resumes.settings import Settings

RESERVED_FILES = 128
"""Open files other than connections: those of the store and the event loop, and the listener."""

REFUSED_AT_ONCE = 100
"""Connections beyond the limit that are kept briefly, so that their clients get an answer."""

MAX_PER_POLL = 1_000
"""With more connections, one turn of the event loop may poll for requests twice, because libuv does
so after 1,024 events. The margin is for other open files."""

MIB = 1024 * 1024

BODY_MEMORY_BYTES = 64 * MIB
"""The memory for request bodies in a process. Requests beyond this limit are rejected."""


Check = Callable[[float], None]
"""The method that identifies a connection. It rejects or disconnects a client that is too slow."""


class Connections:
    """The connections of a process, and the bytes of request bodies that they hold in memory."""

    def __init__(self, settings: Settings) -> None:
        self.max_open = find_room(settings.max_connections)
        self.max_body_bytes = max(BODY_MEMORY_BYTES, settings.max_body_bytes + MIB)
        """The maximum size of all bodies in memory. At least one body of the maximum size fits."""
        self.client_timeout_s = settings.client_timeout_s
        self.body_bytes = 0
        """The current size of all bodies in memory."""
        self._open: set[Check] = set()
        self._refused: set[Check] = set()
        self.served: set[Callable[[], None]] = set()
        """For each connection that uses HTTP, a function that closes it after pending answers."""
        self.is_stopping = False
        """Whether the server is stopping, so that new connections are closed as well."""
        self.tasks: set[asyncio.Task[None]] = set()
        """The tasks that answer requests asynchronously."""
        self._interval_s = min(1.0, settings.client_timeout_s / 10)

    def __len__(self) -> int:
        """Return the number of open connections, without rejected connections."""
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
        """Whether too many connections are being rejected to send each an answer."""
        return len(self._refused) >= REFUSED_AT_ONCE

    def add(self, check: Check, *, is_refused: bool = False) -> None:
        """Count the connection."""
        (self._refused if is_refused else self._open).add(check)

    def discard(self, check: Check) -> None:
        """Stop counting a connection that was closed."""
        self._open.discard(check)
        self._refused.discard(check)

    async def check(self) -> None:
        """Wait for a second or less, then check every connection. A timer for each request would
        take longer than listing a page."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await asyncio.sleep(self._interval_s)
        now_s = loop.time()
        # After this process was stalled, timeouts are checked only once it has caught up.
        if now_s - began_s < 2 * self._interval_s:
            with contextlib.suppress(MemoryError):  # the next check is in a second
                for check in (*self._open, *self._refused):
                    loop.call_soon(check, now_s)  # isolates errors


def find_room(wanted: int) -> int:
    """Return how many connections this process may open, at most `wanted`.

    If necessary, raise the process's limit of open files.
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
