"""`resumes validate`: the verdict on files, and warnings, without a store."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from cli.commands import command
from cli.exits import ExitCode
from cli.outcomes import issues_as_json, line, summary
from cli.output import put, put_json, say
from cli.session import Session, pass_session
from cli.sources import PATH, UNREADABLE, Source, iter_sources
from cli.text import safe_text
from resumes.errors import InvalidArgument, InvalidInput, InvalidResume, Issue
from resumes.text import counted

if TYPE_CHECKING:
    from resumes.analyzer import Format


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a file is: valid, perhaps with warnings, or refused with all that is wrong."""

    source: Source
    code: str | None
    issues: tuple[Issue, ...]
    warnings: tuple[Issue, ...]


@command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@click.pass_context
@pass_session
def validate(session: Session, context: click.Context, /, paths: tuple[str, ...]) -> None:
    """Judge files, without a store.

    PATH is a file, a folder of .json files, or - for standard input. The verdicts are those that
    the API and the importer would give.
    """
    accepted = session.settings().format
    counts = Counter(valid=0, failed=0)
    verdicts = []
    for source in iter_sources(paths):
        verdict = judge(source, accepted)
        counts["failed" if verdict.issues else "valid"] += 1
        if session.as_json:
            verdicts.append(as_json(verdict))
        else:
            _put(verdict)
    if session.as_json:
        put_json({"files": verdicts})
    say(f"{summary(counts, always=tuple(counts))}.")
    context.exit(ExitCode.FAILED if counts["failed"] else ExitCode.DONE)


def judge(source: Source, accepted: "Format") -> Verdict:
    """The verdict on a file; one that cannot be read is refused too."""
    from resumes.analyzer import parse

    try:
        resume = parse(source.read(max_bytes=accepted.max_bytes), accepted)
    except InvalidResume as error:
        return Verdict(source, error.code, error.issues, ())
    except InvalidArgument as error:
        return Verdict(source, UNREADABLE, (Issue("", error.message),), ())
    except InvalidInput as error:
        return Verdict(source, error.code, (Issue("", error.message),), ())
    return Verdict(source, None, (), resume.warnings)


def _put(verdict: Verdict) -> None:
    if verdict.issues:
        first, *others = verdict.issues
        put(line("failed", verdict.source.name, first.message))
    else:
        others = list(verdict.warnings)
        put(line("valid", verdict.source.name, counted(len(others), "warning") if others else None))
    for issue in others:
        where = f"{issue.path}: " if issue.path and verdict.warnings else ""
        put(f"           {safe_text(where + issue.message)}")


def as_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as `--json` prints it. `code` null: valid."""
    return {
        "name": verdict.source.path,
        "valid": not verdict.issues,
        "code": verdict.code,
        "issues": issues_as_json(verdict.issues),
        "warnings": issues_as_json(verdict.warnings),
    }
