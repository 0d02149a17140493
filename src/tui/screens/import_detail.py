"""One imported file: read in a thread, and laid out for the pane and for a page of its own."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content

from resumes.analyzer import parse_imported
from resumes.errors import InvalidResume, Issue, ResumesError
from resumes.import_reasons import Reason, find_hint, plain_words
from resumes.store import import_history, import_ledger, import_requests
from resumes.store.import_history import ORDER, FileRow
from resumes.store.import_ledger import MAX_PROBLEMS, FileOutcome, Item
from resumes.store.import_requests import RequestedFile, RequestKind
from resumes.store.store import Store
from resumes.text import in_bytes
from resumes.watched_names import REPORT
from tui.screens.base import RowPane
from tui.screens.dialogs import Fact
from tui.screens.import_rows import outcome_content
from tui.screens.source_pane import SourceLines, SourceText, fault_of, lay_out
from tui.text import joined, minute, safe
from tui.widgets.text_pane import Paragraph, TextPane

MAX_ITEMS: Final = 50
"""Resumes of a file that are listed."""


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file. `resumes` are the first of those that it became or that it repeats.

    `source` is None for a file of which none is kept; `is_watched` whether an importer is there
    to take up what is asked, if something is.
    """

    file: FileRow
    request: RequestedFile | None
    is_watched: bool
    resumes: Sequence[Item]
    source: SourceText | None
    issues: Sequence[Issue] = ()
    """All that is wrong in it, of a file of one resume that was kept whole; the first included."""

    path: Path | None = None
    """Where the file is now, if it was found."""


def read_file(
    store: Store, *, account_id: str, claim_id: str, before: FileRead | None = None
) -> FileRead:
    """Return the file as it is now. What is in `before` and cannot have changed is not read again.

    Raises NotFound.
    """
    file = import_history.get_file(store, claim_id, account_id=account_id)
    request = import_requests.find_request(store, account_id, claim_id)
    is_watched = request is None or request.root not in import_requests.list_unwatched_roots(store)
    if before is not None and before.file == file:
        return replace(before, request=request, is_watched=is_watched)
    source = import_history.find_source(store, file)
    return FileRead(
        file,
        request,
        is_watched,
        import_ledger.find_items(store, account_id, claim_id, limit=MAX_ITEMS),
        None if source is None else lay_out(source, fault_of(file)),
        () if source is None else find_issues(file, source),
        find_filed(file),
    )


def find_filed(file: FileRow) -> Path | None:
    """Return where the file is, if that is on this machine and it was not moved."""
    if file.root is None or file.is_under_way:
        return None
    filed = []
    for folder in folders_of(file):
        with contextlib.suppress(OSError):  # there is none
            filed += [path for path in Path(file.root, folder).iterdir() if _is_of(file, path.name)]
    return filed[0] if len(filed) == 1 else None


def _is_of(file: FileRow, name: str) -> bool:
    is_its = f"{file.claim_id[-8:]}." in name or name.startswith(file.claim_id)
    return is_its and not name.endswith(REPORT)


def folders_of(file: FileRow) -> Sequence[str]:
    """Return the folders below its own that the file may be in (docs/importing.md, Where files go)."""
    match file.outcome:
        case FileOutcome.FAILED:
            return [f"_failed/{file.reason}"]
        case FileOutcome.HELD:
            return [f"_held/{file.account}"]
        case FileOutcome.DUPLICATE:
            return ["_duplicate"]
        case FileOutcome.DONE:
            # Before accounts had folders of their own their files were in the day's.
            day = f"_done/{file.claimed_at[:10]}"
            return [f"{day}/{file.account}", day]


def find_issues(file: FileRow, source: bytes) -> Sequence[Issue]:
    """Return all issues of a file that is not a valid resume; the ledger keeps only the first.

    Empty when the source is incomplete, or no longer has the problems that the importer found.
    """
    if file.reason != Reason.INVALID_RESUME or len(source) != file.size_bytes:
        return ()
    with contextlib.suppress(ResumesError):
        try:
            parse_imported(source)
        except InvalidResume as error:
            return error.issues if error.issues[0].path == (file.path or "") else ()
    return ()


LABEL_CELLS: Final = 11


def file_paragraphs(read: FileRead) -> list[Paragraph]:
    """Return the result and what to do about it; then the file; then what was in it."""
    return [
        *_verdict(read.file, read.request, read.issues),
        *_asked(read),
        Paragraph(safe("")),
        *_about(read.file, read.path),
        *_contents(read),
    ]


def _verdict(
    file: FileRow, request: RequestedFile | None, issues: Sequence[Issue]
) -> Iterator[Paragraph]:
    outcome = outcome_content(file, request).stylize("bold")
    if file.is_under_way:
        yield Paragraph(outcome)
        return
    reason = [] if file.reason is None else [safe(plain_words(file.reason), "bold")]
    yield Paragraph(joined([outcome, *reason], by=": "))
    if len(issues) > 1:
        yield Paragraph(safe(f"{len(issues)} problems:"))
        yield from (Paragraph(safe(issue.message), mark="  ! ") for issue in issues)
    elif file.message:
        yield Paragraph(safe(file.message))
    if file.path and len(issues) <= 1:
        yield _fact("Field", file.path)
    if file.byte_offset is not None:
        yield _fact("Offset", f"byte {file.byte_offset:,}")
    hint = None if file.reason is None else find_hint(file.reason, file.claim_id)
    if hint is not None:
        yield Paragraph(safe(hint, "italic"), mark="→ ")


