"""What is printed: tables that fit, harmless text, logs of a line each, how far something long is."""

import io
import json
import logging
import os
import pty
import select
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.logs import JsonFormatter
from cli.output import (
    Column,
    cut,
    put_fields,
    put_json,
    put_json_line,
    put_table,
    redirect_messages,
    safe_text,
    say,
    width,
)
from cli.progress import MAX_LINES, describe, describe_copy, metered
from importer.notices import Progress
from resumes.store import accounts, api_keys
from resumes.store.transfer import copies
from resumes.store.transfer.copies import Stage
from tests.command.conftest import screen
from tests.support import programs
from tests.support.inbox.builders import drop, filed
from tests.support.resumes import a_document
from tests.support.stores import open_home
from tests.support.waiting import wait_until

COLUMNS = (
    Column("id", itemgetter(0)),
    Column("title", itemgetter(1), is_flexible=True),
    Column("n", itemgetter(2), is_number=True),
)


def test_a_table_lines_up_is_harmless_and_fits_a_terminal_but_not_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put_table(COLUMNS, [["a", "日本", "7"], ["bb", "\x1b[2J\n", "1,000"]])
    put_fields([("name", "\u202e")])
    assert capsys.readouterr().out == (
        "id  title          n\n"
        "a   日本           7\n"
        "bb  \\x1b[2J\\n  1,000\n"
        "name  \\u202e\n"
    )  # fmt: skip
    put_table(COLUMNS, [["a", "x" * 300, "7"]])
    assert "x" * 300 in capsys.readouterr().out

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    put_table(COLUMNS, [["a" * 24, "x" * 300, "7"]])

    lines = capsys.readouterr().out.splitlines()
    assert [len(line) for line in lines] == [40 + 1, 40 + 1]  # the least that a column keeps
    assert lines[1].endswith("x…  7")


def test_json_keeps_scripts_readable_and_controls_escaped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    put_json({"name": "李\x9b\x7f\u202e\ud800"})
    put_json_line({"b": 1, "a": [1.0]})

    first, second = capsys.readouterr().out.rsplit("\n", 2)[:2]
    assert first == '{\n  "name": "李\\u009b\\u007f\\u202e\\ud800"\n}'
    assert second == '{"b":1,"a":[1.0]}'
    assert json.loads(first) == {"name": "李\x9b\x7f\u202e\ud800"}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("put_value", [put_json, put_json_line])
