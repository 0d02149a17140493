"""The outcomes of files, and a table of the outcome for each error code, of which tests check every code.

`resumes.import_reasons` says what a file's owner can do about a reason.
"""

import heapq
import itertools
import json
import logging
import secrets
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from resumes import analyzer
from resumes.analyzer import Format, Resume
from resumes.errors import (
    ErrorCode,
    InvalidJson,
    InvalidResume,
    Issue,
    NotFound,
    QuotaReached,
    ResumesError,
    StatementRefused,
)
from resumes.import_reasons import Reason
from resumes.store.creation import Created, Duplicate, Outcome
from resumes.store.import_history import FileRow
from resumes.store.import_ledger import (
    MAX_PROBLEMS,
    WORST_FIRST,
    Analysis,
    FileOutcome,
    Items,
    Problem,
    Verdict,
    nameless,
)
from resumes.text import counted, escaped
from resumes.watched_names import SkipReason

logger = logging.getLogger("resumes.importer")


REASONS: Mapping[ErrorCode, Reason | None] = {
    ErrorCode.INVALID_JSON: Reason.INVALID_JSON,
    ErrorCode.INVALID_RESUME: Reason.INVALID_RESUME,
    ErrorCode.COVER_LETTER: Reason.COVER_LETTER,
    ErrorCode.TOO_LARGE: Reason.TOO_LARGE,
    ErrorCode.QUOTA_REACHED: Reason.QUOTA_REACHED,
    ErrorCode.FORGOTTEN: Reason.FORGOTTEN,
    # Only the account can be missing when a resume is created.
    ErrorCode.NOT_FOUND: Reason.ACCOUNT_DELETED,
    ErrorCode.STORE_UNAVAILABLE: None,
    ErrorCode.OUTCOME_UNKNOWN: None,
    ErrorCode.STORE_INCOMPATIBLE: None,
    ErrorCode.STATEMENT_REFUSED: Reason.INTERNAL_ERROR,
    # No file can cause these: they concern requests, keys and names.
    ErrorCode.INVALID_ARGUMENT: Reason.INTERNAL_ERROR,
    ErrorCode.INVALID_KEY: Reason.INTERNAL_ERROR,
    ErrorCode.BUSINESS_PLAN_REQUIRED: Reason.INTERNAL_ERROR,
    ErrorCode.CONFLICT: Reason.INTERNAL_ERROR,
    ErrorCode.IDEMPOTENCY_MISMATCH: Reason.INTERNAL_ERROR,
    ErrorCode.RESUME_CHANGED: Reason.INTERNAL_ERROR,
}
"""Why a file failed, or is held at a full quota. None means that the store is tried again later."""


def issues_as_dicts(issues: Iterable[Issue]) -> list[dict[str, str]]:
    """Return issues or warnings in the form that reports have."""
    return [{"path": escaped(issue.path), "message": escaped(issue.message)} for issue in issues]


MAX_LISTED_ITEMS = 1_000
MAX_LISTED_CHARS = 1024 * 1024
"""The maximum number of items in a report, and of their characters as JSON; others are counted."""
_REPORT_PRIORITY = (
    (FileOutcome.FAILED, False),
    (FileOutcome.HELD, False),
    (FileOutcome.DONE, True),
    (FileOutcome.DUPLICATE, False),
    (FileOutcome.DONE, False),
)
"""The order in which items fill the list, by outcome and whether they have warnings."""


