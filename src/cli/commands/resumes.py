"""`resumes list`, `show`, `export` and `delete`."""

import contextlib
import locale
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import date
from functools import partial
from pathlib import Path

import click
import msgspec.json

from cli.errors import ExitCode
from cli.groups import YES, FileOrFolder, account_option, command, confirm, label_option
from cli.output import Column, instant, put, put_json, put_json_text, put_table, safe_text, say
from cli.progress import counting, status_line
from cli.session import Session, choose_account, pass_session
from cli.signals import sigterm_as_interrupt
from resumes import export as exports
from resumes.analyzer import load_stored, whole_json
from resumes.analyzer.readable import Line, Role, header_lines, section_lines
from resumes.analyzer.schema import LAYOUTS
from resumes.errors import InvalidArgument, NotFound
from resumes.export import Exported, ExportFormat
from resumes.output_files import OutputFile
from resumes.rendering import FileType, PageOptions
from resumes.rendering.fonts import font_packages
from resumes.rendering.page import Paper
from resumes.spreadsheet import CANDIDATES_START, CSV_START
from resumes.store import Store, search_index, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.entry import MAX_VERSIONS, Entry
from resumes.store.search import describe_unsearched, find_page, iter_entries
from resumes.store.stored_resumes import DEFAULT_SORT, Page, Sort, StoredResume, list_sorted
from resumes.text import counted
from resumes.watched_folder import SourceFile, find_source

WIDTH = 78
MARGIN = "  "


def lines(
    resume: StoredResume, source: SourceFile | None, versions: Sequence[Entry] = ()
) -> Iterator[str]:
    """Yield the resume's escaped lines: title, ID and times, file, the person's other versions,
    header, and then the sections in order."""
    entry = resume.entry
    document = load_stored(resume.document)
    yield click.style(safe_text(entry.shown_title), bold=True)
    updated = (
        "" if entry.updated_at == entry.created_at else f", changed {instant(entry.updated_at)}"
    )
    label = "" if entry.label is None else f", label {safe_text(entry.label)}"
    yield f"{entry.id}, created {instant(entry.created_at)} UTC{updated}{label}"
    if source is not None:
        yield safe_text(source.sentence)
    if versions:
        yield f"{counted(len(versions), 'version')} of this person's resume, newest first:"
    for version in versions:
        mark = " (this one)" if version.id == entry.id else ""
        title = safe_text(version.shown_title)
        yield f"{MARGIN}{version.id}, created {instant(version.created_at)} UTC, {title}{mark}"
    yield ""
    for line in header_lines(document):
        yield from _wrapped(line)
    for line in section_lines(document, resume.first_month):
        yield from _wrapped(line, margin=MARGIN)


def _wrapped(line: Line, *, margin: str = "") -> list[str]:
    text = " · ".join(safe_text(phrase.text) for phrase in line.phrases)
    if line.phrases and line.phrases[0].role is Role.HEADING:
        return [click.style(text, bold=True)]
    first = margin + line.mark
    hanging = " " * len(first)
    wrapped = textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=hanging, break_on_hyphens=False
    )
    return wrapped or [""]


SEARCH_TIMEOUT_S = 30.0
"""The time limit for a page of results. It is shorter in the UI, which soon loads the next page."""

CATCH_UP_TIMEOUT_S = 5.0
"""The time limit for adding resumes to the search index before a list. A service adds the rest."""

EXPORT_CATCH_UP_TIMEOUT_S = 30.0
"""The same limit before an export, which is incomplete if resumes are missing from the index."""

FILTER_HELP = (
    "All words must occur in the resume. "
    'Also: "a phrase", -word, word* (at least 4 letters), and name:, title:, email:, place:, skill:, '
    "work:, school: or label: before a word or phrase. Case and accents do not matter."
)

