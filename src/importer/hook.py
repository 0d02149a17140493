"""The command given with `--on-import`, which runs after each batch, in parallel to the import.

The command can neither stop nor undo an import: the importer only records each file's outcome, and
a separate thread does the rest. Files that arrive during a run wait for the next run.
"""

import contextlib
import json
import logging
import math
import os
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from importer.notices import FileReport
from resumes.store import accounts
from resumes.store.import_ledger import FileOutcome
from resumes.text import escaped

MAX_FILES = 10_000
MAX_LIST_CHARS = 16 * 1024 * 1024
"""The maximum size of a batch's list, in files and in JSON characters. The rest is only counted."""
MAX_ACCOUNTS = 1_000
"""The maximum number of accounts in the environment, far below the system's limit."""
KEPT_BYTES = 16 * 1024
"""The number of bytes that are kept from each of the command's output streams."""
PIPE_BYTES = 64 * 1024
"""The size of a pipe, so that one read returns all that the command left in it."""
MAX_LOGGED_LINES = 100

logger = logging.getLogger("resumes.importer")


class HookTimes(NamedTuple):
    """A batch ends when no file has arrived for `quiet_s`, or `longest_s` after its first file. A
    run may take `timeout_s`, and at most `stop_wait_s` once the importer is stopped."""

    timeout_s: float = 60.0
    quiet_s: float = 2.0
    longest_s: float = 30.0
    stop_wait_s: float = 2.0


@dataclass(slots=True)
class HookBatch:
    """The files for one run of the command. Times are seconds on the monotonic clock."""

    first_at: float = 0.0
    last_at: float = 0.0
    counts: Counter[FileOutcome] = field(default_factory=Counter)
    account_names: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    """The files as JSON Lines, in ASCII."""
    chars: int = 0

    def add(self, report: FileReport, now: float) -> None:
        if not self.lines:
            self.first_at = now
        self.last_at = now
        self.counts[report.outcome] += 1
        if len(self.account_names) < MAX_ACCOUNTS and accounts.NAME.fullmatch(report.account):
            self.account_names.add(report.account)
        if len(self.lines) < MAX_FILES and self.chars < MAX_LIST_CHARS:
            self.lines.append(_json_line(report.as_json()))
            self.chars += len(self.lines[-1])

    def left_s(self, times: HookTimes) -> float:
        """Return the seconds until the command should run if no more files arrive."""
        due_at = min(self.last_at + times.quiet_s, self.first_at + times.longest_s)
        return due_at - time.monotonic()

    @contextlib.contextmanager
    def listed(self) -> Iterator[str]:
        """Yield the path of a temporary list of the files, which only its owner can read."""
        descriptor, path = tempfile.mkstemp(prefix="resumes-import-", suffix=".jsonl")
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.writelines(self.lines)
                if omitted := self.counts.total() - len(self.lines):
                    file.write(_json_line({"omitted": omitted}))
            yield path
        finally:
            with contextlib.suppress(OSError):
                Path(path).unlink()

    def environment(self, root: Path, listing: str) -> dict[str, str]:
        return {
            **os.environ,
            **{f"RESUMES_IMPORT_{end.name}": str(self.counts[end]) for end in FileOutcome},
            "RESUMES_IMPORT_ROOT": str(root),
            "RESUMES_IMPORT_ACCOUNTS": ",".join(sorted(self.account_names)),
            "RESUMES_IMPORT_BATCH": listing,
        }


def _json_line(fields: dict[str, object]) -> str:
    return json.dumps(fields, separators=(",", ":")) + "\n"


class Ending(NamedTuple):
    """How a command ended, and the first part of its output."""

    exit_status: int | None
    """A negative value is the signal that killed it. None means that it did not end in time."""
    output: bytes
    errors: bytes


