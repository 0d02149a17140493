"""Show progress on standard error with rich: of imports, watched folders, copies, backups, checks.

The status line contains only our own words, and no data. Without a terminal, there is no status
line, and each file has its own line.
"""

import contextlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from cli.output import line, say, summary
from resumes.text import counted

if TYPE_CHECKING:
    from importer.notices import Progress
    from resumes.store.transfer.copies import CopyProgress

Show = Callable[[str, int, int | None], None]
"""A function that shows a description, the amount done and the total (None if unknown)."""

Count = Callable[[str, int], None]
"""A function that shows a description and the number done."""

REDRAWS_PER_S: Final = 5


@contextlib.contextmanager
def status_line(*, is_wanted: bool = True) -> Iterator[Show | None]:
    """Yield a function that shows a status on the terminal's last line, below all other output.

    The first text shows the line, and an empty text removes it. Yield None if the line is not
    wanted, or if standard error is not a terminal that can rewrite a line.
    """
    if not is_wanted or not sys.stderr.isatty() or os.environ.get("TERM", "") in ("", "dumb"):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    display = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True, soft_wrap=True),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),
        refresh_per_second=REDRAWS_PER_S,
    )
    task = display.add_task("", visible=False)

    def show(text: str, done: int, total: int | None) -> None:
        if done < display.tasks[0].completed:  # another step began
            display.reset(task)
        display.update(task, description=text, completed=done, total=total, visible=bool(text))
        if text:
            display.start()

    try:
        yield show
    finally:
        try:
            display.stop()
        except IndexError:  # interrupted before rich was fully started
            display.console.show_cursor()


@contextlib.contextmanager
def counting(noun: str, total: int | None = None, *, is_wanted: bool = True) -> Iterator[Count]:
    """Show progress during the block: `exported 12,345 of 100,000 resumes`.

    `total` is None if unknown.
    """
    with status_line(is_wanted=is_wanted) as show:

        def count(words: str, done: int) -> None:
            if show is not None:
                of = "" if total is None else f" of {max(done, total):,}"
                show(f"{words} {done:,}{of} {noun}", done, total)

        yield count


WORDS: Final = {"copying": "Copying", "proving": "Comparing", "checking": "Checking"}
"""The verb for each stage of a copy; each stage goes through all rows."""


@contextlib.contextmanager
def copy_progress() -> Iterator[Callable[["CopyProgress"], None]]:
    """Yield a function that shows the progress of a copy, a backup or an account file."""
    with status_line() as show:

        def watch(progress: "CopyProgress") -> None:
            if show is not None:
                show(describe_copy(progress), progress.done, progress.total)

        yield watch


def describe_copy(progress: "CopyProgress") -> str:
    """Return `Copying: 120,000 of 1,000,000 rows`, or the megabytes of a backup."""
    if progress.stage == "backing up":
        return f"Backing up: {progress.done / 1e6:,.0f} of about {progress.total / 1e6:,.0f} MB"
    return f"{WORDS[progress.stage]}: {progress.done:,} of {progress.total:,} rows"


MAX_LINES: Final = 20
"""The number of files of an outcome with their own lines. While files wait, others are counted."""

COUNTED: Final = ("done", "duplicate", "held")
"""Outcomes that need no action. A failed file always gets its own line."""


class Meter:
    """Shows the outcomes of files and the importer's progress. It is thread-safe.

    Without a status line, every file has its own line.
    """

    def __init__(self, show: Show | None = None) -> None:
        self._show = show
        self._lock = threading.Lock()
        self._files: Counter[str] = Counter()
        """The number of files since the last backlog by outcome, whether shown or only counted."""

    def put_file(self, outcome: str, name: str, message: str | None) -> None:
        """Print a line for the file, or only count it."""
        with self._lock:
            self._files[outcome] += 1
            if self._show is None or outcome not in COUNTED or self._files[outcome] <= MAX_LINES:
                say(line(outcome, name, message))

    def put_progress(self, progress: "Progress") -> None:
        """Show the importer's progress while there is a backlog."""
        if self._show is None:
            return
        if progress.waiting <= MAX_LINES:
            self.close()
        else:
            handled = progress.done + progress.failed + progress.duplicate + progress.held
            total = handled + progress.waiting if progress.is_complete else None
            self._show(describe(progress), handled, total)

    def close(self) -> None:
        """Remove the status line, and print how many files were only counted."""
        if self._show is None:
            return
        with self._lock:
            self._show("", 0, None)
            for outcome in COUNTED:
                if self._files[outcome] > MAX_LINES:
                    say(line(outcome, counted(self._files[outcome] - MAX_LINES, "more file")))
            self._files.clear()


@contextlib.contextmanager
def metered(*, is_wanted: bool) -> Iterator[Meter]:
    """Yield a meter. It has a status line if this is wanted and standard error is a terminal."""
    with status_line(is_wanted=is_wanted) as show, contextlib.closing(Meter(show)) as meter:
        yield meter


def describe(progress: "Progress") -> str:
    """Return `12,345 done, 3 failed; 88,000 waiting`."""
    ends = {end: getattr(progress, end) for end in ("done", "failed", "duplicate", "held")}
    more = "" if progress.is_complete else "+"
    return f"{summary(ends, always=('done',))}; {progress.waiting:,}{more} waiting"
