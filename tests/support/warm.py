"""`resumes` as a process of its own that need not import anything first.

A test that kills hundreds of programs would spend most of its time on their imports. So one process
imports the product, and each program is a fork of it, which does what `python -m cli` does, though the
system shows another command line. The process has neither threads nor open stores when it forks.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

CHECKOUT: Final = Path(__file__).parents[2]
_AS_THEY_ARE: Final = ("migrations.env",)
"""What is run rather than imported."""

MESSAGE_BYTES: Final = 1 << 17
STATUS: Final = struct.Struct("i")


class Program(subprocess.Popen[Any]):
    """A process as `subprocess.Popen` starts it, whose arguments are those of `python -m cli`.

    Neither a shell nor another user or session can be asked for.
    """

    _status = -1
    """Where the process's id and then its wait status are read."""

    def _execute_child(
        self, args: Any, executable: Any, preexec: Any, close: Any, passed: Any, cwd: Any, env: Any,
        *rest: Any,
    ) -> None:  # fmt: skip
        ends = rest[3:9]
        self._status, told = os.pipe()
        try:
            started = {
                "argv": [*map(str, args)],
                "cwd": str(cwd or Path.cwd()),
                "env": dict(os.environ if env is None else env),
            }
            files = [
                given if given >= 0 else own for own, given in enumerate(ends[:1] + ends[3:6:2])
            ]
            socket.send_fds(_starter(), [json.dumps(started).encode()], [*files, told])
        finally:
            os.close(told)
        self._child_created = True
        (self.pid,) = STATUS.unpack(os.read(self._status, STATUS.size))
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        ended = select.poll()
        ended.register(self._status, select.POLLIN)
        if not ended.poll(0 if wait_flags == os.WNOHANG else None):
            return 0, 0
        (status,) = STATUS.unpack(os.read(self._status, STATUS.size))
        os.close(self._status)
        self._status = -1
        return self.pid, status

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        lock: threading.Lock = self._waitpid_lock  # type: ignore[attr-defined]
        if lock.acquire(blocking=False):  # else another thread waits
            try:
                pid, status = (0, 0) if self.returncode is not None else self._try_wait(os.WNOHANG)
                if pid == self.pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                lock.release()
        return self.returncode


def start(
    words: Sequence[str], *, before: Sequence[str] = (), **options: Any
) -> subprocess.Popen[Any]:
    """`resumes` with these words, and some of the options of `subprocess.Popen`.

    With something before the command it is a process as any other, which imports the product.
    """
    if before:
        return subprocess.Popen([*before, sys.executable, "-m", "cli", *words], **options)
    assert options.keys() <= {"stdin", "stdout", "stderr", "text", "cwd", "env"}
    return Program(words, **options)


@functools.cache
def _starter() -> socket.socket:
    """The end of a connection to the process that starts programs, which ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE_BYTES)
    process = subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import main; main({theirs.fileno()})"],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
    )
    theirs.close()
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def main(connection: int) -> None:
    """Start what is asked for, until nobody can ask any more."""
    for package in ("resumes", "importer", "server", "cli"):
        found = importlib.import_module(package)
        for module in pkgutil.walk_packages(found.__path__, f"{package}."):
            if not module.name.endswith(("__main__", *_AS_THEY_ARE)):
                importlib.import_module(module.name)
    gc.freeze()  # so that no fork looks through all of it, and copies it

    with socket.socket(fileno=connection) as asked:
        while True:
            message, files, *_ = socket.recv_fds(asked, MESSAGE_BYTES, 4)
            if not message:
                return
            waiting = os.fork()
            if waiting == 0:
                break
            for file in files:
                os.close(file)
            os.waitpid(waiting, 0)
        # This one, whom nobody waits for, starts the program and says how it ended.
        if os.fork():
            os._exit(0)
        program = os.fork()
        if program:
            *_, told = files
            for file in files[:3]:
                os.close(file)
            os.write(told, STATUS.pack(program))
            _, status = os.waitpid(program, 0)
            with contextlib.suppress(BrokenPipeError):
                os.write(told, STATUS.pack(status))
            os._exit(0)
    _become(json.loads(message), files)


def _become(started: dict[str, Any], files: list[int]) -> None:
    *streams, told = files
    os.close(told)
    for number, file in enumerate(streams):
        os.dup2(file, number)
        os.close(file)
    os.chdir(started["cwd"])
    os.environ.clear()
    os.environ.update(started["env"])
    buffering = 1 if "PYTHONUNBUFFERED" in started["env"] else -1
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", buffering, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = ["resumes", *started["argv"]]
    runpy.run_module("cli", run_name="__main__", alter_sys=True)
