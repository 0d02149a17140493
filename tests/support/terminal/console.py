"""The terminal UI, or another program, on a pseudo-terminal, and what a person would see there."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from rich.cells import cell_len

from resumes.store.store import Store
from tests.support.terminal.driving import LIMIT_S

PROGRAM = """
import logging, sys, time
from resumes.settings import load_settings
from resumes.store import open_store, stored_resumes
from tui import deletions
from tui.screens.resumes import ResumesScreen
from tui.session import prepare
from tui.run import run

if "crash" in sys.argv:
    def heading(self):
        raise RuntimeError("\\x1b]52;c;AAAA\\x07")
    ResumesScreen.heading = heading
if "hang" in sys.argv:
    def hang(*_, **__):
        logging.warning("The read hangs")
        time.sleep(3_600)
    stored_resumes.list_page = hang
if "hasty" in sys.argv:
    deletions.GRACE_S = 0.5
with open_store(sys.argv[1]) as store:
    code = run(lambda: prepare(store, settings=load_settings()))
sys.exit(code)
"""


class Terminal:
    """A program on a pseudo-terminal of 80x24, and everything that it wrote."""

    def __init__(self, program: subprocess.Popen[bytes], side: int) -> None:
        self.program = program
        self.side = side
        self.wire = b""

    def types(self, keys: bytes) -> None:
        os.write(self.side, keys)

    def reads_until(self, awaited: bytes, *, after: int = 0) -> None:
        """The program wrote this, after that many bytes."""
        deadline = time.monotonic() + LIMIT_S
        while awaited not in self.wire[after:]:
            assert time.monotonic() < deadline, (awaited, self.wire[-2_000:])
            self._read()

    def reads_for(self, seconds: float) -> None:
        """So long it may write."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._read()

    def ends(self) -> int:
        """The exit code, everything having been read."""
        deadline = time.monotonic() + LIMIT_S
        while self.program.poll() is None:
            assert time.monotonic() < deadline, self.wire[-2_000:]
            self._read()
        self._read()
        return self.program.returncode

    def stops(self) -> None:
        """The program was stopped, as by Ctrl+Z."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            assert time.monotonic() < deadline
            self._read()
            pid, status = os.waitpid(self.program.pid, os.WUNTRACED | os.WNOHANG)
            if pid:
                assert os.WIFSTOPPED(status)
                return

    def _read(self) -> None:
        while select.select([self.side], [], [], 0.02)[0]:
            try:
                found = os.read(self.side, 65_536)
            except OSError:  # the other side is closed
                return
            if not found:
                return
            self.wire += found


def take_terminal() -> None:
    """The new session's terminal is standard input, as after a login."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def terminal(
    store: Store, *arguments: str, kind: str = "xterm-256color", has_signals: bool = True
) -> Iterator[Terminal]:
    """Without `has_signals` the system tells the program nothing of what becomes of its terminal."""
    command = [sys.executable, "-c", PROGRAM, store.url, *arguments]
    with _started(command, {"TERM": kind}, has_signals=has_signals) as (program, side):
        yield Terminal(program, side)


@contextmanager
def _started(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    size: tuple[int, int] = (80, 24),
    has_signals: bool = True,
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The program, which is killed at the end of the block, and our side of its terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    program = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=take_terminal if has_signals else None,
        env={**os.environ, **environment},
    )
    os.close(theirs)
    try:
        yield program, ours
    finally:
        program.kill()
        program.wait()
        os.close(ours)


SEQUENCES: Final = re.compile(
    r"\x1b\[(?P<parameters>[0-?]*)[ -/]*(?P<final>[@-~])"  # CSI
    r"|\x1b\](?P<command>[^\x07\x1b]*)(?:\x07|\x1b\\)"  # OSC
    r"|\x1bP[^\x1b]*\x1b\\"  # DCS
    r"|\x1b[ -/]*(?P<single>[0-OQ-Z\\^-~])"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f-\x9f])"
    r"|(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
)

CONTINUES: Final = ""
"""What is in the cell behind a character of two cells."""


