"""Guard the user's analyzer: when it or the service ends, kill its processes and remove its folder.

`resumes.external_analyzer` runs this file in a separate process, which imports no module of the
service. Standard input is a socket to the service: the guard answers `exit STATUS PEAK_KIB` or
`error ERRNO`, and it stops the analyzer when the service closes the socket. Standard output and
error are inherited by the analyzer.
"""

import contextlib
import ctypes
import errno
import os
import resource
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

NICENESS: Final = 10
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CHECK_S: Final = 0.05
"""The interval for checking whether the analyzer has ended."""

_DEATH_SIGNAL: Final = 1
_SUBREAPER: Final = 36
"""Options of Linux's prctl(2)."""


_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else lambda option, value: None


def main() -> None:
    """Run the analyzer. The arguments are the descriptor of the file, the path of its copy in the
    private folder, the memory limit of each process in bytes, and the command."""
    descriptor, path, memory_bytes, *command = sys.argv[1:]
    for number in SIGNALS:  # only the service may end the guard
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would contain the resume
        # Not RLIMIT_AS: many runtimes reserve much more address space than they use.
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if soft == resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_DATA, (int(memory_bytes), hard))
    _prctl(_SUBREAPER, 1)  # become the parent of orphaned descendants
    service = socket.socket(fileno=0)
    try:
        report = run(service, int(descriptor), Path(path), command)
    finally:
        remove_folder(Path(path).parent)
    with contextlib.suppress(OSError):
        service.sendall(report)


def run(service: socket.socket, descriptor: int, path: Path, command: list[str]) -> bytes:
    """Run the command on a copy of the file until it ends or the service closes the socket.

    Then end all its processes, and return the report."""
    try:
        with open(descriptor, "rb") as source, path.open("xb") as copy:
            source.seek(0)  # the service may have read some of it
            shutil.copyfileobj(source, copy, 1024 * 1024)
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            cwd=path.parent,
            start_new_session=True,
            preexec_fn=prepare,
        )
    except OSError as error:
        return b"error %d" % (error.errno or errno.EIO)
    while process.poll() is None:
        if select.select([service], [], [], CHECK_S)[0]:
            break
    end(process.pid)
    # Other systems use another unit and do not enforce the limit.
    is_limited = sys.platform == "linux"
    peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss if is_limited else 0
    return b"exit %d %d" % (process.returncode or 0, peak_kib)


def prepare() -> None:
    """Prepare the analyzer's process, which is the leader of its own session."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    # Lower the priority of the session, among which Linux may divide processors, and let Linux kill
    # the analyzer first if memory runs out.
    for name, value in (("autogroup", NICENESS), ("oom_score_adj", 1000)):
        with contextlib.suppress(OSError):
            Path("/proc/self", name).write_text(str(value))
    _prctl(_DEATH_SIGNAL, signal.SIGKILL)


def end(leader_pid: int) -> None:
    """Kill the process group. On Linux, also kill all other descendants and wait for them."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader_pid, signal.SIGKILL)
    if sys.platform != "linux":
        return
    with contextlib.suppress(ChildProcessError):  # no child is left
        while True:
            for child in find_children():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG)[0]:  # listing thousands of dead ones is slow
                pass


def remove_folder(folder: Path) -> None:
    """Remove a private folder, even if it contains read-only folders, such as from an archive.

    Each folder within is moved to the top before it is emptied, because folders can be nested too
    deeply for a recursion and for the maximum length of a path.
    """
    with contextlib.suppress(OSError):
        folder.unlink()  # fails unless the analyzer has replaced the folder, such as with a link
    folders = [folder]
    for parent in folders:
        with contextlib.suppress(OSError):
            parent.chmod(0o700)
            for entry in [*os.scandir(parent)]:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        Path(entry).chmod(0o700)
                        folders.append(Path(entry).rename(folder / secrets.token_hex(8)))
                    else:
                        Path(entry).unlink()
    for parent in reversed(folders):
        with contextlib.suppress(OSError):
            parent.rmdir()


def find_children() -> list[int]:
    """Return the IDs of this process's children on Linux."""
    children = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # the process has ended
            # The program's name, which the last bracket ends, can contain any characters.
            fields = status.read_bytes().rpartition(b")")[2].split()
            if int(fields[1]) == os.getpid():
                children.append(int(status.parent.name))
    return children


if __name__ == "__main__":
    main()
