"""The terminal UI as a program of its own, in a real terminal."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

from resumes.store.engine import Store
from tests.tui.driving import LIMIT_S

PROGRAM = """
import sys
from resumes.store.engine import open_store
from tui.screens.resumes.screen import ResumesScreen
from tui.opening import prepare
from tui.service import run

if "crash" in sys.argv:
    def heading(self):
        raise RuntimeError("\\x1b]52;c;AAAA\\x07")
    ResumesScreen.heading = heading
with open_store(sys.argv[1]) as store:
    code = run(lambda: prepare(store))
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
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, store.url, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=take_terminal if has_signals else None,
        env=os.environ | {"TERM": kind},
    )
    os.close(theirs)
    try:
        yield Terminal(program, ours)
    finally:
        program.kill()
        program.wait()
        os.close(ours)
