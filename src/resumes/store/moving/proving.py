"""Proving that two stores hold the same: for each table a count, and a digest of all rows in order."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from resumes.errors import Conflict
from resumes.store.moving.tables import READERS, TABLES, Reader, Row, Told

TELL_ROWS: Final = 1_000
"""After so many rows it is said how many there were."""


@dataclass(frozen=True, slots=True)
class TableDigest:
    """What a table holds. `sha256` is hexadecimal, over all rows in the order of their keys."""

    name: str
    rows: int
    sha256: str


def digest_tables(connection: Connection, told: Told) -> list[TableDigest]:
    """What each table holds, documents included; two stores that hold the same give the same."""
    return [_digest(connection, READERS[table.name], told) for table in TABLES]


def _digest(connection: Connection, reader: Reader, told: Told) -> TableDigest:
    digest = hashlib.sha256()
    count = untold = 0
    for row in reader.iter_rows(connection):
        digest.update(encode(row))
        count += 1
        untold += 1
        if untold == TELL_ROWS:
            told(reader.table.name, untold)
            untold = 0
    told(reader.table.name, untold)
    return TableDigest(reader.table.name, count, digest.hexdigest())


def encode(row: Row) -> bytes:
    """The row as bytes that no other row has: its values with their kinds, ended by NUL, which
    stands in none of them."""
    return "\0".join(map(_encode, row)).encode("utf-8", "surrogatepass") + b"\0\n"


def _encode(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return "=" + value
    if isinstance(value, int):
        return f"#{value:d}"  # a boolean is 0 or 1 where an engine has none
    return "x" + bytes(value).hex()


def check_same(ours: Sequence[TableDigest], theirs: Sequence[TableDigest], label: str) -> None:
    """Both hold the same. Raises Conflict, which names the first table that differs."""
    for one, other in zip(ours, theirs, strict=True):
        if one != other:
            raise Conflict(
                f'The copy differs in table "{one.name}": {one.rows:,} rows with digest '
                f"{one.sha256[:12]}, and {other.rows:,} with {other.sha256[:12]} in {label}. "
                "It must not be used; copy again"
            )
