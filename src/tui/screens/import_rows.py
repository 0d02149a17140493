"""The rows of the list of imported files: failed ones first, page by page from the ledger."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from textual.content import Content

from resumes.clock import Clock
from resumes.import_reasons import plain_words
from resumes.store import accounts, import_history, import_requests
from resumes.store.import_history import ORDER, FileRow, Position
from resumes.store.import_ledger import FileOutcome
from resumes.store.import_requests import RequestedFile, RequestKind
from resumes.store.store import Store
from resumes.text import in_bytes
from tui.screens.base import PageRead
from tui.text import AGE_CELLS, age, joined, safe
from tui.widgets.paged_list import ListColumn, text_cell

PAGE_SIZE: Final = 100

SIGNS: Final = {
    FileOutcome.FAILED: ("✗", "$text-error"),
    FileOutcome.HELD: ("‖", "$text-warning"),
    FileOutcome.DUPLICATE: ("=", "$text-muted"),
    FileOutcome.DONE: ("✓", "$text-success"),
}
"""The sign and color of each outcome, shown next to its name."""

ASKED: Final = {RequestKind.RETRY: "retry requested", RequestKind.RELEASE: "release requested"}
_FLIPPED: Final = str.maketrans("0123456789abcdef", "fedcba9876543210")


@dataclass(frozen=True, slots=True)
class ImportRow:
    """A file, and what is asked for it; None for nothing."""

    file: FileRow
    request: RequestedFile | None = None


def position(row: ImportRow) -> str:
    """Return the position of the row: texts that rise along the list, while its IDs fall."""
    return _position(import_history.place_of(row.file))


def _position(place: Position) -> str:
    return f"{ORDER.index(place.outcome)}{place.claim_id.translate(_FLIPPED)}"


def _place(position: str) -> Position:
    return Position(ORDER[int(position[0])], position[1:].translate(_FLIPPED))


def read_page(
    store: Store, *, account: str | None, outcome: FileOutcome | None, cursor: str
) -> PageRead[ImportRow]:
    """Return the page after the cursor, a position; of an account or all, an outcome or any."""
    page = import_history.list_by_outcome(
        store,
        account_id=None if account is None else accounts.get_account(store, account).id,
        outcome=outcome,
        after=_place(cursor) if cursor else None,
        limit=PAGE_SIZE,
    )
    following = None if page.next is None else _position(page.next)
    return PageRead(_with_requests(store, page.files), following)


def _with_requests(store: Store, files: Iterable[FileRow]) -> list[ImportRow]:
    if not import_requests.list_requests(store, limit=1):
        return [ImportRow(file) for file in files]
    return [ImportRow(file, _find_request(store, file)) for file in files]


def _find_request(store: Store, file: FileRow) -> RequestedFile | None:
    if file.outcome not in (FileOutcome.FAILED, FileOutcome.HELD):
        return None
    return import_requests.find_request(store, file.account_id, file.claim_id)


def outcome_content(file: FileRow, request: RequestedFile | None = None) -> Content:
    """Return the outcome with its sign; for a queued file or one being imported, that instead."""
    if file.is_under_way:
        return safe("… importing", "$text-accent")
    sign, style = ("↻", "$text-accent") if request is not None else SIGNS[file.outcome]
    return joined([safe(sign, style), safe(file.outcome, style)], by=" ")


def reason_cell(row: ImportRow) -> Content:
    """Return what is requested for the file, if anything, or why it is not done."""
    if row.request is not None:
        return safe(ASKED[row.request.action], "italic")
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
        ListColumn(
            "AGE",
            AGE_CELLS,
            lambda row: safe(age(row.file.claimed_at, clock()), "dim"),
            is_right=True,
        ),
    )
