"""The rows of the list of imported files: failed ones first, page by page from the ledger."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from textual.content import Content

from resumes.clock import Clock
from resumes.import_reasons import plain_words
from resumes.store import accounts, import_history, import_requests
from resumes.store.import_history import MAX_FILES, ORDER, FileRow, Position
from resumes.store.import_ledger import FileOutcome
from resumes.store.import_requests import RequestedFile
from resumes.store.search import holds
from resumes.store.store import Store
from resumes.text import folded, in_bytes
from tui.screens.base import PageRead
from tui.text import joined, safe
from tui.widgets.paged_list import ListColumn, age_column, text_cell
from tui.widgets.pages import flipped

PAGE_SIZE: Final = 100
MAX_LOOKS: Final = 5
"""How many times 1,000 files are looked through for a page of those with the terms."""

SIGNS: Final = {
    FileOutcome.FAILED: ("✗", "$text-error"),
    FileOutcome.HELD: ("‖", "$text-warning"),
    FileOutcome.DUPLICATE: ("=", "$text-muted"),
    FileOutcome.DONE: ("✓", "$text-success"),
}
"""The sign and color of each outcome, shown next to its name."""


@dataclass(frozen=True, slots=True)
class ImportRow:
    """A file, and what is asked for it; None for nothing."""

    file: FileRow
    request: RequestedFile | None = None


def position(row: ImportRow, *, is_newest_first: bool) -> str:
    """Return the position of the row: texts that rise along the list, while its IDs fall."""
    file = row.file
    return f"{0 if is_newest_first else ORDER.index(file.outcome)}{flipped(file.claim_id)}"


def read_page(
    store: Store,
    *,
    account: str | None,
    outcome: FileOutcome | None,
    is_newest_first: bool,
    terms: Sequence[str],
    cursor: str,
) -> PageRead[ImportRow]:
    """Return the page after the cursor, a position; of an account or all, an outcome or any.

    With terms it is the rows that hold them, as far as a limited number of files is looked through:
    perhaps none, and there may be more.
    """
    account_id = find_account_id(store, account)
    limit = MAX_FILES if terms else PAGE_SIZE
    found: list[ImportRow] = []
    following: str | None = cursor
    for _ in range(MAX_LOOKS):
        before = following and flipped(following[1:])
        if is_newest_first:
            files = import_history.list_files(
                store, account_id=account_id, outcome=outcome, before=before or None, limit=limit
            )
            is_last = len(files) < limit
        else:
            page = import_history.list_by_outcome(
                store,
                account_id=account_id,
                outcome=outcome,
                after=Position(ORDER[int(following[0])], before) if following and before else None,
                limit=limit,
            )
            files, is_last = page.files, page.next is None
        rows = _with_requests(store, files)
        found += [row for row in rows if not terms or holds(_words(row.file), terms)]
        following = (
            None if is_last or not rows else position(rows[-1], is_newest_first=is_newest_first)
        )
        if following is None or not terms or len(found) >= PAGE_SIZE:
            break
    return PageRead(found, following)


def find_account_id(store: Store, name: str | None) -> str | None:
    """Return the ID of the account; None for None, which is all. Raises NotFound."""
    return None if name is None else accounts.get_account(store, name).id


def _words(file: FileRow) -> str:
    """Return what the file is filtered by."""
    reason = "" if file.reason is None else f"{file.reason} {plain_words(file.reason)}"
    return folded(f"{file.name} {file.account} {reason}")


def _with_requests(store: Store, files: Iterable[FileRow]) -> list[ImportRow]:
    if not import_requests.list_requests(store, limit=1):
        return [ImportRow(file) for file in files]
    return [
        ImportRow(file, import_requests.find_request(store, file.account_id, file.claim_id))
        if file.outcome in (FileOutcome.FAILED, FileOutcome.HELD)
        else ImportRow(file)
        for file in files
    ]


def outcome_content(file: FileRow, request: RequestedFile | None = None) -> Content:
    """Return the outcome with its sign; for a queued file or one being imported, that instead."""
    if file.is_under_way:
        return safe("… importing", "$text-accent")
    sign, style = ("↻", "$text-accent") if request is not None else SIGNS[file.outcome]
    return joined([safe(sign, style), safe(file.outcome, style)], by=" ")


def reason_cell(row: ImportRow) -> Content:
    """Return what is requested for the file, if anything, or why it is not done."""
    if row.request is not None:
        return safe(f"{row.request.action} requested", "italic")
    if row.file.reason is None or row.file.is_under_way:
        return text_cell(None if row.file.reason is None else row.file.message)
    return text_cell(plain_words(row.file.reason))


def file_cell(row: ImportRow, account: str | None) -> Content:
    """Return the file's name below its account, which is left out where it was chosen."""
    name = row.file.name.removeprefix(f"{row.file.account}/")
    above = "" if account else f"{row.file.account}/"
    return joined([safe(above, "dim"), text_cell(name, "bold")])


def columns(
    clock: Clock, account: str | None, *, has_preview: bool
) -> Sequence[ListColumn[ImportRow]]:
    """Return the columns for the files of an account or of all; a preview says the reason."""
    reason = ListColumn("REASON", 20, reason_cell, 54)
    return (
        ListColumn("OUTCOME", 11, lambda row: outcome_content(row.file, row.request)),
        ListColumn("FILE", 0, lambda row: file_cell(row, account)),
        *(() if has_preview else (reason,)),
        ListColumn(
            "SIZE", 9, lambda row: safe(in_bytes(row.file.size_bytes), "dim"), 64, is_right=True
        ),
        age_column("AGE", attrgetter("file.claimed_at"), clock),
    )
