"""Running an importer: until the folder is drained, or until it is stopped."""

import random as system_random
import threading
import time
from collections.abc import Callable
from pathlib import Path

from importer.names import escaped
from importer.rhythm import Rhythm
from importer.rounds import Importer
from importer.telling import Remarks
from importer.watching import watched
from resumes.errors import StoreError

RELEASE_S = 1.0
"""How often held files are looked at."""

ONCE_FAILURES = 3
"""Rounds that may fail in a row before a drain gives up."""

WAIT_STEP_S = 0.1


class Runner:
    """Calls an importer's rounds when it is time for them."""

    def __init__(
        self,
        importer: Importer,
        remarks: Remarks,
        *,
        scan_s: float,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = system_random.random,
    ) -> None:
        self._importer = importer
        self._remarks = remarks
        self._monotonic = monotonic
        self._rhythm = Rhythm(scan_s, monotonic=monotonic, random=random)

    def drain(self, stop: threading.Event) -> None:
        """Nothing is left that can be imported now, or `stop` is set.

        Raises StoreError when the store stays out of reach.
        """
        while not stop.is_set():
            handled, error = self._try_round(with_scan=True)
            if error is not None or self._importer.is_stuck:
                if self._rhythm.failures >= ONCE_FAILURES:
                    if isinstance(error, StoreError):
                        raise error
                    return
                stop.wait(self._rhythm.until_scan_s())
            elif not handled and not self._importer.has_more:
                due = self._importer.next_due
                if due is None:
                    return
                stop.wait(max(0.0, due - self._monotonic()))

    def run(self, root: Path, stop: threading.Event) -> None:
        """Files are imported as they come, until `stop` is set."""
        look = threading.Event()
        with watched(root, look, self._remarks):
            while not stop.is_set():
                self._try_round(with_scan=self._rhythm.is_scan_due)
                self._wait(look, stop)

    def _try_round(self, *, with_scan: bool) -> tuple[int, Exception | None]:
        """A round: how many files it brought to an end, and the error that cut it off."""
        try:
            handled = self._importer.round(with_scan=with_scan)
        except (StoreError, OSError) as error:
            self._rhythm.failed()
            why = error.message if isinstance(error, StoreError) else str(error)
            self._remarks("trouble", f"{escaped(why)}. Nothing new is taken until that is over")
            return 0, error
        if self._importer.is_stuck:
            self._rhythm.failed()
            return handled, None
        self._rhythm.succeeded()
        self._remarks.over("unfiled")
        if self._remarks.over("trouble"):
            self._remarks.tell("Importing goes on")
        if with_scan:
            self._rhythm.scanned(self._importer.looking_s)
        if self._importer.has_more:
            self._rhythm.ask()
        return handled, None

    def _wait(self, look: threading.Event, stop: threading.Event) -> None:
        """Until it is time for the next round."""
        due = self._importer.next_due
        if due is not None:
            self._rhythm.ask(due)
        ends_at = self._monotonic() + self._pause_s()
        while not stop.is_set() and (left_s := ends_at - self._monotonic()) > 0:
            if look.wait(min(left_s, WAIT_STEP_S)):
                look.clear()
                self._rhythm.ask()
                ends_at = min(ends_at, self._monotonic() + self._rhythm.until_scan_s())

    def _pause_s(self) -> float:
        until_scan_s = self._rhythm.until_scan_s()
        may_release = self._importer.holds_files and not self._rhythm.failures
        return min(until_scan_s, RELEASE_S) if may_release else until_scan_s
