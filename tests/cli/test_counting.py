"""How far something long is."""

import io
import sys

import pytest

from cli.counting import counting, describe


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_known_is_said() -> None:
    assert describe("wrote", 1_234, None, "rows", None) == "wrote 1,234 rows"
    assert describe("wrote", 10, 100, "rows", None) == "wrote 10 of 100 rows"
    assert describe("wrote", 10, 610, "rows", 10.0) == "wrote 10 of 610 rows, about 1 min left"


def test_more_than_were_expected_is_no_riddle() -> None:
    assert describe("wrote", 12, 10, "rows", 1.0) == "wrote 12 of 12 rows"


def test_a_terminal_has_the_count_on_its_last_line_and_none_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    times = iter([0.0, 0.05, 0.2])
    with counting("rows", 9, monotonic=lambda: next(times)) as count:
        for done in (1, 2, 3):
            count("wrote", done)
    lines = terminal.getvalue().split("\r\x1b[K")
    assert lines == ["", "wrote 1 of 9 rows", "wrote 3 of 9 rows", ""]


def test_where_there_is_no_terminal_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with counting("rows") as count:
        count("wrote", 1)
    assert capsys.readouterr().err == ""
