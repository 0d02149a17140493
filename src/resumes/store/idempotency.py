"""Idempotency-Keys in the store: which resume each created, for 24 hours.

A key's row is written in its resume's transaction (resumes.store.creation). Reading skips rows that
are too old, even if they still exist; `prune_async` removes them, outside of any request, so that no
create waits for it.

If several machines use one PostgreSQL server, its clock decides: a machine whose own clock is a day
ahead would immediately remove the keys of the others.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy import bindparam, delete, literal
from sqlmodel import Session, col, select

from resumes.clock import later
from resumes.store.schema import BinaryText, Idempotency, idempotency
from resumes.store.statements import Prepared, by_engine, pk_equals, replace_on_conflict, upsert
from resumes.store.store import Store

KEPT = timedelta(hours=24)
"""How long a request with a repeated key gets the first answer."""

SLICE_KEYS = 200
"""How many rows one transaction deletes, so that others can write."""

_INSTANT = (
    "to_char((now() - interval '{} hours') AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
)
_HOURS = int(KEPT.total_seconds() / 3_600)
_used_at = by_engine(sqlite="{}", postgresql=_INSTANT.format(0))
_kept_since = by_engine(sqlite="{}", postgresql=_INSTANT.format(_HOURS))
_SINCE = _kept_since(bindparam("since", type_=BinaryText))

# Replaces a row that is too old to count.
_NEW: dict[str, Any] = {column.name: bindparam(column.name) for column in idempotency.columns} | {
    "created_at": _used_at(bindparam("created_at", type_=BinaryText))
}
ADD_KEY = Prepared(
    lambda dialect: replace_on_conflict(upsert(idempotency, dialect).values(_NEW), idempotency)
)
FIND_KEY = Prepared(
    select(idempotency.c.body_sha256, idempotency.c.resume_id).where(
        pk_equals(idempotency), idempotency.c.created_at > _SINCE
    )
)


def kept_since(now_us: int) -> str:
    """Return the oldest first use at which a key is still valid, for an engine without its own clock."""
    return later(now_us, -KEPT)


async def prune_async(store: Store) -> int:
    """Remove the keys that are too old, in more than one transaction, and return their number.

    Writes nothing if there are none. Raises what `Store.write` raises.
    """
    since = _kept_since(literal(kept_since(store.clock()), BinaryText))
    is_too_old = idempotency.c.created_at <= since
    oldest = (
        select(Idempotency.account_id, Idempotency.key)
        .where(is_too_old)
        .order_by(col(Idempotency.created_at))
        .limit(SLICE_KEYS)
    )

    def prune(account_id: str, keys: Sequence[str], session: Session) -> int:
        # Spares a key that was used again since it was found.
        these = idempotency.c.account_id == account_id, idempotency.c.key.in_(keys), is_too_old
        return session.exec(delete(idempotency).where(*these)).rowcount

    pruned = 0
    while rows := await store.fetch_async(oldest):
        old: dict[str, list[str]] = {}
        for account_id, key in rows:
            old.setdefault(account_id, []).append(key)
        writes = [
            store.write_async(partial(prune, account_id, keys), account_id=account_id)
            for account_id, keys in old.items()
        ]
        pruned += sum(await asyncio.gather(*writes))
    return pruned
