"""The outcomes of files, including the outcome for each error code (tests check every code).

`resumes.import_reasons` explains what a file's owner can do about each reason.
"""

import bisect
import itertools
import json
import logging
import secrets
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
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
    # Files cannot cause the other errors, which concern requests, keys and names.
    **dict.fromkeys(ErrorCode, Reason.INTERNAL_ERROR),
    **{ErrorCode(reason.value): reason for reason in Reason if reason.value in set(ErrorCode)},
    # When a resume is created, only the account can be missing.
    ErrorCode.NOT_FOUND: Reason.ACCOUNT_DELETED,
    ErrorCode.STORE_UNAVAILABLE: None,
    ErrorCode.OUTCOME_UNKNOWN: None,
    ErrorCode.STORE_INCOMPATIBLE: None,
}
"""The reason why a file failed or is held. None means that the store is tried again later."""


def issues_as_dicts(issues: Iterable[Issue]) -> list[dict[str, str]]:
    """Return issues or warnings in the format of reports."""
    return [{"path": escaped(issue.path), "message": escaped(issue.message)} for issue in issues]


MAX_LISTED_ITEMS = 1_000
MAX_LISTED_CHARS = 1024 * 1024
"""The maximum number of items in a report, and of their JSON characters. The rest is counted."""
_REPORT_PRIORITY = (
    (FileOutcome.FAILED, False),
    (FileOutcome.HELD, False),
    (FileOutcome.DONE, True),
    (FileOutcome.DUPLICATE, False),
    (FileOutcome.DONE, False),
)
"""The order in which items fill the list, by outcome and by whether they have warnings."""


@dataclass(slots=True)
class Tally:
    """The outcomes of the resumes in a bundle: the number of each, the first of each, and the items
    that a report lists. The size of a tally is limited, regardless of the number of items and the
    length of their messages."""

    counts: Counter[FileOutcome] = field(default_factory=Counter)
    warnings: int = 0
    replaced: int = 0
    """The number of older versions that the items replaced."""
    has_forgotten: bool = False
    first: "dict[FileOutcome, Result]" = field(default_factory=dict)
    """The first item of each outcome; only these keep their issues."""
    _listed: "list[tuple[tuple[int, int], int, Result]]" = field(default_factory=list)
    """The items to list by priority and number, each with its number of JSON characters."""
    _chars: int = 0
    _is_cut: bool = False
    """Whether items were left out, so that items after the last listed one are left out, too."""

    def add(self, item: "Result") -> None:
        if item.reason is Reason.FORGOTTEN:
            self.has_forgotten = True
            item = item._replace(place=f"item {item.item}")  # a member may have a person's name
        self.counts[item.outcome] += 1
        self.warnings += len(item.warnings)
        self.replaced += len(item.replaced)
        self.first.setdefault(item.outcome, item)
        order = _REPORT_PRIORITY.index((item.outcome, bool(item.warnings))), item.item
        if self._is_cut and order > self._listed[-1][0]:
            return
        chars = len(json.dumps(item.as_item()))
        new = order, chars, item._replace(issues=())
        bisect.insort(self._listed, new, key=itemgetter(0))
        self._chars += chars
        while self._listed[1:] and (
            len(self._listed) > MAX_LISTED_ITEMS or self._chars > MAX_LISTED_CHARS
        ):
            self._chars -= self._listed.pop()[1]
            self._is_cut = True

    @property
    def total(self) -> int:
        return self.counts.total()

    def listed(self) -> "list[Result]":
        """Return the items that a report lists, in the order of the bundle."""
        return sorted((item for *_, item in self._listed), key=attrgetter("item"))

    def __str__(self) -> str:
        """Return the number of items with each outcome: `997 done, 3 failed`."""
        order = (FileOutcome.DONE, FileOutcome.DUPLICATE, FileOutcome.HELD, FileOutcome.FAILED)
        return ", ".join(f"{self.counts[end]} {end.value}" for end in order if self.counts[end])


class SkippedMember(NamedTuple):
    """A file in an archive that is not imported because of its name, which is escaped here."""

    name: str
    why: SkipReason


_MEMBER_WORDS = {
    SkipReason.ENDING: "not .json, .ndjson or .jsonl",
    SkipReason.HIDDEN: "hidden or temporary",
    SkipReason.SYSTEM: "in a system folder",
}


@dataclass(frozen=True, slots=True)
class SkippedMembers:
    """The number and the first of the archive's files that are skipped because of their names."""

    count: int = 0
    named: Sequence[SkippedMember] = ()

    def describe(self, most: int = 10) -> str:
        """Return `2 members: notes.txt (not .json, …), .a.json (hidden or temporary)`."""
        parts = [f"{member.name} ({_MEMBER_WORDS[member.why]})" for member in self.named[:most]]
        if self.count > len(parts):
            parts.append(f"and {self.count - len(parts):,} more")
        return f"{counted(self.count, 'member')}: {', '.join(parts)}"

    def as_dicts(self) -> list[dict[str, str]]:
        """Return the first skipped members in the format of reports and `--json`."""
        return [
            {"member": name, "reason": why.value, "message": _MEMBER_WORDS[why]}
            for name, why in self.named
        ]


