"""The log lines of services on standard error, as text or as JSON."""

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
    """One record, one line, escaped; a traceback keeps its own lines."""

    converter = staticmethod(time.gmtime)  # UTC, as everywhere

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line of a record, without its traceback."""
        return safe_text(super().formatMessage(record))


class JsonFormatter(logging.Formatter):
    """One record, one line of JSON: `at`, `level`, `logger`, `message`, perhaps `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record; its traceback is one string."""
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
    """Return the text with lone surrogates, as in names of files, escaped."""
    return value.encode("utf-8", "backslashreplace").decode()


def set_up_logs(*, as_json: bool = False, writer: LogWriter | None = None) -> None:
    """Log our own messages from INFO on, those of libraries from WARNING on, to standard error or by
    a writer."""
    handler = logging.StreamHandler(writer)
    if as_json:
        handler.setFormatter(JsonFormatter())
        # Whoever reads lines of JSON gets no others.
        redirect_messages(_log_words)
    else:
        handler.setFormatter(SafeFormatter(FORMAT, TIME))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("resumes").setLevel(logging.INFO)


def _log_words(level: Level, text: str) -> None:
    if words := text.strip():
        getattr(logging.getLogger("resumes.cli"), level)(words)


def open_service_log(*, as_json: bool) -> LogWriter:
    """Log as `set_up_logs` does, by a thread; return its writer, for other lines."""
    writer = LogWriter(STANDARD_ERROR)
    set_up_logs(as_json=as_json, writer=writer)
    return writer


def is_file_or_pipe(stream: TextIO) -> bool:
    """Return whether what is written to the stream goes to one, rather than to a terminal."""
    try:
        return not os.isatty(stream.fileno())
    except OSError:  # it is kept in this process, as some who call us keep it
        return False


@contextlib.contextmanager
def narrating(*, as_json: bool) -> Iterator[None]:
    """Write logs and messages of the block to standard error.

    To a file or a pipe a thread writes them: a service neither waits for a reader that is slow or
    stuck, nor ends when it is gone or the disk is full.
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