def _asked(read: FileRead) -> Iterator[Paragraph]:
    request = read.request
    if request is None:
        return
    since = f"{request.action} requested at {minute(request.requested_at)} UTC"
    if read.is_watched:
        yield Paragraph(safe(f"{since}; the importer will pick it up.", "$text-accent"), mark="↻ ")
    else:
        text = f"{since}; waiting: no importer is watching its folder."
        yield Paragraph(safe(text, "$text-warning"), mark="↻ ")


def _about(file: FileRow, path: Path | None) -> Iterator[Paragraph]:
    yield _fact("File", file.name)
    yield _fact("Account", file.account)
    if path is None:
        yield _fact("Folder", file.root or "unknown")
    yield _fact("Location", filed_in(file) if path is None else str(path))
    yield _fact("Size", in_bytes(file.size_bytes))
    yield _fact("Picked up", f"{minute(file.claimed_at)} UTC")
    yield _fact("Finished", f"{minute(file.finished_at)} UTC")
    yield _fact("ID", file.claim_id)


def filed_in(file: FileRow) -> str:
    """Return where the file is below its folder, if it is still there."""
    if file.is_under_way:
        return "the inbox"
    is_held = file.outcome is FileOutcome.HELD
    name = f"{file.claim_id}-{file.account_id}-…" if is_held else f"…-{file.claim_id[-8:]}"
    return f"{folders_of(file)[0]}, as {name}"


def _contents(read: FileRead) -> Iterator[Paragraph]:
    """Yield how many resumes were in it and what was wrong with some, if several; and their IDs."""
    if (items := read.file.items) is not None:
        counts = zip(ORDER, (items.failed, items.held, items.duplicate, items.done), strict=True)
        parts = [f"{count:,} {outcome}" for outcome, count in counts if count]
        total = f"{items.total:,}"
        yield _fact("Resumes", f"{total}: {', '.join(parts)}" if parts else total)
        for problem in items.problems:
            what = problem.message or plain_words(problem.reason or problem.outcome)
            yield Paragraph(safe(f"{problem.place}: {what}"), mark="  ! ")
        if len(items.problems) == MAX_PROBLEMS:
            text = f"Only the first {MAX_PROBLEMS}; the report next to the file may list more."
            yield Paragraph(safe(text, "dim"))
    for number, one in enumerate(read.resumes):
        known = " (already stored)" if one.outcome is FileOutcome.DUPLICATE else ""
        yield _fact("" if number else "Resume", f"{one.resume_id}{known}")
    if len(read.resumes) == MAX_ITEMS:
        yield _fact("", f"… first {MAX_ITEMS} only")


def _fact(label: str, value: str) -> Paragraph:
    return Paragraph(safe(value), mark=f"{label:<{LABEL_CELLS}}")


def copyables(read: FileRead) -> Iterator[Fact]:
    """Yield what can be copied of the file; its reason with the place in the document."""
    file = read.file
    is_told = file.path is None or file.path in (file.message or "")
    parts = [file.reason, file.message, None if is_told else file.path]
    yield "path", "" if read.path is None else str(read.path)
    yield "reason", ": ".join(part for part in parts if part)
    yield "ID", file.claim_id
    yield "name", file.name


def why_not(file: FileRow, action: RequestKind) -> str | None:
    """Return why the action does not fit the file; None if it does. Held files are not retried."""
    if file.is_under_way:
        return "This file is being imported right now."
    if file.outcome is FileOutcome.DONE:
        return f"Already imported: nothing to {action}."
    if file.outcome is FileOutcome.DUPLICATE:
        return f"Already stored: nothing to {action}."
    if action is RequestKind.RELEASE and file.outcome is FileOutcome.FAILED:
        return "Only held files can be released. Press t to retry this one."
    if action is RequestKind.RETRY and file.outcome is FileOutcome.HELD:
        return "Only failed files can be retried. Press l to release this one."
    return None


class FileView(Container, RowPane[FileRow]):
    """A file's outcome, and below it its source at the error."""

    DEFAULT_CSS = """
    FileView { width: 1fr; height: 1fr; layout: vertical; }
    FileView > TextPane { height: 2fr; }
    FileView > SourceLines { height: 3fr; }
    """

    def __init__(self, *, can_focus_text: bool) -> None:
        super().__init__()
        self._text = TextPane()
        self._source = SourceLines()
        self._text.border_title = safe("File" if can_focus_text else "Preview")
        for part in (self._text, self._source):
            part.add_class("panel")
            part.can_focus = can_focus_text
        self.read: FileRead | None = None
        """What is shown; None when it is nothing, or a failure."""

    def compose(self) -> ComposeResult:
        yield self._text
        yield self._source

    def reading(self, wanted: FileRow) -> Callable[[Store], FileRead]:
        return partial(
            read_file, account_id=wanted.account_id, claim_id=wanted.claim_id, before=self.read
        )

    def key_of(self, wanted: FileRow) -> object:
        return wanted.account_id, wanted.claim_id

    def entitle(self, *parts: Content) -> None:
        """Show the parts of the title over the text."""
        self._text.border_title = joined(parts, by=" · ")

    def show_read(self, read: FileRead) -> None:
        before, self.read = self.read, read
        is_same = before is not None and before.file.claim_id == read.file.claim_id
        self._text.show(file_paragraphs(read), from_start=not is_same)
        if before is None or not is_same or before.source != read.source:
            self._source.show_source(read.source)

    def show_line(self, line: Paragraph) -> None:
        self.read = None
        self._text.show_line(line)
        self._source.show_source(None)

    def action_scroll_pages(self, pages: int) -> None:
        """Scroll the source, or the text if there is no source, that many screens down."""
        shown = self._source if self._source.display else self._text
        shown.action_scroll_pages(pages)

    def focus_other(self) -> bool:
        """Focus the other part; return False if there is none."""
        if self._source.display:
            (self._source if self._text.has_focus else self._text).focus()
        return self._source.display
