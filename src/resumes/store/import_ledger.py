"""What the importer knows for good: items of claims, contents that are stored, files' outcomes.

Two questions, two tables (pitfalls I1). "Was this claim's item imported?" is asked by recovery
and release, and its answer is never freed. "Is this content stored?" is asked of new files, and
is freed when the resume goes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    bindparam,
    func,
    insert,
    literal,
    literal_column,
    select,
)

from resumes.clock import timestamp
from resumes.errors import Conflict, InvalidArgument, NotFound
from resumes.import_reasons import Reason
from resumes.store.identifiers import POSITION_DIGITS, RESUME_ID
from resumes.store.import_items import Items, parse_items
from resumes.store.schema import accounts, imported_digests, imported_files, imported_items
from resumes.store.statements import Prepared, at_most, replacing
from resumes.store.store import WRITE_DEADLINE_S, Store, each

SOURCE_BYTES = 64 * 1024
"""How much of a file that was not imported the ledger keeps."""

MOST_FILES = 1_000
"""Files that a list gives at a time."""


class FileOutcome(StrEnum):
    """What became of a claimed file. Of a file with several items, the first of these that any has."""

    HELD = "held"
    FAILED = "failed"
    DUPLICATE = "duplicate"
    DONE = "done"


HAVE_REASONS = (FileOutcome.HELD, FileOutcome.FAILED, FileOutcome.DUPLICATE)
"""The outcomes that there is a reason for."""


class Claim(NamedTuple):
    """A file that an importer took. `name` is its path below the watched folder, escaped."""

    claim_id: str
    name: str
    size_bytes: int
    claimed_at: str
    source: Callable[[], bytes]
    """Reads the file's first 64 KiB; called only for a file that is not done."""

    root: str | None = None
    """The watched folder, absolute and escaped."""

    items: str | None = None
    """Of a file of several resumes, what became of them: the JSON text of `items.Items`."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a file is not done. `reason` is an error code; `path` and `byte_offset` where known."""

    outcome: FileOutcome
    reason: str | None = None
    message: str | None = None
    path: str | None = None
    byte_offset: int | None = None


SO_FAR = Verdict(FileOutcome.FAILED, Reason.INTERNAL_ERROR.value, "It is being imported")
"""What the ledger says of a file of several resumes while these are imported."""


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
    root: str | None
    items: Items | None
    account_id: str

    @property
    def is_under_way(self) -> bool:
        """Whether its resumes are being imported, so that its outcome is not its last one."""
        return self.outcome is SO_FAR.outcome and self.message == SO_FAR.message


ITEMS_OF_CLAIM = Prepared(
    select(imported_items.c.item, imported_items.c.outcome, imported_items.c.resume_id)
    .where(
        imported_items.c.account_id == bindparam("account_id"),
        imported_items.c.claim_id == bindparam("claim_id"),
    )
    .order_by(imported_items.c.item)
    .limit(at_most("rows"))
)
ALL_ITEMS = 2**31 - 1
RESUME_OF_DIGEST = Prepared(
    select(imported_digests.c.resume_id).where(
        imported_digests.c.account_id == bindparam("account_id"),
        imported_digests.c.digest == bindparam("digest"),
    )
)
ADD_ITEM = Prepared(insert(imported_items))
ADD_DIGEST = Prepared(insert(imported_digests))
ADD_FILE = replacing(imported_files)
# The driver takes long over each None, and of a file that is done most columns are.
DONE_COLUMNS = (
    "account_id",
    "claim_id",
    "name",
    "outcome",
    "size_bytes",
    "claimed_at",
    "finished_at",
    "root",
)
ADD_DONE_FILE = replacing(imported_files, DONE_COLUMNS)


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
        "source": None if verdict.outcome is FileOutcome.DONE else claim.source()[:SOURCE_BYTES],
        "root": claim.root,
        "items": claim.items,
    }


