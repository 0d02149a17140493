"""All connections of a process: how many there may be, and what they hold.

One timer looks at all of them in turn: a timer for each request would cost more than a list's page.
"""

import asyncio
import contextlib
import resource
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from resumes.settings import Settings

RESERVED_FILES = 128
"""Open files that are not for connections: the store's, the listener, those of the loop."""

REFUSED_AT_ONCE = 100
"""Connections beyond the limit that are kept for a moment, so that their clients see the answer."""

SEEN_AT_ONCE = 1_000
"""With more connections than these, one turn of the event loop may look for requests twice: libuv
does when 1,024 files have something, and the process has a few more."""

MIB = 1024 * 1024


class Watched(Protocol):
    """A connection: looked at about once a second, and flushed at the end of a turn of the event loop."""

    def look(self, now_s: float) -> None:
        """Refuse or cut off a client that has kept the connection waiting for too long."""

    def flush(self) -> None:
        """Send what was written in this turn."""


class Connections:
    """The connections of a process, and the bytes of bodies that they hold in memory."""

    def __init__(self, settings: Settings) -> None:
        self.max_open = find_room(settings.max_connections)
        self.max_body_bytes = max(settings.body_memory_bytes, settings.max_body_bytes + MIB)
        """How much the bodies in memory may be in all; one of the largest always fits."""
        self.client_timeout_s = settings.client_timeout_s
        self.body_bytes = 0
        """How much they are."""
        self._open: set[Watched] = set()
        self._refused: set[Watched] = set()
        self._interval_s = min(1.0, settings.client_timeout_s / 10)
        self._due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._unsent: deque[Watched] = deque()
        self.look_number = 0
        """How often, at least, the event loop has looked for requests: see `end_look`."""
        self._common: tuple[Sequence[tuple[bytes, bytes]], bytes] = ((), b"")

    def __len__(self) -> int:
        """Return how many are open, not counting those that were refused."""
        return len(self._open)

    @property
    def is_full(self) -> bool:
        """Whether one more would be too many."""
        return len(self._open) >= self.max_open

    def end_look(self) -> None:
        """Take note that the event loop may look for requests before what is done next."""
        self.look_number += 1

    def schedule_end_look(self) -> None:
        """`end_look` after the requests that the event loop sees now; if there may be more, immediately."""
        if len(self._open) + len(self._refused) > SEEN_AT_ONCE:
            self.end_look()
        else:
            asyncio.get_running_loop().call_soon(self.end_look)

    @property
    def is_overrun(self) -> bool:
        """Whether too many are being refused for each to get an answer."""
        return len(self._refused) >= REFUSED_AT_ONCE

    def add(self, connection: Watched, *, is_refused: bool = False) -> None:
        """Count the connection, and look at it about once a second."""
        (self._refused if is_refused else self._open).add(connection)
        if self._timer is None:
            self._arm(asyncio.get_running_loop())

    def discard(self, connection: Watched) -> None:
        """Forget the connection, which is gone."""
        self._open.discard(connection)
        self._refused.discard(connection)

    def schedule_flush(self, connection: Watched) -> None:
        """Flush this connection, and all others that have something to send, after this turn."""
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(connection)

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, deque()
        try:
            while unsent:
                unsent.popleft().flush()
        finally:
            if unsent:  # one of them failed, which is no reason to keep the others waiting
                self._unsent.extendleft(reversed(unsent))
                asyncio.get_running_loop().call_soon(self._flush)

    def common_headers(self, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        """Return the lines of these headers, which change once a second."""
        if headers is not self._common[0]:
            self._common = (headers, b"".join(b"%b: %b\r\n" % header for header in headers))
        return self._common[1]

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due_s = loop.time() + self._interval_s
        self._timer = loop.call_later(self._interval_s, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now_s = loop.time()
        # If this process was held up, timeouts are checked once it has caught up.
        if now_s - self._due_s < self._interval_s:
            for connection in [*self._open, *self._refused]:
                connection.look(now_s)
        if self._open or self._refused:
            self._arm(loop)


def find_room(wanted: int) -> int:
    """Return how many connections this process may have open: as many as wanted, if the system allows.

    Raise the process's limit of open files as far as that needs.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + RESERVED_FILES + REFUSED_AT_ONCE
    if soft != resource.RLIM_INFINITY and soft < needed:
        higher = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):  # a system may allow less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (higher, hard))
            soft = higher
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, soft - RESERVED_FILES - REFUSED_AT_ONCE))
