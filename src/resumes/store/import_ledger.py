"""The ledger: the outcome of each file that an importer processed, and of the resumes in it.

It has one row per file, which may be recorded in the same transaction as the file's resumes.
`import_history` lists and counts the files.

The ledger answers two questions (pitfalls I1). Recovery and release ask: "Was this claim's item
imported?" The answer is in the file's row, or in a table of items for bundles, and is never
deleted. For new files, the importer asks: "Is this content stored?" This answer is deleted with the
resume.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, NamedTuple

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from sqlalchemy import Connection, Integer, bindparam, delete, exists, literal_column, union_all
from sqlmodel import Session, select

from resumes.clock import timestamp
from resumes.import_reasons import Reason
from resumes.store.identifiers import MAX_ID, POSITION_DIGITS
from resumes.store.schema import Account, imported_files, imported_items, replaced_resumes, resumes
from resumes.store.statements import Prepared, pk_equals, replace_on_conflict, upsert
from resumes.store.store import WRITE_DEADLINE_S, Store
from resumes.watched_names import find_filed_extension

MAX_LEDGER_CHARS: Final = 65_536
"""The maximum length of a name, folder, message or path in the ledger. A path of 4,096 bytes may
become four times longer when it is escaped, and a message may contain such a path."""

MAX_ITEMS_CHARS: Final = 4 * 1024 * 1024
"""The maximum length of the JSON text of a file's items, which is enough for 50 problems."""

SOURCE_BYTES = 64 * 1024
"""How many bytes of a file that was not imported the ledger keeps."""

MAX_SOURCE_BYTES: Final = 64 * 1024 * 1024
"""How many bytes the ledger keeps of an analyzed file that is held: the largest allowed resume."""


class FileOutcome(StrEnum):
    """The outcome of a claimed file."""

    HELD = "held"
    FAILED = "failed"
    DUPLICATE = "duplicate"
    DONE = "done"


WORST_FIRST: Final = (FileOutcome.HELD, FileOutcome.FAILED, FileOutcome.DONE, FileOutcome.DUPLICATE)
"""The outcomes in order of precedence: a bundle has the first of them that any of its items has."""


class ClaimedFile(NamedTuple):
    """A file that an importer is processing. `name` is its path in the watched folder, escaped."""

    claim_id: str
    name: str
    size_bytes: int
    claimed_at: str
    source: bytes
    """The first 64 KiB of the file, or the analyzer's entire output. Kept unless the file is
    done."""

    root: str | None = None
    """The absolute path of the watched folder, escaped."""

    items: str | None = None
    """The JSON text of `Items` for a bundle, an analyzed file, or a done file with warnings."""


class Verdict(NamedTuple):
    """A file's outcome, its reason (an error code), and the error's location, if known."""

    outcome: FileOutcome
    reason: str | None = None
    message: str | None = None
    path: str | None = None
    byte_offset: int | None = None


IN_PROGRESS = Verdict(FileOutcome.FAILED, Reason.INTERNAL_ERROR.value, "It is being imported")
"""The verdict on a bundle while its resumes are being imported."""


@dataclass(frozen=True, slots=True)
class Item:
    """An imported item of a claim, whose outcome is `done` or `duplicate`, and its resume.

    `item` is its number in the bundle, from 1, or 0 if the file is not a bundle.
    """

    item: int
    outcome: FileOutcome
    resume_id: str
    is_deleted: bool = False
    """Whether the resume has been deleted since the import."""


def nameless(name: str) -> str:
    """Return a file name in the same account's folder that does not contain a person's name."""
    return f"{name.partition('/')[0]}/{Reason.FORGOTTEN.value}{find_filed_extension(name) or ''}"


# Recording

# Binding each value costs time, so the columns that are NULL for done files are left out.
DONE_COLUMNS = (
    "account_id", "claim_id", "name", "outcome", "size_bytes", "claimed_at", "finished_at",
    "resume_id", "root",
)  # fmt: skip
_DONE: dict[str, Any] = {name: bindparam(name) for name in DONE_COLUMNS}
ADD_DONE_FILE = Prepared(
    lambda dialect: replace_on_conflict(
        upsert(imported_files, dialect).values(_DONE), imported_files
    )
)