def add_files(connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
    """The rows of `file_values` are in the ledger, in place of earlier ones of the same claims."""
    done = [row for row in rows if _is_simply_done(row)]
    ADD_DONE_FILE.run_many(connection, done)
    if len(done) < len(rows):
        ADD_FILE.run_many(connection, [row for row in rows if not _is_simply_done(row)])


def _is_simply_done(row: Mapping[str, object]) -> bool:
    return row["outcome"] == "done" and row["items"] is None


def find_items(
    store: Store, account_id: str, claim_id: str, *, limit: int = ALL_ITEMS
) -> list[Item]:
    """The first items of a claim that reached their end, by number; empty when none did."""
    with store.read() as connection:
        rows = ITEMS_OF_CLAIM.run(
            connection, account_id=account_id, claim_id=claim_id, rows=limit
        ).fetchall()
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


def record(store: Store, request: FileVerdict, *, deadline_s: float = WRITE_DEADLINE_S) -> None:
    """The file's outcome is in the ledger, in place of an earlier one of the same claim."""
    recorded = _Recorded(request, timestamp(store.clock()))
    store.write_batched(_record, recorded, deadline_s=deadline_s)


@each
def _record(connection: Connection, recorded: _Recorded) -> None:
    request = recorded.request
    exists = connection.execute(
        select(literal(1)).where(accounts.c.id == request.account_id)
    ).first()
    if exists is not None:
        values = file_values(request.account_id, request.claim, request.verdict, now=recorded.now)
        ADD_FILE.run(connection, **values)


NOT_DONE = imported_files.c.outcome != literal_column("'done'")
"""Told to the engine word for word, so that it sees that the index of what is not done serves."""


def _newest_ids(*conditions: ColumnElement[bool]) -> Prepared:
    """Ids between two, the newest first, of one account; from an index alone."""
    return Prepared(
        select(imported_files.c.claim_id)
        .where(
            imported_files.c.account_id == bindparam("account_id"),
            imported_files.c.claim_id < bindparam("before"),
            imported_files.c.claim_id > bindparam("above"),
            *conditions,
        )
        .order_by(imported_files.c.claim_id.desc())
        .limit(at_most("rows"))
    )


_OF_OUTCOME = (imported_files.c.outcome == bindparam("outcome"), NOT_DONE)
NEWEST_IDS = _newest_ids()
NEWEST_IDS_DONE = _newest_ids(imported_files.c.outcome == literal_column("'done'"))
NEWEST_IDS_OF_OUTCOME = _newest_ids(*_OF_OUTCOME)
NEWEST_IDS_OF_REASON = _newest_ids(*_OF_OUTCOME, imported_files.c.reason == bindparam("reason"))
LAST = "~"
"""After every id."""

_THIS_FILE = (
    imported_files.c.account_id == bindparam("account_id"),
    imported_files.c.claim_id == bindparam("claim_id"),
)
FILE = Prepared(
    select(
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
        imported_files.c.root,
        imported_files.c["items"],
    ).where(*_THIS_FILE)
)
SOURCE = Prepared(select(imported_files.c.source).where(*_THIS_FILE))


def list_files(
    store: Store,
    *,
    account_id: str | None = None,
    outcome: FileOutcome | None = None,
    reason: str | None = None,
    before: str | None = None,
    limit: int = 100,
) -> Sequence[FileRow]:
    """The newest files first, of one account or all; 1 to 1,000 of them.

    `before` is the id to go on from: any id, also one that is gone.
    """
    with store.read() as connection:
        owners = find_owners(connection, account_id)
        found = find_newest(
            connection,
            [(owner, one) for owner in owners for one in _outcomes(outcome, reason)],
            reason=reason,
            before=LAST if before is None else before,
            limit=max(1, min(limit, MOST_FILES)),
        )
        return find_files(connection, owners, found)


def find_owners(connection: Connection, account_id: str | None = None) -> dict[str, str]:
    """Ids and names of all accounts, those being deleted too, or of the one of this id."""
    statement = select(accounts.c.id, accounts.c.name).order_by(accounts.c.id)
    if account_id is not None:
        statement = statement.where(accounts.c.id == account_id)
    return {row.id: row.name for row in connection.execute(statement)}


def _outcomes(outcome: FileOutcome | None, reason: str | None) -> Sequence[FileOutcome | None]:
    """The outcomes to look under, each of which is one range of an index; None is any."""
    if reason is None:
        return [outcome]
    return [one for one in HAVE_REASONS if outcome in (None, one)]


def find_newest(
    connection: Connection,
    ranges: Iterable[tuple[str, FileOutcome | None]],
    *,
    reason: str | None,
    before: str,
    limit: int,
) -> list[tuple[str, str]]:
    """Ids of files with their accounts' ids, the newest of all ranges, each an account's outcome.

    Ids begin with the time, so the newest of all are among the newest of each range. Nothing is
    indexed for the sake of lists across accounts, which every import would pay for.
    """
    newest: list[tuple[str, str]] = []
    for account_id, outcome in ranges:
        rows = _ids_statement(outcome, reason).run(
            connection,
            account_id=account_id,
            outcome=outcome,
            reason=reason,
            before=before,
            above=newest[-1][0] if len(newest) == limit else "",
            rows=limit,
        )
        more = [(claim_id, account_id) for (claim_id,) in rows.fetchall()]
        if more:
            newest = sorted([*newest, *more], reverse=True)[:limit]
    return newest


def _ids_statement(outcome: FileOutcome | None, reason: str | None) -> Prepared:
    if outcome is None:
        return NEWEST_IDS
    if outcome is FileOutcome.DONE:
        return NEWEST_IDS_DONE
    return NEWEST_IDS_OF_OUTCOME if reason is None else NEWEST_IDS_OF_REASON


def find_files(
    connection: Connection, owners: Mapping[str, str], ids: Iterable[tuple[str, str]]
) -> list[FileRow]:
    """The files of these ids and accounts' ids, in their order; those gone since are left out.

    `owners` has the names of the accounts by their ids.
    """
    files = [_find_file(connection, owner, owners[owner], claim_id) for claim_id, owner in ids]
    return [file for file in files if file is not None]


def get_file(store: Store, claim_id: str, *, account_id: str | None = None) -> FileRow:
    """The file of this claim, however old; the account's, or whoever's it is.

    Raises NotFound, and Conflict where several accounts have it: one that came from a file has the
    history of another.
    """
    with store.read() as connection:
        owners = find_owners(connection, account_id)
        files = find_files(connection, owners, [(claim_id, owner) for owner in owners])
    if not files:
        raise NotFound(
            f'File not found: "{claim_id[:80]}". `resumes imports list` shows the newest'
        )
    if len(files) > 1:
        names = ", ".join(sorted(file.account for file in files))
        raise Conflict(f"{claim_id} is a file of several accounts, {names}: add --account NAME")
    return files[0]


def find_source(store: Store, file: FileRow) -> bytes | None:
    """The first 64 KiB of the file as it was read; None for files that are done."""
    with store.read() as connection:
        row = SOURCE.run(connection, account_id=file.account_id, claim_id=file.claim_id).fetchone()
    return None if row is None else row[0]


def _find_file(
    connection: Connection, account_id: str, account: str, claim_id: str
) -> FileRow | None:
    row: Sequence[Any] | None = FILE.run(
        connection, account_id=account_id, claim_id=claim_id
    ).fetchone()
    if row is None:
        return None
    items = None if row[-1] is None else parse_items(row[-1])
    values = (account, *row[:2], FileOutcome(row[2]), *row[3:-1], items, account_id)
    return FileRow(*values)


class FileTally(NamedTuple):
    """How many files have this outcome for this reason; done files have none."""

    outcome: FileOutcome
    reason: str | None
    files: int


# Without a condition the engine counts the table's pages, without looking into rows.
ALL_FILES = select(func.count()).select_from(imported_files)
FILES_NOT_DONE = (
    select(imported_files.c.outcome, imported_files.c.reason, func.count())
    .where(NOT_DONE)
    .group_by(imported_files.c.outcome, imported_files.c.reason)
)
"""From the index of what is not done alone."""


def tally_files(store: Store, *, account_id: str | None = None) -> list[FileTally]:
    """The files in the ledger by outcome and reason; done files are told even if there are none.

    Takes time that grows with the ledger (docs/operations.md, Metrics).
    """
    with store.read() as connection:
        tallies = _not_done(connection, account_id)
        count = ALL_FILES
        if account_id is not None:
            count = count.where(imported_files.c.account_id == account_id)
        all_count = connection.execute(count).scalar_one()
    # Two statements: a file may have been recorded between them.
    done_count = max(0, all_count - sum(tally.files for tally in tallies))
    return [FileTally(FileOutcome.DONE, None, done_count), *tallies]


def tally_not_done(store: Store, *, account_id: str | None = None) -> list[FileTally]:
    """The same without the done files: takes time that grows with the others alone."""
    with store.read() as connection:
        return _not_done(connection, account_id)


def _not_done(connection: Connection, account_id: str | None) -> list[FileTally]:
    statement = FILES_NOT_DONE
    if account_id is not None:
        statement = statement.where(imported_files.c.account_id == account_id)
    return [
        FileTally(FileOutcome(outcome), reason, files)
        for outcome, reason, files in connection.execute(statement).all()
    ]


ORDER = (FileOutcome.FAILED, FileOutcome.HELD, FileOutcome.DUPLICATE, FileOutcome.DONE)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the order: after the file of this claim, among those of its outcome."""

    outcome: FileOutcome
    claim_id: str

    def __str__(self) -> str:
        return f"{self.outcome}:{self.claim_id}"


@dataclass(frozen=True, slots=True)
class FilePage:
    """Files in order. `next` is where to go on; None when nothing follows."""

    files: Sequence[FileRow]
    next: Place | None


def place_of(file: FileRow) -> Place:
    """Where the file stands, as long as it has this outcome."""
    return Place(file.outcome, file.claim_id)


def parse_place(text: str) -> Place:
    """The place that `str` wrote: `failed:000660cd7eecf8906663e3fc`. Raises InvalidArgument."""
    outcome, _, claim_id = text.partition(":")
    if outcome not in set(FileOutcome) or not RESUME_ID.fullmatch(claim_id):
        raise InvalidArgument(
            f'Invalid place "{text[:80]}": use what the list ended with, an outcome and the id '
            "of a file with a colon between them"
        )
    return Place(FileOutcome(outcome), claim_id)


def list_by_outcome(
    store: Store,
    *,
    account_id: str | None = None,
    outcome: FileOutcome | None = None,
    reason: str | None = None,
    after: Place | None = None,
    limit: int = 100,
) -> FilePage:
    """Failed files, then held ones, duplicates, done ones; the newest of each first.

    Of one account or all, of one outcome or any; 1 to 1,000 of them. A file whose outcome changes
    between two pages may be on both or on neither.
    """
    size = max(1, min(limit, MOST_FILES))
    ids: list[tuple[str, str]] = []
    with store.read() as connection:
        owners = find_owners(connection, account_id)
        for one in _outcomes_after(outcome, reason, after):
            starts_within = after is not None and after.outcome is one
            ids += find_newest(
                connection,
                [(owner, one) for owner in owners],
                reason=reason,
                before=after.claim_id if after is not None and starts_within else LAST,
                limit=size + 1 - len(ids),
            )
            if len(ids) > size:
                break
        files = find_files(connection, owners, ids[:size])
    return FilePage(files, place_of(files[-1]) if files and len(ids) > size else None)


def _outcomes_after(
    outcome: FileOutcome | None, reason: str | None, after: Place | None
) -> Sequence[FileOutcome]:
    """Those that are asked for and not passed yet, in order."""
    left = ORDER if after is None else ORDER[ORDER.index(after.outcome) :]
    known = left if reason is None else [one for one in left if one in HAVE_REASONS]
    return [one for one in known if outcome in (None, one)]


# A claim is mostly made just before its resumes are, and its id begins with its time: looked
# for backwards from the resume's own, it is soon found without an index that imports pay for.
CLAIM_OF_RESUME = Prepared(
    select(imported_items.c.claim_id)
    .where(
        imported_items.c.account_id == bindparam("account_id"),
        imported_items.c.claim_id <= bindparam("before"),
        imported_items.c.resume_id == bindparam("resume_id"),
        imported_items.c.outcome == bindparam("outcome"),
    )
    .order_by(imported_items.c.claim_id.desc())
    .limit(1)
)


def find_claim(store: Store, account_id: str, resume_id: str) -> str | None:
    """The claim of the file that became this resume; None for one that came another way.

    Takes time that grows with the imports before it when there is none.
    """
    with store.read() as connection:
        row = CLAIM_OF_RESUME.run(
            connection,
            account_id=account_id,
            resume_id=resume_id,
            before=resume_id[:POSITION_DIGITS] + LAST,
            outcome=FileOutcome.DONE.value,
        ).fetchone()
    return None if row is None else str(row[0])
