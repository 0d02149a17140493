"""The real thing in a real terminal: what goes over the wire, how it stops and how it ends."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from resumes.store.engine import Store
from tests.tui.builders import a_hostile_document, an_account, stored
from tests.tui.driving import LIMIT_S

PROGRAM = """
import sys
from resumes.store.engine import open_store
from tui.screens.resumes.screen import ResumesScreen
from tui.service import run

if "crash" in sys.argv:
    def heading(self):
        raise RuntimeError("\\x1b]52;c;AAAA\\x07")
    ResumesScreen.heading = heading
with open_store(sys.argv[1]) as store:
    code = run(store)
sys.exit(code)
"""

CLIPBOARD = b"\x1b]52"
LEAVES_SCREEN = b"\x1b[?1049l"


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
def terminal(store: Store, *arguments: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, store.url, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=take_terminal,
        env=os.environ | {"TERM": "xterm-256color"},
    )
    os.close(theirs)
    try:
        yield Terminal(program, ours)
    finally:
        program.kill()
        program.wait()
        os.close(ours)


@pytest.fixture
def hostile_store(store: Store) -> Store:
    stored(store, a_hostile_document())
    return store


def test_a_hostile_resume_puts_no_escape_sequence_of_its_own_on_the_wire(
    hostile_store: Store,
) -> None:
    with terminal(hostile_store) as screen:
        screen.reads_until(b"a[/b]c")
        screen.types(b"\r")
        screen.reads_until(b"created")
        screen.types(b"J")
        screen.reads_until(b"u001b")
        before_end = len(screen.wire)
        screen.types(b"q")

        assert screen.ends() == 0
        assert CLIPBOARD not in screen.wire
        assert b"\x9b2J" not in screen.wire
        assert LEAVES_SCREEN not in screen.wire[:before_end]
        assert "\u202e".encode() not in screen.wire


def test_a_crash_ends_with_a_code_and_gives_the_terminal_back(hostile_store: Store) -> None:
    with terminal(hostile_store, "crash") as screen:
        assert screen.ends() == 1
        assert LEAVES_SCREEN in screen.wire
        assert b"RuntimeError" in screen.wire
        assert CLIPBOARD not in screen.wire


def test_while_it_is_stopped_others_write(hostile_store: Store) -> None:
    with terminal(hostile_store) as screen:
        screen.reads_until(b"a[/b]c")
        screen.types(b"\x1a")
        screen.stops()

        an_account(hostile_store, "while-stopped")

        before = len(screen.wire)
        screen.program.send_signal(signal.SIGCONT)
        screen.reads_until(b"a[/b]c", after=before)
        screen.types(b"q")
        assert screen.ends() == 0