@dataclass(slots=True)
class Tally:
    """The outcomes of the resumes in a bundle: how many there are of each, and the first of each. Its size
    is bounded, however many items a bundle has and however long their messages are."""

    counts: Counter[FileOutcome] = field(default_factory=Counter)
    warnings: int = 0
    replaced: int = 0
    """How many older versions the items replaced."""
    has_forgotten: bool = False
    _first: "defaultdict[tuple[FileOutcome, bool], list[tuple[Result, int]]]" = field(
        default_factory=lambda: defaultdict(list)
    )
    """The first items by outcome and whether they have warnings, each with its characters as JSON."""
    _chars: Counter[tuple[FileOutcome, bool]] = field(default_factory=Counter)

    def add(self, item: "Result") -> None:
        if item.reason is Reason.FORGOTTEN:
            self.has_forgotten = True
            item = item._replace(place=f"item {item.item}")  # a member may be named after a person
        self.counts[item.outcome] += 1
        self.warnings += len(item.warnings)
        self.replaced += len(item.replaced)
        kind = item.outcome, bool(item.warnings)
        first = self._first[kind]
        if first:  # only the first item's issues are all reported
            item = item._replace(issues=())
        if len(first) < MAX_LISTED_ITEMS and self._chars[kind] < MAX_LISTED_CHARS:
            chars = len(json.dumps(item.as_item()))
            self._chars[kind] += chars
            first.append((item, chars))

    @property
    def total(self) -> int:
        return self.counts.total()

    def first(self, outcome: FileOutcome) -> "Result | None":
        """Return the first item of this outcome, preferably with warnings; None if there is none."""
        found = (self._first[kind] for kind in _REPORT_PRIORITY if kind[0] is outcome)
        return next((first[0][0] for first in found if first), None)

    def listed(self) -> "list[Result]":
        """Return the items that a report lists, in the bundle's order."""
        listed: list[Result] = []
        chars = 0
        kinds = (self._first[kind] for kind in _REPORT_PRIORITY)
        for item, item_chars in itertools.chain.from_iterable(kinds):
            chars += item_chars
            if listed and (len(listed) == MAX_LISTED_ITEMS or chars > MAX_LISTED_CHARS):
                break
            listed.append(item)
        return sorted(listed, key=attrgetter("item"))

    def iter_problems(self) -> "Iterator[Result]":
        """Yield the first items that are not done, in the bundle's order."""
        kinds = (kind for kind in _REPORT_PRIORITY if kind[0] is not FileOutcome.DONE)
        lists = ([item for item, _ in self._first[kind]] for kind in kinds)
        return heapq.merge(*lists, key=attrgetter("item"))

    def __str__(self) -> str:
        """Return how many items have each outcome: `997 done, 3 failed`."""
        order = (FileOutcome.DONE, FileOutcome.DUPLICATE, FileOutcome.HELD, FileOutcome.FAILED)
        return ", ".join(f"{self.counts[end]} {end.value}" for end in order if self.counts[end])


class SkippedMember(NamedTuple):
    """A file in an archive that is not imported because of its name, which is escaped."""

    name: str
    why: SkipReason


_MEMBER_WORDS = {
    SkipReason.ENDING: "not .json, .ndjson or .jsonl",
    SkipReason.HIDDEN: "hidden or temporary",
    SkipReason.SYSTEM: "in a system folder",
}


@dataclass(frozen=True, slots=True)
class SkippedMembers:
    """The files in an archive that are not imported because of their names: how many, and the first."""

    count: int = 0
    named: Sequence[SkippedMember] = ()

    def describe(self, most: int = 10) -> str:
        """Return `2 members: notes.txt (not .json, …), .a.json (hidden or temporary)`, at most `most`."""
        parts = [f"{member.name} ({_MEMBER_WORDS[member.why]})" for member in self.named[:most]]
        if self.count > len(parts):
            parts.append(f"and {self.count - len(parts):,} more")
        return f"{counted(self.count, 'member')}: {', '.join(parts)}"

    def as_dicts(self) -> list[dict[str, str]]:
        """Return the first of them in the form that reports and `--json` have."""
        return [
            {
                "member": member.name,
                "reason": member.why.value,
                "message": _MEMBER_WORDS[member.why],
            }
            for member in self.named
        ]


NONE_SKIPPED = SkippedMembers()


