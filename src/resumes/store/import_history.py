"""The history of imports: one file of the ledger, lists of files by time or by outcome, and counts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import bindparam, func, literal_column, select

from resumes.errors import Conflict, InvalidArgument, NotFound
from resumes.store.identifiers import MAX_ID, RESUME_ID
from resumes.store.import_ledger import IN_PROGRESS, FileOutcome, Items, parse_items
from resumes.store.schema import accounts, imported_files
from resumes.store.statements import Prepared, first_page, params_equal, pk_equals
from resumes.store.store import Store

MAX_FILES = 1_000
"""The maximum number of files on a page of a list."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file's row in the ledger. `account` is the account's name."""

    account: str
    claim_id: str
    name: str
    outcome: FileOutcome
    reason: str | None
    message: str | None
    path: str | None
    byte_offset: int | None
    size_bytes: int
    claimed_at: str
    finished_at: str
    root: str | None
    items: Items | None
    account_id: str
    warnings: int = 0
    """The number of warnings about all its resumes; 0 also for files that 1.0.0 imported."""

    @property
    def is_under_way(self) -> bool:
        """Return whether its resumes are being imported, so that its outcome is not final."""
        return self.outcome is IN_PROGRESS.outcome and self.message == IN_PROGRESS.message


# Files

_UNSEEN = ("account_id", "resume_id", "source")
_SHOWN = [column for column in imported_files.columns if column.name not in _UNSEEN]
FILE = Prepared(select(*_SHOWN).where(pk_equals(imported_files)))


def find_owners(store: Store, account_id: str | None = None) -> dict[str, str]:
    """Return ids and names of all accounts, closed ones too, or of the account with this id."""
    statement = select(accounts.c.id, accounts.c.name).order_by(accounts.c.id)
    if account_id is not None:
        statement = statement.where(accounts.c.id == account_id)
    return {row.id: row.name for row in store.fetch(statement)}


def get_file(store: Store, claim_id: str, *, account_id: str | None = None) -> FileRow:
    """Return the file of this claim, in this account or in any.

    Raises NotFound, and Conflict if several accounts have it: an imported account has the history of
    the original.
    """
    owners = find_owners(store, account_id)
    files = _find_files(store, owners, [(claim_id, owner) for owner in owners])
    if not files:
        raise NotFound(
            f'File not found: "{claim_id[:80]}". `resumes imports list` shows the newest'
        )
    if len(files) > 1:
        names = ", ".join(sorted(file.account for file in files))
        raise Conflict(f"{claim_id} exists in several accounts, {names}: add --account NAME")
    return files[0]


def find_source(store: Store, file: FileRow) -> bytes | None:
    """Return the first 64 KiB that were read of the file; None for files that are done."""
    this = pk_equals(imported_files, file.account_id, file.claim_id)
    rows = store.fetch(select(imported_files.c.source).where(this))
    return rows[0][0] if rows else None


def _find_files(
    store: Store, owners: Mapping[str, str], ids: Iterable[tuple[str, str]]
) -> list[FileRow]:
    """Return the files with these account and claim ids, in order, without those deleted since.

    `owners` has the names of the accounts by their ids.
    """
    files: list[FileRow] = []
    for claim_id, owner in ids:
        for row in store.fetch(FILE, account_id=owner, claim_id=claim_id):
            files.append(_file_row(owners[owner], row, owner))
    return files


def _file_row(account: str, row: Sequence[Any], account_id: str) -> FileRow:
    """Return the file of a row with `_SHOWN`'s columns."""
    kept = None if row[-1] is None else parse_items(row[-1])
    items = kept if kept and kept.total else None
    warnings = kept.warnings if kept else 0
    values = (*row[:2], FileOutcome(row[2]), *row[3:-1], items, account_id, warnings)
    return FileRow(account, *values)


