"""What the importer knows for good: items of claims, contents that are stored, files' outcomes.

Two questions, two tables (pitfalls I1). "Was this claim's item imported?" is asked by recovery
and release, and its answer is never freed. "Is this content stored?" is asked of new files, and
is freed when the resume goes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Select, bindparam, insert, literal, select

from resumes.clock import timestamp
from resumes.errors import NotFound
from resumes.store.engine import Store, each
from resumes.store.schema import accounts, imported_digests, imported_files, imported_items
from resumes.store.statements import Prepared

SOURCE_BYTES = 64 * 1024
"""How much of a file that was not imported the ledger keeps."""


class FileOutcome(StrEnum):
    """What became of a claimed file. Of a file with several items, the first of these that any has."""

    HELD = "held"
    FAILED = "failed"
    DUPLICATE = "duplicate"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Claim:
    """A file that an importer took. `name` is its path below the watched folder, escaped."""

    claim_id: str
    name: str
    size_bytes: int
    claimed_at: str
    source: bytes
    """The file's first 64 KiB."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a file is not done. `reason` is an error code; `path` and `byte_offset` where known."""

    outcome: FileOutcome
    reason: str | None = None
    message: str | None = None
    path: str | None = None
    byte_offset: int | None = None


@dataclass(frozen=True, slots=True)
class FileVerdict:
    """A file's outcome without any resume of it: the request of `record`."""

    account_id: str
    claim: Claim
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a claim that reached its end: `done` or `duplicate`, and of which resume."""

    item: int
    outcome: FileOutcome
    resume_id: str


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


ITEMS_OF_CLAIM = Prepared(
    select(imported_items.c.item, imported_items.c.outcome, imported_items.c.resume_id)
    .where(
        imported_items.c.account_id == bindparam("account_id"),
        imported_items.c.claim_id == bindparam("claim_id"),
    )
    .order_by(imported_items.c.item)
)
RESUME_OF_DIGEST = Prepared(
    select(imported_digests.c.resume_id).where(
        imported_digests.c.account_id == bindparam("account_id"),
        imported_digests.c.digest == bindparam("digest"),
    )
)
ADD_ITEM = Prepared(insert(imported_items))
ADD_DIGEST = Prepared(insert(imported_digests))
ADD_FILE = Prepared(insert(imported_files).prefix_with("OR REPLACE", dialect="sqlite"))


def file_values(account_id: str, claim: Claim, verdict: Verdict, *, now: str) -> dict[str, object]:
    """The ledger row of a file, by column. Done files keep no source."""
    return {
        "account_id": account_id,
        "claim_id": claim.claim_id,
        "name": claim.name,
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
        "message": verdict.message,
        "path": verdict.path,
        "byte_offset": verdict.byte_offset,
        "size_bytes": claim.size_bytes,
        "claimed_at": claim.claimed_at,
        "finished_at": now,
        "source": None if verdict.outcome is FileOutcome.DONE else claim.source[:SOURCE_BYTES],
    }


def find_items(store: Store, account_id: str, claim_id: str) -> list[Item]:
    """The items of a claim that reached their end, by number; empty when none did."""
    with store.read() as connection:
        rows = ITEMS_OF_CLAIM.run(connection, account_id=account_id, claim_id=claim_id).fetchall()
    return [Item(item, FileOutcome(outcome), resume_id) for item, outcome, resume_id in rows]


def find_stored(store: Store, account_id: str, digest: bytes) -> str | None:
    """The id of the stored resume that was imported from this content, if any."""
    with store.read() as connection:
        row = RESUME_OF_DIGEST.run(connection, account_id=account_id, digest=digest).fetchone()
    return None if row is None else str(row[0])


@dataclass(frozen=True, slots=True)
class _Recorded:
    request: FileVerdict
    now: str


def record(store: Store, request: FileVerdict) -> None:
    """The file's outcome is in the ledger, in place of an earlier one of the same claim."""
    store.write(_record, _Recorded(request, timestamp(store.clock())))


@each
def _record(connection: Connection, recorded: _Recorded) -> None:
    request = recorded.request
    exists = connection.execute(
        select(literal(1)).where(accounts.c.id == request.account_id)
    ).first()
    if exists is not None:
        values = file_values(request.account_id, request.claim, request.verdict, now=recorded.now)
        ADD_FILE.run(connection, **values)


FILE_ROW: Select[Any] = select(
    accounts.c.name,
    imported_files.c.claim_id,
    imported_files.c.name,
    imported_files.c.outcome,
    imported_files.c.reason,
    imported_files.c.message,
    imported_files.c.path,
    imported_files.c.byte_offset,
    imported_files.c.size_bytes,
    imported_files.c.claimed_at,
    imported_files.c.finished_at,
).join(accounts, accounts.c.id == imported_files.c.account_id)


def list_files(
    store: Store, *, account_id: str | None = None, limit: int = 100
) -> Sequence[FileRow]:
    """The newest files first, of one account or all; 1 to 1,000 of them."""
    statement = FILE_ROW.order_by(imported_files.c.claim_id.desc())
    if account_id is not None:
        statement = statement.where(imported_files.c.account_id == account_id)
    with store.read() as connection:
        rows = connection.execute(statement.limit(max(1, min(limit, 1_000)))).all()
    return [_file_row(row) for row in rows]


def get_file(store: Store, claim_id: str) -> FileRow:
    """The file of this claim, whoever's it is and however old. Raises NotFound."""
    with store.read() as connection:
        row = connection.execute(FILE_ROW.where(imported_files.c.claim_id == claim_id)).first()
    if row is None:
        raise NotFound(
            f'File not found: "{claim_id[:80]}". `resumes imports list` shows the newest'
        )
    return _file_row(row)


def _file_row(row: Sequence[Any]) -> FileRow:
    return FileRow(row[0], row[1], row[2], FileOutcome(row[3]), *row[4:])
