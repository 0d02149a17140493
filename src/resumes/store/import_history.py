"""The history of imports: one file of the ledger, lists of files by time or by outcome, and counts."""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Final, NamedTuple

import sqlalchemy
from sqlalchemy import Row, literal_column
from sqlmodel import func, select

from resumes.errors import Conflict, InvalidArgument, NotFound
from resumes.store.identifiers import MAX_ID, RESUME_ID
from resumes.store.import_ledger import IN_PROGRESS, Analysis, FileOutcome, Items, parse_items
from resumes.store.schema import ImportedFileBase, accounts, documents, imported_files
from resumes.store.statements import iter_in_pages, pk_equals
from resumes.store.store import Store

MAX_FILES = 1_000
"""The maximum number of files on a page of a list."""


class FileRow(ImportedFileBase):
    """A file's row in the ledger. `account` is the account's name, `former_accounts` its former names with
    blanks between them, and `root` the watched folder."""

    model_config: ClassVar[Any] = {"defer_build": True}  # most programs read none
    account: str
    former_accounts: str
    outcome: FileOutcome
    root: str | None
    items: Items | None
    warnings: int
    """The number of warnings about all its resumes; 0 also for files that 1.0.0 imported."""
    analysis: Analysis | None
    """How the analyzer read it; None for JSON."""

    @property
    def is_under_way(self) -> bool:
        """Return whether its resumes are being imported, so that its outcome is not final."""
        return self.outcome is IN_PROGRESS.outcome and self.message == IN_PROGRESS.message


# Files

_FILES: Final = sqlalchemy.select(
    accounts.c.name.label("account"),
    accounts.c.former_names.label("former_accounts"),
    *(column for column in imported_files.columns if column.name in FileRow.model_fields),
).join_from(imported_files, accounts)


def _file(row: Row[*tuple[Any, ...]]) -> FileRow:
    """Return the file of a row of `_FILES`."""
    kept = None if row.items is None else parse_items(row.items)
    derived = {
        "items": kept if kept and kept.total else None,
        "warnings": kept.warnings if kept else 0,
        "analysis": kept and kept.analysis,
    }
    return FileRow.model_validate({**row._mapping, **derived})


def get_file(store: Store, claim_id: str, *, account_id: str | None = None) -> FileRow:
    """Return the file of this claim, in this account or in any.

    Raises NotFound, and Conflict if several accounts have it: an imported account has the history of
    the original.
    """
    owner = imported_files.c.account_id
    # One look-up by key for each account: no index begins with the claim.
    is_any = owner.in_(select(accounts.c.id).correlate(None))
    is_owner = is_any if account_id is None else owner == account_id
    statement = _FILES.where(imported_files.c.claim_id == claim_id, is_owner)
    files = list(map(_file, store.fetch(statement)))
    if not files:
        raise NotFound(
            f'File not found: "{claim_id[:80]}". `resumes imports list` shows the newest'
        )
    if len(files) > 1:
        names = ", ".join(sorted(file.account for file in files))
        raise Conflict(f"{claim_id} exists in several accounts, {names}: add --account NAME")
    return files[0]


def find_source(store: Store, file: FileRow) -> bytes | None:
    """Return the first 64 KiB that were read of the file, or what the analyzer wrote. Of a file that is
    done, return the resume that was made of what the analyzer wrote; None if there is none."""
    this = pk_equals(imported_files, file.account_id, file.claim_id)
    if file.outcome is not FileOutcome.DONE:
        return next(iter(store.fetch(select(imported_files.c.source).where(this))), None)
    if file.analysis is None:
        return None
    statement = select(documents.c.document).where(
        this,
        documents.c.account_id == imported_files.c.account_id,
        documents.c.id == imported_files.c.resume_id,
    )
    return next((text.encode() for text in store.fetch(statement)), None)


def iter_failed(store: Store, root: str) -> Iterator[FileRow]:
    """Return all failed files of a watched folder, by account, in the order of arrival."""
    statement = _FILES.where(
        imported_files.c.outcome == FileOutcome.FAILED.value,
        imported_files.c.root == root,
        NOT_DONE,
    )
    keys = (imported_files.c.account_id, imported_files.c.claim_id)
    return map(_file, iter_in_pages(store.fetch, statement, keys, page_rows=MAX_FILES))


# Lists

ORDER = (FileOutcome.FAILED, FileOutcome.HELD, FileOutcome.DUPLICATE, FileOutcome.DONE)
"""The order of a list by outcome: files that need attention come first."""

NOT_DONE = imported_files.c.outcome != literal_column("'done'")
"""Without a parameter, so that the engine can use the partial index of files that are not done."""


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
    files: list[FileRow] = []
    for each in outcomes:
        files = _find_newest(
            store,
            files,
            account_id=account_id,
            outcome=each,
            reason=reason,
            before=MAX_ID if before is None else before,
            limit=max(1, min(limit, MAX_FILES)),
        )
    return files