class Picture:
    """The characters that are seen, as the sequences that Textual sends put them there."""

    def __init__(self, width: int, height: int, measure: Callable[[str], int] = cell_len) -> None:
        self._width = width
        self._measure = measure
        self._saved = 0, 0
        self._lines = [[" "] * width for _ in range(height)]
        self._row = self._column = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest = ""

    @property
    def lines(self) -> list[str]:
        """The lines from top to bottom, without blanks at their ends."""
        return ["".join(line).rstrip() for line in self._lines]

    def column_of(self, char: str) -> int:
        """The column of the first line that this character is in."""
        return self._lines[0].index(char)

    def feed(self, sent: bytes) -> None:
        """What was sent is drawn, but for a sequence whose end is not there yet."""
        text = self._rest + self._decoder.decode(sent)
        at = 0
        while found := SEQUENCES.match(text, at):
            at = found.end()
            self._take(found)
        self._rest = text[at:]

    def _take(self, found: re.Match[str]) -> None:
        if found["text"]:
            for char in found["text"]:
                self._put(char)
        elif found["final"] == "H":
            row, _, column = found["parameters"].partition(";")
            self._row, self._column = int(row or 1) - 1, int(column or 1) - 1
        elif found["final"] == "C":
            self._column += int(found["parameters"] or 1)
        elif found["single"] == "7":
            self._saved = self._row, self._column
        elif found["single"] == "8":
            self._row, self._column = self._saved
        elif found["final"] == "J":
            self._lines = [[" "] * self._width for _ in self._lines]
        elif found["control"] == "\r":
            self._column = 0
        elif found["control"] == "\n":
            self._row += 1

    def _put(self, char: str) -> None:
        cells = self._measure(char)
        if not 0 <= self._row < len(self._lines):
            return
        line = self._lines[self._row]
        if not cells:
            if 0 < self._column <= len(line):
                line[self._column - 1] += char
            return
        for cell in range(cells):
            if self._column < len(line):
                line[self._column] = CONTINUES if cell else char
                self._column += 1


class Console(Terminal):
    """A program on a terminal that somebody looks at."""

    def __init__(self, program: subprocess.Popen[bytes], side: int, size: tuple[int, int]) -> None:
        super().__init__(program, side)
        self._picture = Picture(*size)
        self._drawn = 0

    @property
    def lines(self) -> list[str]:
        """What is seen now."""
        self._read()
        self._picture.feed(self.wire[self._drawn :])
        self._drawn = len(self.wire)
        return self._picture.lines

    def shows(self, *texts: str) -> str:
        """All the texts are seen; everything that is seen."""
        return self.shows_that(lambda seen: all(text in seen for text in texts), texts)

    def shows_that(self, is_so: Callable[[str], object], what: object) -> str:
        """What is seen, once it is so."""
        deadline = time.monotonic() + LIMIT_S
        while not is_so(seen := "\n".join(self.lines)):
            assert time.monotonic() < deadline, f"{what} never came:\n{seen}"
            assert self.program.poll() is None, f"{what} never came, it ended:\n{seen}"
        return seen


@contextmanager
def console(
    command: Sequence[str],
    *,
    size: tuple[int, int] = (80, 24),
    environment: Mapping[str, str] | None = None,
) -> Iterator[Console]:
    """The program runs on a terminal of this size, and is killed at the end of the block."""
    chosen = {"TERM": "xterm-256color", **(environment or {})}
    with _started(command, chosen, size=size) as (program, side):
        yield Console(program, side, size)


# What goes over the wire of a terminal while somebody looks at everything


KEYS = (
    (b"\r", "esc Back"),
    (b"\t", '"header"'),
    (b"\t", "No source file"),
    (b"\t", "Created in ana"),
    (b"\x1b", "enter Open"),
    (b"2", "OUTCOME"),
    (b"\r", "esc Back"),
    (b"\x1b", "enter Open"),
    (b"5", "STATE"),
    (b"\r", "Key details"),
    (b"\x1b", "enter Open"),
    (b"D", "Revoke this key?"),
    (b"\x1b", "enter Open"),
    (b"6", "SQLite"),
    (b"1", "AGE"),
    (b"d", "Press u to undo"),
)
"""What is typed, and what is then seen. Once all the screens, and a dialog or message of each."""


def looked_at(store: Store) -> tuple[set[str], str]:
    """What kinds of sequences, and which text, were sent while everything was looked at."""
    with console([sys.executable, "-c", PROGRAM, store.url], size=(120, 40)) as screen:
        screen.shows("AGE", "Source")
        for keys, text in KEYS:
            screen.types(keys)
            screen.shows(text)
        screen.types(b"uq")
        assert screen.ends() == 0
        return taken_apart(screen.wire)


def taken_apart(wire: bytes) -> tuple[set[str], str]:
    """The kinds of sequences, and the text that is left without them and without line ends."""
    kinds, text = set(), ""
    sent, at = wire.decode("utf-8"), 0
    while at < len(sent):
        found = SEQUENCES.match(sent, at)
        assert found is not None, sent[at : at + 40]
        at = found.end()
        if found["text"]:
            text += found["text"]
        elif found["control"]:
            kinds.add(repr(found["control"]))
        elif found["final"]:
            kinds.add(kind_of(found))
        else:
            command = found["command"]
            kinds.add(found[0][:2] if command is None else f"OSC {command.partition(';')[0]}")
    return kinds, text


def kind_of(found: re.Match[str]) -> str:
    """A control sequence without its numbers; those that set a mode with them."""
    parameters = found["parameters"]
    is_plain = found["final"] in "mHC"
    return f"CSI {re.sub('[0-9;]', '', parameters) if is_plain else parameters} {found['final']}"
