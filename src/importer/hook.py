"""The command that `--on-import` names: run after each batch of files, beside the importing.

It can neither stop nor undo an import: the importer only notes what became of a file, and a thread
of the hook's own does the rest. There is one run at a time, and what comes meanwhile is in the next.
"""

import contextlib
import json
import logging
import os
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from importer.notices import FileReport
from resumes.store import accounts
from resumes.store.ledger import FileOutcome
from resumes.text import escaped

MAX_FILES = 10_000
MAX_CHARS = 8 * 1024 * 1024
"""What is kept of the files: so many, and texts of this length in all."""

MAX_ACCOUNTS = 1_000
"""Their names stay far below what a system takes for a variable."""


@dataclass(slots=True)
class HookBatch:
    """Files that came to their end, for one run of the command. Times are monotonic seconds."""

    first_at: float = 0.0
    last_at: float = 0.0
    counts: dict[FileOutcome, int] = field(default_factory=lambda: dict.fromkeys(FileOutcome, 0))
    account_names: set[str] = field(default_factory=set)
    files: list[FileReport] = field(default_factory=list)
    chars: int = 0
    omitted: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether no file is in it."""
        return not self.files

    def add(self, report: FileReport, now: float) -> None:
        """The file is counted, and listed while there is room."""
        if self.is_empty:
            self.first_at = now
        self.last_at = now
        self.counts[report.outcome] += 1
        if len(self.account_names) < MAX_ACCOUNTS and accounts.NAME.fullmatch(report.account):
            self.account_names.add(report.account)
        if len(self.files) < MAX_FILES and self.chars < MAX_CHARS:
            self.files.append(report)
            texts = (report.name, report.message or "", str(report.filed_as))
            self.chars += sum(map(len, texts))
        else:
            self.omitted += 1

    def due_at(self, quiet_s: float, longest_s: float) -> float:
        """When the command is to run, if no more files come."""
        return min(self.last_at + quiet_s, self.first_at + longest_s)

    def iter_lines(self) -> Iterator[str]:
        """The files as JSON Lines, in ASCII; at last how many more there were, if any."""
        for report in self.files:
            yield _line(
                {
                    "account": report.account,
                    "name": report.name,
                    "outcome": report.outcome.value,
                    "reason": report.reason,
                    "message": report.message,
                    "filed_as": str(report.filed_as),
                    "resume_id": report.resume_id,
                    "warnings": report.warnings,
                }
            )
        if self.omitted:
            yield _line({"omitted": self.omitted})

    def environment(self, root: Path, listing: str) -> dict[str, str]:
        """The command's environment: ours, with the batch in it."""
        counts = {
            f"RESUMES_IMPORT_{outcome.name}": str(count) for outcome, count in self.counts.items()
        }
        return {
            **os.environ,
            **counts,
            "RESUMES_IMPORT_ROOT": str(root),
            "RESUMES_IMPORT_ACCOUNTS": ",".join(sorted(self.account_names)),
            "RESUMES_IMPORT_BATCH": listing,
        }


def _line(fields: dict[str, object]) -> str:
    return json.dumps(fields, separators=(",", ":")) + "\n"


@contextlib.contextmanager
def listed(batch: HookBatch) -> Iterator[str]:
    """The path of a file that lists the batch, for its owner's eyes only; gone after the block."""
    descriptor, path = tempfile.mkstemp(prefix="resumes-import-", suffix=".jsonl")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.writelines(batch.iter_lines())
        yield path
    finally:
        with contextlib.suppress(OSError):
            Path(path).unlink()


KEPT_BYTES = 16 * 1024
"""How much of each stream is kept."""

PIPE_BYTES = 64 * 1024
LOOK_S = 0.05
KILL_AFTER_S = 5.0
"""How long a command that has to end may take over it."""

CUT_OFF_KILL_AFTER_S = 0.5
"""The same when we have to end ourselves."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended and how what it printed begins."""

    exit_status: int | None
    """Negative: the signal that killed it. None: it did not end in time and was killed."""

    output: bytes
    errors: bytes


def run(
    command: str,
    environment: Mapping[str, str],
    *,
    timeout_s: float,
    kill_after_s: float = KILL_AFTER_S,
    cut_off: threading.Event,
    monotonic: Callable[[], float] = time.monotonic,
) -> Ending:
    """The command has ended: by itself, or with its whole group after `timeout_s`, or at `cut_off`.

    Raises OSError when it cannot be started, and ValueError for a command that no system can take.
    """
    with subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    ) as process:
        printed = _Printed(process)
        ends_at = monotonic() + timeout_s
        while process.poll() is None and monotonic() < ends_at and not cut_off.is_set():
            printed.read(LOOK_S)
        exit_status = process.poll()
        if exit_status is None:
            _end(process, printed, cut_off, kill_after_s, monotonic)
        printed.read_rest()
        return Ending(exit_status, bytes(printed.output), bytes(printed.errors))


def _end(
    process: "subprocess.Popen[bytes]",
    printed: "_Printed",
    cut_off: threading.Event,
    kill_after_s: float,
    monotonic: Callable[[], float],
) -> None:
    """The process and its group have ended: asked to at first, then killed."""
    began = monotonic()
    _signal(process, signal.SIGTERM)
    while process.poll() is None:
        limit_s = CUT_OFF_KILL_AFTER_S if cut_off.is_set() else kill_after_s
        if monotonic() >= began + limit_s:
            break
        printed.read(LOOK_S)
    # Also when it has ended itself: those that it started may not have.
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    # Its session has its number, and as group too. Some systems refuse where all have ended.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


