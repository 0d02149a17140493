"""What was done before: claims' items and contents that are stored, looked up for a batch at once.

One look-up for 64 files in place of 64: each statement costs more to begin than to run.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, select

from resumes.store.schema import imported_digests, imported_items
from resumes.store.statements import Prepared, blob

WIDTH = 64
_NAMES = tuple(f"v{number}" for number in range(WIDTH))


def _any_of(column: ColumnElement[Any]) -> ColumnElement[bool]:
    return column.in_([bindparam(name) for name in _NAMES])


ITEMS_OF_CLAIMS = Prepared(
    select(
        imported_items.c.claim_id,
        imported_items.c.item,
        imported_items.c.outcome,
        imported_items.c.resume_id,
    ).where(
        imported_items.c.account_id == bindparam("account_id"),
        _any_of(imported_items.c.claim_id),
    )
)
RESUMES_OF_DIGESTS = Prepared(
    select(imported_digests.c.digest, imported_digests.c.resume_id).where(
        imported_digests.c.account_id == bindparam("account_id"),
        _any_of(imported_digests.c.digest),
    )
)


def find_items(
    connection: Connection, account_id: str, claim_ids: Iterable[str]
) -> dict[str, dict[int, tuple[str, str]]]:
    """By claim, the items that reached their end, by number: outcome and resume id."""
    found: dict[str, dict[int, tuple[str, str]]] = {}
    for values in _chunks(claim_ids):
        rows = ITEMS_OF_CLAIMS.run(connection, account_id=account_id, **values).fetchall()
        for claim_id, item, outcome, resume_id in rows:
            found.setdefault(claim_id, {})[item] = (outcome, resume_id)
    return found


def find_digests(
    connection: Connection, account_id: str, digests: Iterable[bytes]
) -> dict[bytes, str]:
    """By digest, the ids of the stored resumes that were imported from these contents."""
    found: dict[bytes, str] = {}
    for values in _chunks(map(blob, digests)):
        rows: Sequence[tuple[bytes, str]] = RESUMES_OF_DIGESTS.run(
            connection, account_id=account_id, **values
        ).fetchall()
        found.update(rows)
    return found


def _chunks(values: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """The values, 64 at a time, as parameters; the last one is repeated to fill up."""
    rest = iter(values)
    while chunk := list(islice(rest, WIDTH)):
        chunk += [chunk[-1]] * (WIDTH - len(chunk))
        yield dict(zip(_NAMES, chunk, strict=True))
