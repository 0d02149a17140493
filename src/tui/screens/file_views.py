"""Imported files: reading the rows of their list, and reading and showing one file's details."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from textual.containers import Container
from textual.content import Content

from resumes.analyzer import parse_imported
from resumes.errors import InvalidResume, Issue, ResumesError
from resumes.import_reasons import Reason, find_hint, plain_words
from resumes.store import accounts, import_history, import_ledger, import_requests
from resumes.store.import_history import MAX_FILES, ORDER, FileRow
from resumes.store.import_ledger import MAX_PROBLEMS, FileOutcome, Item
from resumes.store.import_requests import RequestKind
from resumes.store.schema import ImportRequest
from resumes.store.store import Store
from resumes.text import counted, in_bytes
from resumes.watched_folder import describe_root, find_filed, outcome_folder
from resumes.watched_names import REPORT, find_filed_extension
from tui.filters import has_words, parse_filter
from tui.screens.base import RowPane
from tui.screens.dialogs import Fact
from tui.screens.file_source import SourceLines, SourceText, fault_of, lay_out
from tui.session import UiSession
from tui.text import joined, minute, safe
from tui.widgets.paged_list import text_cell
from tui.widgets.text_pane import Paragraph, TextPane
from tui.widgets.window import PageRead, flipped

PAGE_SIZE: Final = 100
MAX_SEARCHES: Final = 5
"""The most batches of 1,000 files that are searched for a page of matches."""

SIGNS: Final = {
    FileOutcome.FAILED: ("✗", "$text-error"),
    FileOutcome.HELD: ("‖", "$text-warning"),
    FileOutcome.DUPLICATE: ("=", "$text-muted"),
    FileOutcome.DONE: ("✓", "$text-success"),
}
"""The sign and style of each outcome, shown next to its name."""


@dataclass(frozen=True, slots=True)
class ImportRow:
    """A file and the pending request for it, if any."""

    file: FileRow
    request: ImportRequest | None = None


def position(row: ImportRow, *, is_newest_first: bool) -> str:
    """Return the row's position, a text that increases along the list although file IDs decrease.

    It ends in a dot and the account's ID, because files of an imported account may have the same
    IDs as files of another account.
    """
    file = row.file
    outcome = 0 if is_newest_first else ORDER.index(file.outcome)
    return f"{outcome}{flipped(file.claim_id)}.{flipped(file.account_id)}"


def read_page(
    store: Store,
    *,
    account: str | None,
    outcome: FileOutcome | None,
    is_newest_first: bool,
    filtered_by: str,
    cursor: str,
) -> PageRead[ImportRow]:
    """Return the page after the cursor, a position. None as account or outcome means all.

    With a filter, search only a limited number of files: the page may be empty although matches
    follow.
    """
    account_id = find_account_id(store, account)
    words = parse_filter(filtered_by)
    limit = MAX_FILES if words else PAGE_SIZE
    found: list[ImportRow] = []
    following: str | None = cursor
    for _ in range(MAX_SEARCHES):
        # The account's ID is not needed: a page includes all files that have its last file ID.
        before = following and flipped(following[1:].partition(".")[0])
        if is_newest_first:
            files = import_history.list_files(
                store, account_id=account_id, outcome=outcome, before=before or None, limit=limit
            )
            is_last = len(files) < limit
        else:
            files, after = import_history.list_by_outcome(
                store,
                account_id=account_id,
                outcome=outcome,
                after=f"{ORDER[int(following[0])]}:{before}" if following and before else None,
                limit=limit,
            )
            is_last = after is None
        rows = _with_requests(store, files)
        found += [row for row in rows if not words or has_words(_words(row.file), words)]
        following = (
            None if is_last or not rows else position(rows[-1], is_newest_first=is_newest_first)
        )
        if following is None or not words or len(found) >= PAGE_SIZE:
            break
    return PageRead(found, following)


def find_account_id(store: Store, name: str | None) -> str | None:
    """Return the ID of the account, or None if the name is None (all accounts). Raises NotFound."""
    return None if name is None else accounts.get_account(store, name).id


def _words(file: FileRow) -> str:
    """Return the text that the filter searches."""
    reason = "" if file.reason is None else f"{file.reason} {plain_words(file.reason)}"
    warnings = "warnings" if file.warnings else ""
    return f"{file.name} {file.account} {reason} {warnings}"


def _with_requests(store: Store, files: Sequence[FileRow]) -> list[ImportRow]:
    if not import_requests.list_requests(store, limit=1):
        return [ImportRow(file) for file in files]
    open_files = [file for file in files if file.outcome in (FileOutcome.FAILED, FileOutcome.HELD)]
    requests = import_requests.find_requests(store, open_files)
    return [ImportRow(file, requests.get((file.account_id, file.claim_id))) for file in files]


def outcome_content(row: ImportRow) -> Content:
    """Return a sign and the outcome, or a note that the file is still being imported."""
    file = row.file
    if file.is_under_way:
        return safe("… importing", "$text-accent")
    sign, style = SIGNS[file.outcome]
    if row.request is not None:
        sign, style = "↻", "$text-accent"
    elif file.outcome is FileOutcome.DONE and file.warnings:
        sign, style = "!", "$text-warning"
    return joined([safe(sign, style), safe(file.outcome, style)], by=" ")


def reason_cell(row: ImportRow) -> Content:
    """Return the pending request for the file, or else its progress, warnings or reason."""
    if row.request is not None:
        return safe(f"{row.request.action} requested", "italic")
    if row.file.is_under_way:
        return text_cell(row.file.message)
    if row.file.reason is None:
        return text_cell(_warned(row.file) or None)
    return text_cell(plain_words(row.file.reason))


def _warned(file: FileRow) -> str:
    """Return the number of warnings in words; empty if there are none."""
    return counted(file.warnings, "warning") if file.warnings else ""


def file_cell(row: ImportRow, account: str | None) -> Content:
    """Return the file's account and name, or only the name in the list of one account."""
    name = row.file.name.removeprefix(f"{row.file.account}/")
    above = "" if account else f"{row.file.account}/"
    return joined([safe(above, "dim"), text_cell(name, "bold")])


