"""What services log, as lines on standard error: of text, or of JSON."""

import logging
import time

import orjson

from cli.output import narrate_by
from cli.text import safe_json, safe_text
from resumes.clock import timestamp
from resumes.log_writer import LogWriter

STANDARD_ERROR = 2

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


class JsonFormatter(logging.Formatter):
    """One record, one line of JSON: `at`, `level`, `logger`, `message`, perhaps `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record; its traceback is one string."""
        line = {
            "at": timestamp(int(record.created * 1_000_000)),
            "level": record.levelname,
            "logger": record.name,
            "message": _text(record.getMessage()),
        }
        if record.exc_info:
            line["exception"] = _text(self.formatException(record.exc_info))
        return safe_json(orjson.dumps(line).decode())


def _text(value: str) -> str:
    """The text, with what is no text (part of a file's name) escaped."""
    return value.encode("utf-8", "backslashreplace").decode()


class WriterHandler(logging.Handler):
    """Hands lines to a writer behind which nobody waits."""

    def __init__(self, writer: LogWriter) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        """The record's line is written soon, or counted as dropped."""
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001  (a record that cannot be formatted must not fail its caller)
            self.handleError(record)
            return
        self._writer.put(line.encode("utf-8", "backslashreplace") + b"\n")


def set_up_logs(*, as_json: bool = False) -> None:
    """Our own log appears from INFO on, that of libraries from WARNING on."""
    _set_up(logging.StreamHandler(), as_json=as_json)


def open_service_log(*, as_json: bool) -> LogWriter:
    """As `set_up_logs`, written behind whoever logs; and where lines of other making go."""
    writer = LogWriter(STANDARD_ERROR)
    _set_up(WriterHandler(writer), as_json=as_json)
    return writer


def _set_up(handler: logging.Handler, *, as_json: bool) -> None:
    if as_json:
        handler.setFormatter(JsonFormatter())
        # Whoever reads lines of JSON gets no others.
        narrate_by(logging.getLogger("resumes.cli").log)
    else:
        handler.setFormatter(SafeFormatter(FORMAT, "%Y-%m-%dT%H:%M:%SZ"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("resumes").setLevel(logging.INFO)
