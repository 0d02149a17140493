"""How far the importer is: a status of counts, and lines for the files that are worth one.

The status holds our own words and nothing from data. Where there is no terminal there is none,
and every file has its line.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from cli.flood import FEW, Flood
from cli.outcomes import line, summary
from cli.output import say
from cli.status_line import StatusLine, last_line
from cli.text import cut, width
from resumes.durations import Pace, rate, time_left

if TYPE_CHECKING:
    from importer.service import Progress

COUNTED = ("done", "duplicate", "held")
"""Outcomes that ask nothing of anybody. A file that failed always has its line."""

QUIET_S = 2.0
"""When nothing changed for so long, the status goes."""

TICK_S = 0.25


class Meter:
    """Says what became of files, and how far the importer is.

    Without a status line every file has a line of its own. Its methods may be called from any
    thread.
    """

    def __init__(
        self,
        status_line: StatusLine | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._line = status_line
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._pace = Pace()
        self._progress: Progress | None = None
        self._floods = {outcome: Flood(outcome) for outcome in COUNTED}
        self._changed_at = float("-inf")

    def tell(self, outcome: str, name: str, message: str | None) -> None:
        """The file that came to this end has its line, or is counted."""
        with self._lock:
            self._changed_at = now = self._monotonic()
            flood = self._floods.get(outcome) if self._line is not None else None
            if flood is None:
                say(line(outcome, name, message))
            elif (text := flood.find_line(name, message, now)) is not None:
                say(text)

    def progressed(self, progress: "Progress") -> None:
        """The importer is so far."""
        with self._lock:
            if self._line is None or progress == self._progress:
                return
            self._progress = progress
            self._changed_at = now = self._monotonic()
            handled = progress.done + progress.failed + progress.duplicate + progress.held
            self._pace.note(now, handled)
        self.tick()

    def tick(self) -> None:
        """The status says how it stands now; it goes when nothing happens any more."""
        with self._lock:
            if self._line is None:
                return
            now = self._monotonic()
            if now - self._changed_at > QUIET_S:
                self._end()
            elif self._progress is not None and (
                self._progress.waiting > FEW or any(self._floods.values())
            ):
                files_per_s = self._pace.per_s(now)
                self._line.show(describe(self._progress, files_per_s, self._line.cells))
            else:
                self._line.show("")

    def close(self) -> None:
        """The status is gone, and what was counted is told."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._line is not None:
            self._line.show("")
        for flood in self._floods.values():
            for text in flood.end():
                say(text)


@contextlib.contextmanager
def metered(*, is_wanted: bool) -> Iterator[Meter]:
    """A meter for the block, with its line on standard error where that is a terminal.

    All that is written to standard error within appears above the line.
    """
    if not is_wanted:
        yield Meter()
        return
    with last_line() as status_line:
        meter = Meter(status_line)
        with _ticking(meter) if status_line is not None else contextlib.nullcontext():
            yield meter


@contextlib.contextmanager
def _ticking(meter: Meter) -> Iterator[None]:
    over = threading.Event()

    def tick() -> None:
        while not over.wait(TICK_S):
            with contextlib.suppress(OSError):  # the terminal was closed
                meter.tick()

    thread = threading.Thread(target=tick, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with contextlib.suppress(OSError):
            meter.close()


def describe(progress: "Progress", files_per_s: float | None, cells: int) -> str:
    """`12,345 done, 3 failed; 88,000 waiting, 3,400 files/s, about 26 s left`: what fits of it."""
    ends = {
        "done": progress.done,
        "failed": progress.failed,
        "duplicate": progress.duplicate,
        "held": progress.held,
    }
    counts = summary(ends, always=("done",))
    waiting = f"{progress.waiting:,}{'' if progress.is_complete else '+'} waiting"
    size = f" ({_size(progress.waiting_bytes)})" if progress.waiting else ""
    pace, left = _pace(progress, files_per_s)
    texts = (
        f"{counts}; {waiting}{size}{pace}{left}",
        f"{counts}; {waiting}{pace}{left}",
        f"{counts}; {waiting}{left}",
        f"{counts}; {waiting}",
        f"{progress.done:,} done; {waiting}",
    )
    return next((text for text in texts if width(text) <= cells), cut(texts[-1], cells))


def _pace(progress: "Progress", files_per_s: float | None) -> tuple[str, str]:
    """How fast it goes and how long it takes, each as a part of the status or empty."""
    if not files_per_s or not progress.waiting:
        return "", ""
    left = time_left(progress.waiting / files_per_s) if progress.is_complete else ""
    return f", {rate(files_per_s)}", left and f", {left}"


def _size(size_bytes: int) -> str:
    """`352 MB`, in powers of a thousand."""
    size = float(size_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:,.0f} {unit}"
        size /= 1_000
    return f"{size:,.1f} TB"