COLUMNS = (
    Column("id", lambda entry: entry.id),
    Column("name", lambda entry: entry.name or "-", is_flexible=True),
    Column("title", lambda entry: entry.shown_title, is_flexible=True),
    Column("created (UTC)", lambda entry: instant(entry.created_at)),
)
LABEL = Column("label", lambda entry: entry.label or "-", is_flexible=True)
"""The column that is shown if a listed resume has a label."""


@command("list")
@account_option()
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, 100),
    default=20,
    show_default=True,
    help="Maximum number of resumes.",
)
@click.option(
    "--cursor", metavar="ID", default="", help="Start the list after the resume with this ID."
)
@click.option(
    "--filter", "words", metavar="TEXT", help=f"List only resumes that match TEXT. {FILTER_HELP}"
)
@label_option("List only resumes with this label.")
@click.option(
    "--latest",
    is_flag=True,
    help="List only the newest resume of each person, who is known by email address and name.",
)
@click.option(
    "--sort",
    type=click.Choice([sort.value for sort in Sort]),
    default=DEFAULT_SORT.value,
    show_default=True,
    help="Order of the list. `name` sorts by full name. `family-name` sorts by the last word of "
    "the name, or by the first word if the name is written in Chinese, Japanese or Korean "
    "characters. Names are sorted alphabetically according to your locale.",
)
@pass_session
def list_(
    session: Session,
    account: str | None,
    limit: int,
    cursor: str,
    words: str | None,
    label: str | None,
    latest: bool,
    sort: str,
) -> None:
    """List an account's resumes one page at a time."""
    if words is not None and sort not in (Sort.OLDEST, Sort.NEWEST):
        raise click.UsageError("With --filter, --sort can only be oldest or newest")
    with contextlib.suppress(locale.Error):  # the locale is not installed
        locale.setlocale(locale.LC_COLLATE, "")
    with session.store() as store:
        chosen = choose_account(session, store, account)
        try:
            stored_resumes.check_cursor(cursor)
        except InvalidArgument:
            raise InvalidArgument(
                f'Invalid cursor "{cursor}": use the ID of a resume, 24 hexadecimal digits'
            ) from None
        unsearched = 0
        if words is not None or latest:  # both read what the index contains
            unsearched = _index_all(store, chosen.id, timeout_s=CATCH_UP_TIMEOUT_S)
        if words is None:
            page = list_sorted(
                store,
                chosen.id,
                Sort(sort),
                cursor=cursor,
                limit=limit,
                label=label,
                is_latest=latest,
            )
        else:
            page, unsearched = find_page(
                store,
                chosen.id,
                words,
                cursor=cursor,
                limit=limit,
                is_newest_first=sort == Sort.NEWEST,
                label=label,
                is_latest=latest,
                timeout_s=SEARCH_TIMEOUT_S,
            )
    if session.as_json:
        # These are the fields of the API. Versions before 1.1 had only `unindexed`.
        more = {"unsearched": unsearched} if unsearched else {}
        more |= {} if words is None else {"unindexed": unsearched}
        put_json(page.as_json(limit=limit) | more)
        return
    if page.entries:
        has_labels = any(entry.label for entry in page.entries)
        put_table((*COLUMNS, LABEL) if has_labels else COLUMNS, page.entries)
    else:
        is_all = words is None and label is None
        what = "No more resumes" if cursor else "No resumes yet" if is_all else "No resumes"
        match = "" if words is None else f' match "{safe_text(words)}"'
        match += "" if label is None else f' with the label "{safe_text(label)}"'
        so_far = "" if page.cursor is None else " so far"
        say(f'{what} in account "{safe_text(chosen.name)}"{match}{so_far}.')
    if page.cursor is not None:
        say(f"More: add --cursor {page.cursor}")
    if unsearched and words is None:
        them = counted(unsearched, "resume")
        say(f"{them} not indexed yet: older versions of them may be listed. Try again later.")
    elif unsearched:
        say(f"{describe_unsearched(unsearched)}. Try again later.")


