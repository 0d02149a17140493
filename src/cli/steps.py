"""How far something long is: a status on a terminal, elsewhere a line now and then or nothing."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from cli.output import say
from cli.status_line import StatusLine, last_line
from resumes.durations import Pace, time_left

if TYPE_CHECKING:
    from resumes.store.transfer.copies import Progress

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
def told_steps() -> Iterator[Callable[["Progress"], None]]:
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


def describe_move(progress: "Progress", per_s: float | None) -> str:
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