class Result(NamedTuple):
    """What became of a claimed file, or of one resume in a bundle.

    `reason` to `issues` say why no resume was created. `resume_id` is that of the created resume, or of
    the one it duplicates; None for a bundle, whose `items` have their own. `replaced` are the ids of the
    older versions that it replaced.
    """

    outcome: FileOutcome
    reason: Reason | None = None
    message: str = ""
    path: str | None = None
    byte_offset: int | None = None
    """It counts from 0."""
    issues: tuple[Issue, ...] = ()
    resume_id: str | None = None
    warnings: tuple[Issue, ...] = ()
    replaced: tuple[str, ...] = ()
    items: Tally | None = None
    skipped: SkippedMembers = NONE_SKIPPED
    item: int = 0
    """In a bundle, the number of the resume, and `place`, its position for people (`Part`)."""
    place: str = ""
    analysis: Analysis | None = None
    """How the analyzer read the file; None for JSON."""

    @property
    def warning_count(self) -> int:
        return len(self.warnings) + (self.items.warnings if self.items else 0)

    @property
    def remark(self) -> str | None:
        """The message for the file's owner; None about a done file that has no report."""
        if self.outcome is not FileOutcome.DONE:
            return self.message or None
        if self.items:
            skipped = f". Skipped {self.skipped.describe(3)}" if self.skipped.count else ""
            older = counted(self.items.replaced, "older version")
            replaced = f". Replaced {older}" if self.items.replaced else ""
            return f"Imported: {self.items}{replaced}{skipped}"
        if not self.warnings and not self.replaced:
            return None
        warnings = f", with {counted(len(self.warnings), 'warning')}" if self.warnings else ""
        replaced = f". It replaced {', '.join(self.replaced)}" if self.replaced else ""
        return f"Imported{warnings}{replaced}"

    def name_of(self, name: str) -> str:
        """Return the file's name for reports, which do not name a person who was erased."""
        return nameless(name) if self.reason is Reason.FORGOTTEN else name

    @property
    def needs_report(self) -> bool:
        """Whether there is more to say than that the file is done."""
        return self.outcome is not FileOutcome.DONE or bool(
            self.warnings or self.replaced or self.items
        )

    def as_item(self) -> dict[str, object]:
        is_duplicate = self.outcome is FileOutcome.DUPLICATE
        return {
            "item": self.item,
            "place": escaped(self.place),
            "outcome": self.outcome.value,
            "resumeId": None if is_duplicate else self.resume_id,
            **({"duplicateOf": self.resume_id} if is_duplicate else {}),
            **(self.explanation() if self.reason else {}),
            **({"replaced": self.replaced} if self.replaced else {}),
            **({"warnings": issues_as_dicts(self.warnings)} if self.warnings else {}),
        }

    def explanation(self) -> dict[str, object]:
        """Return the message, and why no resume was created, in the form that reports have."""
        return {
            "reason": self.reason and self.reason.value,
            "message": escaped(self.message) or self.remark,
            "path": self.path and escaped(self.path),
            "byteOffset": self.byte_offset,
        }

    def as_verdict(self) -> Verdict:
        """Return the columns of the file's row in the ledger."""
        reason = self.reason and self.reason.value
        return Verdict(self.outcome, reason, self.message or None, self.path, self.byte_offset)

    def as_ledger_text(self) -> str | None:
        """Return the ledger's text about items and warnings: counts, and the first items not done. None for
        a JSON file of one resume without warnings."""
        tally, warnings = self.items or Tally(), self.warning_count
        if not (tally.total or warnings or self.analysis):
            return None
        problems = (
            Problem(
                item.item,
                escaped(item.place),
                item.outcome.value,
                item.reason and item.reason.value,
                escaped(item.message) or None,
                item.path and escaped(item.path),
                item.byte_offset,
            )
            for item in itertools.islice(tally.iter_problems(), MAX_PROBLEMS)
        )
        short = Items(
            tally.total,
            **{end.value: tally.counts[end] for end in FileOutcome},
            problems=(*problems,),
            warnings=warnings,
            skipped=self.skipped.count,
            analysis=self.analysis,
        )
        return json.dumps(short.as_json())


def failed(
    reason: Reason,
    message: str,
    path: str | None = None,
    byte_offset: int | None = None,
    issues: tuple[Issue, ...] = (),
) -> Result:
    """Return the result of a file, or an item of one, that failed for this reason."""
    return Result(FileOutcome.FAILED, reason, message, path, byte_offset, issues)