class _Printed:
    """The beginnings of what a process prints."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.output = bytearray()
        self.errors = bytearray()
        self._selector = selectors.DefaultSelector()
        for stream, kept in ((process.stdout, self.output), (process.stderr, self.errors)):
            assert stream is not None
            self._selector.register(stream.fileno(), selectors.EVENT_READ, kept)

    def read(self, wait_s: float) -> None:
        """What has been printed is read; it is waited for so long."""
        for key, _ in self._selector.select(wait_s):
            chunk = os.read(key.fd, PIPE_BYTES)
            if not chunk:
                self._selector.unregister(key.fd)
            kept: bytearray = key.data
            kept += chunk[: KEPT_BYTES - len(kept)]

    def read_rest(self) -> None:
        """What an ended process left in its pipes is read, and nothing more is."""
        for _ in range(2):
            self.read(0)
        self._selector.close()


logger = logging.getLogger("resumes.importer")

QUIET_S = 2.0
"""A batch ends when no file came to its end for so long."""

LONGEST_S = 30.0
"""So long after its first file it ends all the same."""

TIMEOUT_S = 60.0

STOP_WAIT_S = 2.0
"""How long the command may go on when the importer is stopped."""

CUT_OFF_WAIT_S = 1.0

MAX_LOGGED_LINES = 100
MAX_TOLD_CHARS = 200


class Hook:
    """Runs the command in the background, for as long as files come. `tell` is called from there."""

    def __init__(
        self,
        command: str,
        root: Path,
        *,
        tell: Callable[[str], None],
        timeout_s: float = TIMEOUT_S,
        quiet_s: float = QUIET_S,
        longest_s: float = LONGEST_S,
        stop_wait_s: float = STOP_WAIT_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command = command
        self._root = root
        self._tell = tell
        self._timeout_s = timeout_s
        self._quiet_s = quiet_s
        self._longest_s = longest_s
        self._stop_wait_s = stop_wait_s
        self._monotonic = monotonic
        self._batch = HookBatch()
        self._changed = threading.Condition()
        self._is_finishing = False
        self._cut_off = threading.Event()
        self._trouble: str | None = None
        """What was told last: why the command did not do well; None while it does."""
        self._thread = threading.Thread(target=self._run_batches, name="on-import", daemon=True)
        self._thread.start()

    def note(self, report: FileReport) -> None:
        """The file is in the batch. Cheap, and never waits for the command."""
        with self._changed:
            was_empty = self._batch.is_empty
            self._batch.add(report, self._monotonic())
            if was_empty:
                self._changed.notify()

    def finish(self, stop: threading.Event) -> None:
        """The command has run for what was noted last, and does not run any more.

        Until `stop` is set it has all its time, from then on two seconds.
        """
        with self._changed:
            self._is_finishing = True
            self._changed.notify()
        while self._thread.is_alive() and not stop.is_set():
            self._thread.join(0.1)
        self._thread.join(self._stop_wait_s)
        self._cut_off.set()
        self._thread.join(CUT_OFF_WAIT_S)

    def _run_batches(self) -> None:
        while (batch := self._next_batch()) is not None:
            self._run(batch)

    def _next_batch(self) -> HookBatch | None:
        """The next batch as soon as it is due; None when there will be none."""
        with self._changed:
            while not self._is_finishing:
                due_at = self._batch.due_at(self._quiet_s, self._longest_s)
                wait_s = None if self._batch.is_empty else due_at - self._monotonic()
                if wait_s is not None and wait_s <= 0:
                    break
                self._changed.wait(wait_s)
            batch, self._batch = self._batch, HookBatch()
            return None if batch.is_empty or self._cut_off.is_set() else batch

    def _run(self, batch: HookBatch) -> None:
        try:
            with listed(batch) as listing:
                ending = run(
                    self._command,
                    batch.environment(self._root, listing),
                    timeout_s=self._timeout_s,
                    cut_off=self._cut_off,
                )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            self._judge(f"could not be run: {escaped(why)}", "It is tried after the next files")
            return
        _log(ending)
        self._judge_ending(ending)

    def _judge_ending(self, ending: Ending) -> None:
        status = ending.exit_status
        if status is None and self._cut_off.is_set():
            self._judge("was ended with the importer, before it was done", "")
        elif status is None:
            trouble = f"did not end within {self._timeout_s:g} s and was killed"
            self._judge(trouble, "Let it start in the background what takes long")
        elif status:
            signalled = f"was killed by signal {-status}"
            trouble = signalled if status < 0 else f"failed with exit code {status}"
            self._judge(
                trouble, "Mend the command; the log has what it printed", _first_line(ending)
            )
        else:
            self._judge(None, "")

    def _judge(self, trouble: str | None, remedy: str, said: str = "") -> None:
        """Told, unless the run before went the same way."""
        before, self._trouble = self._trouble, trouble
        if trouble == before:
            return
        if trouble is None:
            self._tell("The command of --on-import works again")
            return
        quoted = f': "{said}"' if said else ""
        told = f"The command of --on-import {trouble}{quoted}"
        self._tell(". ".join(filter(None, [told, "Imports are not affected", remedy])))


def _log(ending: Ending) -> None:
    printed = [*_lines(ending.output), *_lines(ending.errors)]
    for line in printed[:MAX_LOGGED_LINES]:
        logger.info("on-import: %s", line)
    if len(printed) > MAX_LOGGED_LINES:
        logger.info("on-import: … and %d more lines", len(printed) - MAX_LOGGED_LINES)


def _lines(printed: bytes) -> list[str]:
    return printed.decode(errors="replace").splitlines()


def _first_line(ending: Ending) -> str:
    lines = (line.strip() for line in _lines(ending.errors))
    return escaped(next(filter(None, lines), ""))[:MAX_TOLD_CHARS]
