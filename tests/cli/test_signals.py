"""Ending on request."""

import os
import signal
import subprocess
import sys

import pytest

from cli.signals import stop_event


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_sets_the_event(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_event() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        assert stop.wait(5)
    assert signal.getsignal(number) is before


IN_THE_MIDDLE = """
import os, signal
from cli.signals import stop_event
with stop_event() as stop:
    with vars(stop)["_cond"]:  # as wait() does for a moment
        os.kill(os.getpid(), signal.SIGTERM)
    assert stop.wait(5)
"""


def test_a_signal_in_the_middle_of_waiting_does_not_block_for_ever() -> None:
    # In a process of its own: should it block, it blocks signals too, and only a kill ends it.
    subprocess.run([sys.executable, "-c", IN_THE_MIDDLE], check=True, timeout=20)


def test_the_second_signal_acts_as_ever() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_event() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(5)
        assert signal.getsignal(signal.SIGINT) is before


def test_a_process_ends_with_its_standard_input() -> None:
    program = "import cli.signals, signal; cli.signals.end_with_standard_input(); signal.pause()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as process:
        assert process.poll() is None
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == -signal.SIGTERM
