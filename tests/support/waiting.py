"""Waiting for what other processes and threads come to."""

import subprocess
import time
from collections.abc import Callable
from typing import Any

LOOK_AGAIN_S = 0.005


def wait_until(condition: Callable[[], object], *, within_s: float = 60) -> None:
    """The condition has come true. Fails when it does not within the limit, which is for machines
    that stand still: who waits goes on at once."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"the condition did not come true in {within_s} s"
        time.sleep(LOOK_AGAIN_S)


def end(process: "subprocess.Popen[Any]", *, within_s: float = 45) -> None:
    """End a process by SIGTERM. Raises TimeoutExpired, and kills it, when that takes too long."""
    process.terminate()
    try:
        process.wait(within_s)
    finally:
        process.kill()
        process.wait()
