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
    narrate_by,
    put_fields,
    put_json,
    put_json_line,
    put_table,
    safe_text,
    say,
    width,
)
from cli.progress import FEW, describe, describe_copy, metered
from importer.notices import Progress
from resumes.store import accounts, api_keys, open_store
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


def test_columns_line_up_and_numbers_stand_right(capsys: pytest.CaptureFixture[str]) -> None:
    put_table(COLUMNS, [["a", "日本", "7"], ["bb", "x", "1,000"]])

    assert capsys.readouterr().out == (
        "id  title      n\n"
        "a   日本       7\n"
        "bb  x      1,000\n"
    )  # fmt: skip


def test_a_pipe_gets_everything(capsys: pytest.CaptureFixture[str]) -> None:
    put_table(COLUMNS, [["a", "x" * 300, "7"]])

    assert "x" * 300 in capsys.readouterr().out


def test_a_terminal_gets_what_fits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")

    put_table(COLUMNS, [["a" * 24, "x" * 300, "7"]])

    lines = capsys.readouterr().out.splitlines()
    assert [len(line) for line in lines] == [40 + 1, 40 + 1]  # the least that a column keeps
    assert lines[1].endswith("x…  7")


def test_cells_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    put_table(COLUMNS, [["a", "\x1b[2J\n", "7"]])
    put_fields([("name", "\u202e")])

    assert "\\x1b[2J\\n" in (out := capsys.readouterr().out)
    assert "name  \\u202e\n" in out


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
    narrate_by(lambda level, text: heard.append(text))
    try:
        say(click.style("  all is well", fg="green"))
        say()
    finally:
        narrate_by(None)
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


# Progress


MANY = Progress(
    done=12_345,
    failed=3,
    duplicate=0,
    held=0,
    waiting=88_000,
    is_complete=True,
)


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
        for number in range(FEW + 30):
            meter.put_file("done", f"{number}.json", None)
        meter.put_file("failed", "bad.json", "Invalid JSON")
        shown = screen(written())
        meter.put_progress(replace(MANY, waiting=0))
        meter.put_file("done", "next.json", None)

    first = [f"done       {number}.json" for number in range(FEW)]
    failed = "failed     bad.json: Invalid JSON"
    assert shown[:-1] == [*first, failed]
    assert shown[-1].startswith("12,345 done, 3 failed; 88,000 waiting ")
    rest = ["done       30 more files", "done       next.json", ""]
    assert screen(written()) == [*first, failed, *rest]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "12,345 done, 3 failed; 88,000 waiting"),
        ({"is_complete": False}, "12,345 done, 3 failed; 88,000+ waiting"),
        ({"failed": 0}, "12,345 done; 88,000 waiting"),
        (
            {"duplicate": 4, "held": 5},
            "12,345 done, 3 failed, 4 duplicate, 5 held; 88,000 waiting",
        ),
    ],
)
def test_it_says_what_became_of_files_and_how_many_wait(fields: dict[str, Any], text: str) -> None:
    assert describe(replace(MANY, **fields)) == text


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (
            copies.CopyProgress(Stage.COPYING, "documents", 120_000, 1_000_000),
            "Copying: 120,000 of 1,000,000 rows",
        ),
        (
            copies.CopyProgress(Stage.PROVING, "documents", 1_000_000, 1_000_000),
            "Comparing: 1,000,000 of 1,000,000 rows",
        ),
        (
            copies.CopyProgress(Stage.BACKING_UP, "store", 120_000_000, 350_400_000),
            "Backing up: 120 of about 350 MB",
        ),
    ],
)
def test_a_copy_says_what_it_does_and_how_far_it_is(
    progress: copies.CopyProgress, text: str
) -> None:
    assert describe_copy(progress) == text


# Standard streams that are closed or stuck, as some supervisors have them


def run_redirected(home: Path, words: list[str], how: str) -> "subprocess.CompletedProcess[str]":
    """The command, run by a shell with this redirection on a home with an account `ana`."""
    with open_home(home) as store:
        accounts.create_account(store, "ana")
    line = f"{shlex.join(programs.command(home, *words))} {how}"
    return subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("words", [["accounts", "list"], ["keys", "create", "ana"]])
def test_a_closed_standard_output_is_refused_before_anything_is_done(
    tmp_path: Path, words: list[str]
) -> None:
    done = run_redirected(tmp_path, words, ">&-")
    assert done.returncode == 1
    assert done.stderr == (
        "Error: Standard output is closed. Redirect it to /dev/null if it is not needed\n"
    )
    with open_store(f"sqlite:///{tmp_path}/resumes.db") as store:
        assert api_keys.list_keys(store) == []


def test_all_streams_closed_harm_nothing(tmp_path: Path) -> None:
    with open_home(tmp_path) as store:
        accounts.create_account(store, "ana")
    line = shlex.join(programs.command(tmp_path, "accounts", "list"))
    done = subprocess.run(["sh", "-c", f"{line} <&- >&- 2>&-"], timeout=60, check=False)
    assert done.returncode == 1
    assert "ana" in programs.succeed(tmp_path, "accounts", "list")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["validate", "-"], 1, "0 valid, 1 failed."),
        (["accounts", "delete", "ana"], 2, "Error: Cannot ask for confirmation without a terminal"),
    ],
)
def test_a_closed_standard_input_is_an_empty_one(
    tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    done = run_redirected(tmp_path, words, "<&-")
    assert (done.returncode, done.stderr[: len(said)]) == (code, said)


@pytest.mark.slow
@pytest.mark.parametrize("open_log", [programs.closed_pipe, programs.full_pipe])
def test_a_server_whose_log_cannot_be_written_answers_and_ends_when_told(
    tmp_path: Path, open_log: Callable[[], int]
) -> None:
    errors = open_log()
    with programs.serving(tmp_path, "--log-format", "json", stderr=errors) as url:
        for _ in range(200):
            assert programs.call(f"{url}/api/v1/resumes", None)[0] == 401
    os.close(errors)


@pytest.mark.slow
def test_an_importer_whose_log_nobody_reads_goes_on_and_ends_when_told(tmp_path: Path) -> None:
    with open_home(tmp_path) as store:
        accounts.create_account(store, "ana")
    inbox = tmp_path / "inbox"
    drop(inbox, "ana/1.json", a_document())
    errors = programs.full_pipe()
    with programs.running(tmp_path, "watch", stderr=errors):
        wait_until(lambda: len(filed(inbox, "_done")) == 1)
    os.close(errors)
