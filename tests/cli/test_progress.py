"""How far the importer is, and which files have a line."""

import io
import sys
from dataclasses import replace
from typing import Any

import pytest

from cli.flood import FEW, FLOOD_S
from cli.progress import QUIET_S, Meter, describe, metered
from cli.status_line import StatusLine
from cli.text import width
from importer.telling import Progress
from tests.cli.screens import screen

NOTHING = Progress(
    done=0, failed=0, duplicate=0, held=0, waiting=0, waiting_bytes=0, is_complete=True
)


def so_far(**fields: Any) -> Progress:
    """What the importer tells of itself: nothing but this."""
    return replace(NOTHING, **fields)


MANY = so_far(done=12_345, failed=3, waiting=88_000, waiting_bytes=352_000_000)


class Terminal:
    """Standard error is a terminal, with a meter on a clock that stands still."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1_000.0
        self._stream = io.StringIO()
        line = StatusLine(self._stream)
        monkeypatch.setattr(sys, "stderr", line)
        self.meter = Meter(line, monotonic=lambda: self.now_s)

    @property
    def lines(self) -> list[str]:
        """What it shows; the last one is the status."""
        return screen(self._stream.getvalue())


def finish(terminal: Terminal, count: int, outcome: str = "done", name: str = "a.json") -> None:
    """So many files came to their end at once."""
    for _ in range(count):
        terminal.meter.tell(outcome, name, None)


def test_few_files_have_a_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    terminal.meter.progressed(so_far(waiting=3))
    finish(terminal, 3)
    terminal.meter.progressed(so_far(done=3))
    assert terminal.lines == ["done       a.json"] * 3 + [""]


def test_of_many_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    terminal.meter.progressed(so_far(waiting=1_000, waiting_bytes=4_000_000))
    assert terminal.lines == ["0 done; 1,000 waiting (4 MB)"]
    finish(terminal, 500)
    terminal.now_s += 1
    terminal.meter.progressed(so_far(done=500, waiting=500, waiting_bytes=2_000_000))
    *lines, status = terminal.lines
    assert lines == ["done       a.json"] * FEW
    assert status == "500 done; 500 waiting (2 MB), 500 files/s, a few seconds left"

    finish(terminal, 500)
    terminal.meter.progressed(so_far(done=1_000))
    terminal.now_s += QUIET_S + 0.1
    terminal.meter.tick()
    assert terminal.lines[FEW:] == ["done       980 more files", ""]


def test_if_it_were_not_that_many_they_have_their_lines_after_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal(monkeypatch)
    finish(terminal, FEW + 5)
    assert len(terminal.lines) == FEW + 1
    terminal.meter.close()
    assert terminal.lines == ["done       a.json"] * (FEW + 5) + [""]


def test_what_failed_always_has_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    finish(terminal, 100)
    finish(terminal, 100, "failed", "b\x1b[2J\n.json")
    assert terminal.lines[FEW:-1] == ["failed     b\\x1b[2J\\n.json"] * 100


def test_each_outcome_is_counted_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    finish(terminal, 100)
    finish(terminal, 1, "held")
    finish(terminal, 60, "duplicate")
    assert len(terminal.lines) == FEW + 1 + FEW + 1
    terminal.meter.close()
    assert terminal.lines[-3:] == ["done       80 more files", "duplicate  40 more files", ""]


def test_slow_files_have_lines_however_many_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    for _ in range(100):
        finish(terminal, 1)
        terminal.now_s += FLOOD_S / FEW * 1.1
    assert len(terminal.lines) == 101


def test_after_a_pause_files_have_lines_again(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    finish(terminal, 100)
    terminal.now_s += 60
    terminal.meter.tick()
    finish(terminal, 1, name="new.json")
    assert terminal.lines[-3:] == ["done       80 more files", "done       new.json", ""]


def test_the_status_goes_while_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    terminal.meter.progressed(MANY)
    assert terminal.lines[-1].startswith("12,345 done")
    terminal.now_s += QUIET_S + 0.1
    terminal.meter.tick()
    assert terminal.lines == [""]
    terminal.meter.progressed(replace(MANY, done=12_346))
    assert terminal.lines[-1].startswith("12,346 done")


def test_the_same_told_again_is_no_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    terminal.meter.progressed(MANY)
    terminal.now_s += QUIET_S + 0.1
    terminal.meter.progressed(replace(MANY))
    terminal.meter.tick()
    assert terminal.lines == [""]


def test_without_a_terminal_each_file_has_a_line_and_there_is_no_status(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with metered(is_wanted=True) as meter:
        for _ in range(100):
            meter.progressed(MANY)
            meter.tell("done", "a.json", None)
    assert capsys.readouterr().err == "done       a.json\n" * 100


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        (79, "12,345 done, 3 failed; 88,000 waiting (352 MB), 3,400 files/s, about 30 s left"),
        (77, "12,345 done, 3 failed; 88,000 waiting, 3,400 files/s, about 30 s left"),
        (60, "12,345 done, 3 failed; 88,000 waiting, about 30 s left"),
        (40, "12,345 done, 3 failed; 88,000 waiting"),
        (30, "12,345 done; 88,000 waiting"),
        (10, "12,345 do…"),
        (1, "…"),
    ],
)
def test_it_says_what_fits(cells: int, text: str) -> None:
    said = describe(MANY, 3_400, cells)
    assert said == text
    assert width(said) <= cells


@pytest.mark.parametrize(
    ("fields", "files_per_s", "text"),
    [
        ({}, None, "12,345 done, 3 failed; 88,000 waiting (352 MB)"),
        ({"is_complete": False}, 50, "12,345 done, 3 failed; 88,000+ waiting (352 MB), 50 files/s"),
        (
            {"waiting": 0, "waiting_bytes": 0, "failed": 0},
            50,
            "12,345 done; 0 waiting",
        ),
        (
            {"duplicate": 4, "held": 5, "waiting": 1, "waiting_bytes": 2_345},
            0.5,
            "12,345 done, 3 failed, 4 duplicate, 5 held; 1 waiting (2 kB), 0.5 files/s, a few seconds left",
        ),
        (
            {"waiting_bytes": 1_999_600_000_000},
            None,
            "12,345 done, 3 failed; 88,000 waiting (2.0 TB)",
        ),
    ],
)
def test_it_says_what_is_known(
    fields: dict[str, Any], files_per_s: float | None, text: str
) -> None:
    assert describe(replace(MANY, **fields), files_per_s, 200) == text


def test_the_largest_counts_fit_80_columns() -> None:
    largest = so_far(done=100_000, failed=100_000, duplicate=100_000, held=100_000, waiting=100_000)
    assert width(describe(largest, 3_400, 79)) <= 79
    assert "100,000 held; 100,000 waiting" in describe(largest, 3_400, 79)
