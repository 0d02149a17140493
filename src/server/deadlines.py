"""How long a connection may take for what it is in the middle of."""

from enum import Enum, auto

BODY_BYTES_PER_S = 40 * 1024
"""The speed that a body must have overall, after a free start: 2 MiB take 60 s at
most, which a telephone manages."""

KEEP_ALIVE_S = 75
"""How long a silent connection stays open: longer than the pools of common clients and proxies
keep theirs, so that none sends into a closing one."""

READ_BYTES_PER_S = 4 * 1024
"""The speed at which an answer must be read, while part of it waits: it costs us memory."""

LINGER_S = 2.0
"""How long a client that sends no more has to read why its request was refused."""

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
    """What one connection was granted, by the clock of the event loop, in seconds."""

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
                return self.stop_s is not None or self._is_body_late(now_s, body_bytes, LINGER_S)
            case Reading.BETWEEN:
                return waited_s >= (self._client_s if self._is_new else KEEP_ALIVE_S)
            case Reading.HEAD:
                return self.has_stopped(now_s) or waited_s >= self._client_s
            case Reading.BODY:
                is_late = self._is_body_late(now_s, body_bytes, self._client_s)
                return self.has_stopped(now_s) or is_late

    def _is_body_late(self, now_s: float, body_bytes: int, free_s: float) -> bool:
        if body_bytes != self._seen_bytes:
            self._progress_s = now_s
            self._seen_bytes = body_bytes
        elif now_s - self._progress_s >= free_s:
            return True
        return now_s - self._since_s >= free_s + body_bytes / BODY_BYTES_PER_S

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
