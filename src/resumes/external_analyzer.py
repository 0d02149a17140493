"""The user's own analyzer: a program that reads a PDF or a Word document and writes a resume as JSON.

It runs without a shell, with low priority, in a private folder and under a guard
(`resumes.analyzer_guard`), which ends all its processes and removes the folder, even if this process is
killed.
"""

import contextlib
import fcntl
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import IO, Final, NamedTuple

from resumes.settings import ANALYZED_FILE, Settings
from resumes.text import escaped

ENVIRONMENT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
"""The variables that the analyzer gets from this process; TMPDIR is its private folder."""

KEPT_BYTES: Final = 16 * 1024
"""How much of the end of standard error is kept."""

MAX_SAID_CHARS: Final = 500
"""How much of the end of standard error a message quotes."""

OVERRUN_BYTES: Final = 64 * 1024
"""How much the output may exceed the limit of a resume, which the create path then refuses by size."""

CHECK_S: Final = 0.1
"""How often to check whether the run is cancelled."""

END_S: Final = 5.0
"""How long the guard may take to end the analyzer and to remove its folder."""

_READ_BYTES: Final = 64 * 1024
_MAX_LAST_READS: Final = 16
"""Enough for a pipe of 1 MiB, the most that a process may ask Linux for."""

_PREFIX: Final = "resumes-analyzer-"
_GUARD: Final = (sys.executable, "-I", str(Path(__file__).with_name("analyzer_guard.py")))


BEGINNINGS: Final = {
    ".pdf": (b"%PDF",),
    ".doc": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", rb"{\rtf"),
    ".docx": (b"PK\3\4",),
    ".odt": (b"PK\3\4",),
    ".rtf": (rb"{\rtf",),
}
"""How files of each type may begin, by the end of their names. Word reads RTF in a `.doc`, too."""


class Failure(StrEnum):
    """Why a run gave no output."""

    CANNOT_START = "cannot_start"
    FAILED = "failed"
    """The analyzer refused the file or crashed: an exit code, a signal, or no output."""
    TOO_MUCH_OUTPUT = "too_much_output"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class AnalysisFailed(Exception):
    """The analyzer gave no output. `message` is one sentence, which quotes `said`.

    `said` is the end of what it wrote on standard error, as one harmless line.
    """

    def __init__(self, reason: Failure, message: str, said: str = "") -> None:
        self.reason = reason
        self.said = said
        self.message = f"{message}: {said}" if said else message
        super().__init__(self.message)


class Output(NamedTuple):
    """What the analyzer wrote: a resume, and the end of its standard error as one harmless line."""

    body: bytes
    said: str


class ExternalAnalyzer:
    """Runs the command that the settings name; safe to call from several threads."""

    def __init__(self, settings: Settings) -> None:
        self._command = settings.analyzer
        self._timeout_s = settings.analyzer_timeout_s
        self._max_bytes = settings.max_body_bytes + OVERRUN_BYTES
        _remove_abandoned_folders()

    def run(
        self, source: IO[bytes], suffix: str, *, is_cancelled: Callable[[], bool] = lambda: False
    ) -> Output:
        """Return what the analyzer writes about a copy of the file, whose name ends in `suffix`.

        Raises AnalysisFailed. No process of the analyzer and no file is left in any case.
        """
        program = find_program(self._command)
        try:
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        except OSError as error:
            raise _cannot_start(f"no temporary folder: {error.strerror}") from None
        try:
            arguments = [
                argument.replace(ANALYZED_FILE, str(folder / f"resume{suffix}"))
                for argument in (program, *self._command[1:])
            ]
            with _Guard(folder, suffix, arguments, source) as guard:
                return self._read(guard, is_cancelled)
        except OSError as error:
            raise _cannot_start(error.strerror or str(error)) from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)  # if the guard was killed

    def _read(self, guard: "_Guard", is_cancelled: Callable[[], bool]) -> Output:
        ends_at = time.monotonic() + self._timeout_s
        while not guard.read(CHECK_S):
            if is_cancelled():
                raise AnalysisFailed(Failure.CANCELLED, "The analyzer was stopped")
            if len(guard.output) > self._max_bytes:
                break
            if time.monotonic() >= ends_at:
                what = f"The analyzer did not finish within {self._timeout_s:g} s and was stopped"
                raise AnalysisFailed(Failure.TIMEOUT, what, guard.said)
        guard.read_rest()
        if len(guard.output) > self._max_bytes:
            what = f"The analyzer wrote more than {self._max_bytes} bytes and was stopped"
            raise AnalysisFailed(Failure.TOO_MUCH_OUTPUT, what)
        kind, _, value = guard.report.partition(b" ")
        if kind == b"error":
            raise _cannot_start(os.strerror(int(value)))
        if kind != b"exit":
            raise AnalysisFailed(Failure.FAILED, "The analyzer was killed", guard.said)
        status = int(value)
        if status:
            how = f"failed with exit code {status}" if status > 0 else f"ended by signal {-status}"
            raise AnalysisFailed(Failure.FAILED, f"The analyzer {how}", guard.said)
        if not guard.output.strip():
            raise AnalysisFailed(Failure.FAILED, "The analyzer wrote no output", guard.said)
        return Output(bytes(guard.output), guard.said)


