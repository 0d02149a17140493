"""Write the log lines of services to standard error, as text or JSON."""

import contextlib
import logging
import os
import sys
import time
from collections.abc import Iterator
from typing import TextIO

import orjson

from cli.output import TIME, Level, redirect_messages, safe_json, safe_text
from resumes.clock import timestamp
from resumes.log_writer import LogWriter

STANDARD_ERROR = 2

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class SafeFormatter(logging.Formatter):
    """Formats a record as one escaped line; a traceback keeps its lines."""

    converter = staticmethod(time.gmtime)  # UTC

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the record's line, without its traceback."""
        return safe_text(super().formatMessage(record))


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON: `at`, `level`, `logger`, `message`, any `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line, with the traceback as one string."""
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
    """Escape the lone surrogates in the text, which file names may contain."""
    return value.encode("utf-8", "backslashreplace").decode()


def set_up_logs(*, as_json: bool = False, writer: LogWriter | None = None) -> None:
    """Log to standard error or the writer: own messages from INFO, libraries' from WARNING."""
    handler = logging.StreamHandler(writer)
    if as_json:
        handler.setFormatter(JsonFormatter())
        # A program that reads JSON lines must not receive other lines.
        redirect_messages(_log_words)
    else:
        handler.setFormatter(SafeFormatter(FORMAT, TIME))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("resumes").setLevel(logging.INFO)


def _log_words(level: Level, text: str) -> None:
    if words := text.strip():
        getattr(logging.getLogger("resumes.cli"), level)(words)


def open_service_log(*, as_json: bool) -> LogWriter:
    """Set up logs that a thread writes, and return its writer for other lines."""
    writer = LogWriter(STANDARD_ERROR)
    set_up_logs(as_json=as_json, writer=writer)
    return writer


def is_file_or_pipe(stream: TextIO) -> bool:
    """Return whether the stream writes to a file or pipe, not to a terminal."""
    try:
        return not os.isatty(stream.fileno())
    except OSError:  # an in-memory stream
        return False


@contextlib.contextmanager
def narrating(*, as_json: bool) -> Iterator[None]:
    """Write logs and messages of the block to standard error.

    If standard error is a file or pipe, a thread writes them, so that a service neither waits for a
    slow reader nor ends when the reader exits or the disk is full.
    """
    if not is_file_or_pipe(sys.stderr):
        set_up_logs(as_json=as_json)
        yield
        return
    writer = open_service_log(as_json=as_json)
    if not as_json:
        redirect_messages(lambda _, text: writer.write(f"{text}\n"))
    try:
        yield
    finally:
        redirect_messages(None)
        writer.close()
