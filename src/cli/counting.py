"""How far something long is: a count on the last line of a terminal, and nothing elsewhere."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from cli.status_line import StatusLine, can_rewrite
from resumes.pace import Pace, time_left

EVERY_S = 0.1
"""The line is written anew at most so often."""

Count = Callable[[str, int], None]
"""Told what is being done and how many are done."""


@contextlib.contextmanager
def counting(
    noun: str,
    total: int | None = None,
    *,
    is_wanted: bool = True,
    monotonic: Callable[[], float] = time.monotonic,
) -> Iterator[Count]:
    """During the block, how far it is stands on standard error, if that is a terminal.

    `checked 12,345 of 100,000 rows, about 2 min left`; `total` None: nobody knows.
    """
    if not is_wanted or not can_rewrite(sys.stderr):
        yield lambda words, done: None
        return
    line = StatusLine(sys.stderr)
    pace = Pace()
    last_s = float("-inf")
    last_words = ""

    def count(words: str, done: int) -> None:
        nonlocal last_s, last_words, pace
        now = monotonic()
        if words != last_words:
            last_words, pace = words, Pace()
        elif now - last_s < EVERY_S:
            return
        last_s = now
        pace.note(now, done)
        line.show(describe(words, done, total, noun, pace.files_per_s(now)))

    try:
        yield count
    finally:
        line.show("")


def describe(words: str, done: int, total: int | None, noun: str, per_s: float | None) -> str:
    """`stored 12,345 of 100,000 resumes, about 26 s left`: what is known of it."""
    of = "" if total is None else f" of {max(done, total):,}"
    left = ""
    if total is not None and per_s and total > done:
        left = f", {time_left((total - done) / per_s)}"
    return f"{words} {done:,}{of} {noun}{left}"
