"""Other processes: waiting for what they come to, ending them, finding those that they started."""

import contextlib
import os
import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LOOK_AGAIN_S = 0.005


def wait_until(condition: Callable[[], object], *, within_s: float = 60) -> None:
    """The condition has come true. Fails when it does not within the limit, which is for machines
    that stand still: who waits goes on at once."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"the condition did not come true in {within_s} s"
        time.sleep(LOOK_AGAIN_S)


def children_of(process_id: int) -> list[int]:
    """The ids of its child processes; none once it is gone."""
    try:
        listed = Path(f"/proc/{process_id}/task/{process_id}/children").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(word) for word in listed.split()]


def is_running(process_id: int) -> bool:
    """Whether the process runs; one that has ended and was not waited for does not."""
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def is_reading_input(process_id: int) -> bool:
    """Whether the process waits in a system call on its standard input."""
    # The call's number and arguments; "running" outside of one. Other calls may have a first 0, too.
    call = Path(f"/proc/{process_id}/syscall").read_text(encoding="ascii").split()
    return call[:2] == [{"x86_64": "0", "aarch64": "63"}[platform.machine()], "0x0"]


def open_files(process_id: int) -> list[str]:
    """What the process has open; a file that it closes meanwhile is left out."""
    files = []
    for file in Path(f"/proc/{process_id}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            files.append(str(file.readlink()))
    return files


def sockets(process_id: int) -> int:
    """How many sockets the process has open."""
    return sum(file.startswith("socket:") for file in open_files(process_id))


def command_of(process_id: int) -> str:
    """The process's command line, its words parted by U+0000; nothing once it is gone."""
    try:
        return Path(f"/proc/{process_id}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def workers_of(process_id: int) -> list[int]:
    """The ids of its child processes that Python started to share its work."""
    return [child for child in children_of(process_id) if "spawn_main" in command_of(child)]


def end(process: "subprocess.Popen[Any]", *, within_s: float = 45) -> None:
    """End a process by SIGTERM. Raises TimeoutExpired, and kills it, when that takes too long."""
    process.terminate()
    try:
        process.wait(within_s)
    finally:
        process.kill()
        process.wait()


def drawing_children(process_id: int | None = None) -> set[int]:
    """Return the ids of the processes that draw PDFs for a process, whichever thread started them.

    Without an id for this process.
    """
    found = set[int]()
    for task in Path(f"/proc/{process_id or os.getpid()}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found |= set(map(int, (task / "children").read_text().split()))
    return {child for child in found if "rendering/child.py" in command_of(child)}