def done_row(
    account_id: str, claim: ClaimedFile, resume_id: str | None, *, now: str
) -> tuple[object, ...]:
    """Return the row of a file that is done, in the order of DONE_COLUMNS."""
    return (
        account_id, claim.claim_id, claim.name, FileOutcome.DONE.value, claim.size_bytes,
        claim.claimed_at, now, resume_id, claim.root,
    )  # fmt: skip


def file_values(
    account_id: str, claim: ClaimedFile, verdict: Verdict, *, now: str, resume_id: str | None = None
) -> dict[str, object]:
    """Return the ledger row of a file by column.

    The ledger keeps no source of done files. Of held files, it keeps the analyzer's entire output,
    so that the analyzer need not run again; of all others, it keeps at most 64 KiB.
    """
    most_bytes = MAX_SOURCE_BYTES if verdict.outcome is FileOutcome.HELD else SOURCE_BYTES
    return {
        "account_id": account_id,
        **claim._asdict(),
        **verdict._asdict(),
        "outcome": verdict.outcome.value,
        "finished_at": now,
        "resume_id": resume_id,
        "source": None if verdict.outcome is FileOutcome.DONE else claim.source[:most_bytes],
    }


def add_files(connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
    """Add the rows of files, if there are any; they replace rows with the same claims."""
    if rows:
        # NULL never overwrites a file's `resume_id`, even if a later verdict has no resume.
        new = upsert(imported_files, connection.dialect)
        connection.execute(replace_on_conflict(new, imported_files, keeps=("resume_id",)), rows)


def record(
    store: Store,
    account_id: str,
    claim: ClaimedFile,
    verdict: Verdict,
    *,
    deadline_s: float = WRITE_DEADLINE_S,
) -> None:
    """Record the outcome of a file without resumes; it replaces the claim's earlier outcome.

    Do nothing if the account does not exist.
    """
    now = timestamp(store.clock())

    def change(session: Session) -> None:
        if session.get(Account, account_id) is not None:
            row = file_values(account_id, claim, verdict, now=now)
            add_files(session.connection(), [row])

    store.write(change, account_id=account_id, deadline_s=deadline_s)


# Bundles

MAX_PROBLEMS = 50
"""The maximum number of problems that are stored for a bundle."""

Count = Annotated[int, Field(ge=0, lt=2**63)]
STRICT: Final = ConfigDict(strict=True, alias_generator=to_camel, defer_build=True)


@dataclass(frozen=True, slots=True)
class Problem:
    """A resume in a bundle that is not done. `place` is its position, as messages show it.

    `path` and `byte_offset` are None if unknown.
    """

    __pydantic_config__: ClassVar = STRICT
    item: Count
    place: str
    outcome: Annotated[str, Field(pattern="^(held|failed|duplicate)$")]
    reason: str | None = None
    message: str | None = None
    path: str | None = None
    byte_offset: Count | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """How the user's analyzer read a file: the file's digest in hexadecimal, the analyzer's running
    time in seconds, and the end of its standard error output."""

    __pydantic_config__: ClassVar = STRICT
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    took_s: Annotated[float, Field(ge=0, lt=1e9)]
    said: Annotated[str, Field(max_length=MAX_LEDGER_CHARS)] = ""

    def as_json(self) -> dict[str, Any]:
        """Return the analysis in the form that reports and `--json` use."""
        return {"digest": self.digest, "tookS": self.took_s, "said": self.said}


@dataclass(frozen=True, slots=True)
class Items:
    """The number of resumes in a bundle, in total and by outcome, and at most 50 problems in order.

    For a file that is not a bundle, all numbers except `warnings` are 0. Version 1.0.0 does not
    write `warnings`, `skipped` and `analysis`, and ignores them.
    """

    __pydantic_config__: ClassVar = STRICT
    total: Count
    done: Count
    duplicate: Count
    held: Count
    failed: Count
    problems: Annotated[tuple[Problem, ...], Field(max_length=MAX_PROBLEMS)] = ()
    warnings: Count = 0
    """The total number of warnings about all resumes."""
    skipped: Count = 0
    """The number of archive members that were not imported because of their names."""
    analysis: Analysis | None = None
    """How the file was analyzed, or None for JSON."""

    @property
    def counts(self) -> str:
        """Return the numbers in words: `1,000: 990 done, 10 failed`."""
        outcomes = ("done", "duplicate", "held", "failed")
        parts = [f"{count:,} {end}" for end in outcomes if (count := getattr(self, end))]
        return f"{self.total:,}: {', '.join(parts)}" if parts else f"{self.total:,}"

    def as_json(self) -> dict[str, Any]:
        """Return the counts and problems as the ledger stores them."""
        fields: dict[str, Any] = ITEMS.dump_python(self, mode="json", by_alias=True)
        if self.analysis is None:
            del fields["analysis"]
        return fields | {"problems": fields["problems"][:MAX_PROBLEMS]}


ITEMS: Final = TypeAdapter(Items)


def parse_items(text: str) -> Items:
    """Parse the JSON text of a result of `as_json`. Raises ValueError for all other texts."""
    try:
        return ITEMS.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}") from None


