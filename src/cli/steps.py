"""How far a copy or a backup is: a status on a terminal, elsewhere a line now and then."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TextIO, cast

from cli.output import say
from cli.status_line import StatusLine, can_rewrite
from cli.text import safe_text
from resumes.pace import Pace, time_left

if TYPE_CHECKING:
    from resumes.store.moving.copying import Progress

REDRAW_S: Final = 0.1
LINE_S: Final = 30.0
"""How often it is said anew, on a terminal and elsewhere."""


class Steps:
    """Says how far something is. Without a status line, in lines of their own."""

    def __init__(
        self,
        status_line: StatusLine | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._line = status_line
        self._monotonic = monotonic
        self._stage = ""
        self._pace = Pace()
        self._said_at = float("-inf")

    def __call__(self, progress: "Progress") -> None:
        """It is so far."""
        now = self._monotonic()
        if progress.stage != self._stage:
            self._stage = progress.stage
            self._pace = Pace()
            self._said_at = float("-inf")
        self._pace.note(now, progress.done)
        if now - self._said_at < (LINE_S if self._line is None else REDRAW_S):
            return
        self._said_at = now
        text = describe(progress, self._pace.files_per_s(now))
        if self._line is None:
            say(text)
        else:
            self._line.show(text)


@contextlib.contextmanager
def told_steps() -> Iterator[Steps]:
    """What tells how far it is during the block, on standard error."""
    if not can_rewrite(sys.stderr):
        yield Steps()
        return
    status_line = StatusLine(sys.stderr)
    with contextlib.redirect_stderr(cast(TextIO, status_line)):
        try:
            yield Steps(status_line)
        finally:
            status_line.show("")


def describe(progress: "Progress", per_s: float | None) -> str:
    """`Copying documents: 120,000 of 1,000,000 rows, 12,000/s, about 1 min left`."""
    stage = progress.stage.capitalize()
    if progress.stage == "backing up":
        return f"{stage}: {progress.done / 1e6:,.0f} of about {progress.total / 1e6:,.0f} MB"
    text = f"{stage} {safe_text(progress.what)}: {progress.done:,} of {progress.total:,} rows"
    left = progress.total - progress.done
    if per_s and left > 0:
        text += f", {per_s:,.0f}/s, {time_left(left / per_s)}"
    return text
