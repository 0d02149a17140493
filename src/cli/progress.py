"""Progress on standard error: of an import, a watched folder, a copy, a backup, a check.

The status holds our own words and nothing from data. Without a terminal there is no status, and each
file has its line.
"""

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

from cli.output import cut, line, say, summary, width
from resumes.durations import Pace, rate, time_left
from resumes.text import counted

if TYPE_CHECKING:
    from importer.service import Progress
    from resumes.store.transfer.rows import Progress as CopyProgress

REWRITE = "\r\x1b[K"
"""To the beginning of the line, and erase it (ECMA-48, EL)."""


class StatusLine:
    """A stream to a terminal that keeps a status on its last line: all that is written appears
    above it, whoever writes. Otherwise it is the stream that it was made from."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        # Entered twice when a warning is written while we write.
        self._lock = threading.RLock()
        self._status = ""
        self._is_drawn = False
        self._is_line_open = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def cells(self) -> int:
        """The length of the longest status: one less than a line has, which then never wraps."""
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        return max(1, (columns or 80) - 1)

    def write(self, text: str) -> int:
        """The text stands above the status."""
        if not text:
            return self._stream.write(text)
        with self._lock:
            if self._is_drawn:
                self._stream.write(REWRITE)
                self._is_drawn = False
            written = self._stream.write(text)
            self._is_line_open = not text.endswith("\n")
            self._draw()
            return written

    def show(self, status: str) -> None:
        """The status is on the last line, cut to its length; without one nothing is."""
        with self._lock:
            if status == self._status:
                return
            self._status = status
            if self._is_drawn and not status:
                self._stream.write(REWRITE)
                self._stream.flush()
                self._is_drawn = False
            self._draw()

    def _draw(self) -> None:
        if self._status and not self._is_line_open:
            self._stream.write(REWRITE + cut(self._status, self.cells))
            self._is_drawn = True
            self._stream.flush()


def can_rewrite(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can rewrite a line."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


@contextlib.contextmanager
def last_line() -> Iterator[StatusLine | None]:
    """The status line of standard error during the block, gone afterwards; what is written to
    standard error meanwhile appears above it. None where that is no terminal."""
    if not can_rewrite(sys.stderr):
        yield None
        return
    status_line = StatusLine(sys.stderr)
    with contextlib.redirect_stderr(cast(TextIO, status_line)):
        try:
            yield status_line
        finally:
            status_line.show("")


FEW = 20
"""So many lines are said, however fast they come."""

FLOOD_S = 5.0
"""When so many were said within so long, the files that follow are counted."""


class Flood:
    """The files of one outcome. Times are seconds on one clock.

    Once files are counted all are, until `end`.
    """

    def __init__(self, outcome: str) -> None:
        self._outcome = outcome
        self._said_at: deque[float] = deque(maxlen=FEW)
        self._first: list[str] = []
        self._count = 0

    def __bool__(self) -> bool:
        """Whether files were counted and not told yet."""
        return self._count > 0

    def find_line(self, name: str, message: str | None, now_s: float) -> str | None:
        """The line on a file; None when it is counted."""
        is_fast = len(self._said_at) == FEW and now_s - self._said_at[0] < FLOOD_S
        if not is_fast and not self._count:
            self._said_at.append(now_s)
            return line(self._outcome, name, message)
        self._count += 1
        if self._count <= FEW:
            self._first.append(line(self._outcome, name, message))
        return None

    def end(self) -> list[str]:
        """The lines on those that were counted: one each if they are few, else their number."""
        lines, count = self._first, self._count
        self._first, self._count = [], 0
        return lines if count <= FEW else [line(self._outcome, counted(count, "more file"))]


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


REDRAW_S: Final = 0.1
LINE_S: Final = 30.0
"""How often it is said anew, on a terminal and elsewhere."""

WORDS: Final = {"copying": "Copying", "proving": "Comparing both"}
"""What a copy does in its stages, of which each goes once through all rows."""

Count = Callable[[str, int], None]
"""Told what is being done and how many are done."""


class Steps:
    """Says how far each step is. Without a status line, in lines of their own."""

    def __init__(
        self,
        status_line: StatusLine | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._line = status_line
        self._monotonic = monotonic
        self._step = ""
        self._pace = Pace()
        self._looked_at = self._said_at = float("-inf")

    def tell(self, step: str, done: int, describe: Callable[[float | None], str]) -> None:
        """So many are done in this step. `describe` puts it into words when it is time to say it,
        given how many are done in a second; None: not known."""
        now = self._monotonic()
        if step != self._step:
            self._step = step
            self._pace = Pace()
            self._looked_at = self._said_at = float("-inf")
        if now - self._looked_at < REDRAW_S:
            return
        self._looked_at = now
        self._pace.note(now, done)
        if self._line is not None:
            self._line.show(describe(self._pace.per_s(now)))
        elif now - self._said_at >= LINE_S:
            self._said_at = now
            say(describe(self._pace.per_s(now)))


@contextlib.contextmanager
def told_steps() -> Iterator[Callable[["CopyProgress"], None]]:
    """What tells on standard error how far a copy or a backup is during the block."""
    with last_line() as status_line:
        steps = Steps(status_line)
        yield lambda progress: steps.tell(
            progress.stage, progress.done, lambda per_s: describe_move(progress, per_s)
        )


@contextlib.contextmanager
def counting(
    noun: str, total: int | None = None, *, monotonic: Callable[[], float] = time.monotonic
) -> Iterator[Count]:
    """During the block, how far it is stands on standard error, if that is a terminal.

    `checked 12,345 of 100,000 rows, about 2 min left`; `total` None: nobody knows.
    """
    with last_line() as status_line:
        if status_line is None:
            yield lambda words, done: None
            return
        steps = Steps(status_line, monotonic=monotonic)
        yield lambda words, done: steps.tell(
            words, done, lambda per_s: describe_count(words, done, total, noun, per_s)
        )


def describe_move(progress: "CopyProgress", per_s: float | None) -> str:
    """`Copying: 120,000 of 1,000,000 rows, 12,000/s, about 1 min left`."""
    if progress.stage == "backing up":
        return f"Backing up: {progress.done / 1e6:,.0f} of about {progress.total / 1e6:,.0f} MB"
    text = f"{WORDS[progress.stage]}: {progress.done:,} of {progress.total:,} rows"
    left = progress.total - progress.done
    if per_s and left > 0:
        text += f", {per_s:,.0f}/s, {time_left(left / per_s)}"
    return text


def describe_count(words: str, done: int, total: int | None, noun: str, per_s: float | None) -> str:
    """`stored 12,345 of 100,000 resumes, about 26 s left`: what is known of it."""
    of = "" if total is None else f" of {max(done, total):,}"
    left = ""
    if total is not None and per_s and total > done:
        left = f", {time_left((total - done) / per_s)}"
    return f"{words} {done:,}{of} {noun}{left}"
