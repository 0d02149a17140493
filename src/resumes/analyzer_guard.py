"""The process between the service and the user's analyzer: it ends every process of the analyzer, and
removes its folder, when the analyzer ends or the service does.

It is started by `resumes.external_analyzer`, as a file, so that it loads nothing of the service. Its
standard input is a socket: it ends everything when the other end is closed, and answers `exit STATUS` or
`error ERRNO`. Its standard output and error are the analyzer's.
"""

import contextlib
import ctypes
import errno
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

NICENESS: Final = 10
CHECK_S: Final = 0.05
"""How often to check whether the analyzer has ended."""

_DEATH_SIGNAL: Final = 1
_SUBREAPER: Final = 36
"""Options of Linux's prctl(2)."""


def main() -> None:
    """Run the analyzer: arguments are the file's descriptor, the folder, the suffix, and the command."""
    descriptor, folder, suffix, *command = sys.argv[1:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # only the service ends it
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold the resume
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
    if prctl is not None:
        prctl(_SUBREAPER, 1)  # becomes the parent of processes that fork away
    try:
        with socket.socket(fileno=os.dup(0)) as service:
            report = run(service, int(descriptor), Path(folder), suffix, command, prctl)
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):
                service.sendall(report)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(
    service: socket.socket,
    descriptor: int,
    folder: Path,
    suffix: str,
    command: list[str],
    prctl: Any,
) -> bytes:
    """Run the command on a copy of the file until it ends or the service closes the socket, then end
    all its processes. Return the report."""

    def prepare() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        with contextlib.suppress(
            OSError
        ):  # Linux may share processors among sessions, not processes
            Path("/proc/self/autogroup").write_text(str(NICENESS))
        with contextlib.suppress(OSError):  # out of memory, Linux kills it before the service
            Path("/proc/self/oom_score_adj").write_text("1000")
        if prctl is not None:
            prctl(_DEATH_SIGNAL, signal.SIGKILL)

    try:
        with open(descriptor, "rb") as source, (folder / f"resume{suffix}").open("xb") as copy:
            source.seek(0)  # the service may have read it to any position
            shutil.copyfileobj(source, copy, 1024 * 1024)
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            start_new_session=True,
            preexec_fn=prepare,
        )
    except OSError as error:
        return b"error %d" % (error.errno or errno.EIO)
    while process.poll() is None:
        if select.select([service], [], [], CHECK_S)[0]:
            end(process.pid)
            break
    end(process.pid)
    return b"exit %d" % (process.returncode or 0)


def end(leader_pid: int) -> None:
    """Kill the process group; on Linux also all other descendants, and wait for their end."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader_pid, signal.SIGKILL)
    if sys.platform != "linux":
        return
    with contextlib.suppress(ChildProcessError):  # none is left
        while True:
            for child in find_children():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
            os.waitpid(-1, 0)


def find_children() -> list[int]:
    """Return the processes of which this one is the parent, as Linux lists them."""
    children = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            # The name before the last bracket may contain anything.
            fields = status.read_bytes().rpartition(b")")[2].split()
            if int(fields[1]) == os.getpid():
                children.append(int(status.parent.name))
    return children


if __name__ == "__main__":
    main()
