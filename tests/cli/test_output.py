"""Tables fit their terminal, and only there are they cut."""

import json
import sys

import click
import pytest

from cli.output import (
    Column,
    instant,
    limit,
    narrate_by,
    put_fields,
    put_json,
    put_json_line,
    put_table,
    say,
)

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


def test_words_for_numbers_and_times() -> None:
    assert (limit(None), limit(1_000)) == ("unlimited", "1,000")
    assert (instant(None), instant("2026-01-31T09:00:00.000Z")) == ("-", "2026-01-31 09:00")


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
