"""The steps of the recipe that change a disk or the store, for those who watch it or cut it off."""

from collections.abc import Callable
from enum import StrEnum


class Step(StrEnum):
    """Said as soon as the named thing is true. A process may be killed at any of them."""

    JOURNAL_WRITTEN = "journal_written"
    CLAIMED = "claimed"
    READ = "read"
    COMMITTED = "committed"
    REPORT_PLANNED = "report_planned"
    REPORT_WRITTEN = "report_written"
    MOVED = "moved"
    REPORTS_TIDIED = "reports_tidied"
    JOURNAL_DROPPED = "journal_dropped"
    TAKEN_OVER = "taken_over"


Observer = Callable[[Step], None]


def unobserved(step: Step) -> None:
    """Nobody watches."""
