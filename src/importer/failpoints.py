"""Failpoints: the steps of an import that change a disk or the store; tests observe or stop them."""

from collections.abc import Callable
from enum import StrEnum


class Step(StrEnum):
    """A step that was just taken. A process may be killed at any of them."""

    NOTED = "noted"
    READ = "read"
    COMMITTED = "committed"
    REPORT_WRITTEN = "report_written"
    SET_ASIDE = "set_aside"
    COPIED = "copied"
    """SET_ASIDE and COPIED concern a file that goes to another disk."""
    MOVED = "moved"
    MOVED_BACK = "moved_back"
    REPORTS_TIDIED = "reports_tidied"
    ENDED = "ended"
    """All files of a batch are finished."""
    RECOVERED = "recovered"


Observer = Callable[[Step], None]


def unobserved(step: Step) -> None:
    """Do nothing: the observer of the product."""