NONE_SKIPPED = SkippedMembers()


class Result(NamedTuple):
    """The result of importing a file, or one resume in a bundle.

    `reason` to `issues` explain why no resume was created. `resume_id` identifies the created
    resume or the resume that it duplicates; it is None for a bundle, whose `items` have their own
    IDs. `replaced` contains the IDs of the older versions that the resume replaced.
    """

    outcome: FileOutcome
    reason: Reason | None = None
    message: str = ""
    path: str | None = None
    byte_offset: int | None = None
    """The offset of the error, starting at 0."""
    issues: tuple[Issue, ...] = ()
    resume_id: str | None = None
    warnings: tuple[Issue, ...] = ()
    replaced: tuple[str, ...] = ()
    items: Tally | None = None
    skipped: SkippedMembers = NONE_SKIPPED
    item: int = 0
    """The number of the resume in a bundle. `place` is its position for display (see `Part`)."""
    place: str = ""
    analysis: Analysis | None = None
    """A description of the analyzer's run; None for JSON."""

    @property
    def warning_count(self) -> int:
        return len(self.warnings) + (self.items.warnings if self.items else 0)

    @property
    def remark(self) -> str | None:
        """The message for the file's owner, or None for a done file that has no report."""
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
        """Return the file's name for reports, which must not name a person who was erased."""
        return nameless(name) if self.reason is Reason.FORGOTTEN else name

    @property
    def needs_report(self) -> bool:
        """Whether the file needs a report: it is not done, or there is something else to say."""
        return self.outcome is not FileOutcome.DONE or self.remark is not None

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
        """Return the message and why no resume was created, in the format of reports."""
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
        """Return the ledger's text about items and warnings: counts, and the first items that are
        not done. Return None for a JSON file with one resume and no warnings."""
        tally, warnings = self.items or Tally(), self.warning_count
        if not (tally.total or warnings or self.analysis):
            return None
        not_done = (item for item in tally.listed() if item.outcome is not FileOutcome.DONE)
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
            for item in itertools.islice(not_done, MAX_PROBLEMS)
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
    """Return the result of a file or item that failed for this reason."""
    return Result(FileOutcome.FAILED, reason, message, path, byte_offset, issues)


def held(message: str) -> Result:
    return Result(FileOutcome.HELD, Reason.QUOTA_REACHED, message)


def results_of(
    verdicts: Iterable[Resume | Result], created: Iterable[Outcome | ResumesError | Result]
) -> Iterator[Result]:
    """Yield the result of each verdict. `created` contains the outcomes of the resumes."""
    answers = iter(created)
    for verdict in verdicts:
        yield verdict if isinstance(verdict, Result) else result_of(next(answers), verdict.warnings)


def result_of(outcome: Outcome | ResumesError | Result, warnings: tuple[Issue, ...] = ()) -> Result:
    """Return the result of a resume or an error. Only a created resume has `warnings`."""
    match outcome:
        case Result():
            return outcome
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
    """Return the result of a bundle with at least one item: the worst of the items' results."""
    first = next(items.first[outcome] for outcome in WORST_FIRST if outcome in items.first)
    result = Result(first.outcome, items=items, skipped=skipped)
    if first.outcome is FileOutcome.DONE:
        return result
    where = f"{first.place}: " if first.place else ""
    count = f"{items}. " if items.total > 1 else ""
    return result._replace(
        reason=first.reason,
        message=f"{count}{where}{first.message}",
        path=first.path,
        byte_offset=first.byte_offset,
        issues=first.issues,
    )


def recorded_result(row: FileRow) -> Result:
    """Return a file's result from the ledger, with only the values that its folder and the report
    of an analyzed file need."""
    if row.reason not in list(Reason):  # from a later version
        return Result(row.outcome)
    why = Reason(row.reason), row.message or "", row.path, row.byte_offset
    return Result(row.outcome, *why, analysis=row.analysis)


def judge(body: bytes, accepted: Format) -> Resume | Result:
    """Return the resume in these bytes, or the result if they are not a resume. Never raises."""
    try:
        return analyzer.parse_imported(body, accepted)
    except ResumesError as error:
        return result_of(error)
    except Exception:  # noqa: BLE001 - logged in full; one file must not stop the others
        return internal_error()


CRASHED = failed(Reason.CRASHED, "The importer crashed each time it read this file")


def unreadable(error: OSError) -> Result:
    # `NotAFile` is raised by this program, so it has no system message.
    why = f"Cannot read it: {error.strerror}" if error.strerror else "Not a regular file"
    return failed(Reason.UNREADABLE, why)


def log_exception(text: str, *values: object) -> None:
    """Log the current exception, without the cause of a refused statement: it may quote data."""
    if isinstance(error := sys.exc_info()[1], StatementRefused):
        logger.error(f"{text}: %s", *values, error.message)
    else:
        logger.exception(text, *values)


def internal_error() -> Result:
    """Log the current exception, and return a result with the ID of the log entry."""
    error_id = secrets.token_hex(4)
    log_exception("Internal error %s", error_id)
    return failed(Reason.INTERNAL_ERROR, f"Internal error {error_id}; see the log")
