"""A line for each finished request (docs/operations.md, Logs).

It has the ids of the account and the key, and the operation's name:
no path, no query, no body, no name, no key is ever in it.
"""

from resumes.clock import system_clock, timestamp
from resumes.log_writer import LogWriter
from server.request import Request

METHODS = frozenset(
    ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"]
)
"""Methods that are named; a stranger's own words are not."""

# Put together here and not by the logging package: that costs more than answering the request's
# look-up does. Every value is of our own making, or of a form that needs no escaping.
JSON_LINE = (
    '{"at":"%s","level":"INFO","logger":"resumes.access","message":"request","requestId":"%s",'
    '"method":"%s","operation":"%s","status":%d,"ms":%.2f,"account":%s,"key":%s}\n'
)
TEXT_LINE = "%s INFO resumes.access: request %s: %s %s, status %d, %.2f ms, account %s, key %s\n"


class AccessLog:
    """Writes the lines."""

    def __init__(self, writer: LogWriter, *, is_json: bool) -> None:
        self._put = writer.put
        self._line = JSON_LINE if is_json else TEXT_LINE
        self._id, self._no_id = ('"%s"', "null") if is_json else ("%s", "none")

    def observe(self, request: Request, took_s: float) -> None:
        """Log the request; its line is written after the answer."""
        holder = request.holder
        line = self._line % (
            timestamp(system_clock()),
            request.id,
            request.method if request.method in METHODS else "other",
            request.operation or "other",
            request.status,
            took_s * 1_000,
            self._no_id if holder is None else self._id % holder.account_id,
            self._no_id if holder is None else self._id % holder.key_id,
        )
        self._put(line.encode())
