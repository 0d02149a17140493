"""The last line of a terminal, which is rewritten."""

import fcntl
import io
import os
import pty
import select
import struct
import sys
import termios
from collections.abc import Iterator
from typing import TextIO

import pytest

from cli.status_line import StatusLine, can_rewrite
from tests.cli.screens import screen


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


def test_without_a_status_nothing_is_left() -> None:
    stream = io.StringIO()
    line = StatusLine(stream)
    line.show("1 of 3")
    line.show("")
    assert shown(stream) == [""]
    line.write("end\n")
    assert shown(stream) == ["end", ""]


def test_the_status_waits_for_the_end_of_a_line() -> None:
    stream = io.StringIO()
    line = StatusLine(stream)
    line.show("1 of 3")
    line.write("begun ")
    assert shown(stream) == ["begun "]
    line.show("2 of 3")
    assert shown(stream) == ["begun "]
    line.write("and ended\n")
    assert shown(stream) == ["begun and ended", "2 of 3"]


def test_the_same_status_is_not_drawn_again() -> None:
    stream = io.StringIO()
    line = StatusLine(stream)
    line.show("1 of 3")
    before = stream.getvalue()
    line.show("1 of 3")
    assert stream.getvalue() == before


def test_a_stream_that_says_no_columns_is_taken_to_have_80() -> None:
    stream = io.StringIO()
    line = StatusLine(stream)
    line.show("x" * 200)
    assert line.cells == 79
    assert shown(stream) == ["x" * 78 + "…"]


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


def test_only_a_terminal_that_knows_how_can_rewrite(
    terminal: tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, stream = terminal
    answers = {}
    for kind in ("xterm-256color", "dumb", ""):
        monkeypatch.setenv("TERM", kind)
        answers[kind] = can_rewrite(stream)
    monkeypatch.delenv("TERM")
    assert answers == {"xterm-256color": True, "dumb": False, "": False}
    assert not can_rewrite(stream)
    monkeypatch.setenv("TERM", "xterm")
    assert not can_rewrite(io.StringIO())


def test_otherwise_it_is_the_stream(terminal: tuple[int, TextIO]) -> None:
    _, stream = terminal
    line = StatusLine(stream)
    assert line.isatty()
    assert line.fileno() == stream.fileno()
    assert line.encoding == stream.encoding
    with pytest.raises(TypeError):
        line.write(b"")  # type: ignore[arg-type]  # so click finds out what kind of stream it has
    with pytest.raises(AttributeError):
        _ = line.colour


def test_click_writes_through_it(
    terminal: tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cli.output import say

    ours, stream = terminal
    line = StatusLine(stream)
    monkeypatch.setattr(sys, "stderr", line)
    line.show("1 of 3")
    say("hello")
    assert seen(ours) == ["hello", "1 of 3"]
