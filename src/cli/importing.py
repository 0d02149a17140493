"""`resumes import`: files and folders, read in place, through the one create path."""

import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from cli.candidates import account_names
from cli.commands import command
from cli.exits import ExitCode
from cli.outcomes import issues_as_json, line, summary
from cli.output import put_json_line, say
from cli.session import Session, choose_account, pass_session
from cli.sources import PATH, UNREADABLE, Source, iter_sources
from resumes.errors import InvalidArgument, InvalidInput, Issue
from resumes.text import counted

if TYPE_CHECKING:
    from resumes.analyzer import Format
    from resumes.store import Store
    from resumes.store.accounts import AccountInfo
    from resumes.store.creating import NewResume, Outcome
    from resumes.store.ledger import FileOutcome

BATCH = 100
"""Files in one transaction."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """What became of a file: done, duplicate or failed. `resume_id` None: nothing is stored."""

    source: Source
    outcome: "FileOutcome"
    code: str | None = None
    message: str | None = None
    resume_id: str | None = None
    warnings: tuple[Issue, ...] = ()


@command("import")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@click.option(
    "--account",
    metavar="NAME",
    shell_complete=account_names,
    help="Whose they become; the only account need not be named.",
)
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

    PATH is a file, a folder of .json files, or - for standard input. Nothing is moved. Content
    that is stored already is a duplicate; what does not fit the account's plan fails.
    """
    accepted = session.settings().format
    counts = Counter(done=0, failed=0, duplicate=0)
    with session.store() as store:
        chosen = choose_account(store, account)
        sources = list(iter_sources(paths))
        results = (
            iter_judged(store, chosen, sources, accepted)
            if dry_run
            else iter_imported(store, chosen, sources, accepted)
        )
        for result in _told(session, results, total=len(sources)):
            counts[result.outcome] += 1
    say(f"{summary(counts)}{' (nothing was stored)' if dry_run else ''}.")
    context.exit(ExitCode.FAILED if counts["failed"] else ExitCode.DONE)


def iter_imported(
    store: "Store", account: "AccountInfo", sources: Iterable[Source], accepted: "Format"
) -> Iterator[FileResult]:
    """What became of each file, in order; what is done is stored for good."""
    from resumes.store import creating

    for batch in _batches(sources):
        read = [_read(source, accepted) for source in batch]
        new = [one for one in read if not isinstance(one, FileResult)]
        outcomes = iter(creating.create(store, account.id, new) if new else [])
        for source, one in zip(batch, read, strict=True):
            yield one if isinstance(one, FileResult) else _result(source, one, next(outcomes))


def iter_judged(
    store: "Store", account: "AccountInfo", sources: Iterable[Source], accepted: "Format"
) -> Iterator[FileResult]:
    """What would become of each file if it were imported now; nothing is stored."""
    from resumes.errors import QuotaReached
    from resumes.store import ledger
    from resumes.store.creating import Created, Duplicate

    free = account.free_places
    seen: set[bytes] = set()
    for source in sources:
        one = _read(source, accepted)
        if isinstance(one, FileResult):
            yield one
            continue
        digest = one.digest or b""
        stored = ledger.find_stored(store, account.id, digest)
        if stored is not None or digest in seen:
            yield _result(source, one, Duplicate(stored or ""))
        elif free is not None and len(seen) >= free:
            yield _result(source, one, QuotaReached(max_resumes=account.max_resumes or 0))
        else:
            seen.add(digest)
            yield _result(source, one, Created(""))


def _batches(sources: Iterable[Source]) -> Iterator[list[Source]]:
    rest = iter(sources)
    while batch := list(itertools.islice(rest, BATCH)):
        yield batch


def _read(source: Source, accepted: "Format") -> "NewResume | FileResult":
    """The file's resume on its way in, or why there is none."""
    from importer import reading
    from resumes.analyzer import parse
    from resumes.store.creating import NewResume
    from resumes.store.ledger import FileOutcome

    try:
        content = source.read(max_bytes=accepted.max_bytes)
        return NewResume(parse(content, accepted), digest=reading.digest(content))
    except InvalidArgument as error:
        return FileResult(source, FileOutcome.FAILED, UNREADABLE, error.message)
    except InvalidInput as error:
        return FileResult(source, FileOutcome.FAILED, error.code, error.message)


def _result(source: Source, new: "NewResume", outcome: "Outcome") -> FileResult:
    from resumes.store.creating import Created, Duplicate
    from resumes.store.ledger import FileOutcome

    match outcome:
        case Created(id=resume_id):
            return FileResult(
                source, FileOutcome.DONE, resume_id=resume_id or None, warnings=new.resume.warnings
            )
        case Duplicate(id=resume_id):
            message = outcome.message if resume_id else "The same content is among these files"
            return FileResult(
                source, FileOutcome.DUPLICATE, "duplicate", message, resume_id or None
            )
        case refused:
            return FileResult(source, FileOutcome.FAILED, refused.code, refused.message)


def _told(session: Session, results: Iterator[FileResult], *, total: int) -> Iterator[FileResult]:
    """The results, each told as it comes: as data, as a line, or by a bar that moves on."""
    if session.as_json:
        for result in results:
            put_json_line(as_json(result))
            yield result
    elif sys.stderr.isatty() and total > 1:
        yield from _told_by_bar(results, total=total)
    else:
        for result in results:
            say(line(result.outcome, result.source.name, _remark(result)))
            yield result


def _told_by_bar(results: Iterator[FileResult], *, total: int) -> Iterator[FileResult]:
    # What failed is told below the bar: lines in between would tear it.
    failed = []
    with click.progressbar(length=total, label="Importing", file=sys.stderr, show_pos=True) as bar:
        for result in results:
            bar.update(1)
            if result.outcome != "done":
                failed.append(result)
            yield result
    for result in failed:
        say(line(result.outcome, result.source.name, result.message))


def _remark(result: FileResult) -> str | None:
    count = len(result.warnings)
    if not count:
        return result.message
    return f"{counted(count, 'warning')} (`resumes validate` shows them)"


def as_json(result: FileResult) -> dict[str, Any]:
    """The result as `--json` prints it, on a line of its own."""
    return {
        "name": result.source.path,
        "outcome": result.outcome,
        "reason": result.code,
        "message": result.message,
        "resumeId": result.resume_id,
        "warnings": issues_as_json(result.warnings),
    }
