"""Running an importer: until the folder is drained, or until it is stopped."""

import random as system_random
import threading
import time
from collections.abc import Callable

from importer.changes import Changes
from importer.names import escaped
from importer.options import DEFAULT_TUNING, Tuning
from importer.rounds import Importer
from importer.telling import Progress, Remarks
from resumes.errors import StoreError

ONCE_FAILURES = 3
"""Turns that may fail in a row before a drain gives up."""

WAIT_STEP_S = 0.25
"""How soon a stop is heard of, whatever is waited for."""

SILENT_S = 10.0
"""A drain that waits for longer than this says for what."""

PROGRESS_S = 0.25

CALM_S = 10.0
"""So long nothing must fail for trouble to be over, unless a file is filed: what failed is tried
again at some later turn, and those between say nothing of it."""

Beat = Callable[[], None]
"""Called between turns; cheap unless it is time for something."""


class BackOff:
    """How long nothing is tried after failures in a row. `random` returns 0 to 1."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], float],
        random: Callable[[], float],
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        self._monotonic = monotonic
        self._random = random
        self._tuning = tuning
        self._until = monotonic()
        self.failures = 0
        """In a row."""

    def failed(self) -> None:
        """Nothing is tried for a while, longer each time, and not by all importers at once."""
        back_off_s = min(
            self._tuning.first_back_off_s * 2**self.failures, self._tuning.longest_back_off_s
        )
        self.failures += 1
        self._until = self._monotonic() + back_off_s * (1 + self._random()) / 2

    def succeeded(self) -> None:
        """The next failure is the first again."""
        self.failures = 0
        self._until = self._monotonic()

    def left_s(self) -> float:
        """Seconds until the next try; 0 unless the last one failed."""
        return max(0.0, self._until - self._monotonic())


class Runner:
    """Calls an importer's turns when it is time for them."""

    def __init__(
        self,
        importer: Importer,
        changes: Changes,
        remarks: Remarks,
        *,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        beats: tuple[Beat, ...] = (),
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = system_random.random,
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        self._importer = importer
        self._changes = changes
        self._remarks = remarks
        self._on_progress = on_progress
        self._beats = beats
        self._monotonic = monotonic
        self._back_off = BackOff(monotonic=monotonic, random=random, tuning=tuning)
        self._calm_at = monotonic()
        """When trouble is over if nothing fails before,"""
        self._filed = 0
        """and how many files had been filed when it began."""
        self._told: Progress | None = None
        self._next_progress = monotonic()

    def drain(self, stop: threading.Event) -> bool:
        """Nothing is left that can be imported now, or `stop` is set; False when it gave up
        before, as no file could be taken or filed away.

        Raises StoreError when the store stays out of reach.
        """
        idle_since: float | None = None
        while not stop.is_set():
            handled, error = self._try(lambda: self._importer.round())
            self._tell_progress()
            if error is not None or self._importer.is_stuck:
                if self._back_off.failures >= ONCE_FAILURES:
                    if isinstance(error, StoreError):
                        raise error
                    return False
                stop.wait(self._back_off.left_s())
            elif not handled and not self._importer.has_work:
                due = self._importer.next_due
                if due is None:
                    return True
                idle_since = self._monotonic() if idle_since is None else idle_since
                if due - idle_since >= SILENT_S:
                    self._tell_awaited()
                stop.wait(max(0.0, due - self._monotonic()))
                continue
            idle_since = None
        return True

    def _tell_awaited(self) -> None:
        names = self._importer.awaited
        if names:
            more = f" and {len(names) - 1} more" if names[1:] else ""
            self._remarks(
                "awaited",
                f"Waiting for {names[0]}{more}: not whole yet, not readable, or still open for "
                "writing",
            )

    def run(self, stop: threading.Event) -> None:
        """Files are imported as they come, until `stop` is set."""
        while not stop.is_set():
            self._importer.mark(self._changes.take())
            self._try(self._importer.turn)
            self._tell_progress()
            for beat in self._beats:
                beat()
            self._wait(stop)

    def _try(self, turn: Callable[[], int | None]) -> tuple[int, Exception | None]:
        """A turn: how many files it brought to an end, and the error that cut it off."""
        try:
            handled = turn()
        except (StoreError, OSError) as error:
            self._failed()
            why = error.message if isinstance(error, StoreError) else _words_of(error)
            self._remarks("trouble", f"{escaped(why)}. Nothing new is taken until that is over")
            return 0, error
        if self._importer.is_stuck:
            self._failed()
            return handled or 0, None
        if self._monotonic() >= self._calm_at or self._importer.filed > self._filed:
            self._succeeded()
        return handled or 0, None

    def _failed(self) -> None:
        self._back_off.failed()
        self._calm_at = self._monotonic() + self._back_off.left_s() + CALM_S
        self._filed = self._importer.filed

    def _succeeded(self) -> None:
        self._back_off.succeeded()
        self._remarks.over("unfiled")
        if self._remarks.over("trouble"):
            self._remarks.tell("Importing goes on")

    def _wait(self, stop: threading.Event) -> None:
        """Until it is time for the next turn."""
        back_off_s = self._back_off.left_s()
        if back_off_s:
            stop.wait(back_off_s)
            return
        ends_at = self._monotonic() + self._importer.wait_s()
        while not stop.is_set():
            left_s = ends_at - self._monotonic()
            if left_s <= 0 or self._changes.wait(min(left_s, WAIT_STEP_S)):
                return
            if self._importer.has_answers:
                return

    def _tell_progress(self) -> None:
        now = self._monotonic()
        if now < self._next_progress:
            return
        self._next_progress = now + PROGRESS_S
        progress = self._importer.progress()
        if progress != self._told:
            self._told = progress
            self._on_progress(progress)


def _words_of(error: OSError) -> str:
    """Return the error as people read it: `/srv/inbox/.work: Read-only file system`."""
    if error.strerror is None or not isinstance(error.filename, str):
        return error.strerror or str(error)
    return f"{error.filename}: {error.strerror}"
