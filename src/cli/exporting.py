"""`resumes export`: resumes as they can be created again, to files or one stream."""

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.candidates import account_option, resume_ids
from cli.commands import command
from cli.exits import ExitCode
from cli.lookup import get_resume
from cli.output import put_bytes, put_json_line, say
from cli.session import Session, choose_account, pass_session
from cli.signals import sigterm_as_interrupt
from cli.steps import counting
from cli.text import safe_text
from resumes.analyzer.schema import LAYOUTS
from resumes.export import ExportFormat
from resumes.rendering.page import Paper
from resumes.text import counted

if TYPE_CHECKING:
    from resumes.store import Store
    from resumes.store.accounts import AccountInfo
    from resumes.store.stored_resumes import StoredResume


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
    type=click.Choice([kind.value for kind in ExportFormat]),
    default=ExportFormat.ANALYZER.value,
    show_default=True,
    help="What to write them as.",
)
@click.option(
    "--layout",
    type=click.Choice(list(LAYOUTS)),
    help="Draw PDFs in this layout, not in the resume's own.",
)
@click.option(
    "--paper", type=click.Choice([paper.value for paper in Paper]), help="The paper size of PDFs."
)
@click.option(
    "--anonymous",
    is_flag=True,
    help="Make PDFs without the name, contact details, links and references.",
)
@click.pass_context
@pass_session
def export(
    session: Session,
    context: click.Context,
    resume_ids: tuple[str, ...],
    is_all: bool,
    account: str | None,
    folder: Path | None,
    kind: str,
    layout: str | None,
    paper: str | None,
    anonymous: bool,
) -> None:
    """Write resumes to files or one stream.

    The stream has a resume on each line (NDJSON). The analyzer format can be created again as it
    is; of JSON Resume, which does not hold everything, `resumes import` makes the analyzer format.
    A PDF is drawn in the resume's own layout; one alone may go to a pipe or a file on standard output.
    """
    if is_all == bool(resume_ids):
        raise click.UsageError("Name the resumes to export, or use --all")
    is_pdf = kind == ExportFormat.PDF.value
    if not is_pdf and (layout or paper or anonymous):
        raise click.UsageError("--layout, --paper and --anonymous are for --format pdf")
    if is_pdf and folder is None:
        if is_all or len(resume_ids) > 1:
            raise click.UsageError("Name a folder for the PDFs: --to DIR")
        if sys.stdout.isatty():
            raise click.UsageError(
                "A PDF is not for a terminal: name a folder with --to DIR, or redirect it to a file"
            )
    from resumes import export
    from resumes.rendering import Choice, RenderingFailed, TooLong

    left_out: dict[str, None] = {}
    boxes = _Boxes()
    settings = session.settings()
    choice = Choice(layout, None if paper is None else Paper(paper), anonymous)
    failed = 0
    with (
        sigterm_as_interrupt(),
        session.store() as store,
        export.Exporter(
            ExportFormat(kind), settings.format, home=settings.home, choice=choice
        ) as exporter,
    ):
        chosen = choose_account(store, account)
        resumes = (
            export.iter_resumes(store, chosen.id)
            if is_all
            else _iter_named(session, store, chosen, resume_ids)
        )
        count = replaced = 0
        total = chosen.resume_count if is_all else len(resume_ids)
        # A stream would stand on the same terminal as the status, or is read as it comes.
        progress = contextlib.nullcontext() if folder is None else counting("resumes", total)
        with progress as tell:
            for resume in resumes:
                if tell is not None:
                    tell("exported", count)
                try:
                    view = exporter.export(resume)
                except (TooLong, RenderingFailed) as error:
                    say(safe_text(f"No PDF of resume {resume.entry.id}: {error}"))
                    failed += 1
                    continue
                left_out |= dict.fromkeys(view.left_out)
                if view.missing is not None:
                    boxes.note(resume.entry.id, view.missing)
                if folder is not None:
                    replaced += export.write(folder, view)
                elif view.content is None:
                    put_bytes(view.body)
                else:
                    put_json_line(view.content)
                count += 1
    where = "" if folder is None else f" to {safe_text(str(folder))}"
    earlier = f", in place of {counted(replaced, 'earlier file')}" if replaced else ""
    say(f"Exported {counted(count, 'resume')}{where}{earlier}.")
    boxes.tell(settings.home / "fonts")
    if failed:
        context.exit(ExitCode.FAILED)
    if left_out:
        say(safe_text(f"Left out, as JSON Resume has no place for it: {', '.join(left_out)}."))


class _Boxes:
    """Characters of PDFs that are drawn as boxes, by the package whose fonts have them."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, str]] = {}
        self._resumes: Counter[str] = Counter()

    def note(self, resume_id: str, missing: str) -> None:
        """No font has this text of the resume."""
        from resumes.rendering.fonts import find_package

        package = find_package(missing)
        self._first.setdefault(package, (missing, resume_id))
        self._resumes[package] += 1

    def tell(self, folder: Path) -> None:
        """Say once for each package what to install; fonts can also be put into the folder."""
        for package, (missing, resume_id) in self._first.items():
            more = self._resumes[package] - 1
            others = f" and {counted(more, 'other')}" if more else ""
            say(
                safe_text(
                    f'No installed font has the character "{missing}" of resume {resume_id}{others}: '
                    f"it is drawn as a box. Install {package} (Debian, Ubuntu), or put a font that "
                    f"has it into {folder}."
                )
            )


def _iter_named(
    session: Session, store: "Store", account: "AccountInfo", resume_ids: tuple[str, ...]
) -> Iterator["StoredResume"]:
    # All are looked up first: a wrong id is told before anything was written.
    yield from [get_resume(session, store, account, resume_id) for resume_id in resume_ids]