def list_by_outcome(
    store: Store,
    *,
    account_id: str | None = None,
    outcome: FileOutcome | None = None,
    reason: str | None = None,
    after: str | None = None,
    limit: int = 100,
) -> tuple[Sequence[FileRow], str | None]:
    """Return failed files, then held ones, duplicates, done ones; the newest of each first. Also return
    the position after which the next page begins, such as `failed:000660cd7eecf8906663e3fc`; None on the
    last page.

    Select one account or all, and one outcome or all; the page has 1 to 1,000 files, or a few more, as
    in `list_files`. A file whose outcome changes between two pages may be on both or on neither. Raises
    InvalidArgument if `after` is not a position.
    """
    first, before = (ORDER[0], MAX_ID) if after is None else _parse_position(after)
    size = max(1, min(limit, MAX_FILES))
    files: list[FileRow] = []
    for listed in _outcomes(outcome, reason, first):
        files += _find_newest(
            store,
            account_id=account_id,
            outcome=listed,
            reason=reason,
            before=before if listed is first else MAX_ID,
            limit=size + 1 - len(files),
        )
        if len(files) > size:
            positions = [f"{file.outcome}:{file.claim_id}" for file in files]
            following = positions[size - 1]
            return files[: size + positions[size:].count(following)], following
    return files, None


def _parse_position(text: str) -> tuple[FileOutcome, str]:
    outcome, _, claim_id = text.partition(":")
    if outcome not in set(FileOutcome) or not RESUME_ID.fullmatch(claim_id):
        raise InvalidArgument(
            f'Invalid position "{text[:80]}": use OUTCOME:ID, as printed at the end of the list'
        )
    return FileOutcome(outcome), claim_id


def _outcomes(
    outcome: FileOutcome | None, reason: str | None, first: FileOutcome = ORDER[0]
) -> Sequence[FileOutcome]:
    """Return the outcomes to list, from the first one on; done files have no reason."""
    return [
        each
        for each in ORDER[ORDER.index(first) :]
        if outcome in (None, each) and (reason is None or each is not FileOutcome.DONE)
    ]


def _find_newest(
    store: Store,
    files: Sequence[FileRow] = (),
    *,
    account_id: str | None,
    outcome: FileOutcome | None,
    reason: str | None,
    before: str,
    limit: int,
) -> list[FileRow]:
    """Return the newest of these files and of an account's or of all, with this outcome (None: any).

    More than `limit` if the next ones have the same id as the last, since the next page begins after
    it. Each account's files are one range of an index, from its newest file down. Across accounts
    there is no index, which would slow down every import: only those accounts are read whose newest
    file is on the page.
    """
    claim_id = imported_files.c.claim_id
    wanted = [claim_id < before]
    if outcome is not None:
        wanted.append(imported_files.c.outcome == outcome.value)
        if outcome is not FileOutcome.DONE:
            wanted.append(NOT_DONE)
    if reason is not None:
        wanted.append(imported_files.c.reason == reason)
    of_account = imported_files.c.account_id == accounts.c.id
    newest = select(func.max(claim_id)).where(of_account, *wanted).scalar_subquery()
    owners = sqlalchemy.select(accounts.c.id, newest.label("newest"))
    if account_id is not None:
        owners = owners.where(accounts.c.id == account_id)
    found = (owner for owner in store.fetch(owners) if owner.newest)
    page = [*files]
    for owner in sorted(found, key=attrgetter("newest"), reverse=True):
        above = page[limit - 1].claim_id if len(page) >= limit else ""
        if owner.newest < above:
            break
        of_owner = _FILES.where(imported_files.c.account_id == owner.id, claim_id >= above, *wanted)
        page += map(_file, store.fetch(of_owner.order_by(claim_id.desc()).limit(limit)))
        page.sort(key=attrgetter("claim_id", "account_id"), reverse=True)
        while len(page) > limit and page[-1].claim_id < page[limit - 1].claim_id:
            page.pop()
    return page


# Counts


def list_analysis_s(store: Store) -> list[float]:
    """Return for how many seconds the analyzer ran on each of the newest files, the shortest first."""
    newest = list_files(store, limit=MAX_FILES)
    return sorted(file.analysis.took_s for file in newest if file.analysis is not None)


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
    (all_count,) = store.fetch(select(func.count()).select_from(imported_files).where(*counted))
    # Two statements: a file may have been recorded between them.
    done_count = max(0, all_count - sum(count.files for count in counts))
    return [FileCount(FileOutcome.DONE, None, done_count), *counts]