MAX_ITEMS: Final = 50
"""The most resumes to list for a file."""


@dataclass(frozen=True, slots=True)
class FileRead(ImportRow):
    """The details of a file. `resumes` are the first resumes that it created or that it repeats.

    `source` is None if no source is stored; `is_watched` is whether a running importer will handle
    `request`.
    """

    is_watched: bool = True
    resumes: Sequence[Item] = ()
    source: SourceText | None = None
    issues: Sequence[Issue] = ()
    """All issues of the file, if it has one resume and the ledger holds the complete source."""

    path: Path | None = None
    """The file's current path, if it was found."""


def read_file(
    store: Store, file: FileRow, *, inbox: Path, before: FileRead | None = None
) -> FileRead:
    """Return the file's current state, reusing the parts of `before` that cannot have changed.

    `inbox` is the home's inbox, which is also searched for the file. Raises NotFound.
    """
    account_id, claim_id = file.account_id, file.claim_id
    file = import_history.get_file(store, claim_id, account_id=account_id)
    request = import_requests.find_request(store, account_id, claim_id)
    is_watched = request is None or request.root not in import_requests.list_unwatched_roots(store)
    items = import_ledger.find_items(store, account_id, claim_id, limit=MAX_ITEMS)
    if before is not None and before.file == file:
        path = before.path
        if path is None and file.outcome is FileOutcome.FAILED:
            path = find_filed(file, inbox)  # files are moved only after their outcome is stored
        return replace(before, request=request, is_watched=is_watched, resumes=items, path=path)
    source = import_history.find_source(store, file)
    title = "Source" if file.analysis is None else "Written by the analyzer"
    return FileRead(
        file,
        request,
        is_watched,
        items,
        None if source is None else lay_out(source, fault_of(file), title),
        () if source is None else find_issues(file, source),
        find_filed(file, inbox),
    )


def _report_of(path: Path) -> Path:
    extension = find_filed_extension(path.name) or ""
    return path.with_name(path.name[: len(path.name) - len(extension)] + REPORT)


def folder_of(file: FileRow) -> str:
    """Return the folder, relative to the watched folder, that the file was moved into."""
    return outcome_folder(file.outcome, file.reason, file.account, file.claimed_at)


