"""Idempotency-Keys: the store remembers for 24 hours which resume each key created.

A key is written in the transaction that creates its resume (resumes.store.creation). Keys that are
too old are ignored. `prune_async` deletes them separately, so that create requests need not wait
for it.

On PostgreSQL, the server's clock determines the age of keys: a machine whose own clock is a day
ahead would otherwise delete the keys of other machines immediately.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
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
"""How long requests with the same key get the first answer again."""

SLICE_KEYS = 200
"""How many rows one transaction deletes, so that others can write."""

_INSTANT = (
    "to_char((now() - interval '{} hours') AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
)
_HOURS = int(KEPT.total_seconds() / 3_600)
_used_at = by_engine(sqlite="{}", postgresql=_INSTANT.format(0))
_kept_since = by_engine(sqlite="{}", postgresql=_INSTANT.format(_HOURS))
_SINCE = _kept_since(bindparam("since", type_=BinaryText))

# Replaces an existing row, which is too old to be valid.
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
    """Return the time since which a key must have been used to be valid; PostgreSQL ignores it."""
    return later(now_us, -KEPT)


async def prune_async(store: Store) -> int:
    """Delete the keys that are too old, in several transactions, and return their number.

    If there are none, nothing is written. Raises the same errors as `Store.write`.
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
        # Checks the age again, to keep a key that was used again meanwhile.
        these = idempotency.c.account_id == account_id, idempotency.c.key.in_(keys), is_too_old
        return session.exec(delete(idempotency).where(*these)).rowcount

    pruned = 0
    find: Callable[[], Awaitable[Sequence[Any]]] = partial(store.fetch_async, oldest)
    if store.is_sharded:
        owner = idempotency.c.account_id
        find = partial(asyncio.to_thread, store.fetch_reachable, oldest, owner)
    while rows := await find():
        old: dict[str, list[str]] = {}
        for account_id, key in rows:
            old.setdefault(account_id, []).append(key)
        writes = [
            store.write_async(partial(prune, account_id, keys), account_id=account_id)
            for account_id, keys in old.items()
        ]
        pruned += sum(await asyncio.gather(*writes))
    return pruned
