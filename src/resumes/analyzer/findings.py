"""Collect the problems of a document, which cause its rejection, and its warnings.

Paths and messages are composed only for findings, so a valid document causes no such work.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from resumes.errors import InvalidResume, Issue
from resumes.text import counted, escaped

MAX_REPORTED = 50
MAX_NAME_CHARS = 60
MAX_WARNINGS = 10_000
"""The maximum number of warnings. A document with more is not a resume and takes long to check."""

TOO_MANY = f"The resume has more than {MAX_WARNINGS:,} unknown or unusual fields"


def printable(text: str) -> str:
    """Escape the text for a message, and cut it after 60 characters."""
    return escaped(text if len(text) <= MAX_NAME_CHARS else text[:MAX_NAME_CHARS] + "…")


def dotted(steps: Sequence[str | int]) -> str:
    """Return the path that the steps form, such as `sections.skills.items[2].tags`."""
    words: list[str] = []
    for step in steps:
        if isinstance(step, int):
            words.append(f"[{step}]")
        else:
            words.append(f".{printable(step)}" if words else printable(step))
    return "".join(words)


@dataclass(slots=True)
class Findings:
    """Collects problems and warnings in document order.

    `scope` contains the steps from the document to the object or array that is being checked, so
    its length is the nesting depth above it. `has_third_column` is true if the layout allows column
    2, and `is_doubtful` if the document contains a value that is valid JSON but cannot be stored.
    `is_stored` is true for a stored document, which an earlier release may have stored.
    `first_month` is the number of January, if it is set (`is_first_month_set`) or if a month that
    determines it has been found.
    """

    has_third_column: bool = False
    issues: list[Issue] = field(default_factory=list)
    warnings: list[Issue] = field(default_factory=list)
    unreported: int = 0
    scope: list[str | int] = field(default_factory=list)
    is_doubtful: bool = False
    is_stored: bool = False
    document: Any = None
    first_month: int | None = None
    is_first_month_set: bool = False
    is_first_month_reported: bool = False

    @property
    def are_full(self) -> bool:
        """Whether the limit is reached, so that further problems are not reported."""
        return len(self.issues) == MAX_REPORTED

    def problem(self, where: str | int, expectation: str) -> None:
        """Report a problem with the value at `where`, which is a step in the current scope.

        `expectation` completes the message: "must be a string"."""
        if self.are_full:
            return
        steps = [*self.scope, where]
        path = dotted(steps)
        if len(steps) > 1 and steps[0] == "sections":
            within = dotted(steps[2:])
            what = f"{within} {expectation}" if within else expectation
            message = f'Invalid section "{printable(str(steps[1]))}": {what}'
        else:
            message = f"Invalid field {path}: {expectation}"
        self.issues.append(Issue(path, message))

    def missing(self, field: str) -> None:
        """Report that a required object is missing from the document."""
        if self.are_full:
            return
        self.issues.append(Issue(field, f"Missing required field: {field} (must be an object)"))

    def warn(self, where: str | int, remark: str) -> None:
        """Report a warning. `remark` follows the name of the field: "is only white space".

        Raises InvalidResume if there are too many warnings.
        """
        if len(self.warnings) == MAX_REPORTED:
            self.unreported += 1
            if self.unreported > MAX_WARNINGS - MAX_REPORTED:
                raise InvalidResume([Issue("", TOO_MANY)])
            return
        named = [self.scope[-1], where] if isinstance(where, int) else [where]
        path = dotted([*self.scope, where])
        self.warnings.append(Issue(path, f"{dotted(named)} {remark}"))

    def all_warnings(self) -> tuple[Issue, ...]:
        """Return the first 50 warnings. If there are more, another warning counts the rest."""
        if not self.unreported:
            return tuple(self.warnings)
        return (*self.warnings, Issue("", counted(self.unreported, "more warning")))
