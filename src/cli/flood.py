"""Lines on files that come faster than anybody reads: the first are said, the others counted."""

from collections import deque

from cli.outcomes import line
from resumes.text import counted

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
