"""Failpoints: the steps of an import that change a disk or the store, for tests that observe or stop them."""

from collections.abc import Callable
from enum import StrEnum


class Step(StrEnum):
    """Reported as soon as the named thing is true. A process may be killed at any of them."""

    NOTED = "noted"
    READ = "read"
    COMMITTED = "committed"
    REPORT_WRITTEN = "report_written"
    SET_ASIDE = "set_aside"
    COPIED = "copied"
    """Both of a file that goes to another disk."""
    MOVED = "moved"
    MOVED_BACK = "moved_back"
    REPORTS_TIDIED = "reports_tidied"
    ENDED = "ended"
    """Nothing of a batch is under way any more."""
    RECOVERED = "recovered"


Observer = Callable[[Step], None]


def unobserved(step: Step) -> None:
    """Nobody watches."""