def find_issues(file: FileRow, source: bytes) -> Sequence[Issue]:
    """Return all issues of an invalid resume, of which the ledger holds only the first.

    Return no issues if the source is incomplete or no longer has the problem that was found.
    """
    if file.reason != Reason.INVALID_RESUME or len(source) != file.size_bytes:
        return ()
    try:
        parse_imported(source)
    except InvalidResume as error:
        return error.issues if error.issues[0].path == (file.path or "") else ()
    except ResumesError:
        pass
    return ()


LABEL_CELLS: Final = 11


def file_paragraphs(read: FileRead) -> list[Paragraph]:
    """Return the outcome and what to do about it, then facts about the file and its content."""
    return [
        *_verdict(read),
        *_request(read),
        Paragraph(safe("")),
        *_about(read.file, read.path),
        *_contents(read),
    ]


def _verdict(read: FileRead) -> Iterator[Paragraph]:
    file, issues = read.file, read.issues
    outcome = outcome_content(read).stylize("bold")
    if file.is_under_way:
        yield Paragraph(outcome)
        return
    why = _warned(file) if file.reason is None else plain_words(file.reason)
    yield Paragraph(joined([outcome, *([safe(why, "bold")] if why else [])], by=": "))
    if len(issues) > 1:
        yield Paragraph(safe(f"{len(issues)} problems:"))
        yield from (Paragraph(safe(issue.message), mark="  ! ") for issue in issues)
    elif file.message:
        yield Paragraph(safe(file.message))
    if file.warnings:
        yield Paragraph(
            safe("The warnings are in the report next to the file.", "italic"), mark="→ "
        )
    if file.path and len(issues) <= 1:
        yield _fact("Field", file.path)
    if file.byte_offset is not None:
        yield _fact("Offset", f"byte {file.byte_offset:,}")
    hint = None if file.reason is None else find_hint(file.reason, file.claim_id)
    if hint is not None:
        yield Paragraph(safe(_with_keys(hint, file.claim_id), "italic"), mark="→ ")


def _with_keys(hint: str, claim_id: str) -> str:
    """Return the hint, with commands replaced by the keys of this screen."""
    for command, key in (
        (f"run `resumes imports retry {claim_id}`", "press t to retry"),
        (f"with `resumes imports retry {claim_id}`", "with t"),
        (f"with `resumes imports dismiss {claim_id}`", "with D"),
    ):
        hint = hint.replace(command, key)
    return hint


def _request(read: FileRead) -> Iterator[Paragraph]:
    if (request := read.request) is None:
        return
    style, then = "$text-accent", "the importer will pick it up"
    if not read.is_watched:
        style, then = "$text-warning", "waiting: no importer is watching its folder"
    since = f"{request.action} requested at {minute(request.requested_at)} UTC"
    yield Paragraph(safe(f"{since}; {then}.", style), mark="↻ ")


def _about(file: FileRow, path: Path | None) -> Iterator[Paragraph]:
    yield _fact("File", file.name)
    yield _fact("Account", file.account)
    if path is None:
        yield _fact("Folder", describe_root(file) or "unknown")
    yield _fact("Location", filed_in(file) if path is None else str(path))
    if file.warnings and path is not None:
        yield _fact("Report", str(_report_of(path)))
    yield _fact("Size", in_bytes(file.size_bytes))
    if file.analysis is not None:
        yield _fact("Analyzed", f"in {file.analysis.took_s:g} s")
        if file.analysis.said and file.analysis.said not in (file.message or ""):
            yield _fact("", f"The analyzer said: {file.analysis.said}")
    yield _fact("Picked up", f"{minute(file.claimed_at)} UTC")
    yield _fact("Finished", f"{minute(file.finished_at)} UTC")
    yield _fact("ID", file.claim_id)


def filed_in(file: FileRow) -> str:
    """Return where the file is within its watched folder, if it is still there."""
    if file.is_under_way:
        return "the inbox"
    is_held = file.outcome is FileOutcome.HELD
    name = f"{file.claim_id}-{file.account_id}-…" if is_held else f"…-{file.claim_id[-8:]}"
    return f"{folder_of(file)}, as {name}"


