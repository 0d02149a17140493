"""The command that `--on-import` names: run after each batch of files, beside the importing.

It can neither stop nor undo an import: the importer only notes what became of a file, and a thread
of the hook's own does the rest. There is one run at a time, and what comes meanwhile is in the next.
"""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from importer import shell
from importer.hook_batches import HookBatch, listed
from importer.shell import Ending
from importer.telling import FileReport
from resumes.text import escaped

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
                ending = shell.run(
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
