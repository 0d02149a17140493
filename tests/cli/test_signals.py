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
        assert stop.wait(60)
    assert signal.getsignal(number) is before


IN_THE_MIDDLE = """
import os, signal
from cli.signals import stop_event
with stop_event() as stop:
    with vars(stop)["_cond"]:  # as wait() does for a moment
        os.kill(os.getpid(), signal.SIGTERM)
    assert stop.wait(60)
"""


def test_a_signal_in_the_middle_of_waiting_does_not_block_for_ever() -> None:
    # In a process of its own: should it block, it blocks signals too, and only a kill ends it.
    subprocess.run([sys.executable, "-c", IN_THE_MIDDLE], check=True, timeout=60)


def test_the_second_signal_acts_as_ever() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_event() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(60)
        assert signal.getsignal(signal.SIGINT) is before


def test_a_process_ends_with_its_standard_input() -> None:
    program = "import cli.signals, signal; cli.signals.end_with_standard_input(); signal.pause()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as process:
        assert process.poll() is None
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == -signal.SIGTERM


DROPPED_BY_PYTHON = """
import signal, time, weakref
from cli.signals import keep_interrupts
keep_interrupts()
class Thing: pass
thing = Thing()
gone = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
try:
    del thing
    time.sleep(20)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_is_not_lost_where_python_drops_exceptions() -> None:
    command = [sys.executable, "-c", DROPPED_BY_PYTHON]
    done = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("interrupted\n", "")


OTHER_DROPPED = """
from cli.signals import keep_interrupts
keep_interrupts()
class Thing:
    def __del__(self): raise ValueError("told as ever")
Thing()
"""


def test_other_exceptions_that_python_drops_are_told_as_ever() -> None:
    command = [sys.executable, "-c", OTHER_DROPPED]
    done = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True)

    assert "ValueError: told as ever" in done.stderr