def _index_all(store: Store, account_id: str, *, timeout_s: float) -> int:
    """Add the account's resumes to the search index. Return how many could not be added in time."""
    with status_line() as show:

        def tell() -> None:
            if show is not None:
                show("Adding new resumes to the search index", 0, None)

        return search_index.catch_up(store, account_id, timeout_s=timeout_s, on_step=tell)


def get_resume(
    session: Session, store: Store, account: AccountInfo, resume_id: str
) -> StoredResume:
    """Return the stored resume. Raises NotFound, whose message explains how to list the IDs."""
    with explained(session, account, resume_id):
        return stored_resumes.get_resume(store, account.id, resume_id)


@contextlib.contextmanager
def explained(session: Session, account: AccountInfo, resume_id: str) -> Iterator[None]:
    """Make the message of a NotFound in the block explain how to list the IDs."""
    try:
        yield
    except NotFound:
        line = session.command_line("list", "--account", account.name, "--filter", "TEXT")
        raise NotFound(
            f'Resume not found in account "{account.name}": "{resume_id[:80]}". '
            f"Find resumes with `{line}`"
        ) from None


@command()
@click.argument("resume_id", metavar="ID")
@click.option(
    "--versions",
    "is_list",
    is_flag=True,
    help="List the versions of the person's resume instead, newest first, at most 100.",
)
@account_option()
@pass_session
def show(session: Session, resume_id: str, is_list: bool, account: str | None) -> None:
    """Show a resume.

    With --json, the command prints the complete stored resume, including the fields that the service
    sets; with --versions, it prints a page as `resumes list` does.
    """
    with session.store() as store:
        owner = choose_account(session, store, account)
        resume = get_resume(session, store, owner, resume_id)
        if session.as_json and not is_list:
            put_json_text(msgspec.json.format(whole_json(resume.document), indent=2).decode())
            return
        source = find_source(store, owner.id, resume_id, session.settings().inbox)
        versions = stored_resumes.list_versions(store, owner.id, resume_id)
    if is_list:
        page = Page(versions or [resume.entry], None)
        if session.as_json:
            put_json(page.as_json(limit=MAX_VERSIONS))
        else:
            put_table(COLUMNS, page.entries)
        return
    for line in lines(resume, source, versions):
        put(line)


