"""The time limits of a connection."""

from enum import Enum, auto

BODY_BYTES_PER_S = 40 * 1024
"""The minimum average speed of a body after the client timeout. 2 MiB may take 60 s, which a
mobile connection can do."""

KEEP_ALIVE_S = 75
"""How long an idle connection stays open: longer than in the pools of common clients and proxies,
so that none of them sends into a closing one."""

READ_BYTES_PER_S = 4 * 1024
"""The minimum speed at which a client must read an answer, because unread answers use memory."""

LINGER_S = 2.0
"""How long a client that has stopped sending may take to read why it was refused."""

STOP_S = 2.0
"""How long a stopping service waits for the rest of an incomplete request."""


class Reading(Enum):
    """What a connection is receiving."""

    BETWEEN = auto()
    """Nothing: no request has begun."""

    HEAD = auto()
    BODY = auto()

    DRAINING = auto()
    """Data to discard: no other request will be read."""


class Deadlines:
    """The deadlines of one connection, in seconds of the event loop's clock."""

    def __init__(self, now_s: float, client_s: float) -> None:
        self._client_s = client_s
        self.begin(now_s)
        self._is_new = True
        self._reads = (now_s, 0)
        self.stop_s: float | None = None
        """When the service began to stop, which leaves STOP_S for an incomplete request."""

    def begin(self, now_s: float, *, is_head: bool = False) -> None:
        """Restart the time: the connection begins to receive something else, or nothing.

        The time of the first head began with the connection.
        """
        if is_head and self._is_new:
            return
        self._is_new = False
        self._since_s = self._progress_s = now_s
        self._seen_bytes = 0

    def has_stopped(self, now_s: float) -> bool:
        """Return whether the service is stopping and STOP_S have passed."""
        return self.stop_s is not None and now_s - self.stop_s >= STOP_S

    def is_over(self, now_s: float, reading: Reading, body_bytes: int) -> bool:
        """Return whether the time is up for a connection that is not answering a request."""
        waited_s = now_s - self._since_s
        match reading:
            case Reading.DRAINING:
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
        slowest_s = self._since_s + body_bytes / BODY_BYTES_PER_S
        return now_s - free_s >= min(self._progress_s, slowest_s)

    def is_stuck(self, now_s: float, sent_bytes: int, unsent_bytes: int) -> bool:
        """Return whether the client has read too little for too long while an answer is pending.

        `unsent_bytes` are those that the system has not accepted yet.
        """
        began_s, before_bytes = self._reads
        enough_bytes = READ_BYTES_PER_S * self._client_s
        if not unsent_bytes or sent_bytes - before_bytes >= enough_bytes:
            self._reads = (now_s, sent_bytes)
            return False
        return now_s - began_s >= self._client_s
