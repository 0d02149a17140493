"""System calls of a running process, by strace: written down, or made to fail, or to end it."""

import contextlib
import shutil
import signal
import subprocess
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

INJECTED = "(INJECTED)"
"""How strace marks a call that it made fail in what it writes down."""


@dataclass(frozen=True, slots=True)
class Injection:
    """What befalls a process: in each of its threads, each of these system calls when it comes for
    the `nth` time, and so often after that in all.

    `effect` is strace's: `error=EIO`, `signal=KILL`. With `paths` only calls on these files count.
    """

    calls: str
    effect: str
    nth: int
    times: int = 1
    paths: Collection[Path] = ()


@contextlib.contextmanager
def injected(pid: int, fault: Injection, log: Path) -> Iterator[None]:
    """From the block's beginning the fault waits for the process; it is over when the block ends,
    by when the process has to have ended. `log` has the calls then.

    Skips the test where nothing can be traced.
    """
    when = f"{fault.nth}..{fault.nth + fault.times - 1}"
    with _attached(pid, fault.calls, f"{fault.effect}:when={when}", fault.paths, log) as tracer:
        try:
            yield
        finally:
            try:
                tracer.wait(20)
            except subprocess.TimeoutExpired:
                tracer.terminate()
                raise


@contextlib.contextmanager
def traced(
    pid: int, calls: str, log: Path, *, effect: str = "", paths: Collection[Path] = ()
) -> Iterator[None]:
    """Write down these calls of the process during the block, with the paths that they name, and have
    the effect befall each.

    With `paths` only calls on these files count. Skips the test where nothing can be traced.
    """
    with _attached(pid, calls, effect, paths, log) as tracer:
        try:
            yield
        finally:
            tracer.send_signal(signal.SIGINT)  # it lets go of the process
            tracer.wait(20)


@contextlib.contextmanager
def _attached(
    pid: int, calls: str, effect: str, paths: Collection[Path], log: Path
) -> Iterator["subprocess.Popen[str]"]:
    if shutil.which("strace") is None:
        pytest.skip("strace is needed to see system calls, and to make them fail")
    only = [part for path in paths for part in ("-P", str(path.resolve()))]
    what = [f"inject={calls}:{effect}"] if effect else []
    what += [f"trace={calls}", "signal=none"]
    told = [part for one in what for part in ("-e", one)]
    with subprocess.Popen(
        ["strace", "-f", "-s0", "-o", str(log), *only, *told, "-p", str(pid)],
        stderr=subprocess.PIPE,
        text=True,
    ) as tracer:
        assert tracer.stderr is not None
        said = tracer.stderr.readline()
        if "attached" not in said:
            tracer.wait()
            pytest.skip(f"nothing can be traced here: {said.strip()}")
        yield tracer


def count_failures(log: Path) -> int:
    """How many calls failed that would not have."""
    return log.read_text(errors="replace").count(INJECTED)
