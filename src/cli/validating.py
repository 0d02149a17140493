"""`resumes validate`: the verdict on files, and warnings, without a store."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from cli.commands import command
from cli.exits import ExitCode
from cli.folders import describe, find_sources
from cli.outcomes import issues_as_json, line, summary
from cli.output import put, put_json, say
from cli.session import Session, pass_session
from cli.sources import PATH, Document, Origin, iter_documents, limits_of
from cli.text import safe_text
from resumes.errors import InvalidInput, InvalidResume, Issue
from resumes.text import counted

if TYPE_CHECKING:
    from resumes.analyzer import Format


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a document is: valid, perhaps with warnings, or refused with all that is wrong."""

    origin: Origin
    code: str | None
    issues: tuple[Issue, ...]
    warnings: tuple[Issue, ...]


@command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@click.pass_context
@pass_session
def validate(session: Session, context: click.Context, /, paths: tuple[str, ...]) -> None:
    """Judge files, without a store.

    PATH is a file, a folder of files, or - for standard input: JSON, NDJSON, either with gzip, or
    zip. The verdicts are those that the importer would give. In a folder other files are passed
    over, and counted.
    """
    settings = session.settings()
    accepted = settings.format
    counts = Counter(valid=0, failed=0)
    verdicts = []
    found = find_sources(paths)
    found.check()
    for document in iter_documents(found.sources, limits_of(settings)):
        verdict = judge(document, accepted)
        counts["failed" if verdict.issues else "valid"] += 1
        if session.as_json:
            verdicts.append(as_json(verdict))
        else:
            _put(verdict)
    if session.as_json:
        put_json({"files": verdicts})
    say(f"{summary(counts, always=tuple(counts))}.")
    if found.ignored:
        say(describe(found.ignored))
    context.exit(ExitCode.FAILED if counts["failed"] else ExitCode.DONE)


def judge(document: Document, accepted: "Format") -> Verdict:
    """The verdict on a document; one that cannot be had is refused too."""
    from resumes.analyzer import parse_imported

    origin = document.origin
    if document.code is not None:
        return Verdict(origin, document.code, (Issue("", document.message),), ())
    try:
        resume = parse_imported(document.body, accepted)
    except InvalidResume as error:
        return Verdict(origin, error.code, error.issues, ())
    except InvalidInput as error:
        return Verdict(origin, error.code, (Issue("", error.message),), ())
    return Verdict(origin, None, (), resume.warnings)


def _put(verdict: Verdict) -> None:
    if verdict.issues:
        first, *others = verdict.issues
        put(line("failed", verdict.origin.name, first.message))
    else:
        others = list(verdict.warnings)
        put(line("valid", verdict.origin.name, counted(len(others), "warning") if others else None))
    for issue in others:
        where = f"{issue.path}: " if issue.path and verdict.warnings else ""
        put(f"           {safe_text(where + issue.message)}")


def as_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as `--json` prints it. `code` null: valid."""
    return {
        "name": verdict.origin.source.path,
        "item": verdict.origin.item,
        "place": verdict.origin.place,
        "valid": not verdict.issues,
        "code": verdict.code,
        "issues": issues_as_json(verdict.issues),
        "warnings": issues_as_json(verdict.warnings),
    }
