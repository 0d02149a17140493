"""A line for each request that is over, without anything that a log must not hold."""

import json
import os
import re
from pathlib import Path

import pytest

from resumes.log_writer import LogWriter
from resumes.settings import LogFormat, Settings
from resumes.store.keys import KeyHolder
from server.access_log import AccessLog, has_access_log
from server.exchange import Exchange


class File:
    """A log in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
        self.writer = LogWriter(self._descriptor)

    def lines(self) -> list[str]:
        """All lines, when no more will come."""
        self.writer.close()
        os.close(self._descriptor)
        return self._path.read_text().splitlines()


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path / "log")


def an_exchange(method: str = "GET", *, request_id: bytes = b"mine") -> Exchange:
    async def nothing(*_: object) -> None:
        return None

    headers = [(b"x-request-id", request_id), (b"authorization", b"Bearer enh_live_secret")]
    scope = {
        "method": method,
        "path": "/api/v1/resumes/ada@example.com",
        "query_string": b"cursor=secret",
        "headers": headers,
    }
    exchange = Exchange(scope, nothing, nothing)  # type: ignore[arg-type]  # never called
    exchange.operation = "list"
    exchange.status = 200
    return exchange


def test_a_line_of_json_says_who_asked_what_and_how_it_went(file: File) -> None:
    log = AccessLog(file.writer, log_format=LogFormat.JSON, clock=lambda: 1_800_000_000_123_456)
    exchange = an_exchange()
    exchange.holder = KeyHolder("3a164cda47544846", "key_96cbdf372957", True)

    log.observe(exchange, 0.012_34)

    (line,) = file.lines()
    assert json.loads(line) == {
        "at": "2027-01-15T08:00:00.123Z",
        "level": "INFO",
        "logger": "resumes.access",
        "message": "request",
        "requestId": "mine",
        "method": "GET",
        "operation": "list",
        "status": 200,
        "ms": 12.34,
        "account": "3a164cda47544846",
        "key": "key_96cbdf372957",
    }


def test_without_a_key_there_is_no_account(file: File) -> None:
    log = AccessLog(file.writer, log_format=LogFormat.JSON)
    exchange = an_exchange()
    exchange.operation = ""
    exchange.status = 401

    log.observe(exchange, 0.0)

    (line,) = file.lines()
    told = json.loads(line)
    assert (told["operation"], told["account"], told["key"]) == ("other", None, None)


def test_a_line_of_text_says_the_same(file: File) -> None:
    log = AccessLog(file.writer, log_format=LogFormat.TEXT, clock=lambda: 1_800_000_000_123_456)

    log.observe(an_exchange(), 0.012_34)

    assert file.lines() == [
        "2027-01-15T08:00:00.123Z INFO resumes.access: request mine: GET list, status 200, "
        "12.34 ms, account none, key none"
    ]


@pytest.mark.parametrize("log_format", list(LogFormat))
def test_nothing_that_a_stranger_wrote_is_in_it(file: File, log_format: LogFormat) -> None:
    log = AccessLog(file.writer, log_format=log_format)

    log.observe(an_exchange("ADA@EXAMPLE", request_id=b'ada@example.com","x":"'), 0.0)

    (line,) = file.lines()
    assert not re.search("example|secret|enh_live", line, re.IGNORECASE)
    assert "other" in line


@pytest.mark.parametrize(
    ("chosen", "log_format", "expected"),
    [
        (None, LogFormat.JSON, True),
        (None, LogFormat.TEXT, False),
        (True, LogFormat.TEXT, True),
        (False, LogFormat.JSON, False),
    ],
)
def test_requests_are_logged_as_set_or_else_in_json(
    tmp_path: Path, chosen: bool | None, log_format: LogFormat, expected: bool
) -> None:
    settings = Settings(home=tmp_path, access_log=chosen, log_format=log_format)

    assert has_access_log(settings) is expected