def test_json_is_json_in_a_locale_of_another_encoding(
    encoding: str, put_value: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    value = {"name": "é李🚢\x9b\ud800"}
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding=encoding, errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", stream)

    put_value(value)

    assert json.loads(written.getvalue()) == value


def test_a_narrator_gets_what_is_said_without_styles(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[str] = []
    redirect_messages(lambda level, text: heard.append(text))
    try:
        say(click.style("  all is well", fg="green"))
        say()
    finally:
        redirect_messages(None)
    say("to people again")

    assert heard == ["  all is well", ""]
    assert capsys.readouterr().err == "to people again\n"


@given(st.text(), st.integers(1, 30))
def test_cut_never_takes_more_cells_than_there_are(text: str, cells: int) -> None:
    assert width(cut(safe_text(text), cells)) <= cells


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


LOG = """
import logging, sys
from cli.logs import open_service_log

writer = open_service_log(as_json=sys.argv[1] == "1")
logging.getLogger("resumes.server").info("a %s", "\\u00fc\\udcff")
writer.put(b"of other making\\n")
writer.close()
"""


@pytest.mark.parametrize("as_json", [False, True])
def test_a_services_lines_are_written_behind_it_and_all_before_it_ends(as_json: bool) -> None:
    process = subprocess.run(
        [sys.executable, "-P", "-c", LOG, str(int(as_json))], capture_output=True, check=True
    )

    first, second = process.stderr.splitlines()
    assert second == b"of other making"
    if as_json:
        assert json.loads(first)["message"] == "a \u00fc\\udcff"
    else:
        assert first.endswith("INFO resumes.server: a \u00fc\\udcff".encode())


# Progress


MANY = Progress(done=12_345, failed=3, duplicate=0, held=0, waiting=88_000, is_complete=True)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[TextIO, Callable[[], str]]]:
    """A stream to a terminal, and what gives all that was written there."""
    ours, theirs = pty.openpty()
    read = b""

    def read_all() -> str:
        nonlocal read
        while select.select([ours], [], [], 0.1)[0]:
            read += os.read(ours, 65_536)
        return read.decode()

    for name, value in {"TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    with os.fdopen(theirs, "w") as stream:
        yield stream, read_all
    os.close(ours)


def test_the_files_of_a_backlog_are_counted_below_their_first_lines(
    terminal: tuple[TextIO, Callable[[], str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, written = terminal
    monkeypatch.setattr(sys, "stderr", stream)
    with metered(is_wanted=True) as meter:
        meter.put_progress(MANY)
        for number in range(MAX_LINES + 30):
            meter.put_file("done", f"{number}.json", None)
        meter.put_file("failed", "bad.json", "Invalid JSON")
        shown = screen(written())
        meter.put_progress(replace(MANY, waiting=0))
        meter.put_file("done", "next.json", None)

    first = [f"done       {number}.json" for number in range(MAX_LINES)]
    failed = "failed     bad.json: Invalid JSON"
    assert shown[:-1] == [*first, failed]
    assert shown[-1].startswith("12,345 done, 3 failed; 88,000 waiting ")
    rest = ["done       30 more files", "done       next.json", ""]
    assert screen(written()) == [*first, failed, *rest]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (describe(MANY), "12,345 done, 3 failed; 88,000 waiting"),
        (
            describe(replace(MANY, failed=0, duplicate=4, held=5, is_complete=False)),
            "12,345 done, 4 duplicate, 5 held; 88,000+ waiting",
        ),
        (
            describe_copy(copies.CopyProgress(Stage.COPYING, "documents", 120_000, 1_000_000)),
            "Copying: 120,000 of 1,000,000 rows",
        ),
        (
            describe_copy(copies.CopyProgress(Stage.PROVING, "documents", 1_000, 1_000)),
            "Comparing: 1,000 of 1,000 rows",
        ),
        (
            describe_copy(copies.CopyProgress(Stage.BACKING_UP, "store", 120_000_000, 350_400_000)),
            "Backing up: 120 of about 350 MB",
        ),
    ],
)
def test_a_status_says_how_far_it_is(text: str, said: str) -> None:
    assert text == said


# Standard streams that are closed or stuck, as some supervisors have them


CLOSED = "Error: Standard output is closed. Redirect it to /dev/null if it is not needed\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "how", "code", "said"),
    [
        ("accounts list", ">&-", 1, CLOSED),
        ("keys create ana", ">&-", 1, CLOSED),  # before anything is done
        ("keys create ana", "<&- >&- 2>&-", 1, ""),
        ("validate -", "<&-", 1, "0 valid, 1 failed."),
        ("accounts delete ana", "<&-", 2, "Error: Cannot ask for confirmation without a terminal"),
    ],
)
def test_closed_streams_harm_nothing(
    tmp_path: Path, words: str, how: str, code: int, said: str
) -> None:
    with open_home(tmp_path) as store:
        accounts.create_account(store, "ana")
    line = f"{shlex.join(programs.command(tmp_path, *words.split()))} {how}"

    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stderr[: len(said)]) == (code, said)
    with open_home(tmp_path) as store:
        assert api_keys.list_keys(store) == []
        assert [one.name for one in accounts.list_accounts(store)] == ["ana"]


@pytest.mark.slow
@pytest.mark.parametrize("open_log", [programs.closed_pipe, programs.full_pipe])
def test_a_log_that_cannot_be_written_keeps_no_service_from_its_work_and_end(
    tmp_path: Path, open_log: Callable[[], int]
) -> None:
    with open_home(tmp_path) as store:
        accounts.create_account(store, "ana")
    inbox = tmp_path / "inbox"
    drop(inbox, "ana/1.json", a_document())
    errors = open_log()

    with (
        programs.serving(tmp_path, "--log-format", "json", stderr=errors) as url,
        programs.running(tmp_path, "watch", stderr=errors),
    ):
        for _ in range(200):
            assert programs.call(f"{url}/api/v1/resumes", None)[0] == 401
        wait_until(lambda: len(filed(inbox, "_done")) == 1)
    os.close(errors)
