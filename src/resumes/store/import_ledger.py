"""The ledger: the outcome of each file that an importer processed, and of the resumes in it.

A row for each file, recorded with its resumes or without; `import_history` lists and counts them.

It answers two questions (pitfalls I1). "Was this claim's item imported?" is asked by recovery and
release, and its answer is never deleted: it is in the file's row, and for bundles in a table of
items. "Is this content stored?" is asked for new files, and its answer is deleted with the resume.
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
from resumes.store.schema import (
    Account,
    imported_files,
    imported_items,
    replaced_resumes,
    resumes,
)
from resumes.store.statements import Prepared, pk_equals, replace_on_conflict, upsert
from resumes.store.store import WRITE_DEADLINE_S, Store
from resumes.watched_names import find_filed_extension

MAX_LEDGER_CHARS: Final = 65_536
"""The maximum length of a name, folder, message or path in the ledger. Each byte of a path of 4,096
bytes may have been escaped as four characters, and a message may contain such a path."""

MAX_ITEMS_CHARS: Final = 4 * 1024 * 1024
"""The maximum length of the JSON text of a file's items; 50 problems need less."""

SOURCE_BYTES = 64 * 1024
"""The number of bytes that the ledger keeps of a file that was not imported."""

MAX_SOURCE_BYTES: Final = 64 * 1024 * 1024
"""The same for a held file that was analyzed: the largest resume that the settings allow."""


class FileOutcome(StrEnum):
    """The outcome of a claimed file."""

    HELD = "held"
    FAILED = "failed"
    DUPLICATE = "duplicate"
    DONE = "done"


WORST_FIRST: Final = (
    FileOutcome.HELD,
    FileOutcome.FAILED,
    FileOutcome.DONE,
    FileOutcome.DUPLICATE,
)
"""A bundle has the first of these outcomes that one of its items has."""


class ClaimedFile(NamedTuple):
    """A file that an importer processes. `name` is its path below the watched folder, escaped."""

    claim_id: str
    name: str
    size_bytes: int
    claimed_at: str
    source: bytes
    """The file's first 64 KiB, as it was read, or all that the analyzer wrote; kept unless the file is
    done."""

    root: str | None = None
    """The watched folder, absolute and escaped."""

    items: str | None = None
    """The JSON text of `Items`, for a bundle, an analyzed file, and one that is done with warnings."""


class Verdict(NamedTuple):
    """A file's outcome and its reason, an error code. `path` and `byte_offset` are None if unknown."""

    outcome: FileOutcome
    reason: str | None = None
    message: str | None = None
    path: str | None = None
    byte_offset: int | None = None


IN_PROGRESS = Verdict(FileOutcome.FAILED, Reason.INTERNAL_ERROR.value, "It is being imported")
"""The verdict on a bundle while its resumes are being imported."""


@dataclass(frozen=True, slots=True)
class Item:
    """An imported item of a claim: `done` or `duplicate`, and its resume.

    `item` is its number in the bundle, from 1; 0 for the only resume of a file.
    """

    item: int
    outcome: FileOutcome
    resume_id: str
    is_deleted: bool = False
    """Whether the resume has been deleted since."""


def nameless(name: str) -> str:
    """Return another name for a file in the same account's folder, without that of a person."""
    return f"{name.partition('/')[0]}/{Reason.FORGOTTEN.value}{find_filed_extension(name) or ''}"


# Recording

# Each value costs time to bind, and most columns of a done file would be NULL.
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
    """Return the ledger row of a file, by column. Done files keep no source, and only held files more than
    64 KiB: what the analyzer wrote, so that it does not run again."""
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
    """Add the rows of files, if any, or replace those of the same claims."""
    if rows:
        # A file's `resume_id` is never overwritten by NULL, even if a later verdict has none.
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
    """Record the outcome of a file without resumes, replacing an earlier one of the same claim.

    Do nothing if the account does not exist.
    """
    now = timestamp(store.clock())

    def change(session: Session) -> None:
        if session.get(Account, account_id) is not None:
            row = file_values(account_id, claim, verdict, now=now)
            add_files(session.connection(), [row])

    store.write(change, deadline_s=deadline_s)


# Bundles

