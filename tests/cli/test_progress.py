"""How far something long is: lines of files, the status below them, counts."""

import fcntl
import io
import os
import pty
import select
import struct
import sys
import termios
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TextIO

import pytest

from cli.flood import FEW
from cli.progress import QUIET_S, Meter, describe
from cli.status_line import StatusLine
from cli.steps import Steps, counting, describe_move
from cli.text import width
from importer.telling import Progress
from resumes.store.moving import transferring
from resumes.store.moving.transferring import Stage
from tests.cli.conftest import screen


def shown(stream: io.StringIO) -> list[str]:
    """The lines that a terminal shows now."""
    return screen(stream.getvalue())


def test_what_is_written_appears_above_the_status() -> None:
    stream = io.StringIO()
    line = StatusLine(stream)
    line.write("first\n")
    line.show("1 of 3")
    assert shown(stream) == ["first", "1 of 3"]
    line.write("second\n")
    assert shown(stream) == ["first", "second", "1 of 3"]
    line.show("2 of 3")
    assert shown(stream) == ["first", "second", "2 of 3"]


@pytest.fixture
def terminal() -> Iterator[tuple[int, TextIO]]:
    """A pseudo terminal: the end that sees what is shown, and the stream that programs have."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        yield ours, stream
    os.close(ours)


def seen(terminal: int) -> list[str]:
    """The lines that the terminal shows after all that was written to it up to now."""
    written = b""
    while select.select([terminal], [], [], 0.1)[0]:
        written += os.read(terminal, 65_536)
    return screen(written.decode())


def set_columns(terminal: int, columns: int) -> None:
    """The terminal is so wide now."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


def test_a_status_never_wraps(terminal: tuple[int, TextIO]) -> None:
    ours, stream = terminal
    set_columns(ours, 30)
    line = StatusLine(stream)
    line.show("x" * 100)
    assert seen(ours) == ["x" * 28 + "…"]
    set_columns(ours, 1)
    assert line.cells == 1
    set_columns(ours, 0)
    assert line.cells == 79


NOTHING = Progress(
    done=0, failed=0, duplicate=0, held=0, waiting=0, waiting_bytes=0, is_complete=True
)


def so_far(**fields: Any) -> Progress:
    """What the importer tells of itself: nothing but this."""
    return replace(NOTHING, **fields)


MANY = so_far(done=12_345, failed=3, waiting=88_000, waiting_bytes=352_000_000)


class FakeTerminal:
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


def finish(terminal: FakeTerminal, count: int, outcome: str = "done", name: str = "a.json") -> None:
    """So many files came to their end at once."""
    for _ in range(count):
        terminal.meter.tell(outcome, name, None)


def test_of_many_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = FakeTerminal(monkeypatch)
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


def test_what_failed_always_has_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = FakeTerminal(monkeypatch)
    finish(terminal, 100)
    finish(terminal, 100, "failed", "b\x1b[2J\n.json")
    assert terminal.lines[FEW:-1] == ["failed     b\\x1b[2J\\n.json"] * 100


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


class Time:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def a_progress(
    done: int, *, stage: Stage = Stage.COPYING, what: str = "documents"
) -> transferring.Progress:
    return transferring.Progress(stage, what, done, 1_000_000)


def tell(steps: Steps, done: int, stage: str = "Copying") -> None:
    steps.tell(stage, done, lambda per_s: f"{stage}: {done} of 1,000,000")


def test_rows_are_told_with_their_pace_and_what_is_left() -> None:
    assert describe_move(a_progress(120_000), None) == ("Copying: 120,000 of 1,000,000 rows")
    assert describe_move(a_progress(120_000), 12_000.4) == (
        "Copying: 120,000 of 1,000,000 rows, 12,000/s, about 1 min left"
    )
    assert describe_move(a_progress(1_000_000, stage=Stage.PROVING), 12_000.4) == (
        "Comparing both: 1,000,000 of 1,000,000 rows"
    )


class Stream(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_the_count_on_its_last_line_and_none_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Stream()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    times = iter([0.0, 0.05, 0.2])
    with counting("rows", 9, monotonic=lambda: next(times)) as count:
        for done in (1, 2, 3):
            count("wrote", done)
    lines = terminal.getvalue().split("\r\x1b[K")
    assert lines == ["", "wrote 1 of 9 rows", "wrote 3 of 9 rows", ""]
