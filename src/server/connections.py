"""All connections of a process: how many there may be, what they hold, and how long each may take."""

import asyncio
import contextlib
import resource
from collections.abc import Callable
from enum import Enum, auto

from resumes.settings import Settings

RESERVED_FILES = 128
"""Open files that are not for connections: the store's, the listener, those of the loop."""

REFUSED_AT_ONCE = 100
"""Connections beyond the limit that are kept for a moment, so that their clients see the answer."""

SEEN_AT_ONCE = 1_000
"""With more connections than these, one turn of the event loop may look for requests twice: libuv
does when 1,024 files have something, and the process has a few more."""

MIB = 1024 * 1024


Look = Callable[[float], None]
"""A connection, by what refuses or cuts off a client that has kept it waiting for too long."""


class Connections:
    """The connections of a process, and the bytes of bodies that they hold in memory."""

    def __init__(self, settings: Settings) -> None:
        self.max_open = find_room(settings.max_connections)
        self.max_body_bytes = max(settings.body_memory_bytes, settings.max_body_bytes + MIB)
        """How much the bodies in memory may be in all; one of the largest always fits."""
        self.client_timeout_s = settings.client_timeout_s
        self.body_bytes = 0
        """How much they are."""
        self._open: set[Look] = set()
        self._refused: set[Look] = set()
        self.served: set[Callable[[], None]] = set()
        """What ends those in which HTTP has begun, after the answers to what was sent before."""
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


BODY_BYTES_PER_S = 40 * 1024
"""The speed that a body must have overall, after a free start: 2 MiB take 60 s at
most, which a telephone manages."""

KEEP_ALIVE_S = 75
"""How long a silent connection stays open: longer than the pools of common clients and proxies
keep theirs, so that none sends into a closing one."""

READ_BYTES_PER_S = 4 * 1024
"""The speed at which an answer must be read, while part of it waits: it costs us memory."""

LINGER_S = 2.0
"""How long a client has to read why its request was refused."""

STOP_S = 2.0
"""How long a request that has arrived in part is waited for when the service stops."""


class Reading(Enum):
    """What a connection is in the middle of receiving."""

    BETWEEN = auto()
    """Nothing: the next request has not begun."""

    HEAD = auto()
    BODY = auto()

    OVER = auto()
    """Nothing that matters: no other request will be read."""


class Deadlines:
    """What the one connection was granted, by the clock of the event loop, in seconds."""

    def __init__(self, now_s: float, client_s: float) -> None:
        self._client_s = client_s
        self._is_new = True
        self._since_s = now_s
        self._progress_s = now_s
        self._seen_bytes = 0
        self._reads = (now_s, 0)
        self.stop_s: float | None = None
        """When the service began to stop: what has arrived in part has little time from then on."""

    def begin(self, now_s: float) -> None:
        """Count from now on: something else is being received, or nothing."""
        self._is_new = False
        self._since_s = self._progress_s = now_s
        self._seen_bytes = 0

    def has_stopped(self, now_s: float) -> bool:
        """Whether the service stops, and has waited long enough for what has come in part."""
        # A timer may be early by the millisecond that the loop counts in.
        return self.stop_s is not None and now_s - self.stop_s > STOP_S - 0.01

    def is_over(self, now_s: float, reading: Reading, body_bytes: int) -> bool:
        """Whether a connection has had its time that receives this and answers nothing."""
        waited_s = now_s - self._since_s
        match reading:
            case Reading.OVER:
                return self.stop_s is not None or waited_s >= LINGER_S
            case Reading.BETWEEN:
                return waited_s >= (self._client_s if self._is_new else KEEP_ALIVE_S)
            case Reading.HEAD:
                return self.has_stopped(now_s) or waited_s >= self._client_s
            case Reading.BODY:
                return self.has_stopped(now_s) or self._is_body_late(now_s, body_bytes)

    def _is_body_late(self, now_s: float, body_bytes: int) -> bool:
        if body_bytes != self._seen_bytes:
            self._progress_s = now_s
            self._seen_bytes = body_bytes
        elif now_s - self._progress_s >= self._client_s:
            return True
        return now_s - self._since_s >= self._client_s + body_bytes / BODY_BYTES_PER_S

    def is_stuck(self, now_s: float, sent_bytes: int, unsent_bytes: int) -> bool:
        """Tell whether the client has read next to nothing for too long, though there is something.

        Unsent is what the system has not taken yet, as the client reads too slowly.
        """
        began_s, before_bytes = self._reads
        enough_bytes = READ_BYTES_PER_S * self._client_s
        if not unsent_bytes or sent_bytes - before_bytes >= enough_bytes:
            self._reads = (now_s, sent_bytes)
            return False
        return now_s - began_s >= self._client_s
