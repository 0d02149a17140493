"""System calls of a running process that fail, or end it, as strace makes them."""

import contextlib
import shutil
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
    if shutil.which("strace") is None:
        pytest.skip("strace is needed to make system calls fail")
    only = [part for path in fault.paths for part in ("-P", str(path.resolve()))]
    when = f"{fault.nth}..{fault.nth + fault.times - 1}"
    what = [f"inject={fault.calls}:{fault.effect}:when={when}", f"trace={fault.calls}"]
    told = [part for one in (*what, "signal=none") for part in ("-e", one)]
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
        try:
            yield
        finally:
            try:
                tracer.wait(20)
            except subprocess.TimeoutExpired:
                tracer.terminate()
                raise


def count_failures(log: Path) -> int:
    """How many calls failed that would not have."""
    return log.read_text(errors="replace").count(INJECTED)
