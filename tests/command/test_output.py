"""What is printed: tables that fit, harmless text, logs of a line each."""

import json
import logging
import subprocess
import sys

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
from resumes.text import is_harmless

COLUMNS = (Column("id"), Column("title", is_flexible=True), Column("n", is_number=True))


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


def test_a_narrator_gets_what_is_said_in_words_alone(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[str] = []
    narrate_by(lambda level, words: heard.append(words))
    try:
        say(click.style("  all is well", fg="green"))
        say()
    finally:
        narrate_by(None)
    say("to people again")

    assert heard == ["all is well"]
    assert capsys.readouterr().err == "to people again\n"


HOSTILE = [
    ("\x1b[31mred", "\\x1b[31mred"),
    ("a\x9b2Jb", "a\\x9b2Jb"),
    ("\x07\x7f", "\\x07\\x7f"),
    ("two\nlines\r\t", "two\\nlines\\r\\t"),
    ("evil\u202egnp.exe", "evil\\u202egnp.exe"),
    ("\u2066\u200f\u061c", "\\u2066\\u200f\\u061c"),
    ("\u2028\u2029", "\\u2028\\u2029"),
    ("\udc80", "\\udc80"),
    ("\U000e0041", "\\U000e0041"),
]


@pytest.mark.parametrize(("given_text", "shown"), HOSTILE)
def test_what_could_drive_a_terminal_is_escaped(given_text: str, shown: str) -> None:
    assert safe_text(given_text) == shown


@pytest.mark.parametrize("text", ["Zoë", "李小龙", "क्‍ष", "Prix\u00a0: 5", "سلمى", "👩‍💻"])
def test_every_script_stays_as_it_is(text: str) -> None:
    assert safe_text(text) == text


@given(st.text(st.characters(exclude_categories=[])))
def test_whatever_the_text_what_is_shown_is_harmless(text: str) -> None:
    assert is_harmless(safe_text(text))


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
