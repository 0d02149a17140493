"""`resumes import` and `resumes validate`: read files and folders without moving them."""

import itertools
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import click

from cli.errors import ExitCode, Failed
from cli.groups import account_option, command, label_option
from cli.output import issues_as_json, line, put, put_json, put_json_line, safe_text, say, summary
from cli.progress import status_line
from cli.session import Session, choose_account, pass_session
from importer import files, json_texts, outcomes, unpack
from importer.dry_run import decide
from importer.files import SystemFolders
from importer.inbox import find_why
from importer.json_texts import Part
from importer.options import Limits
from importer.outcomes import Result, SkippedMembers
from importer.unpack import Unpacked
from resumes.analyzer import Format, Resume
from resumes.errors import Issue
from resumes.health.store_checks import remedy_for_full
from resumes.import_reasons import Reason
from resumes.settings import Settings
from resumes.store import Store, accounts, creation, plans
from resumes.store.accounts import AccountInfo
from resumes.store.creation import NewResume, Rehearsal
from resumes.store.import_ledger import FileOutcome
from resumes.text import counted
from resumes.watched_names import ENDINGS, SkipReason, is_system_folder

STANDARD_INPUT = "-"

SKIPPED = {
    SkipReason.ENDING: (f"is not {ENDINGS}", f"are not {ENDINGS}"),
    SkipReason.HIDDEN: ("is hidden or temporary", "are hidden or temporary"),
    SkipReason.LINK: ("is a symbolic link", "are symbolic links"),
    SkipReason.NO_FILE: ("is not a regular file", "are not regular files"),
    SkipReason.REPORT: ("is an import report", "are import reports"),
    SkipReason.SYSTEM: ("has the name of a system folder", "have names of system folders"),
}
"""The reasons for skipping files, in singular and plural."""

MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class SkippedFiles:
    """The number of skipped files in folders by reason, and the skipped system folders."""

    counts: Counter[SkipReason] = field(default_factory=Counter)
    system_folders: SystemFolders = field(default_factory=SystemFolders)

    def __str__(self) -> str:
        """Return `Skipped 3 files: 2 are not .json, …; 1 is a link.`, and skipped folders."""
        sentences = []
        if self.counts:
            parts = [
                f"{count:,} {SKIPPED[why][count > 1]}" for why, count in sorted(self.counts.items())
            ]
            sentences.append(f"Skipped {counted(self.counts.total(), 'file')}: {'; '.join(parts)}.")
        if self.system_folders.counts:
            sentences.append(
                f"Left alone: {self.system_folders} (recycle bins, snapshots and other system folders)."
            )
        return " ".join(sentences)


PATHS = click.argument(
    "paths",
    metavar="PATH...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, allow_dash=True, path_type=str),
)


class Source(NamedTuple):
    """A file, or `-` for standard input. With `refusal`, it is a subfolder that cannot be read."""

    path: str
    refusal: Result | None = None