def _contents(read: FileRead) -> Iterator[Paragraph]:
    """For a bundle, yield the number of resumes and their problems; then yield the resume IDs."""
    if (items := read.file.items) is not None:
        yield _fact("Resumes", items.counts)
        if items.skipped:
            yield _fact("Skipped", f"{counted(items.skipped, 'member')}, named in the report")
        for problem in items.problems:
            what = problem.message or plain_words(problem.reason or problem.outcome)
            yield Paragraph(safe(f"{problem.place}: {what}"), mark="  ! ")
        if len(items.problems) == MAX_PROBLEMS:
            text = f"Only the first {MAX_PROBLEMS} are kept; the report next to the file may list more."
            yield Paragraph(safe(text, "dim"))
    for number, item in enumerate(read.resumes):
        note = {"deleted": " (deleted)", "duplicate": " (already stored)"}.get(outcome_of(item), "")
        yield _fact("" if number else "Resume", f"{item.resume_id}{note}")
    if len(read.resumes) == MAX_ITEMS:
        yield _fact("", f"… first {MAX_ITEMS} only")


def outcome_of(item: Item) -> str:
    """Return the item's outcome, or `deleted` if its resume was deleted later."""
    return "deleted" if item.is_deleted else item.outcome


def _fact(label: str, value: str) -> Paragraph:
    return Paragraph(safe(value), mark=f"{label:<{LABEL_CELLS}}", mark_style="dim")


def copyables(read: FileRead) -> Iterator[Fact]:
    """Yield the facts that can be copied. The reason includes the path in the document."""
    file = read.file
    is_included = file.path is None or file.path in (file.message or "")
    parts = [file.reason, file.message, None if is_included else file.path]
    yield "path", "" if read.path is None else str(read.path)
    yield "reason", ": ".join(part for part in parts if part)
    yield "ID", file.claim_id
    yield "name", file.name


def why_not(file: FileRow, action: RequestKind) -> str | None:
    """Return why the action does not apply to the file, or None if it does."""
    if file.is_under_way:
        return "This file is being imported right now."
    if file.outcome in (FileOutcome.DONE, FileOutcome.DUPLICATE):
        already = "imported" if file.outcome is FileOutcome.DONE else "stored"
        return f"Already {already}: nothing to {action}."
    if action is RequestKind.RELEASE and file.outcome is FileOutcome.FAILED:
        return "Only held files can be released. Press t to retry this one."
    if action is RequestKind.RETRY and file.outcome is FileOutcome.HELD:
        return "Only failed files can be retried. Press l to release this one."
    return None


class FileView(Container, RowPane[ImportRow]):
    """Shows a file's outcome and, below it, the source, scrolled to the error."""

    DEFAULT_CSS = """
    FileView { width: 1fr; height: 1fr; layout: vertical; }
    FileView > TextPane { height: 2fr; }
    FileView > SourceLines { height: 3fr; }
    """

    def __init__(self, session: UiSession, *, can_focus_text: bool) -> None:
        self.session = session
        self.text = TextPane()
        self._source = SourceLines()
        super().__init__(self.text, self._source)
        self.text.border_title = safe("File" if can_focus_text else "Preview")
        for part in (self.text, self._source):
            part.add_class("panel")
            part.can_focus = can_focus_text
        self.read: FileRead | None = None
        """The file that is shown; None if there is none, or a failure is shown."""

    def key_of(self, wanted: ImportRow) -> object:
        return wanted.file.account_id, wanted.file.claim_id

    def reading(self, wanted: ImportRow) -> Callable[[Store], FileRead]:
        inbox = self.session.settings.inbox
        return partial(read_file, file=wanted.file, inbox=inbox, before=self.read)

    def show_read(self, read: FileRead) -> None:
        before, self.read = self.read, read
        is_same = before is not None and self.key_of(before) == self.key_of(read)
        self.text.show(file_paragraphs(read), from_start=not is_same)
        if before is None or not is_same or before.source != read.source:
            self._source.show_source(read.source)

    def show_line(self, line: Paragraph) -> None:
        self.read = None
        self.text.show_line(line)
        self._source.show_source(None)

    def action_scroll_pages(self, pages: int) -> None:
        """Scroll the source, or the text if there is no source, down by this many screens."""
        shown = self._source if self._source.display else self.text
        shown.action_scroll_pages(pages)