@command()
@click.argument("resume_ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="Export all of the account's resumes.")
@click.option(
    "--filter",
    "words",
    metavar="TEXT",
    help="Export all resumes that match TEXT, oldest first; see `resumes list --help`.",
)
@label_option("Export all resumes with this label, or those of them that match --filter.")
@account_option()
@click.option(
    "--to",
    "target",
    type=FileOrFolder(),
    metavar="DIR",
    help="Write one file per resume to this folder instead of writing to standard output. Each "
    "file is named after the person in the resume. If a different file already has that name, "
    "the new file's name includes the resume's ID. With --format csv, the path of the file.",
)
@click.option(
    "--book",
    type=FileOrFolder(),
    metavar="FILE",
    help="Write all PDFs to one file, with a title page and contents.",
)
@click.option(
    "--candidates",
    type=FileOrFolder(),
    metavar="FILE",
    help="With --book and --anonymous: write to this CSV file who each candidate is.",
)
@click.option("--overwrite", is_flag=True, help="Replace existing files that have the same names.")
@click.option(
    "--format",
    "kind",
    type=click.Choice([kind.value for kind in ExportFormat]),
    default=ExportFormat.ANALYZER.value,
    show_default=True,
    help="Output format.",
)
@click.option(
    "--layout",
    type=click.Choice(list(LAYOUTS)),
    help="Layout of PDFs. [default: the layout of the resume]",
)
@click.option(
    "--paper", type=click.Choice([paper.value for paper in Paper]), help="Paper size of PDFs."
)
@click.option(
    "--anonymous",
    is_flag=True,
    help="Omit the name, contact details, links and references from PDFs and Word documents.",
)
@click.option("--no-brand", is_flag=True, help="Omit the account's house style.")
@pass_session
def export(
    session: Session,
    resume_ids: tuple[str, ...],
    is_all: bool,
    words: str | None,
    label: str | None,
    account: str | None,
    target: Path | None,
    book: Path | None,
    candidates: Path | None,
    overwrite: bool,
    kind: str,
    layout: str | None,
    paper: str | None,
    anonymous: bool,
    no_brand: bool,
) -> ExitCode:
    """Export resumes to files or to standard output.

    On standard output, the command writes each resume as one line of JSON (NDJSON). Exports in the analyzer
    format can be imported again unchanged. Exports in the JSON Resume format do not contain all fields.
    `resumes import` converts JSON Resume files back to the analyzer format. By default, each PDF uses the
    layout of the resume. Word documents (docx) have one column. If standard output is a pipe or a file, you can
    write a single PDF or Word document to it. With --book, up to 500 PDFs become one file. CSV is one table for a spreadsheet program, with a line for each
    resume.
    """
    if is_all + bool(resume_ids) + (words is not None or label is not None) != 1:
        raise click.UsageError(
            "Give the IDs of the resumes to export, or use either --all, or --filter and --label"
        )
    resume_ids = tuple(dict.fromkeys(resume_ids))  # a repeated ID would look like an earlier export
    file_type = FileType(kind) if kind in list(FileType) else None
    is_csv = kind == ExportFormat.CSV.value
    if ((layout or paper) and file_type is not FileType.PDF) or (
        (anonymous or no_brand) and file_type is None
    ):
        raise click.UsageError(
            "--layout and --paper are for --format pdf, --anonymous and --no-brand for pdf and docx"
        )
    if target is not None and not is_csv and target.is_file():
        raise click.UsageError(f"--to names a folder, but {target} is a file")
    if book is not None and (target is not None or file_type is not FileType.PDF):
        raise click.UsageError("--book is for --format pdf, and takes the place of --to")
    if candidates is not None and (book is None or not anonymous):
        raise click.UsageError("--candidates is for --book with --anonymous")
    if file_type is not None and target is None and book is None:
        if len(resume_ids) != 1:
            raise click.UsageError(f"Several {file_type.noun}s need a folder: use --to DIR")
        if sys.stdout.isatty():
            raise click.UsageError(
                f"A {file_type.noun} cannot be shown in a terminal: use --to DIR, or redirect it to a file"
            )

    single = target if is_csv else book
    if single is not None:
        single = target = _file_in(single, "resumes.csv" if is_csv else "book.pdf")
    if candidates is not None:
        candidates = _file_in(candidates, "candidates.csv")
        if single is not None and candidates.resolve() == single.resolve():
            raise click.UsageError("--book and --candidates name the same file")
    settings = session.settings()
    choice = PageOptions(
        layout, None if paper is None else Paper(paper), anonymous, has_brand=not no_brand
    )
    with sigterm_as_interrupt(), contextlib.ExitStack() as stack:
        table = names = None  # reserve these before the store is opened
        if single is not None:
            of = ("CSV exports", CSV_START) if is_csv else ("PDFs", b"%PDF-")
            table = stack.enter_context(_reserved(single, *of, overwrite=overwrite))
        if candidates is not None:
            of = ("such lists", CANDIDATES_START)
            names = stack.enter_context(_reserved(candidates, *of, overwrite=overwrite))
        store = stack.enter_context(session.store())
        chosen = choose_account(session, store, account)
        unsearched = 0
        if words is not None:
            unsearched = _index_all(store, chosen.id, timeout_s=EXPORT_CATCH_UP_TIMEOUT_S)
        resumes: Iterable[StoredResume] = (
            # Read all resumes first, so that a wrong ID is reported before anything is written.
            [get_resume(session, store, chosen, resume_id) for resume_id in resume_ids]
            if resume_ids
            else exports.iter_resumes(store, chosen.id, words, label=label)
        )
        total = chosen.resume_count if is_all else len(resume_ids) or None
        if book is not None:
            resumes = exports.list_for_book(resumes)
            total = len(resumes)
        exporter = stack.enter_context(
            exports.open_exporter(
                settings,
                chosen.name,
                ExportFormat(kind),
                choice,
                is_book=book is not None,
                label=label,
            )
        )
        # Without a folder, standard output, which may be the same terminal, shows the resumes.
        with counting("resumes", total, is_wanted=target is not None) as show_count:
            to: OutputFile | Callable[[Exported], bool] = table or _put_exported
            if table is None and target is not None:
                to = partial(exporter.write, target, overwrite=overwrite)
            elif table is None and is_csv:
                _put_bytes(CSV_START)
            on_count = partial(show_count, "exported")
            summary = exports.export_resumes(exporter, resumes, to, on_count=on_count)
            if names is not None:
                with names.opened(mode=0o666) as file:
                    file.write(exporter.list_candidates())
    for resume_id, error in summary.failed:
        noun = FileType(kind).noun
        say(safe_text(f"Could not generate the {noun} of resume {resume_id}: {error}"))
    where = "" if target is None else f" to {safe_text(str(target))}"
    kept = 0 if overwrite else summary.existing
    replaced = f" ({counted(summary.existing, 'file')} overwritten)" if summary.existing else ""
    count = counted(summary.exported - kept, "resume")
    if session.as_json and target is not None:
        failed = [{"id": resume_id, "error": str(error)} for resume_id, error in summary.failed]
        about = {"exported": summary.exported - kept, "kept": kept, "failed": failed}
        put_json(about | {"to": str(target), "unsearched": unsearched})
    say(f"Exported {count}{where}{replaced if overwrite else ''}.")
    if kept:
        say(
            f"Kept {counted(kept, 'file')} from an earlier export. Use --overwrite to replace existing files."
        )
    if unsearched:
        say(f"Incomplete: {describe_unsearched(unsearched)}. Export again later.")
    _say_missing_fonts(summary.missing, settings.home / "fonts")
    if summary.left_out:
        say(safe_text(f"Not supported by JSON Resume, left out: {', '.join(summary.left_out)}."))
    return ExitCode.FAILED if summary.failed or kept or unsearched else ExitCode.DONE


def _file_in(path: Path, name: str) -> Path:
    """Return the path or, if it is a folder, the path of the file with this name in it."""
    return path / name if path.is_dir() else path


def _reserved(
    path: Path, plural: str, start: bytes, *, overwrite: bool
) -> AbstractContextManager[OutputFile]:
    """Reserve the file. With `overwrite`, it may replace a file that begins with `start`."""
    remedy = "choose another file, or replace an earlier export with --overwrite"
    if overwrite:
        remedy = f"--overwrite replaces only {plural}. Choose another file"
    return exports.single_file(path, remedy=remedy, start=start if overwrite else None)


def _put_exported(exported: Exported) -> bool:
    if exported.content is None:
        _put_bytes(exported.body)
    else:
        put_json_text(exported.content.decode())
    return False


def _put_bytes(body: bytes) -> None:
    if sys.stdout.isatty():
        put(safe_text(body.decode("utf-8-sig").removesuffix("\r\n")))
    else:
        sys.stdout.buffer.write(body)


def _say_missing_fonts(missing: Iterable[tuple[str, str]], folder: Path) -> None:
    """Print once per set of packages what to install, or where to put fonts."""
    boxes: dict[str, list[tuple[str, str]]] = {}
    for text, resume_id in missing:
        boxes.setdefault(font_packages(text), []).append((text, resume_id))
    for packages, affected in boxes.items():
        text, resume_id = affected[0]
        others = f" and {counted(len(affected) - 1, 'other resume')}" if affected[1:] else ""
        say(
            safe_text(
                f'No installed font has the character "{text}" in resume {resume_id}{others}: '
                f"it is drawn as a box. Install {packages} (Debian, Ubuntu), or put a font that "
                f"has it into {folder}."
            )
        )


def _day(text: str) -> date:
    """Return the day. Raises ValueError, as click expects."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f'"{text}" is not a day: use a date such as 2026-01-31') from None


@command()
@click.argument("resume_id", metavar="[ID]", required=False)
@label_option("Delete all resumes with this label.")
@click.option(
    "--filter",
    "words",
    metavar="TEXT",
    help="Delete all resumes that match TEXT; see `resumes list --help`.",
)
@click.option(
    "--before",
    metavar="DATE",
    type=_day,
    help="Delete all resumes created before this day, such as 2026-01-31, in UTC.",
)
@account_option()
@YES
@pass_session
def delete(
    session: Session,
    resume_id: str | None,
    label: str | None,
    words: str | None,
    before: date | None,
    account: str | None,
    yes: bool,
) -> ExitCode:
    """Delete a resume, or all resumes with a label, from a search or before a date.

    With several of the options --label, --filter and --before, the command deletes only resumes that meet
    all of them. A deleted resume no longer counts toward the plan's limit. A file with the same content can
    then be imported again. The command does not delete exports, backups, or the files from which resumes were
    imported.
    """
    if (resume_id is None) == (label is None and words is None and before is None):
        raise click.UsageError("Give the ID of a resume, or --label, --filter or --before")
    with sigterm_as_interrupt(), session.store() as store:
        chosen = choose_account(session, store, account)
        shown = safe_text(chosen.name)
        if resume_id is not None:
            with explained(session, chosen, resume_id):
                # Do not read the document, so that users can delete resumes with lost documents.
                entry = stored_resumes.get_entry(store, chosen.id, resume_id)
            if not yes:
                confirm(f'Permanently delete "{safe_text(entry.shown_title)}"?')
            stored_resumes.delete_resume(store, chosen.id, resume_id)
            sentence = f'Deleted resume {safe_text(resume_id)} from account "{shown}".'
            sentence += f" Its imported file{KEPT}"
            session.answer({"deleted": resume_id}, sentence)
            return ExitCode.DONE
        unsearched = 0
        if words is not None:
            unsearched = _index_all(store, chosen.id, timeout_s=EXPORT_CATCH_UP_TIMEOUT_S)
        day = "~" if before is None else before.isoformat()
        found = iter_entries(store, chosen.id, words, label=label)
        ids = [entry.id for entry in found if entry.created_at < day]
        if ids and not yes:
            confirm(f'Permanently delete {counted(len(ids), "resume")} from account "{shown}"?')
        deleted = _delete_all(store, chosen, ids)
    sentence = f'Deleted {counted(deleted, "resume")} from account "{shown}".'
    if deleted:
        sentence += f" Imported files{KEPT}"
    elif not ids and not unsearched:
        sentence = f'No resume in account "{shown}" matches.'
    session.answer({"deleted": deleted}, sentence)
    if unsearched:
        say(f"Incomplete: {describe_unsearched(unsearched)}. Delete again later.")
    return ExitCode.FAILED if unsearched else ExitCode.DONE


KEPT = ", backups and exports are kept: see docs/erasing.md to erase a person."


def _delete_all(store: Store, account: AccountInfo, ids: Sequence[str]) -> int:
    """Delete the resumes and return their number. If interrupted, print how many were deleted."""
    deleted = 0

    def count(number: int) -> None:
        nonlocal deleted
        deleted = number
        show("deleted", number)

    try:
        with counting("resumes", len(ids)) as show:
            return stored_resumes.delete_resumes(store, account.id, ids, on_count=count)
    except BaseException:
        # The current transaction may still have succeeded.
        say(f"Stopped: deleted at least {deleted:,} of {counted(len(ids), 'resume')}.")
        raise
