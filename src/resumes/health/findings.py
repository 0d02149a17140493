"""What a check found."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MAX_NAMED = 10
"""Things that a finding names one by one; it counts the others."""


class State(StrEnum):
    """How a finding is meant, from best to worst."""

    WELL = "well"
    NOTICE = "notice"
    """Everything works, and somebody has something to do."""

    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. `remedy` None: all is well.

    `command` is the line of the remedy that can be typed as it is; None when the remedy is no
    such line. `is_notice` means that nothing is broken all the same. `about` tells it from the
    others of its subject, at the next look too: an account, a folder, the id of a key.
    """

    subject: str
    text: str
    remedy: str | None = None
    command: str | None = None
    is_notice: bool = False
    about: str = ""

    @property
    def state(self) -> State:
        """Whether this is well, worth a thought, or wrong."""
        if self.remedy is None:
            return State.WELL
        return State.NOTICE if self.is_notice else State.WRONG


def notice(
    subject: str, text: str, remedy: str, command: str | None = None, *, about: str = ""
) -> Finding:
    """A finding that somebody should act upon, while nothing is broken."""
    return Finding(subject, text, remedy, command, is_notice=True, about=about)


def as_json(finding: Finding) -> dict[str, Any]:
    """The finding as `--json` prints it. `remedy` null: all is well; `ok` is false only if broken."""
    return {
        "subject": finding.subject,
        "ok": finding.state is not State.WRONG,
        "text": finding.text,
        "remedy": finding.remedy,
    }
