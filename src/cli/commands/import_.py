"""`resumes import` and `resumes validate`: files and folders, read where they are."""

import itertools
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import click

from cli.completion import account_option
from cli.errors import ExitCode, Failed
from cli.groups import command
from cli.output import issues_as_json, line, put, put_json, put_json_line, safe_text, say, summary
from cli.progress import status_line
from cli.session import Session, choose_account, pass_session
from importer import files, json_texts, unpack
from importer.dry_run import ENDINGS, SkipReason, find_why
from importer.unpack import Limits, Part
from resumes.analyzer import Format, parse_imported
from resumes.errors import (
    InvalidArgument,
    InvalidInput,
    InvalidResume,
    Issue,
    QuotaReached,
    TooLarge,
)
from resumes.settings import Settings
from resumes.store import Store, creation, import_ledger
from resumes.store.accounts import AccountInfo
from resumes.store.creation import Created, Duplicate, NewResume, Outcome
from resumes.store.import_ledger import FileOutcome
from resumes.text import counted

Read: TypeAlias = "tuple[Origin, NewResume | Result]"

STANDARD_INPUT = "-"

UNREADABLE = "unreadable"
"""The reason for a file that cannot be read, as the importer gives it."""

MOST_NAMED = 3

PATHS = click.argument(
    "paths",
    metavar="PATH...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, allow_dash=True, path_type=str),
)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a document comes from. `item` and `place` are None when it is all of its source."""

    path: str
    """Of a file, or a dash for standard input."""
    item: int | None = None
    place: str | None = None

    @property
    def name(self) -> str:
        """Return its name in messages: `people.ndjson, line 12`."""
        source = "standard input" if self.path == STANDARD_INPUT else self.path
        return f"{source}, {self.place}" if self.place else source


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """One value of a source, to be read as a resume; or why there is none, by `code` and `message`."""

    origin: Origin
    body: bytes = b""
    code: str | None = None
    message: str = ""


def iter_documents(paths: Iterable[str], settings: Settings) -> Iterator[SourceDocument]:
    """Yield the documents of the sources in order, with one source at a time in memory."""
    limits = Limits(max_bytes=settings.max_body_bytes, max_file_bytes=settings.max_file_bytes)
    for path in paths:
        yield from _open(path, limits)


def _open(path: str, limits: Limits) -> Iterator[SourceDocument]:
    origin = Origin(path)
    try:
        body = _read_bytes(path, max_bytes=max(limits.max_bytes, limits.max_file_bytes))
        if not unpack.is_bundle(path, body):
            return iter([SourceDocument(origin, body)])
        return _iter_parts(path, unpack.unpack(path, body, limits))
    except InvalidArgument as error:
        code, message = UNREADABLE, error.message
    except TooLarge as error:
        code, message = error.code, json_texts.file_too_large(limits).message
    except unpack.CannotUnpack as error:
        code, message = error.refusal.reason, error.refusal.message
    return iter([SourceDocument(origin, code=code, message=message)])


def _read_bytes(path: str, *, max_bytes: int) -> bytes:
    """Return its bytes. Raises TooLarge over the limit, having read no more, and InvalidArgument."""
    if path != STANDARD_INPUT:
        return files.read(path, max_bytes)
    content = sys.stdin.buffer.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise TooLarge(limit_bytes=max_bytes)
    return content


def _iter_parts(path: str, parts: Iterator[Part]) -> Iterator[SourceDocument]:
    for part in parts:
        origin = Origin(path, part.number, part.place or None)
        if part.refusal is None:
            yield SourceDocument(origin, part.body)
        else:
            refusal = part.refusal
            yield SourceDocument(origin, code=refusal.reason, message=refusal.message)


def find_sources(paths: Sequence[str]) -> tuple[list[str], Counter[SkipReason]]:
    """Return the files of the paths, in the order given, and how many others are in the folders.

    In folders the files to import are found by name; hidden names, symbolic links and the importer's
    own `_…` folders are left out. Files that are named themselves may be called anything. Raises
    Failed if there is no file.
    """
    sources: list[str] = []
    ignored: Counter[SkipReason] = Counter()
    for path in paths:
        if path != STANDARD_INPUT and Path(path).is_dir():
            _look_into(path, sources, ignored)
        else:
            sources.append(path)
    if not sources:
        named = ", ".join(paths[:MOST_NAMED])
        more = f" and {len(paths) - MOST_NAMED} more" if paths[MOST_NAMED:] else ""
        raise Failed(f"No resume files in {named}{more}. {describe(ignored)}".rstrip())
    return sources, ignored


def _look_into(folder: str, sources: list[str], ignored: Counter[SkipReason]) -> None:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith(("_", ".")):
                _look_into(entry.path, sources, ignored)
        elif (why := find_why(entry.path)) is not None:
            ignored[why] += 1
        else:
            sources.append(entry.path)


def describe(ignored: Counter[SkipReason]) -> str:
    """Return `Skipped 3 files: 2 are not .json, …; 1 is a link.`; empty for none."""
    if not ignored:
        return ""
    parts = "; ".join(_part(why, count) for why, count in sorted(ignored.items()))
    return f"Skipped {counted(ignored.total(), 'file')}: {parts}."


def _part(why: SkipReason, count: int) -> str:
    one, several = {
        SkipReason.ENDING: (f"is not {ENDINGS}", f"are not {ENDINGS}"),
        SkipReason.HIDDEN: ("is hidden or temporary", "are hidden or temporary"),
        SkipReason.LINK: ("is a symbolic link", "are symbolic links"),
        SkipReason.NO_FILE: ("is not a regular file", "are not regular files"),
        SkipReason.REPORT: ("is an import report", "are import reports"),
    }[why]
    return f"{count:,} {one if count == 1 else several}"


BATCH = 100
"""Resumes in one transaction."""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a resume: done, duplicate or failed. `resume_id` None: nothing is stored."""

    origin: Origin
    outcome: FileOutcome
    code: str | None = None
    message: str | None = None
    resume_id: str | None = None
    warnings: tuple[Issue, ...] = ()