def iter_failed(store: Store, root: str) -> Iterator[FileRow]:
    """Yield all failed files of a watched folder, by account, in the order of arrival."""
    statement = (
        select(accounts.c.name.label("account"), *_SHOWN, imported_files.c.account_id)
        .join(accounts, accounts.c.id == imported_files.c.account_id)
        .where(imported_files.c.outcome == FileOutcome.FAILED.value, imported_files.c.root == root)
        .where(NOT_DONE)
    )
    keys = (imported_files.c.account_id, imported_files.c.claim_id)
    for page in store.iter_pages(statement, *keys, rows=MAX_FILES):
        for account, *row, account_id in page:
            yield _file_row(account, row, account_id)


# Lists

ORDER = (FileOutcome.FAILED, FileOutcome.HELD, FileOutcome.DUPLICATE, FileOutcome.DONE)
"""The order of a list by outcome: files that need attention come first."""

NOT_DONE = imported_files.c.outcome != literal_column("'done'")
"""Without a parameter, so that the engine can use the partial index of files that are not done."""


@cache
def _newest_ids(outcome: FileOutcome | None, *, is_of_reason: bool) -> Prepared:
    """Select ids of one account between two ids, the newest first, using only an index."""
    statement = select(imported_files.c.claim_id).where(
        params_equal(imported_files.c.account_id),
        imported_files.c.claim_id < bindparam("before"),
        imported_files.c.claim_id >= bindparam("above"),
    )
    if outcome is not None:
        statement = statement.where(params_equal(imported_files.c.outcome))
        if outcome is not FileOutcome.DONE:
            statement = statement.where(NOT_DONE)
    if is_of_reason:
        statement = statement.where(params_equal(imported_files.c.reason))
    return Prepared(first_page(statement, imported_files.c.claim_id.desc()))


