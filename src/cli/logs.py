"""What services log, as lines on standard error."""

import logging
import time

from cli.text import safe_text

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class SafeFormatter(logging.Formatter):
    """One record, one line, escaped; a traceback keeps its own lines."""

    @staticmethod
    def converter(seconds: float | None) -> time.struct_time:
        """UTC, as everywhere."""
        return time.gmtime(seconds)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line of a record, without its traceback."""
        return safe_text(super().formatMessage(record))


def set_up_logs() -> None:
    """Our own log appears from INFO on, that of libraries from WARNING on."""
    handler = logging.StreamHandler()
    handler.setFormatter(SafeFormatter(FORMAT, "%Y-%m-%dT%H:%M:%SZ"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("resumes").setLevel(logging.INFO)