MAX_PROBLEMS = 50
"""The maximum number of a bundle's problems that are stored."""

Count = Annotated[int, Field(ge=0, lt=2**63)]
STRICT: Final = ConfigDict(strict=True, alias_generator=to_camel, defer_build=True)


@dataclass(frozen=True, slots=True)
class Problem:
    """A resume that is not done: its number in the bundle, and `place`, its position for people.

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
    """How the user's analyzer read a file: the digest of the file, in hexadecimal, for how many seconds the
    analyzer ran, and the end of what it said on standard error."""

    __pydantic_config__: ClassVar = STRICT
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    took_s: Annotated[float, Field(ge=0, lt=1e9)]
    said: Annotated[str, Field(max_length=MAX_LEDGER_CHARS)] = ""

    def as_json(self) -> dict[str, Any]:
        """Return it in the form that reports and `--json` have."""
        return {"digest": self.digest, "tookS": self.took_s, "said": self.said}


@dataclass(frozen=True, slots=True)
class Items:
    """How many resumes a bundle has, the number of each outcome, and at most 50 problems, in order.

    All are 0 for a file of one resume, except `warnings`. 1.0.0 wrote no `warnings`, `skipped` and
    `analysis`, and ignores them.
    """

    __pydantic_config__: ClassVar = STRICT
    total: Count
    done: Count
    duplicate: Count
    held: Count
    failed: Count
    problems: Annotated[tuple[Problem, ...], Field(max_length=MAX_PROBLEMS)] = ()
    warnings: Count = 0
    """The number of warnings about all resumes together."""
    skipped: Count = 0
    """The number of archive members that were not imported because of their names."""
    analysis: Analysis | None = None
    """How the file was analyzed; None for JSON."""

    def as_json(self) -> dict[str, Any]:
        """Return the counts and problems as the ledger stores them."""
        fields: dict[str, Any] = ITEMS.dump_python(self, mode="json", by_alias=True)
        if self.analysis is None:
            del fields["analysis"]
        return fields | {"problems": fields["problems"][:MAX_PROBLEMS]}


ITEMS: Final = TypeAdapter(Items)


def parse_items(text: str) -> Items:
    """Parse the JSON text of what `as_json` returned. Raises ValueError for anything else."""
    try:
        return ITEMS.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}") from None


def find_analysis(items: str | None) -> str | None:
    """Return what the JSON text of `Items` says of the analysis alone, in that form; None if nothing."""
    analysis = None if items is None else parse_items(items).analysis
    if analysis is None:
        return None
    return json.dumps(Items(0, 0, 0, 0, 0, analysis=analysis).as_json())


# Imported items


def find_items(
    store: Store, account_id: str, claim_id: str, *, limit: int | None = None
) -> list[Item]:
    """Return the first items of a claim that were imported, by number."""
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
    # A file with another outcome by now was done before.
    outcomes = {FileOutcome.DUPLICATE.value: FileOutcome.DUPLICATE}
    return [
        Item(row.item, outcomes.get(row.outcome, FileOutcome.DONE), row.resume_id, row.is_deleted)
        for row in store.fetch(union_all(*parts).order_by("item").limit(limit))
    ]


def list_replaced(store: Store, account_id: str, claim_id: str) -> tuple[str, ...]:
    """Return the ids of the older versions that the resumes of a claim replaced."""
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
    """Forget which items of a claim were imported, as its file was edited. The digests stay known."""
    statement = delete(imported_items).where(
        imported_items.c.account_id == account_id, imported_items.c.claim_id == claim_id
    )
    store.write(lambda session: session.exec(statement))


def find_claim(store: Store, account_id: str, resume_id: str) -> str | None:
    """Return the claim of the file that the resume was imported from; None if it was not imported.

    1.0 did not keep it with the resume. For such a resume, and for one that was not imported, this takes
    time that grows with the number of earlier imports.
    """
    kept = select(resumes.c.claim_id).where(pk_equals(resumes, account_id, resume_id))
    if (claim_id := next(iter(store.fetch(kept)), None)) is not None:
        return str(claim_id)
    # A claim is mostly made just before its resume, and its id begins with its time: a search
    # backwards from the resume's own id finds it early, without an index that slows imports down.
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
