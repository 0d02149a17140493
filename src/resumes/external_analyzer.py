"""Run the user's own analyzer, a program that converts a PDF or Word document to a resume as JSON.

The analyzer runs without a shell, with low priority and in a private folder. A guard
(`resumes.analyzer_guard`) ends all its processes and removes the folder, even if this process is
killed.
"""

import contextlib
import fcntl
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import IO, Final, NamedTuple

from resumes.analyzer_guard import remove_folder
from resumes.settings import ANALYZED_FILE, Settings
from resumes.text import escaped

ENVIRONMENT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
"""The variables that the analyzer inherits from this process. TMPDIR is its private folder."""

KEPT_BYTES: Final = 16 * 1024
"""The number of bytes that are kept from the end of standard error."""

MAX_SAID_CHARS: Final = 500
"""The number of characters that a message quotes from the end of standard error."""

OVERRUN_BYTES: Final = 64 * 1024
"""The number of bytes by which the output may exceed the size limit of a resume. Such a resume is
rejected later because of its size."""

MEMORY_MIB: Final = 4096
"""The limit for the data memory of each analyzer process, which can raise this limit itself."""

CHECK_S: Final = 0.1
"""The interval for checking whether the run is cancelled."""

END_S: Final = 5.0
"""The maximum time that the guard has for ending the analyzer and removing its folder."""

_READ_BYTES: Final = 64 * 1024
_MAX_LAST_READS: Final = 16
"""The number of reads that empty a pipe of 1 MiB, the largest that a process may request on
Linux."""

_PREFIX: Final = "resumes-analyzer-"
_GUARD: Final = (sys.executable, "-I", str(Path(__file__).with_name("analyzer_guard.py")))


BEGINNING_BYTES: Final = 1024
"""The number of bytes in which the beginning of a PDF is searched for, since some programs write
other bytes before it."""

OLD_WORD: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BEGINNINGS: Final = {
    ".doc": (OLD_WORD, rb"{\rtf"),  # Word also reads RTF in a .doc
    ".docx": (b"PK\3\4",),
    ".odt": (b"PK\3\4",),
    ".rtf": (rb"{\rtf",),
}


class Failure(StrEnum):
    """The reason why a run returned no output."""

    CANNOT_START = "cannot_start"
    FAILED = "failed"
    """The analyzer rejected the file or crashed, with an exit code, a signal or no output."""
    TOO_MUCH_OUTPUT = "too_much_output"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class AnalysisFailed(Exception):
    """The analyzer returned no output. `message` is one sentence that quotes `said`.

    `said` is the end of its standard error as one escaped line.
    """

    def __init__(self, reason: Failure, message: str, said: str = "") -> None:
        self.reason = reason
        self.said = said
        self.message = f"{message}: {said}" if said else message
        super().__init__(self.message)


class Output(NamedTuple):
    """The analyzer's output: a resume, and the end of its standard error as one escaped line."""

    body: bytes
    said: str


def is_of_type(suffix: str, begin: bytes) -> bool:
    """Return whether a file of this type can begin with these `BEGINNING_BYTES`."""
    if suffix == ".pdf":
        return b"%PDF" in begin
    if suffix == ".txt":
        is_utf16 = begin.startswith((b"\xff\xfe", b"\xfe\xff"))
        return is_utf16 or b"\0" not in begin
    return begin.startswith(_BEGINNINGS[suffix])


class ExternalAnalyzer:
    """Runs the command in the settings. Several threads may call it."""

    def __init__(self, settings: Settings) -> None:
        self._command = settings.analyzer
        self._timeout_s = settings.analyzer_timeout_s
        self._max_bytes = settings.max_body_bytes + OVERRUN_BYTES
        _remove_abandoned_folders()

    def run(
        self, source: IO[bytes], suffix: str, *, is_cancelled: Callable[[], bool] = lambda: False
    ) -> Output:
        """Run the analyzer on a copy of the file, whose name ends with `suffix`.

        Raises AnalysisFailed. In all cases, the analyzer's processes are ended and its files
        removed.
        """
        program = find_program(self._command)
        try:
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
            try:
                copy = folder / f"resume{suffix}"
                arguments = (word.replace(ANALYZED_FILE, str(copy)) for word in self._command[1:])
                with _guarded(copy, [program, *arguments], source) as guard:
                    return self._read(guard, is_cancelled)
            finally:
                remove_folder(folder)  # in case the guard was killed
        except OSError as error:
            raise _cannot_start(error.strerror or str(error)) from None

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
        match bytes(guard.report).split():
            case [b"error", number]:
                raise _cannot_start(os.strerror(int(number)))
            case [b"exit", b"0", _]:
                how = "" if guard.output.strip() else "wrote no output"
            case [b"exit", status, peak_kib]:
                how = _describe_end(int(status), int(peak_kib))
            case _:
                how = "was killed"
        if how:
            raise AnalysisFailed(Failure.FAILED, f"The analyzer {how}", guard.said)
        return Output(bytes(guard.output), guard.said)