@command("import")
@PATHS
@account_option("Account to import into. Optional if there is only one.")
@click.option("--dry-run", is_flag=True, help="Show what would happen, without storing anything.")
@pass_session
def import_(
    session: Session, paths: tuple[str, ...], account: str | None, dry_run: bool
) -> ExitCode:
    """Import files and folders.

    PATH is a file, a folder, or - for standard input: JSON or NDJSON, optionally compressed with gzip,
    or a zip archive. Files are left where they are. Content that is already stored is a duplicate;
    resumes over the plan's limit fail. Other files in a folder are skipped and counted.
    """
    settings = session.settings()
    counts = Counter(done=0, failed=0, duplicate=0)
    with session.store() as store:
        chosen = choose_account(session, store, account)
        sources, ignored = find_sources(paths)
        documents = iter_documents(sources, settings)
        iter_results = iter_judged if dry_run else iter_imported
        results = iter_results(store, chosen, documents, settings.format)
        for result in _told(session, results, total=len(sources)):
            counts[result.outcome] += 1
    say(f"{summary(counts)}{' (nothing was stored)' if dry_run else ''}.")
    if ignored:
        say(describe(ignored))
    return ExitCode.FAILED if counts["failed"] else ExitCode.DONE


def iter_imported(
    store: Store, account: AccountInfo, documents: Iterable[SourceDocument], accepted: Format
) -> Iterator[Result]:
    """Store the documents, and yield the result of each, in order."""
    read = (_read(document, accepted) for document in documents)
    while batch := list(itertools.islice(read, BATCH)):
        new = [one for _, one in batch if not isinstance(one, Result)]
        outcomes = iter(creation.create(store, account.id, new) if new else [])
        for origin, one in batch:
            yield one if isinstance(one, Result) else _result(origin, one, next(outcomes))


def iter_judged(
    store: Store, account: AccountInfo, documents: Iterable[SourceDocument], accepted: Format
) -> Iterator[Result]:
    """Yield the result that each document would have if it were imported now; store nothing."""
    free = account.free_places
    seen: set[bytes] = set()
    for document in documents:
        origin, one = _read(document, accepted)
        if isinstance(one, Result):
            yield one
            continue
        digest = one.digest or b""
        stored = import_ledger.find_stored(store, account.id, digest)
        if stored is not None or digest in seen:
            yield _result(origin, one, Duplicate(stored or ""))
        elif free is not None and len(seen) >= free:
            yield _result(origin, one, QuotaReached(max_resumes=account.max_resumes or 0))
        else:
            seen.add(digest)
            yield _result(origin, one, Created(""))


def _read(document: SourceDocument, accepted: Format) -> Read:
    """Return the document's resume, ready to be created, or why there is none."""
    origin, body = document.origin, document.body
    if document.code is not None:
        return origin, Result(origin, FileOutcome.FAILED, document.code, document.message)
    try:
        return origin, NewResume(parse_imported(body, accepted), digest=files.digest(body))
    except InvalidInput as error:
        return origin, Result(origin, FileOutcome.FAILED, error.code, error.message)


