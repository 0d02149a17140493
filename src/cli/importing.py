"""`resumes import`: files and folders, read in place, through the one create path."""

import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from cli.candidates import account_option
from cli.commands import command
from cli.exits import ExitCode
from cli.folders import describe, find_sources
from cli.outcomes import issues_as_json, line, summary
from cli.output import put_json_line, say
from cli.session import Session, choose_account, pass_session
from cli.sources import PATH, Document, Origin, Source, iter_documents, limits_of
from resumes.errors import InvalidInput, Issue
from resumes.text import counted

if TYPE_CHECKING:
    from resumes.analyzer import Format
    from resumes.store import Store
    from resumes.store.accounts import AccountInfo
    from resumes.store.creation import NewResume, Outcome
    from resumes.store.import_ledger import FileOutcome

    Read = tuple[Origin, "NewResume | Result"]

BATCH = 100
"""Resumes in one transaction."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a resume: done, duplicate or failed. `resume_id` None: nothing is stored."""

    origin: Origin
    outcome: "FileOutcome"
    code: str | None = None
    message: str | None = None
    resume_id: str | None = None
    warnings: tuple[Issue, ...] = ()


@command("import")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@account_option("Whose they become; the only account need not be named.")
@click.option("--dry-run", is_flag=True, help="Say what would become of them, store nothing.")
@click.pass_context
@pass_session
def import_(
    session: Session,
    context: click.Context,
    /,
    paths: tuple[str, ...],
    account: str | None,
    dry_run: bool,
) -> None:
    """Import files and folders, in place.

    PATH is a file, a folder of files, or - for standard input: JSON, NDJSON, either with gzip, or
    zip. Nothing is moved. Content that is stored already is a duplicate; what does not fit the
    account's plan fails. In a folder other files are passed over, and counted.
    """
    settings = session.settings()
    accepted = settings.format
    counts = Counter(done=0, failed=0, duplicate=0)
    with session.store() as store:
        chosen = choose_account(store, account)
        found = find_sources(paths)
        found.check()
        documents = iter_documents(found.sources, limits_of(settings))
        iter_results = iter_judged if dry_run else iter_imported
        results = iter_results(store, chosen, documents, accepted)
        for result in _told(session, results, total=len(found.sources)):
            counts[result.outcome] += 1
    say(f"{summary(counts)}{' (nothing was stored)' if dry_run else ''}.")
    if found.ignored:
        say(describe(found.ignored))
    context.exit(ExitCode.FAILED if counts["failed"] else ExitCode.DONE)


def iter_imported(
    store: "Store", account: "AccountInfo", documents: Iterable[Document], accepted: "Format"
) -> Iterator[Result]:
    """What became of each document, in order; what is done is stored for good."""
    from resumes.store import creation

    for batch in _batches(_read(document, accepted) for document in documents):
        new = [one for _, one in batch if not isinstance(one, Result)]
        outcomes = iter(creation.create(store, account.id, new) if new else [])
        for origin, one in batch:
            yield one if isinstance(one, Result) else _result(origin, one, next(outcomes))


def iter_judged(
    store: "Store", account: "AccountInfo", documents: Iterable[Document], accepted: "Format"
) -> Iterator[Result]:
    """What would become of each document if it were imported now; nothing is stored."""
    from resumes.errors import QuotaReached
    from resumes.store import import_ledger
    from resumes.store.creation import Created, Duplicate

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


def _batches(read: Iterator["Read"]) -> Iterator[list["Read"]]:
    while batch := list(itertools.islice(read, BATCH)):
        yield batch


def _read(document: Document, accepted: "Format") -> "Read":
    """The document's resume on its way in, or why there is none."""
    from importer import files
    from resumes.analyzer import parse_imported
    from resumes.store.creation import NewResume
    from resumes.store.import_ledger import FileOutcome

    origin, body = document.origin, document.body
    if document.code is not None:
        return origin, Result(origin, FileOutcome.FAILED, document.code, document.message)
    try:
        return origin, NewResume(parse_imported(body, accepted), digest=files.digest(body))
    except InvalidInput as error:
        return origin, Result(origin, FileOutcome.FAILED, error.code, error.message)


def _result(origin: Origin, new: "NewResume", outcome: "Outcome") -> Result:
    from resumes.store.creation import Created, Duplicate
    from resumes.store.import_ledger import FileOutcome

    match outcome:
        case Created(id=resume_id):
            warnings = new.resume.warnings
            return Result(origin, FileOutcome.DONE, resume_id=resume_id or None, warnings=warnings)
        case Duplicate(id=resume_id):
            message = outcome.message if resume_id else "The same content is among these files"
            return Result(origin, FileOutcome.DUPLICATE, "duplicate", message, resume_id or None)
        case refused:
            return Result(origin, FileOutcome.FAILED, refused.code, refused.message)


def _told(session: Session, results: Iterator[Result], *, total: int) -> Iterator[Result]:
    """The results, each told as it comes: as data, as a line, or by a bar that moves on."""
    if session.as_json:
        for result in results:
            put_json_line(as_json(result))
            yield result
    elif sys.stderr.isatty() and total > 1:
        yield from _told_by_bar(results, total=total)
    else:
        for result in results:
            say(line(result.outcome, result.origin.name, _remark(result)))
            yield result


def _told_by_bar(results: Iterator[Result], *, total: int) -> Iterator[Result]:
    # What failed is told below the bar: lines in between would tear it.
    failed = []
    with click.progressbar(length=total, label="Importing", file=sys.stderr, show_pos=True) as bar:
        source: Source | None = None
        for result in results:
            # It counts files, of which each may give many results.
            if result.origin.source is not source:
                source = result.origin.source
                bar.update(1)
            if result.outcome != "done":
                failed.append(result)
            yield result
    for result in failed:
        say(line(result.outcome, result.origin.name, result.message))


def _remark(result: Result) -> str | None:
    count = len(result.warnings)
    if not count:
        return result.message
    return f"{counted(count, 'warning')} (`resumes validate` shows them)"


def as_json(result: Result) -> dict[str, Any]:
    """The result as `--json` prints it, on a line of its own."""
    return {
        "name": result.origin.source.path,
        "item": result.origin.item,
        "place": result.origin.place,
        "outcome": result.outcome,
        "reason": result.code,
        "message": result.message,
        "resumeId": result.resume_id,
        "warnings": issues_as_json(result.warnings),
    }
