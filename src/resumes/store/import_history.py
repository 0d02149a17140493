"""The history of imports: files in the ledger, lists of files by time or outcome, and counts."""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Final, NamedTuple

import sqlalchemy
from sqlalchemy import Row, literal_column
from sqlmodel import func, select

from resumes.errors import Conflict, InvalidArgument, NotFound
from resumes.store.identifiers import MAX_ID, RESUME_ID
from resumes.store.import_ledger import IN_PROGRESS, Analysis, FileOutcome, Items, parse_items
from resumes.store.schema import (
    ImportedFileBase,
    account_usage,
    accounts,
    documents,
    imported_files,
)
from resumes.store.statements import iter_in_pages, pk_equals
from resumes.store.store import Store

MAX_FILES = 1_000
"""The maximum number of files on a page of a list."""


class FileRow(ImportedFileBase):
    """A file's row in the ledger.

    `account` is the name of the account, `former_accounts` contains its former names, separated by
    spaces, and `root` is the watched folder.
    """

    model_config: ClassVar[Any] = {"defer_build": True}  # most programs read no files
    account: str
    former_accounts: str
    outcome: FileOutcome
    root: str | None
    items: Items | None
    warnings: int
    """The number of warnings about all its resumes. Always 0 if version 1.0.0 imported the file."""
    analysis: Analysis | None
    """How the analyzer read it, or None for JSON."""

    @property
    def is_under_way(self) -> bool:
        """Return whether the file is still being imported, so that its outcome is not final."""
        return self.outcome is IN_PROGRESS.outcome and self.message == IN_PROGRESS.message


# Files

_FILES: Final = sqlalchemy.select(
    accounts.c.name.label("account"),
    accounts.c.former_names.label("former_accounts"),
    *(column for column in imported_files.columns if column.name in FileRow.model_fields),
).join_from(imported_files, accounts)


def _file(row: Row[*tuple[Any, ...]]) -> FileRow:
    """Convert a row of `_FILES`."""
    kept = None if row.items is None else parse_items(row.items)
    derived = {
        "items": kept if kept and kept.total else None,
        "warnings": kept.warnings if kept else 0,
        "analysis": kept and kept.analysis,
    }
    return FileRow.model_validate({**row._mapping, **derived})


def get_file(store: Store, claim_id: str, *, account_id: str | None = None) -> FileRow:
    """Return the file of this claim, in this account or in any account.

    Raises NotFound, and Conflict if several accounts have the file: the history of an imported
    account is a copy of the original account's history.
    """
    owner = imported_files.c.account_id
    # Looks up the key in each account, because no index begins with the claim.
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


def find_file(store: Store, claim_id: str, account_id: str) -> FileRow | None:
    """Return the account's file with this claim, if there is one."""
    this = pk_equals(imported_files, account_id, claim_id)
    return next(map(_file, store.fetch(_FILES.where(this))), None)


def find_source(store: Store, file: FileRow) -> bytes | None:
    """Return the first 64 KiB of the file, or the analyzer's output, as far as the ledger has it.

    If an analyzed file is done, return the document of its resume, if it still exists.
    """
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
    """Yield the failed files of a watched folder by account, in the order of arrival."""
    statement = _FILES.where(
        imported_files.c.outcome == FileOutcome.FAILED.value,
        imported_files.c.root == root,
        NOT_DONE,
    )
    keys = (imported_files.c.account_id, imported_files.c.claim_id)
    return map(_file, iter_in_pages(store.fetch, statement, keys, page_rows=MAX_FILES))


# Lists

ORDER = (FileOutcome.FAILED, FileOutcome.HELD, FileOutcome.DUPLICATE, FileOutcome.DONE)
"""The order of outcomes in a list: files that need attention come first."""

NOT_DONE = imported_files.c.outcome != literal_column("'done'")
"""A condition without a parameter, so that engines can use the partial index on it."""


def list_files(
    store: Store,
    *,
    account_id: str | None = None,
    outcome: FileOutcome | None = None,
    reason: str | None = None,
    before: str | None = None,
    limit: int = 100,
) -> Sequence[FileRow]:
    """Return a page of files of one account or of all accounts, newest first.

    The page has 1 to 1,000 files, or a few more if several accounts have the last file, because an
    imported account has the same history as the original. Their claim IDs are lower than `before`,
    which need not be the ID of a claim.
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
    """Return a page of failed, held, duplicate and done files, in this order.

    Among files with the same outcome, the newest come first. Also return the position after which
    the next page begins, for example `failed:000660cd7eecf8906663e3fc`, or None on the last page.
    Files can be limited to one account and one outcome; the page has 1 to 1,000 files, or a few
    more, as in `list_files`. If the outcome of a file changes between two pages, the file may be on
    both pages or on neither. Raises InvalidArgument if `after` is not a position.
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
    """Return the outcomes to list, beginning with `first`; with a reason, leave out done files."""
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
    """Return the newest of `files` and of the files of one account or all accounts.

    Files can be limited to an outcome and a reason. Return more than `limit` files if the next ones
    have the same ID as the last, because the next page begins after this ID. The files of an
    account are one range of an index. There is no index for all accounts, because it would slow
    down imports: only those accounts are read whose newest file is on the page.
    """
    claim_id = imported_files.c.claim_id
    wanted = [claim_id < before]
    if outcome is not None:
        wanted.append(imported_files.c.outcome == outcome.value)
        if outcome is not FileOutcome.DONE:
            wanted.append(NOT_DONE)
    if reason is not None:
        wanted.append(imported_files.c.reason == reason)
    owner_id = account_usage.c.account_id
    # Both parts contain the account's ID, if given, so that a sharded store asks only its shard.
    of_account = imported_files.c.account_id == (owner_id if account_id is None else account_id)
    newest = select(func.max(claim_id)).where(of_account, *wanted).scalar_subquery()
    owners = sqlalchemy.select(owner_id.label("id"), newest.label("newest"))
    if account_id is not None:
        owners = owners.where(owner_id == account_id)
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
    """Return how many seconds the analyzer ran for each of the newest files, in ascending order."""
    newest = list_files(store, limit=MAX_FILES)
    return sorted(file.analysis.took_s for file in newest if file.analysis is not None)


class FileCount(NamedTuple):
    """The number of files with an outcome and a reason. Done files have no reason."""

    outcome: FileOutcome
    reason: str | None
    files: int


def count_files(
    store: Store, *, account_id: str | None = None, not_done_only: bool = False
) -> list[FileCount]:
    """Count files by outcome and reason; the count of done files comes first, even if it is 0.

    With `not_done_only`, leave out done files; the time that this takes then grows only with the
    number of other files instead of the entire ledger (docs/operations.md, Metrics).
    """
    counted = [] if account_id is None else [imported_files.c.account_id == account_id]
    columns = (imported_files.c.outcome, imported_files.c.reason)
    # This reads only the index of files that are not done.
    not_done = select(*columns, func.count()).where(NOT_DONE, *counted).group_by(*columns)
    counts = [
        FileCount(FileOutcome(outcome), reason, files)
        for outcome, reason, files in store.fetch(not_done)
    ]
    if not_done_only:
        return counts
    # Without a condition, the engine can count without reading rows.
    (all_count,) = store.fetch(select(func.count()).select_from(imported_files).where(*counted))
    # A file may have been recorded between the two statements.
    done_count = max(0, all_count - sum(count.files for count in counts))
    return [FileCount(FileOutcome.DONE, None, done_count), *counts]