def _result(origin: Origin, new: NewResume, outcome: Outcome) -> Result:
    match outcome:
        case Created(id=resume_id):
            warnings = new.resume.warnings
            return Result(origin, FileOutcome.DONE, resume_id=resume_id or None, warnings=warnings)
        case Duplicate(id=resume_id):
            message = (
                outcome.message if resume_id else "Another of these files has the same content"
            )
            return Result(origin, FileOutcome.DUPLICATE, "duplicate", message, resume_id or None)
        case refused:
            return Result(origin, FileOutcome.FAILED, refused.code, refused.message)


def _told(session: Session, results: Iterator[Result], *, total: int) -> Iterator[Result]:
    """Yield the results, and print each: as data, as a line or, if there is a status, in that."""
    with status_line(is_wanted=total > 1 and not session.as_json) as show:
        number = 0
        for result in results:
            number += result.origin.item in (None, 1)  # of which each begins a source
            if session.as_json:
                put_json_line(as_json(result))
            elif show is None or result.outcome != "done":
                say(line(result.outcome, result.origin.name, _remark(result)))
            if show is not None:
                show(f"Importing file {number:,} of {total:,}", number, total)
            yield result


def _remark(result: Result) -> str | None:
    count = len(result.warnings)
    if not count:
        return result.message
    return f"{counted(count, 'warning')} (`resumes validate` shows them)"


def as_json(result: Result) -> dict[str, Any]:
    """Return the result as `--json` prints it, on a line of its own."""
    return {
        "name": result.origin.path,
        "item": result.origin.item,
        "place": result.origin.place,
        "outcome": result.outcome,
        "reason": result.code,
        "message": result.message,
        "resumeId": result.resume_id,
        "warnings": issues_as_json(result.warnings),
    }


@dataclass(frozen=True, slots=True)
class Validation:
    """What a document is: valid, perhaps with warnings, or refused with all that is wrong."""

    origin: Origin
    code: str | None
    issues: tuple[Issue, ...]
    warnings: tuple[Issue, ...]


@command()
@PATHS
@pass_session
def validate(session: Session, paths: tuple[str, ...]) -> ExitCode:
    """Check files without importing them.

    PATH is a file, a folder, or - for standard input: JSON or NDJSON, optionally compressed with gzip,
    or a zip archive. The importer accepts and rejects the same files. Other files in a folder are
    skipped and counted.
    """
    settings = session.settings()
    accepted = settings.format
    counts = Counter(valid=0, failed=0)
    verdicts = []
    sources, ignored = find_sources(paths)
    for document in iter_documents(sources, settings):
        verdict = judge(document, accepted)
        counts["failed" if verdict.issues else "valid"] += 1
        if session.as_json:
            verdicts.append(_verdict_as_json(verdict))
        else:
            _put(verdict)
    if session.as_json:
        put_json({"files": verdicts})
    say(f"{summary(counts, always=tuple(counts))}.")
    if ignored:
        say(describe(ignored))
    return ExitCode.FAILED if counts["failed"] else ExitCode.DONE


def judge(document: SourceDocument, accepted: Format) -> Validation:
    """Return the verdict on a document; one that cannot be read is refused too."""
    origin = document.origin
    if document.code is not None:
        return Validation(origin, document.code, (Issue("", document.message),), ())
    try:
        resume = parse_imported(document.body, accepted)
    except InvalidResume as error:
        return Validation(origin, error.code, error.issues, ())
    except InvalidInput as error:
        return Validation(origin, error.code, (Issue("", error.message),), ())
    return Validation(origin, None, (), resume.warnings)


def _put(verdict: Validation) -> None:
    if verdict.issues:
        first, *others = verdict.issues
        put(line("failed", verdict.origin.name, first.message))
    else:
        others = list(verdict.warnings)
        put(line("valid", verdict.origin.name, counted(len(others), "warning") if others else None))
    for issue in others:
        where = f"{issue.path}: " if issue.path and verdict.warnings else ""
        put(f"           {safe_text(where + issue.message)}")


def _verdict_as_json(verdict: Validation) -> dict[str, Any]:
    """Return the verdict as `--json` prints it. `code` null: valid."""
    return {
        "name": verdict.origin.path,
        "item": verdict.origin.item,
        "place": verdict.origin.place,
        "valid": not verdict.issues,
        "code": verdict.code,
        "issues": issues_as_json(verdict.issues),
        "warnings": issues_as_json(verdict.warnings),
    }
