"""Processes that a drill starts, and ends: with all that they started, and nobody else's."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

PORTS: Final = range(20_000, 30_000)
"""Below those that the kernel gives to outgoing connections, so that a port stays free while its
owner is down."""


class CannotRun(Exception):
    """The drill cannot begin, or go on; says why."""


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on just now. Raises CannotRun when there are too few."""
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
        if len(found) == count:
            return found
    raise CannotRun(f"Fewer than {count} ports from {PORTS[0]} to {PORTS[-1]} are free")


def tree(pid: int) -> list[int]:
    """The process and its descendants, those that run."""
    pids = [pid] if Path(f"/proc/{pid}").exists() else []
    for one in pids:
        pids += _children(one)
    return pids


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):  # it, or one of its threads, has just ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def tell(pids: Iterable[int], number: signal.Signals) -> None:
    """Each process has the signal, if it runs."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


class Program:
    """A program that runs from `start` on, in a session of its own, its words in a log."""

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        user: Mapping[str, Any] | None = None,
    ) -> None:
        self.log = log
        self._command = command
        self._environment = {**os.environ, **(environment or {})}
        self._user = user or {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """It runs."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=self._environment, cwd=self.log.parent, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._user,
            )  # fmt: skip

    def pids(self) -> list[int]:
        """It and its descendants."""
        return tree(self._process.pid) if self._process is not None and self.is_running else []

    def end(self, patience_s: float = 15.0) -> None:
        """It has ended: in order if it does so in time."""
        pids = self.pids()
        if self._process is None or not pids:
            return
        tell(pids, signal.SIGCONT)
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_s)
            return
        self.kill()

    def kill(self) -> None:
        """It and its descendants are gone, at once."""
        kill_all(self.pids())
        if self._process is not None:
            self._process.wait()


def kill_all(pids: Iterable[int]) -> None:
    """The processes are gone; none of them saw another one go."""
    gone = [*pids]
    tell(gone, signal.SIGSTOP)
    tell(gone, signal.SIGKILL)


def wait_until_ended(pids: Iterable[int], patience_s: float) -> bool:
    """Whether none of the processes runs any more, within the time."""
    ends_at = time.monotonic() + patience_s
    while any(is_alive(pid) for pid in pids):
        if time.monotonic() > ends_at:
            return False
        time.sleep(0.05)
    return True


def is_alive(pid: int) -> bool:
    """Whether it runs, or is stopped; one that has ended and is not yet buried does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
