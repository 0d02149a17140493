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
from typing import Any, NamedTuple

from resumes import analyzer
from resumes.analyzer import Format, Resume
from resumes.errors import (
    ErrorCode,
    InvalidJson,
    InvalidResume,
    Issue,
    NotFound,
    ResumesError,
    StatementRefused,
)
from resumes.import_reasons import Reason
from resumes.store.creation import Created, Duplicate, Outcome
from resumes.store.import_history import FileRow
from resumes.store.import_ledger import (
    MAX_PROBLEMS,
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


class Refusal(NamedTuple):
    """Why no resume could be made of a file. `byte_offset` counts from 0."""

    reason: Reason
    message: str
    path: str | None = None
    byte_offset: int | None = None
    issues: tuple[Issue, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that reports and the ledger's items have."""
        return {
            "reason": self.reason.value,
            "message": escaped(self.message),
            "path": None if self.path is None else escaped(self.path),
            "byte_offset": self.byte_offset,
        }


def issues_as_dicts(issues: Iterable[Issue]) -> list[dict[str, str]]:
    """Return issues or warnings in the form that reports have."""
    return [{"path": escaped(issue.path), "message": escaped(issue.message)} for issue in issues]


class ItemConclusion(NamedTuple):
    """The outcome of one resume in a bundle. `place` is its position, for people (`Part.place`)."""

    item: int
    place: str
    outcome: FileOutcome
    resume_id: str | None = None
    refusal: Refusal | None = None
    warnings: tuple[Issue, ...] = ()
    replaced: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return the item in the form that reports have."""
        is_duplicate = self.outcome is FileOutcome.DUPLICATE
        return {
            "item": self.item,
            "place": escaped(self.place),
            "outcome": self.outcome.value,
            "resume_id": None if is_duplicate else self.resume_id,
            **({"duplicate_of": self.resume_id} if is_duplicate else {}),
            **(self.refusal.as_dict() if self.refusal else {}),
            **({"replaced": self.replaced} if self.replaced else {}),
            **({"warnings": issues_as_dicts(self.warnings)} if self.warnings else {}),
        }


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


class _Listed(NamedTuple):
    item: ItemConclusion
    chars: int


@dataclass(slots=True)
class Tally:
    """The outcomes of the resumes in a bundle: how many there are of each, and the first of each.

    Its size is bounded, however many items a bundle has and however long their messages are.
    """

    counts: Counter[FileOutcome] = field(default_factory=Counter)
    warnings: int = 0
    replaced: int = 0
    """How many older versions the items replaced."""
    has_forgotten: bool = False
    _first: defaultdict[tuple[FileOutcome, bool], list[_Listed]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _chars: Counter[tuple[FileOutcome, bool]] = field(default_factory=Counter)

    def add(self, item: ItemConclusion) -> None:
        """Count the next item."""
        if item.refusal is not None and item.refusal.reason is Reason.FORGOTTEN:
            self.has_forgotten = True
            item = item._replace(place=f"item {item.item}")  # a member may be named after a person
        self.counts[item.outcome] += 1
        self.warnings += len(item.warnings)
        self.replaced += len(item.replaced)
        kind = item.outcome, bool(item.warnings)
        first = self._first[kind]
        if first and item.refusal is not None:  # only the first item's issues are all reported
            item = item._replace(refusal=item.refusal._replace(issues=()))
        if len(first) < MAX_LISTED_ITEMS and self._chars[kind] < MAX_LISTED_CHARS:
            chars = len(json.dumps(item.as_dict()))
            self._chars[kind] += chars
            first.append(_Listed(item, chars))

    @property
    def total(self) -> int:
        """The number of items."""
        return self.counts.total()

    def first(self, outcome: FileOutcome) -> ItemConclusion | None:
        """Return the first item of this outcome, preferably with warnings; None if there is none."""
        found = (self._first[kind] for kind in _REPORT_PRIORITY if kind[0] is outcome)
        return next((first[0].item for first in found if first), None)

    def listed(self) -> list[ItemConclusion]:
        """Return the items that a report lists, in the bundle's order."""
        listed: list[ItemConclusion] = []
        chars = 0
        for entry in itertools.chain.from_iterable(self._first[kind] for kind in _REPORT_PRIORITY):
            chars += entry.chars
            if listed and (len(listed) == MAX_LISTED_ITEMS or chars > MAX_LISTED_CHARS):
                break
            listed.append(entry.item)
        return sorted(listed, key=attrgetter("item"))

    def iter_problems(self) -> Iterator[ItemConclusion]:
        """Yield the first items that are not done, in the bundle's order."""
        kinds = (kind for kind in _REPORT_PRIORITY if kind[0] is not FileOutcome.DONE)
        lists = ([entry.item for entry in self._first[kind]] for kind in kinds)
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


class Conclusion(NamedTuple):
    """The outcome of a claimed file.

    `resume_id` is that of the created resume, or of the one it duplicates; None for a bundle, whose
    `items` have their own. `replaced` are the ids of the older versions that it replaced.
    """

    outcome: FileOutcome
    resume_id: str | None = None
    refusal: Refusal | None = None
    warnings: tuple[Issue, ...] = ()
    replaced: tuple[str, ...] = ()
    items: Tally | None = None
    skipped: SkippedMembers = NONE_SKIPPED

    @property
    def warning_count(self) -> int:
        """The number of warnings about all items together."""
        return len(self.warnings) + (self.items.warnings if self.items else 0)

    @property
    def remark(self) -> str | None:
        """The message about a done file that has a report; None if it has none."""
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
        is_forgotten = self.refusal is not None and self.refusal.reason is Reason.FORGOTTEN
        return nameless(name) if is_forgotten else name

    @property
    def needs_report(self) -> bool:
        """Whether there is more to say than that the file is done."""
        return self.outcome is not FileOutcome.DONE or bool(
            self.warnings or self.replaced or self.items
        )


def conclude(verdict: Resume | Refusal, result: Sequence[Outcome] | ResumesError) -> Conclusion:
    """Return the conclusion about a file of at most one resume from the result of its creation."""
    if isinstance(result, ResumesError):
        return conclude_one(verdict, result)
    return failed(verdict) if isinstance(verdict, Refusal) else conclude_one(verdict, result[0])


def conclude_one(verdict: Resume | Refusal, outcome: Outcome | ResumesError) -> Conclusion:
    """Return the conclusion about one resume from the result of its creation."""
    if isinstance(outcome, Created):
        warnings = verdict.warnings if isinstance(verdict, Resume) else ()
        return Conclusion(FileOutcome.DONE, outcome.id, None, warnings, outcome.replaced)
    if isinstance(outcome, Duplicate):
        refusal = Refusal(Reason.DUPLICATE, outcome.message)
        return Conclusion(FileOutcome.DUPLICATE, outcome.id, refusal)
    refusal = _refusal_of(outcome)
    is_held = refusal.reason is Reason.QUOTA_REACHED
    return Conclusion(FileOutcome.HELD if is_held else FileOutcome.FAILED, refusal=refusal)


def failed(refusal: Refusal) -> Conclusion:
    """Return the conclusion about a file that failed for this reason."""
    return Conclusion(FileOutcome.FAILED, refusal=refusal)


def held(message: str) -> Conclusion:
    """Return the conclusion about a file that waits for room in the quota."""
    return Conclusion(FileOutcome.HELD, refusal=Refusal(Reason.QUOTA_REACHED, message))


def sum_up(items: Tally, skipped: SkippedMembers) -> Conclusion:
    """Return the conclusion about a bundle, from at least one item.

    Its outcome is the worst of theirs; a bundle is a duplicate only if all items are.
    """
    order = (FileOutcome.HELD, FileOutcome.FAILED, FileOutcome.DONE, FileOutcome.DUPLICATE)
    first = next(item for item in map(items.first, order) if item is not None)
    if first.outcome is FileOutcome.DONE:
        return Conclusion(FileOutcome.DONE, items=items, skipped=skipped)
    refusal = first.refusal or Refusal(Reason.INTERNAL_ERROR, "")
    where = f"{first.place}: " if first.place else ""
    count = f"{items}. " if items.total > 1 else ""
    refusal = refusal._replace(message=f"{count}{where}{refusal.message}")
    return Conclusion(first.outcome, refusal=refusal, items=items, skipped=skipped)


def conclusion_of(row: FileRow) -> Conclusion:
    """Return the ledger's conclusion about a file, as far as its folder depends on it."""
    if row.reason not in list(Reason):  # from a later version
        return Conclusion(row.outcome)
    return Conclusion(row.outcome, refusal=Refusal(Reason(row.reason), row.message or ""))


def verdict_of(conclusion: Conclusion) -> Verdict:
    """Return the conclusion in the ledger's form."""
    refusal = conclusion.refusal
    if refusal is None:
        return Verdict(conclusion.outcome)
    reason, message, path, byte_offset, _ = refusal
    return Verdict(conclusion.outcome, reason.value, message, path, byte_offset)


def as_ledger_text(conclusion: Conclusion) -> str | None:
    """Return the ledger's text about items and warnings: counts, and the first items not done.

    None for a file of one resume without warnings.
    """
    tally, warnings = conclusion.items or Tally(), conclusion.warning_count
    if not (tally.total or warnings):
        return None
    problems = (
        Problem(
            item.item,
            escaped(item.place),
            item.outcome.value,
            **(item.refusal.as_dict() if item.refusal else {}),
        )
        for item in tally.iter_problems()
    )
    short = Items(
        total=tally.total,
        done=tally.counts[FileOutcome.DONE],
        duplicate=tally.counts[FileOutcome.DUPLICATE],
        held=tally.counts[FileOutcome.HELD],
        failed=tally.counts[FileOutcome.FAILED],
        problems=tuple(itertools.islice(problems, MAX_PROBLEMS)),
        warnings=warnings,
        skipped=conclusion.skipped.count,
    )
    return json.dumps(short.as_json())


def parse(body: bytes, accepted: Format) -> Resume | Refusal:
    """Return the resume in these bytes, or why they are none."""
    try:
        return analyzer.parse_imported(body, accepted)
    except ResumesError as error:
        return _refusal_of(error)


def judge(body: bytes, accepted: Format) -> Resume | Refusal:
    """Return what `parse` returns, and a refusal if it fails. Never raises."""
    try:
        return parse(body, accepted)
    except Exception:  # noqa: BLE001 - logged whole; one file must not stop the others
        return internal_error()


CRASHED = Refusal(Reason.CRASHED, "The importer crashed each time it read this file")


def unreadable(error: OSError) -> Refusal:
    """Return a refusal for a path that cannot be opened."""
    # `NotAFile` is ours, so it has no message of the system.
    why = f"Cannot read it: {error.strerror}" if error.strerror else "Not a regular file"
    return Refusal(Reason.UNREADABLE, why)


def log_exception(text: str, *values: object) -> None:
    """Log the exception being handled; without the cause of a refused statement, in which the database
    may quote the data."""
    error = sys.exc_info()[1]
    if isinstance(error, StatementRefused):
        logger.error(f"{text}: %s", *values, error.message)
    else:
        logger.exception(text, *values)


def internal_error() -> Refusal:
    """Log the exception being handled, and return a refusal that names it by an id."""
    error_id = secrets.token_hex(4)
    log_exception("Internal error %s", error_id)
    return Refusal(Reason.INTERNAL_ERROR, f"Internal error {error_id}; see the log")


def _refusal_of(error: ResumesError) -> Refusal:
    reason = REASONS[error.code] or Reason.INTERNAL_ERROR
    match error:
        case InvalidJson():
            return Refusal(reason, error.message, byte_offset=error.offset)
        case InvalidResume():
            return Refusal(reason, error.message, error.issues[0].path, issues=error.issues)
        case NotFound():
            return Refusal(reason, "The account was deleted")
        case _:
            return Refusal(reason, error.message)
