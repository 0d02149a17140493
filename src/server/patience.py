"""How long a client may keep a connection waiting (docs/api.md, Limits).

A client that sends nothing, or byte by byte, costs it nothing and us a connection. So a head has
its time as a whole, and a body must make progress, and on the whole some speed. A client that
does not read what it is sent is no better.
"""

from enum import Enum, auto

from server.outgoing import Outgoing

BODY_BYTES_PER_S = 40 * 1024
"""The speed that a body must have on the whole, behind a start that is free: 2 MiB take 60 s at
most, which a telephone manages."""

READ_BYTES_PER_S = 4 * 1024
"""The speed at which an answer must be read, so long as some of it waits: it costs us memory."""

LINGER_S = 2.0
"""How long a client has to read why its request was refused."""

STOP_S = 2.0
"""How long a request that has come in part is waited for when the service stops."""


class Reading(Enum):
    """What a connection is in the middle of receiving."""

    BETWEEN = auto()
    """Nothing: the next request has not begun."""

    HEAD = auto()
    BODY = auto()

    OVER = auto()
    """Nothing that matters: no other request will be read."""


class Verdict(Enum):
    """What becomes of a connection."""

    STAYS = auto()
    CLOSED = auto()
    """Nothing was asked."""

    LATE = auto()
    """A request has come in part, and taken too long."""

    STOPPED = auto()
    """A request has come in part, and there is no more time for it, as the service stops."""

    CUT = auto()
    """There was time enough to read the last answer."""


class Patience:
    """What the one connection was granted, by the clock of the event loop, in seconds."""

    __slots__ = (
        "_client_s",
        "_idle_s",
        "_is_new",
        "_progress_s",
        "_reads",
        "_seen_bytes",
        "_since_s",
        "_stop_s",
    )

    def __init__(self, now_s: float, client_s: float, idle_s: float) -> None:
        self._client_s = client_s
        self._idle_s = idle_s
        self._is_new = True
        self._since_s = now_s
        self._progress_s = now_s
        self._seen_bytes = 0
        self._reads = (now_s, 0)
        self._stop_s: float | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether the service stops."""
        return self._stop_s is not None

    def stop(self, now_s: float) -> None:
        """Leave little time to what has come in part, as the service stops."""
        self._stop_s = now_s

    def begin(self, now_s: float) -> None:
        """Count from now on: something else is being received, or nothing."""
        self._is_new = False
        self._since_s = self._progress_s = now_s
        self._seen_bytes = 0

    def judge(self, now_s: float, reading: Reading, body_bytes: int) -> Verdict:
        """Return what becomes of a connection that is in the middle of this, and answers nothing."""
        waited_s = now_s - self._since_s
        if reading is Reading.OVER:
            return Verdict.CUT if self.is_stopping or waited_s >= LINGER_S else Verdict.STAYS
        if reading is Reading.BETWEEN:
            limit_s = self._client_s if self._is_new else self._idle_s
            return Verdict.CLOSED if waited_s >= limit_s else Verdict.STAYS
        # A timer may be early by the millisecond that the loop counts in.
        if self._stop_s is not None and now_s - self._stop_s > STOP_S - 0.01:
            return Verdict.STOPPED
        is_late = (
            waited_s >= self._client_s
            if reading is Reading.HEAD
            else self._is_body_late(now_s, body_bytes)
        )
        return Verdict.LATE if is_late else Verdict.STAYS

    def _is_body_late(self, now_s: float, body_bytes: int) -> bool:
        if body_bytes != self._seen_bytes:
            self._progress_s = now_s
            self._seen_bytes = body_bytes
        elif now_s - self._progress_s >= self._client_s:
            return True
        return now_s - self._since_s >= self._client_s + body_bytes / BODY_BYTES_PER_S

    def is_stuck(self, now_s: float, outgoing: Outgoing) -> bool:
        """Tell whether the client has read next to nothing for too long, though there is something."""
        began_s, before_bytes = self._reads
        sent_bytes = outgoing.sent_bytes
        enough_bytes = READ_BYTES_PER_S * self._client_s
        if not outgoing.unsent_bytes or sent_bytes - before_bytes >= enough_bytes:
            self._reads = (now_s, sent_bytes)
            return False
        return now_s - began_s >= self._client_s
