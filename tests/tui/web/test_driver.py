"""The terminal UI's end of the pipe."""

import os
import signal
import subprocess
import sys

import pytest

from tests.tui.driving import LIMIT_S
from tui.web.child import environment_of

PROGRAM = """
from textual.app import App
from textual.widgets import Static

class Screen(App):
    def compose(self):
        yield Static("drawn by us")

app = Screen()
app.run()
raise SystemExit(app.return_code)
"""


@pytest.fixture
def program() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment_of(80, 24),
    )


def reads_until(program: "subprocess.Popen[bytes]", awaited: bytes) -> None:
    assert program.stdout is not None
    wire = b""
    while awaited not in wire:
        found = os.read(program.stdout.fileno(), 65_536)
        assert found, wire[-2_000:]
        wire += found


def test_it_draws_as_packets(program: "subprocess.Popen[bytes]") -> None:
    with program:
        reads_until(program, b"__GANGLION__\nD\x00\x00\x00")
        reads_until(program, b"drawn by us")
        program.kill()


def test_it_ends_when_nobody_is_at_the_other_end(program: "subprocess.Popen[bytes]") -> None:
    with program:
        reads_until(program, b"drawn by us")
        for pipe in (program.stdin, program.stdout, program.stderr):
            assert pipe is not None
            pipe.close()

        assert program.wait(LIMIT_S) == 0


def test_it_ends_by_a_signal(program: "subprocess.Popen[bytes]") -> None:
    with program:
        reads_until(program, b"drawn by us")
        program.send_signal(signal.SIGTERM)

        assert program.communicate(timeout=LIMIT_S)[1] == b""
        assert program.returncode == 0