def find_analysis(items: str | None) -> str | None:
    """Return a JSON text of `Items` with only the analysis in `items`, or None if it has none."""
    analysis = None if items is None else parse_items(items).analysis
    if analysis is None:
        return None
    return json.dumps(Items(0, 0, 0, 0, 0, analysis=analysis).as_json())


# Imported items


def find_items(
    store: Store, account_id: str, claim_id: str, *, limit: int | None = None
) -> list[Item]:
    """Return at most `limit` imported items of a claim, in the order of their numbers."""
    parts = (
        select(
            number.label("item"),
            table.c.outcome,
            table.c.resume_id,
            ~exists().where(pk_equals(resumes, account_id, table.c.resume_id)).label("is_deleted"),
        ).where(
            table.c.account_id == account_id,
            table.c.claim_id == claim_id,
            table.c.resume_id.is_not(None),
        )
        for table, number in (
            (imported_files, literal_column("0", Integer)),
            (imported_items, imported_items.c.item),
        )
    )
    # If a file has a resume and another outcome, it was done before the outcome changed.
    outcomes = {FileOutcome.DUPLICATE.value: FileOutcome.DUPLICATE}
    return [
        Item(row.item, outcomes.get(row.outcome, FileOutcome.DONE), row.resume_id, row.is_deleted)
        for row in store.fetch(union_all(*parts).order_by("item").limit(limit))
    ]


def list_replaced(store: Store, account_id: str, claim_id: str) -> tuple[str, ...]:
    """Return the IDs of the older versions that the resumes of a claim replaced."""
    made = union_all(
        *(
            select(table.c.resume_id).where(
                table.c.account_id == account_id,
                table.c.claim_id == claim_id,
                table.c.outcome == FileOutcome.DONE.value,
            )
            for table in (imported_files, imported_items)
        )
    )
    statement = select(replaced_resumes.c.replaced_id).where(
        replaced_resumes.c.account_id == account_id, replaced_resumes.c.resume_id.in_(made)
    )
    return tuple(store.fetch(statement.order_by(replaced_resumes.c.replaced_id)))


def forget_items(store: Store, account_id: str, claim_id: str) -> None:
    """Forget which items of a claim were imported, since its file was edited; keep the digests."""
    statement = delete(imported_items).where(
        imported_items.c.account_id == account_id, imported_items.c.claim_id == claim_id
    )
    store.write(lambda session: session.exec(statement), account_id=account_id)


def find_claim(store: Store, account_id: str, resume_id: str) -> str | None:
    """Return the claim of the file that the resume was imported from, if it was imported.

    Version 1.0 did not store the claim with the resume. For a resume without a stored claim, the
    time that this takes grows with the number of earlier imports.
    """
    kept = select(resumes.c.claim_id).where(pk_equals(resumes, account_id, resume_id))
    if (claim_id := next(iter(store.fetch(kept)), None)) is not None:
        return str(claim_id)
    # A claim is usually created just before its resume, and its ID begins with its time. So a
    # search backwards from the resume's ID finds it early, without an index that would slow down
    # imports.
    for table in (imported_files, imported_items):
        statement = (
            select(table.c.claim_id)
            .where(
                table.c.account_id == account_id,
                table.c.claim_id <= resume_id[:POSITION_DIGITS] + MAX_ID,
                table.c.resume_id == resume_id,
                table.c.outcome == FileOutcome.DONE.value,
            )
            .order_by(table.c.claim_id.desc())
            .limit(1)
        )
        for claim_id in store.fetch(statement):
            return str(claim_id)
    return None