def _describe_end(status: int, peak_kib: int) -> str:
    how = f"failed with exit code {status}" if status > 0 else f"ended by signal {-status}"
    if status == -signal.SIGKILL:
        return f"{how}, as when memory runs out"
    if peak_kib > MEMORY_MIB * 1024 // 2:
        how += f" when it had used {peak_kib >> 10} MiB of memory"
    return how


def find_program(command: Sequence[str]) -> str:
    """Return the absolute path of the command's program. Raises AnalysisFailed if it cannot run."""
    found = shutil.which(command[0])
    if found is None:
        name = escaped(command[0])
        try:
            is_there = "/" in name and Path(command[0]).exists()
        except OSError as error:  # a folder in the path is inaccessible
            raise _cannot_start(f"{name}: {error.strerror}") from None
        raise _cannot_start(
            f"{name} is not an executable file" if is_there else f"{name} was not found"
        )
    return str(Path(found).absolute())


def _cannot_start(why: str) -> AnalysisFailed:
    return AnalysisFailed(Failure.CANNOT_START, f"The analyzer cannot be started: {why}")


class _Guard:
    """The output of the guard and the analyzer."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self.output = bytearray()
        self.errors = bytearray()
        self.report = bytearray()
        """The guard's report (see `resumes.analyzer_guard`), or nothing if the guard was killed."""
        self._has_ended = False

    def read(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` for output, and read it. Return whether the guard has ended."""
        for key, _ in self._selector.select(timeout_s):
            chunk = os.read(key.fd, _READ_BYTES)
            key.data.extend(chunk)
            if not chunk:
                self._selector.unregister(key.fileobj)
                self._has_ended |= key.data is self.report
        del self.errors[:-KEPT_BYTES]
        return self._has_ended

    def read_rest(self) -> None:
        """Read the rest of the output after the guard has ended.

        Do not wait for the pipes to close: a process that could not be ended may keep them open."""
        for _ in range(_MAX_LAST_READS):
            self.read(0)

    @property
    def said(self) -> str:
        """Return the end of the analyzer's standard error as one escaped line."""
        line = " ".join(self.errors.decode(errors="replace").split())
        return escaped(line[-MAX_SAID_CHARS:])


@contextlib.contextmanager
def _guarded(copy: Path, command: Sequence[str], source: IO[bytes]) -> Iterator[_Guard]:
    """Run the command under a guard during the block, and end all its processes after the block.

    Raises OSError if the guard cannot be started."""
    source.flush()
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    control, other_end = socket.socketpair()
    with control, selectors.DefaultSelector() as selector:
        # The guard also holds the lock, which shows that the folder is in use.
        with other_end, _locked(copy.parent) as lock:
            arguments = [str(source.fileno()), str(copy), str(MEMORY_MIB * 1024**2)]
            process = subprocess.Popen(
                [*_GUARD, *arguments, *command],
                stdin=other_end.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={"PATH": os.defpath, **environment, "TMPDIR": str(copy.parent)},
                pass_fds=[source.fileno(), lock],
                start_new_session=True,
            )
        with process:
            try:
                guard = _Guard(selector)
                for stream, kept in (
                    (control, guard.report),
                    (process.stdout, guard.output),
                    (process.stderr, guard.errors),
                ):
                    assert stream is not None
                    selector.register(stream, selectors.EVENT_READ, kept)
                yield guard
            finally:
                with contextlib.suppress(OSError):
                    control.shutdown(socket.SHUT_WR)  # makes the guard end everything
                try:
                    process.wait(END_S)
                except subprocess.TimeoutExpired:
                    process.kill()


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """Lock the folder for the block, and yield its descriptor. Raises BlockingIOError if locked."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield descriptor
    finally:
        os.close(descriptor)


def _remove_abandoned_folders() -> None:
    """Remove folders of earlier runs, which remain if the guard and the service are killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            about = folder.lstat()
            # Skip a new folder: another process may have created it and not locked it yet.
            if about.st_uid == os.getuid() and time.time() - about.st_mtime > 60:
                with _locked(folder):
                    remove_folder(folder)
