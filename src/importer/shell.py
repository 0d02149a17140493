"""Running a command of the user's: by the shell, in a session of its own, with an end in any case.

It reads nothing, and what it prints is read on for as long as it runs, so that it never blocks on
a full pipe; only the beginning is kept. What it leaves running in the background is not waited for.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

KEPT_BYTES = 16 * 1024
"""How much of each stream is kept."""

PIPE_BYTES = 64 * 1024
LOOK_S = 0.05
KILL_AFTER_S = 5.0
"""How long a command that has to end may take over it."""

CUT_OFF_KILL_AFTER_S = 0.5
"""The same when we have to end ourselves."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended and how what it printed begins."""

    exit_status: int | None
    """Negative: the signal that killed it. None: it did not end in time and was killed."""

    output: bytes
    errors: bytes


def run(
    command: str,
    environment: Mapping[str, str],
    *,
    timeout_s: float,
    kill_after_s: float = KILL_AFTER_S,
    cut_off: threading.Event,
    monotonic: Callable[[], float] = time.monotonic,
) -> Ending:
    """The command has ended: by itself, or with its whole group after `timeout_s`, or at `cut_off`.

    Raises OSError when it cannot be started, and ValueError for a command that no system can take.
    """
    with subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    ) as process:
        printed = _Printed(process)
        ends_at = monotonic() + timeout_s
        while process.poll() is None and monotonic() < ends_at and not cut_off.is_set():
            printed.read(LOOK_S)
        exit_status = process.poll()
        if exit_status is None:
            _end(process, printed, cut_off, kill_after_s, monotonic)
        printed.read_rest()
        return Ending(exit_status, bytes(printed.output), bytes(printed.errors))


def _end(
    process: "subprocess.Popen[bytes]",
    printed: "_Printed",
    cut_off: threading.Event,
    kill_after_s: float,
    monotonic: Callable[[], float],
) -> None:
    """The process and its group have ended: asked to at first, then killed."""
    began = monotonic()
    _signal(process, signal.SIGTERM)
    while process.poll() is None:
        limit_s = CUT_OFF_KILL_AFTER_S if cut_off.is_set() else kill_after_s
        if monotonic() >= began + limit_s:
            break
        printed.read(LOOK_S)
    # Also when it has ended itself: those that it started may not have.
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    # Its session has its number, and as group too. Some systems refuse where all have ended.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


class _Printed:
    """The beginnings of what a process prints."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.output = bytearray()
        self.errors = bytearray()
        self._selector = selectors.DefaultSelector()
        for stream, kept in ((process.stdout, self.output), (process.stderr, self.errors)):
            assert stream is not None
            self._selector.register(stream.fileno(), selectors.EVENT_READ, kept)

    def read(self, wait_s: float) -> None:
        """What has been printed is read; it is waited for so long."""
        for key, _ in self._selector.select(wait_s):
            chunk = os.read(key.fd, PIPE_BYTES)
            if not chunk:
                self._selector.unregister(key.fd)
            kept: bytearray = key.data
            kept += chunk[: KEPT_BYTES - len(kept)]

    def read_rest(self) -> None:
        """What an ended process left in its pipes is read, and nothing more is."""
        for _ in range(2):
            self.read(0)
        self._selector.close()
