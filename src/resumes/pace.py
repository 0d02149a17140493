"""How fast something is done, and how long it will take: from counts, as they are told."""

from collections import deque

WINDOW_S = 10.0
"""The pace is that of the last seconds, so that a pause or a slow beginning is forgotten."""

SHORTEST_S = 1.0
"""A pace is known after so long; less would be a guess."""


class Pace:
    """The pace of a count that rises. Times are seconds on one clock, and never go back.

    `window_s` should hold several counts.
    """

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._samples: deque[tuple[float, int]] = deque()

    def note(self, now_s: float, done: int) -> None:
        """So many were done by now, in all."""
        self._forget_before(now_s - self._window_s)
        self._samples.append((now_s, done))

    def per_s(self, now_s: float) -> float | None:
        """How many are done in a second now; None when it is not known, as after a pause, or when
        nothing happens."""
        self._forget_before(now_s - self._window_s)
        if not self._samples:
            return None
        (began_s, before), (_, done) = self._samples[0], self._samples[-1]
        if now_s - began_s < SHORTEST_S or done <= before:
            return None
        return (done - before) / (now_s - began_s)

    def _forget_before(self, oldest_s: float) -> None:
        while self._samples and self._samples[0][0] < oldest_s:
            self._samples.popleft()


def time_left(seconds: float) -> str:
    """`about 2 min left`: as exact as such a guess can be."""
    if seconds < 10:
        return "a few seconds left"
    if seconds < 55:
        return f"about {round(seconds / 10) * 10} s left"
    if seconds < 90 * 60:
        return f"about {max(1, round(seconds / 60))} min left"
    return f"about {round(seconds / 3_600):,} h left"


def rate(files_per_s: float) -> str:
    """`3,400 files/s`; slow ones with a decimal."""
    digits = 0 if files_per_s >= 10 else 1
    return f"{files_per_s:,.{digits}f} files/s"
