"""What services log is a line, escaped."""

import json
import logging
import os
import subprocess
import sys

import pytest

from cli.logs import FORMAT, JsonFormatter, SafeFormatter, WriterHandler, set_up_logs
from resumes.log_writer import LogWriter


def test_a_record_is_one_escaped_line_in_utc() -> None:
    record = logging.LogRecord("resumes.server", logging.WARNING, "", 0, "a\x1b\n%s", ("b",), None)
    record.created = 0.0

    shown = SafeFormatter(FORMAT, "%Y-%m-%dT%H:%M:%SZ").format(record)

    assert shown == "1970-01-01T00:00:00Z WARNING resumes.server: a\\x1b\\nb"


def test_our_own_log_appears_from_info_on() -> None:
    logger = logging.getLogger("resumes")
    level = logger.level
    try:
        set_up_logs()
        assert logger.isEnabledFor(logging.INFO)
    finally:
        logger.setLevel(level)


def a_record(message: str, *arguments: object, failed: bool = False) -> logging.LogRecord:
    exc_info = None
    if failed:
        try:
            raise ValueError("the cause\x1b")
        except ValueError:
            exc_info = sys.exc_info()
    return logging.LogRecord("resumes.server", logging.ERROR, "", 0, message, arguments, exc_info)


def test_a_record_is_one_line_of_json() -> None:
    record = a_record('a\x1b\n"%s\udcff\u202e', "b", failed=True)
    record.created = 0.0

    shown = JsonFormatter().format(record)

    assert shown.isascii()
    assert len(shown.splitlines()) == 1
    line = json.loads(shown)
    assert line.pop("exception").endswith("ValueError: the cause\x1b")
    assert line == {
        "at": "1970-01-01T00:00:00.000Z",
        "level": "ERROR",
        "logger": "resumes.server",
        "message": 'a\x1b\n"b\\udcff\u202e',
    }


@pytest.mark.parametrize("as_json", [False, True])
def test_a_services_lines_are_written_behind_it_and_all_before_it_ends(as_json: bool) -> None:
    process = subprocess.run(
        [sys.executable, "-P", "-c", LOG, str(int(as_json))], capture_output=True, check=True
    )

    first, second = process.stderr.splitlines()
    assert second == b"of other making"
    if as_json:
        assert json.loads(first)["message"] == "a \u00fc\udcff".replace("\udcff", "\\udcff")
    else:
        assert first.endswith("INFO resumes.server: a \u00fc\\udcff".encode())


LOG = """
import logging, sys
from cli.logs import open_service_log

writer = open_service_log(as_json=sys.argv[1] == "1")
logging.getLogger("resumes.server").info("a %s", "\\u00fc\\udcff")
writer.put(b"of other making\\n")
writer.close()
"""


def test_a_record_that_cannot_be_formatted_fails_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    writer = LogWriter(writing)

    WriterHandler(writer).handle(a_record("%d", "no number"))
    writer.close()
    os.close(writing)

    with os.fdopen(reading) as lines:
        assert lines.read() == ""
    assert "Logging error" in capfd.readouterr().err