def list_files(
    store: Store,
    *,
    account_id: str | None = None,
    outcome: FileOutcome | None = None,
    reason: str | None = None,
    before: str | None = None,
    limit: int = 100,
) -> Sequence[FileRow]:
    """Return the newest files first, of one account or all; 1 to 1,000 files, or a few more if several
    accounts have the last one, since an imported account has the history of the original.

    `before` is the id after which the page begins; it need not exist.
    """
    outcomes = [outcome] if reason is None else _outcomes(outcome, reason)
    owners = find_owners(store, account_id)
    found = _find_newest(
        store,
        [(owner, each) for owner in owners for each in outcomes],
        reason=reason,
        before=MAX_ID if before is None else before,
        limit=max(1, min(limit, MAX_FILES)),
    )
    return _find_files(store, owners, found)


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a list by outcome: after the file of this claim, among those of its outcome."""

    outcome: FileOutcome
    claim_id: str

    def __str__(self) -> str:
        return f"{self.outcome}:{self.claim_id}"


@dataclass(frozen=True, slots=True)
class FilePage:
    """Files by outcome. `next` is the position of the next page, which may be empty; None if there is
    none."""

    files: Sequence[FileRow]
    next: Position | None


def parse_place(text: str) -> Position:
    """Parse a position such as `failed:000660cd7eecf8906663e3fc`. Raises InvalidArgument."""
    outcome, _, claim_id = text.partition(":")
    if outcome not in set(FileOutcome) or not RESUME_ID.fullmatch(claim_id):
        raise InvalidArgument(
            f'Invalid position "{text[:80]}": use OUTCOME:ID, as printed at the end of the list'
        )
    return Position(FileOutcome(outcome), claim_id)


def list_by_outcome(
    store: Store,
    *,
    account_id: str | None = None,
    outcome: FileOutcome | None = None,
    reason: str | None = None,
    after: Position | None = None,
    limit: int = 100,
) -> FilePage:
    """Return failed files, then held ones, duplicates, done ones; the newest of each first.

    Select one account or all, and one outcome or all; the page has 1 to 1,000 files, or a few more, as
    in `list_files`. A file whose outcome changes between two pages may be on both or on neither.
    """
    size = max(1, min(limit, MAX_FILES))
    ids: list[tuple[str, str]] = []
    places: list[Position] = []
    owners = find_owners(store, account_id)
    for listed in _outcomes(outcome, reason, after):
        found = _find_newest(
            store,
            [(owner, listed) for owner in owners],
            reason=reason,
            before=MAX_ID if after is None or after.outcome is not listed else after.claim_id,
            limit=size + 1 - len(ids),
        )
        ids += found
        places += [Position(listed, claim_id) for claim_id, _ in found]
        if len(ids) > size:
            break
    files = _find_files(store, owners, ids[: _end_of_page(places, size)])
    if not files or len(ids) <= size:
        return FilePage(files, None)
    return FilePage(files, Position(files[-1].outcome, files[-1].claim_id))


def _outcomes(
    outcome: FileOutcome | None, reason: str | None, after: Position | None = None
) -> Sequence[FileOutcome]:
    """Return the outcomes to list, from that of `after` on; done files have no reason."""
    rest = ORDER if after is None else ORDER[ORDER.index(after.outcome) :]
    return [
        each
        for each in rest
        if outcome in (None, each) and (reason is None or each is not FileOutcome.DONE)
    ]


def _find_newest(
    store: Store,
    ranges: Iterable[tuple[str, FileOutcome | None]],
    *,
    reason: str | None,
    before: str,
    limit: int,
) -> list[tuple[str, str]]:
    """Return ids of files with their accounts' ids, the newest of all ranges.

    A range is an account's files with an outcome (None: with any), and one range of an index. Ids begin
    with the time, so the newest of all are among the newest of each range: lists across accounts need
    no separate index, which would slow down every import.
    """
    newest: list[tuple[str, str]] = []
    for account_id, outcome in ranges:
        rows = store.fetch(
            _newest_ids(outcome, is_of_reason=reason is not None),
            account_id=account_id,
            outcome=outcome,
            reason=reason,
            before=before,
            above=newest[limit - 1][0] if len(newest) >= limit else "",
            rows=limit,
        )
        more = [(claim_id, account_id) for (claim_id,) in rows]
        if more:
            newest = sorted([*newest, *more], reverse=True)
            newest = newest[: _end_of_page([id_ for id_, _ in newest], limit)]
    return newest


def _end_of_page(places: Sequence[object], limit: int) -> int:
    """Return how many of these, in order, are a page: more than `limit` if the next ones have the same
    place as the last, since the next page begins after that place."""
    end = limit
    while 0 < end < len(places) and places[end] == places[end - 1]:
        end += 1
    return end


# Counts


class FileCount(NamedTuple):
    """The number of files with this outcome and reason; done files have no reason."""

    outcome: FileOutcome
    reason: str | None
    files: int


def count_files(
    store: Store, *, account_id: str | None = None, not_done_only: bool = False
) -> list[FileCount]:
    """Return the number of files by outcome and reason; that of done files first, even if it is 0.

    The time grows with the ledger (docs/operations.md, Metrics), or with `not_done_only` only with the
    number of files that are not done.
    """
    counted = [] if account_id is None else [imported_files.c.account_id == account_id]
    columns = (imported_files.c.outcome, imported_files.c.reason)
    # This uses only the index of files that are not done.
    not_done = select(*columns, func.count()).where(NOT_DONE, *counted).group_by(*columns)
    counts = [
        FileCount(FileOutcome(outcome), reason, files)
        for outcome, reason, files in store.fetch(not_done)
    ]
    if not_done_only:
        return counts
    # Without a condition the engine counts without reading rows.
    all_files = select(func.count()).select_from(imported_files).where(*counted)
    ((all_count,),) = store.fetch(all_files)
    # Two statements: a file may have been recorded between them.
    done_count = max(0, all_count - sum(count.files for count in counts))
    return [FileCount(FileOutcome.DONE, None, done_count), *counts]
