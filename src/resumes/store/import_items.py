"""What became of the resumes in a file of several, in short: counts, and the first problems.

The ledger keeps it as JSON text beside the file's own outcome. It is for people to read; what
recovery asks is the ledger's items, one row for each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import orjson

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
    """What `as_json` wrote, read back from its text. Raises ValueError for anything else."""
    fields = orjson.loads(text)
    problems = _taken(fields, "problems", lambda value: type(value) is list)
    return Items(
        total=_taken(fields, "total", _is_count),
        done=_taken(fields, "done", _is_count),
        duplicate=_taken(fields, "duplicate", _is_count),
        held=_taken(fields, "held", _is_count),
        failed=_taken(fields, "failed", _is_count),
        problems=tuple(map(_problem, problems)),
    )


def _problem(fields: Any) -> Problem:
    return Problem(
        item=_taken(fields, "item", _is_count),
        place=_taken(fields, "place", _is_text),
        outcome=_taken(fields, "outcome", _is_not_done),
        reason=_taken(fields, "reason", _is_text_or_none),
        message=_taken(fields, "message", _is_text_or_none),
        path=_taken(fields, "path", _is_text_or_none),
        byte_offset=_taken(fields, "byteOffset", _is_count_or_none),
    )


NOT_DONE: Final = ("held", "failed", "duplicate")
"""What a problem's outcome can be."""


def _taken(fields: Any, name: str, is_right: Callable[[Any], bool]) -> Any:
    if type(fields) is not dict or not is_right(value := fields.get(name)):
        raise ValueError(f"no such {name}")
    return value


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_count_or_none(value: Any) -> bool:
    return value is None or _is_count(value)


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_text_or_none(value: Any) -> bool:
    return value is None or _is_text(value)


def _is_not_done(value: Any) -> bool:
    return value in NOT_DONE