def _shown(path: str) -> str:
    """Return the path as messages show it."""
    return "standard input" if path == STANDARD_INPUT else path


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A parsed resume from a source. `item` and `position` are None if it is not in a bundle."""

    path: str
    """The path of the source, or `-` for standard input."""
    item: int | None
    position: str | None
    verdict: Resume | Result
    digest: bytes
    label: str | None = None
    """The label, which is the first folder in the path of a zip member."""

    @property
    def name(self) -> str:
        """The name in messages, such as `people.ndjson, line 12`."""
        source = _shown(self.path)
        return f"{source}, {self.position}" if self.position else source

    def as_json(self, **outcome: Any) -> dict[str, Any]:
        """Return the name, item, position and outcome as `--json` prints them."""
        return {"name": self.path, "item": self.item, "place": self.position, **outcome}


def iter_documents(
    sources: Iterable[Source],
    settings: Settings,
    accepted: Format,
    on_skipped: Callable[[str, SkippedMembers], None],
) -> Iterator[SourceDocument]:
    """Yield the documents of the sources in order, with only one source at a time in memory.

    If an archive has skipped members, `on_skipped` is called with its path before its documents.
    """
    limits = Limits(max_bytes=settings.max_body_bytes, max_file_bytes=settings.max_file_bytes)
    for source in sources:
        parts, skipped = _open(source, limits)
        if skipped.count:
            on_skipped(source.path, skipped)
        for part in parts:
            verdict = part.refusal or outcomes.judge(part.body, accepted)
            item, position = part.number or None, part.place or None
            digest = files.digest(part.body)
            yield SourceDocument(source.path, item, position, verdict, digest, part.label)


def _open(source: Source, limits: Limits) -> Unpacked:
    """Return the parts of a bundle, or one part with number 0 for any other source."""
    path, refusal = source
    if refusal is not None:
        return Unpacked(iter([Part(0, "", refusal=refusal)]))
    most = max(limits.max_bytes, limits.max_file_bytes)
    try:
        if path == STANDARD_INPUT:
            body = sys.stdin.buffer.read(most + 1)
            is_over_limit = len(body) > most
        else:
            content = files.load(path, most)
            body, is_over_limit = content.body, content.is_over_limit
        if is_over_limit:
            raise json_texts.file_too_large(limits)
        if unpack.is_bundle(path, body):
            return unpack.unpack(path, body, limits)
        return Unpacked(iter([Part(0, "", body)]))
    except OSError as error:  # there is no system message for a path that is not a file
        why = f"Cannot read {files.escaped(path)}: {error.strerror}" if error.strerror else error
        refusal = outcomes.failed(Reason.UNREADABLE, str(why))
    except json_texts.CannotUnpack as error:
        refusal = error.refusal
    return Unpacked(iter([Part(0, "", refusal=refusal)]))


def find_sources(paths: Sequence[str]) -> tuple[list[Source], SkippedFiles]:
    """Return the files at the paths, in the given order, and the skipped files in the folders.

    In folders, files are selected by name; hidden names, symbolic links, system folders and the
    importer's own `_…` folders are skipped. A path of a file may have any name. Raises Failed if
    there is no file.
    """
    sources: list[Source] = []
    ignored = SkippedFiles()
    for path in paths:
        if path != STANDARD_INPUT and Path(path).is_dir():
            _scan_folder(path, sources, ignored)
        else:
            sources.append(Source(path))
    if not sources:
        named = ", ".join(paths[:MOST_NAMED])
        more = f" and {len(paths) - MOST_NAMED} more" if paths[MOST_NAMED:] else ""
        raise Failed(f"No resume files in {named}{more}. {ignored}".rstrip())
    return sources, ignored


def _scan_folder(folder: str, sources: list[Source], ignored: SkippedFiles) -> None:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            if is_system_folder(entry.name):
                ignored.system_folders.add(entry.path, safe_text(entry.path))
            elif not entry.name.startswith(("_", ".")):
                try:
                    _scan_folder(entry.path, sources, ignored)
                except OSError as error:  # the other folders can still be read
                    message = f"Cannot read {safe_text(entry.path)}: {error.strerror}"
                    refusal = outcomes.failed(Reason.UNREADABLE, message)
                    sources.append(Source(entry.path, refusal))
        elif (why := find_why(entry)) is not None:
            ignored.counts[why] += 1
        else:
            sources.append(Source(entry.path))


BATCH = 100
"""The number of resumes in a transaction."""


@command("import")
@PATHS
@account_option("Account to import into; optional if there is only one account.")
@label_option("Label of the new resumes. [default: for members of a zip file, their first folder]")
@click.option(
    "--dry-run", is_flag=True, help="Show the results of the import without storing anything."
)
@pass_session
def import_(
    session: Session, paths: tuple[str, ...], account: str | None, label: str | None, dry_run: bool
) -> ExitCode:
    """Import files and folders.

    PATH is a file, a folder, or - for standard input. The command reads JSON, NDJSON and zip files. JSON and
    NDJSON files may be compressed with gzip. The command skips all other files in a folder and reports how
    many it skipped. The command does not move or change the files. A resume is a duplicate if the same
    content was imported earlier and is still stored. The command rejects resumes that would exceed the plan's
    limit.
    """
    settings = session.settings()
    counts = Counter(done=0, failed=0, duplicate=0)
    has_room, next_step = True, None
    with session.store() as store:
        chosen = choose_account(session, store, account)
        sources, ignored = find_sources(paths)
        accepted = settings.format.for_account(chosen.first_month)
        documents = iter_documents(sources, settings, accepted, _say_skipped)
        results: Iterator[tuple[SourceDocument, Result]]
        if dry_run:
            rehearsal = Rehearsal(store, chosen.id)
            results = ((read, decide(rehearsal, read.verdict, read.digest)) for read in documents)
        else:
            results = iter_imported(store, chosen, documents, label)
        with status_line(is_wanted=len(sources) > 1 and not session.as_json) as show:
            number = 0
            for document, result in results:
                # In the inbox, the file would be held, but this command does not wait for quota.
                is_full = result.outcome is FileOutcome.HELD
                has_room = has_room and not is_full
                outcome = FileOutcome.FAILED if is_full else result.outcome
                counts[outcome] += 1
                if session.as_json:
                    shown = document.as_json(
                        outcome=outcome,
                        reason=result.reason,
                        message=result.message or None,
                        resumeId=result.resume_id,
                        warnings=issues_as_json(result.warnings),
                        replaced=result.replaced,
                    )
                    put_json_line(shown)
                elif show is None or outcome is not FileOutcome.DONE:
                    say(line(outcome, document.name, _remark(result)))
                if show is not None:
                    number += document.item in (None, 1)  # the first document of a source
                    show(f"Importing file {number:,} of {len(sources):,}", number, len(sources))
        if not has_room:
            account_now = accounts.get_account(store, chosen.name)
            next_step, _ = remedy_for_full(
                session.installation(), account_now, plans.list_plans(store)
            )
    say(f"{summary(counts)}{' (nothing was stored)' if dry_run else ''}.")
    if left_out := str(ignored):
        say(left_out)
    if next_step is not None:
        say(safe_text(f"The account is full. {next_step}"))
    return ExitCode.FAILED if counts["failed"] else ExitCode.DONE


def iter_imported(
    store: Store,
    account: AccountInfo,
    documents: Iterator[SourceDocument],
    label: str | None = None,
) -> Iterator[tuple[SourceDocument, Result]]:
    """Store the documents, and yield each with its outcome, in order."""
    while batch := list(itertools.islice(documents, BATCH)):
        new = [
            NewResume(document.verdict, digest=document.digest, label=label or document.label)
            for document in batch
            if isinstance(document.verdict, Resume)
        ]
        created = creation.create(store, account.id, new) if new else ()
        verdicts = [document.verdict for document in batch]
        yield from zip(batch, outcomes.results_of(verdicts, created), strict=True)


def _say_skipped(path: str, members: SkippedMembers) -> None:
    say(line("skipped", _shown(path), members.describe()))


def _remark(result: Result) -> str | None:
    if result.message:
        return result.message
    remarks = []
    if result.replaced:
        remarks.append(f"replaced {', '.join(result.replaced)}")
    if result.warnings:
        count = counted(len(result.warnings), "warning")
        remarks.append(f"{count} (`resumes validate` shows them)")
    return "; ".join(remarks) or None


@command()
@PATHS
@pass_session
def validate(session: Session, paths: tuple[str, ...]) -> ExitCode:
    """Check files without importing them.

    PATH is a file, a folder, or - for standard input. The command reads JSON, NDJSON and zip files. JSON and
    NDJSON files may be compressed with gzip. The command skips all other files in a folder and reports how
    many it skipped. The command applies the same checks as the importer.
    """
    counts = Counter(valid=0, failed=0)
    verdicts = []
    sources, ignored = find_sources(paths)
    skipped: list[dict[str, Any]] = []

    def skip(path: str, members: SkippedMembers) -> None:
        skipped.append({"name": path, "count": members.count, "members": members.as_dicts()})
        _say_skipped(path, members)

    settings = session.settings()
    for document in iter_documents(sources, settings, settings.format, skip):
        verdict = document.verdict
        issues: tuple[Issue, ...] = ()
        warnings: tuple[Issue, ...] = ()
        if isinstance(verdict, Result):
            issues = verdict.issues or (Issue("", verdict.message),)
        else:
            warnings = verdict.warnings
        counts["failed" if issues else "valid"] += 1
        if session.as_json:
            result = document.as_json(
                valid=not issues,
                code=verdict.reason if isinstance(verdict, Result) else None,
                issues=issues_as_json(issues),
                warnings=issues_as_json(warnings),
            )
            verdicts.append(result)
        elif issues:
            put(line("failed", document.name, issues[0].message))
            for issue in issues[1:]:
                put(f"           {safe_text(issue.message)}")
        else:
            count = counted(len(warnings), "warning") if warnings else None
            put(line("valid", document.name, count))
            for issue in warnings:
                where = f"{issue.path}: " if issue.path else ""
                put(f"           {safe_text(where + issue.message)}")
    if session.as_json:
        put_json({"files": verdicts, "skipped": skipped})
    say(f"{summary(counts, always=tuple(counts))}.")
    if left_out := str(ignored):
        say(left_out)
    return ExitCode.FAILED if counts["failed"] else ExitCode.DONE
