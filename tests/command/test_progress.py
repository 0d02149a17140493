"""How far something long is: lines of files, the status below them, counts."""

import fcntl
import io
import os
import pty
import select
import struct
import termios
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TextIO

import pytest

from cli.output import width
from cli.progress import StatusLine, describe, describe_move
from importer.notices import Progress
from resumes.store.transfer import rows
from resumes.store.transfer.rows import Stage
from tests.command.conftest import screen


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


def a_progress(
    done: int, *, stage: Stage = Stage.COPYING, what: str = "documents"
) -> rows.Progress:
    return rows.Progress(stage, what, done, 1_000_000)


def test_rows_are_told_with_their_pace_and_what_is_left() -> None:
    assert describe_move(a_progress(120_000), None) == ("Copying: 120,000 of 1,000,000 rows")
    assert describe_move(a_progress(120_000), 12_000.4) == (
        "Copying: 120,000 of 1,000,000 rows, 12,000/s, about 1 min left"
    )
    assert describe_move(a_progress(1_000_000, stage=Stage.PROVING), 12_000.4) == (
        "Comparing both: 1,000,000 of 1,000,000 rows"
    )