def find_program(command: Sequence[str]) -> str:
    """Return the absolute path of the command's program. Raises AnalysisFailed if it cannot be run."""
    found = shutil.which(command[0])
    if found is None:
        name = escaped(command[0])
        if "/" in name and Path(command[0]).exists():
            raise _cannot_start(f"{name} is not an executable file")
        raise _cannot_start(f"{name} was not found")
    return str(Path(found).absolute())


def _cannot_start(why: str) -> AnalysisFailed:
    return AnalysisFailed(Failure.CANNOT_START, f"The analyzer cannot be started: {why}")


class _Guard:
    """The guard's process, and what it and the analyzer have written. Raises OSError if it cannot be
    started. At the end of the block no process is left."""

    def __init__(
        self, folder: Path, suffix: str, arguments: Sequence[str], source: IO[bytes]
    ) -> None:
        self.output = bytearray()
        self.report = bytearray()
        """`exit STATUS` or `error ERRNO`; empty if the guard was killed."""
        self._errors = bytearray()
        self._selector = selectors.DefaultSelector()
        source.flush()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._selector)
            self._control, other_end = map(stack.enter_context, socket.socketpair())
            # The guard holds the lock, too: it tells that the folder is in use.
            with other_end, _locked(folder) as lock:
                self._process = stack.enter_context(
                    subprocess.Popen(
                        [*_GUARD, str(source.fileno()), str(folder), suffix, *arguments],
                        stdin=other_end.fileno(),
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        env=_environment(folder),
                        pass_fds=[source.fileno(), lock],
                        start_new_session=True,
                    )
                )
            for stream, kept in (
                (self._control, self.report),
                (self._process.stdout, self.output),
                (self._process.stderr, self._errors),
            ):
                assert stream is not None
                self._selector.register(stream, selectors.EVENT_READ, kept)
            stack.callback(self.end)
            self._stack = stack.pop_all()

    def __enter__(self) -> "_Guard":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self, timeout_s: float) -> bool:
        """Read what is there, waiting for it at most `timeout_s`. Return whether the guard has ended."""
        is_open = True
        for key, _ in self._selector.select(timeout_s):
            chunk = os.read(key.fd, _READ_BYTES)
            key.data.extend(chunk)
            if not chunk:
                self._selector.unregister(key.fileobj)
                is_open = is_open and key.fileobj is not self._control
        del self._errors[:-KEPT_BYTES]
        return not is_open

    def read_rest(self) -> None:
        """Read what is left in the pipes when the guard has ended; a process that could not be ended
        may hold them open."""
        for _ in range(_MAX_LAST_READS):
            self.read(0)

    def end(self) -> None:
        """End the analyzer and the guard, and wait for that."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)  # tells the guard to end everything
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def said(self) -> str:
        """Return the end of the analyzer's standard error as one harmless line."""
        line = " ".join(self._errors.decode(errors="replace").split())
        return escaped(line[-MAX_SAID_CHARS:])


def _environment(folder: Path) -> Mapping[str, str]:
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return {"PATH": os.defpath, **kept, "TMPDIR": str(folder)}


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """Hold the lock on the folder, and yield its descriptor. Raises BlockingIOError if it is in use."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield descriptor
    finally:
        os.close(descriptor)


def _remove_abandoned_folders() -> None:
    """Remove folders of earlier runs: a guard that is killed with its service leaves one."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            about = folder.lstat()
            # Another process may have just created it, and will lock it next.
            if about.st_uid == os.getuid() and time.time() - about.st_mtime > 60:
                with _locked(folder):
                    shutil.rmtree(folder, ignore_errors=True)
