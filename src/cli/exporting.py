"""`resumes export`: resumes as they can be created again, to files or one stream."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.candidates import account_option, resume_ids
from cli.commands import command
from cli.lookup import get_resume
from cli.output import put_json_line, say
from cli.session import Session, choose_account, pass_session
from cli.signals import sigterm_as_interrupt
from cli.text import safe_text
from resumes.errors import InvalidArgument
from resumes.export_kinds import Kind
from resumes.text import counted

if TYPE_CHECKING:
    from resumes.exporting import Exported
    from resumes.store import Store
    from resumes.store.accounts import AccountInfo
    from resumes.store.listing import StoredResume


@command()
@click.argument("resume_ids", metavar="[ID]...", nargs=-1, shell_complete=resume_ids)
@click.option("--all", "is_all", is_flag=True, help="All resumes of the account.")
@account_option()
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="A file for each resume in this folder, not a stream on standard output. It is named by the "
    "resume's ID and replaces whatever has the name: an earlier export.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice([kind.value for kind in Kind]),
    default=Kind.ANALYZER.value,
    show_default=True,
    help="What to write them as.",
)
@pass_session
def export(
    session: Session,
    resume_ids: tuple[str, ...],
    is_all: bool,
    account: str | None,
    folder: Path | None,
    kind: str,
) -> None:
    """Write resumes to files or one stream.

    The stream has a resume on each line (NDJSON). The analyzer format can be created again as it
    is; of JSON Resume, which does not hold everything, `resumes import` makes the analyzer format.
    """
    if is_all == bool(resume_ids):
        raise click.UsageError("Name the resumes to export, or say --all")
    from resumes import exporting

    left_out: dict[str, None] = {}
    accepted = session.settings().format
    with sigterm_as_interrupt(), session.store() as store:
        chosen = choose_account(store, account)
        resumes = (
            exporting.iter_resumes(store, chosen.id)
            if is_all
            else _iter_named(session, store, chosen, resume_ids)
        )
        count = replaced = 0
        for resume in resumes:
            view = exporting.export_view(resume, Kind(kind), accepted)
            left_out |= dict.fromkeys(view.left_out)
            if folder is None:
                put_json_line(view.content)
            else:
                replaced += _write(folder, resume, view)
            count += 1
    where = "" if folder is None else f" to {safe_text(str(folder))}"
    earlier = f", in place of {counted(replaced, 'earlier file')}" if replaced else ""
    say(f"Exported {counted(count, 'resume')}{where}{earlier}.")
    if left_out:
        say(safe_text(f"Left out, as JSON Resume has no place for it: {', '.join(left_out)}."))


def _write(folder: Path, resume: "StoredResume", view: "Exported") -> bool:
    """Whether its file is in the place of an earlier one. Raises InvalidArgument."""
    from resumes import exporting

    try:
        return exporting.write(folder, resume.entry, view).is_replacing
    except OSError as error:
        raise InvalidArgument(f"Cannot write to {folder}: {error.strerror}") from error


def _iter_named(
    session: Session, store: "Store", account: "AccountInfo", resume_ids: tuple[str, ...]
) -> Iterator["StoredResume"]:
    # All are looked up first: a wrong id is told before anything was written.
    yield from [get_resume(session, store, account, resume_id) for resume_id in resume_ids]
