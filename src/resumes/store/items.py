"""What became of the resumes in a file of several, in short: counts, and the first problems.

The ledger keeps it as JSON text beside the file's own outcome. It is for people to read; what
recovery asks is the ledger's items, one row for each.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MOST_PROBLEMS = 50
"""How many problems are kept of one file."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A resume of the file that is not done: its number in the file, and `place`, where for people.

    `outcome` is held, failed or duplicate; `path` and `byte_offset` are None where not known.
    """

    item: int
    place: str
    outcome: str
    reason: str | None = None
    message: str | None = None
    path: str | None = None
    byte_offset: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The problem as the ledger keeps it."""
        return {
            "item": self.item,
            "place": self.place,
            "outcome": self.outcome,
            "reason": self.reason,
            "message": self.message,
            "path": self.path,
            "byteOffset": self.byte_offset,
        }


@dataclass(frozen=True, slots=True)
class Items:
    """How many resumes a file held and what became of them, with at most 50 problems, in order."""

    total: int
    done: int
    duplicate: int
    held: int
    failed: int
    problems: tuple[Problem, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The counts and problems as the ledger keeps them."""
        return {
            "total": self.total,
            "done": self.done,
            "duplicate": self.duplicate,
            "held": self.held,
            "failed": self.failed,
            "problems": [problem.as_json() for problem in self.problems[:MOST_PROBLEMS]],
        }


def parse_items(text: str) -> Items:
    """What `as_json` wrote, read back from its text."""
    fields = json.loads(text)
    return Items(
        total=fields["total"],
        done=fields["done"],
        duplicate=fields["duplicate"],
        held=fields["held"],
        failed=fields["failed"],
        problems=tuple(map(_problem, fields["problems"])),
    )


def _problem(fields: Mapping[str, Any]) -> Problem:
    return Problem(
        item=fields["item"],
        place=fields["place"],
        outcome=fields["outcome"],
        reason=fields.get("reason"),
        message=fields.get("message"),
        path=fields.get("path"),
        byte_offset=fields.get("byteOffset"),
    )