def run(
    command: str,
    environment: Mapping[str, str],
    *,
    timeout_s: float,
    kill_after_s: float = 5.0,
    cut_off: threading.Event,
) -> Ending:
    """Run the command, and stop its process group after `timeout_s` or when `cut_off` is set.

    The group receives SIGTERM first. It is killed after `kill_after_s`, or after half a second if
    `cut_off` is set. Raises OSError or ValueError if the command cannot be started.
    """
    output, errors = bytearray(), bytearray()
    with (
        selectors.DefaultSelector() as selector,
        subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        ) as process,
    ):
        for stream, kept in ((process.stdout, output), (process.stderr, errors)):
            assert stream is not None
            selector.register(stream, selectors.EVENT_READ, kept)

        def wait(limit_s: float, cut_off_limit_s: float) -> int | None:
            """Read until the process ends: its children may keep the pipes open."""
            began = time.monotonic()
            while True:
                ends_at = began + (cut_off_limit_s if cut_off.is_set() else limit_s)
                exit_status = process.poll()
                is_last = exit_status is not None or time.monotonic() >= ends_at
                for key, _ in selector.select(0 if is_last else 0.05):
                    if chunk := os.read(key.fd, PIPE_BYTES):
                        key.data.extend(chunk[: KEPT_BYTES - len(key.data)])
                    else:
                        selector.unregister(key.fileobj)
                if is_last:
                    return exit_status

        exit_status = wait(timeout_s, 0)
        if exit_status is None:
            _signal_group(process.pid, signal.SIGTERM)
            wait(kill_after_s, 0.5)
            # Even if the command itself has ended, its children may still be running.
            _signal_group(process.pid, signal.SIGKILL)
            wait(math.inf, math.inf)
        return Ending(exit_status, bytes(output), bytes(errors))


def _signal_group(leader_pid: int, number: signal.Signals) -> None:
    # Some systems raise PermissionError if the whole group has already ended.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader_pid, number)


class Hook:
    """Runs the command in its own thread, which also calls `on_notice`."""

    def __init__(
        self,
        command: str,
        root: Path,
        *,
        on_notice: Callable[[str], None],
        times: HookTimes = HookTimes(),  # noqa: B008  (it cannot change)
    ) -> None:
        self._command = command
        self._root = root
        self._on_notice = on_notice
        self._times = times
        self._batch = HookBatch()
        self._changed = threading.Condition()
        self._is_finishing = False
        self._cut_off = threading.Event()
        self._error: str | None = None
        """The error of the last run, or None if it succeeded."""
        self._thread = threading.Thread(target=self._run_batches, name="on-import", daemon=True)
        self._thread.start()

    def note(self, report: FileReport) -> None:
        with self._changed:
            self._batch.add(report, time.monotonic())
            if len(self._batch.lines) == 1:
                self._changed.notify()

    def finish(self, stop: threading.Event) -> None:
        """Run the command for the last batch, for at most `stop_wait_s` once `stop` is set."""
        with self._changed:
            self._is_finishing = True
            self._changed.notify()
        while self._thread.is_alive() and not stop.is_set():
            self._thread.join(0.1)
        self._thread.join(self._times.stop_wait_s)
        self._cut_off.set()
        self._thread.join(1.0)

    def _run_batches(self) -> None:
        while not self._cut_off.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._batch.lines or self._is_finishing)
                while not self._is_finishing and (left_s := self._batch.left_s(self._times)) > 0:
                    self._changed.wait(left_s)
                batch, self._batch = self._batch, HookBatch()
            if not batch.lines:
                return
            self._run(batch)

    def _run(self, batch: HookBatch) -> None:
        """Run the command for the batch. Never raises an exception."""
        try:
            with batch.listed() as path:
                ending = run(
                    self._command,
                    batch.environment(self._root, path),
                    timeout_s=self._times.timeout_s,
                    cut_off=self._cut_off,
                )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            self._set_error(
                f"could not be run: {escaped(why)}",
                "The command will be run again after the next batch of files",
            )
            return
        errors = ending.errors.decode(errors="replace").splitlines()
        lines = ending.output.decode(errors="replace").splitlines() + errors
        for line in lines[:MAX_LOGGED_LINES]:
            logger.info("on-import: %s", line)
        if len(lines) > MAX_LOGGED_LINES:
            logger.info("on-import: … and more lines: %d", len(lines) - MAX_LOGGED_LINES)
        match ending.exit_status:
            case 0:
                self._set_error(None)
            case None if self._cut_off.is_set():
                self._set_error("was stopped with the importer before it finished")
            case None:
                self._set_error(
                    f"did not finish within {self._times.timeout_s:g} s and was killed",
                    "Run long tasks in the background",
                )
            case status:
                first_line = next(filter(None, map(str.strip, errors)), "")
                self._set_error(
                    f"was killed by signal {-status}"
                    if status < 0
                    else f"failed with exit code {status}",
                    "Fix the command; the log has its output",
                    quoted=escaped(first_line)[:200],
                )

    def _set_error(self, error: str | None, hint: str = "", *, quoted: str = "") -> None:
        """Report how the run ended, unless the previous run ended the same way."""
        if error == self._error:
            return
        self._error = error
        if error is None:
            self._on_notice("The --on-import command works again")
            return
        sentence = f"The --on-import command {error}" + (f': "{quoted}"' if quoted else "")
        self._on_notice(". ".join(filter(None, [sentence, "Imports are not affected", hint])))