def held(message: str) -> Result:
    return Result(FileOutcome.HELD, Reason.QUOTA_REACHED, message)


def results_of(
    verdicts: Iterable[Resume | Result], created: Iterable[Outcome | ResumesError]
) -> Iterator[Result]:
    """Yield the result of each verdict; `created` has the outcome of each resume among them."""
    answers = iter(created)
    for verdict in verdicts:
        yield verdict if isinstance(verdict, Result) else result_of(next(answers), verdict.warnings)


def result_of(outcome: Outcome | ResumesError, warnings: tuple[Issue, ...] = ()) -> Result:
    """Return the result of a resume, of which only a created one has `warnings`; or of an error."""
    match outcome:
        case Created(id, _, replaced):
            return Result(FileOutcome.DONE, resume_id=id, warnings=warnings, replaced=replaced)
        case Duplicate(id):
            end, why = FileOutcome.DUPLICATE, Reason.DUPLICATE
            return Result(end, why, outcome.message, resume_id=id)
        case QuotaReached():
            return held(outcome.message)
    reason = REASONS[outcome.code] or Reason.INTERNAL_ERROR
    match outcome:
        case InvalidJson():
            return failed(reason, outcome.message, byte_offset=outcome.offset)
        case InvalidResume():
            return failed(reason, outcome.message, outcome.issues[0].path, issues=outcome.issues)
        case NotFound():
            return failed(reason, "The account was deleted")
        case _:
            return failed(reason, outcome.message)


def sum_up(items: Tally, skipped: SkippedMembers) -> Result:
    """Return the result of a bundle, from at least one item: the worst of theirs."""
    first = next(item for item in map(items.first, WORST_FIRST) if item is not None)
    if first.outcome is FileOutcome.DONE:
        return Result(FileOutcome.DONE, items=items, skipped=skipped)
    where = f"{first.place}: " if first.place else ""
    count = f"{items}. " if items.total > 1 else ""
    return Result(
        first.outcome,
        first.reason,
        f"{count}{where}{first.message}",
        first.path,
        first.byte_offset,
        first.issues,
        items=items,
        skipped=skipped,
    )


def recorded_result(row: FileRow) -> Result:
    """Return the ledger's result of a file, as far as its folder and an analyzed file's report depend on
    it."""
    if row.reason not in list(Reason):  # from a later version
        return Result(row.outcome)
    why = Reason(row.reason), row.message or "", row.path, row.byte_offset
    return Result(row.outcome, *why, analysis=row.analysis)


def parse(body: bytes, accepted: Format) -> Resume | Result:
    """Return the resume in these bytes, or why they are none."""
    try:
        return analyzer.parse_imported(body, accepted)
    except ResumesError as error:
        return result_of(error)


def judge(body: bytes, accepted: Format) -> Resume | Result:
    """Return what `parse` returns, and an internal error if it fails. Never raises."""
    try:
        return parse(body, accepted)
    except Exception:  # noqa: BLE001 - logged whole; one file must not stop the others
        return internal_error()


CRASHED = failed(Reason.CRASHED, "The importer crashed each time it read this file")


def unreadable(error: OSError) -> Result:
    # `NotAFile` is ours, so it has no message of the system.
    why = f"Cannot read it: {error.strerror}" if error.strerror else "Not a regular file"
    return failed(Reason.UNREADABLE, why)


def log_exception(text: str, *values: object) -> None:
    """Log the exception being handled; without the cause of a refused statement, in which the database
    may quote the data."""
    if isinstance(error := sys.exc_info()[1], StatementRefused):
        logger.error(f"{text}: %s", *values, error.message)
    else:
        logger.exception(text, *values)


def internal_error() -> Result:
    """Log the exception being handled, and return a result that names it by an id."""
    error_id = secrets.token_hex(4)
    log_exception("Internal error %s", error_id)
    return failed(Reason.INTERNAL_ERROR, f"Internal error {error_id}; see the log")
