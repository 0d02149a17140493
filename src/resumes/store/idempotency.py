"""Idempotency-Keys in the store: which resume each made, for as long as that is told.

A key's row is written in its resume's transaction (resumes.store.creation). Reading passes over
rows that are too old, whether they are removed yet or not; `prune_async` removes them, outside of
anybody's request, so that no create pays for it.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, select

from resumes.clock import later
from resumes.store.schema import idempotency
from resumes.store.statements import Prepared, at_most, replacing
from resumes.store.store import Store

KEPT = timedelta(hours=24)
"""How long a key is answered with what it made."""

SLICE_KEYS = 200
"""Rows that go at once, so that others get their turn."""

# A row that is too old to be found makes way.
ADD_KEY = replacing(idempotency)
FIND_KEY = Prepared(
    select(idempotency.c.body_sha256, idempotency.c.resume_id).where(
        idempotency.c.account_id == bindparam("account_id"),
        idempotency.c.key == bindparam("key"),
        idempotency.c.created_at > bindparam("since"),
    )
)
_TOO_OLD = idempotency.c.created_at <= bindparam("since")
_OLDEST = Prepared(
    select(idempotency.c.account_id, idempotency.c.key)
    .where(_TOO_OLD)
    .order_by(idempotency.c.created_at)
    .limit(at_most("rows"))
)
# A key that was used anew since it was found stays.
_PRUNE = Prepared(
    delete(idempotency).where(
        idempotency.c.account_id == bindparam("account_id"),
        idempotency.c.key == bindparam("key"),
        _TOO_OLD,
    )
)


def kept_since(now_us: int) -> str:
    """The instant after which a key must have been used for the first time to count now."""
    return later(now_us, -KEPT)


class _Old(NamedTuple):
    """Keys of one account that count no more."""

    account_id: str
    keys: Sequence[str]
    since: str


async def prune_async(store: Store) -> int:
    """Keys that count no more are gone; the number. Others write in between.

    Nothing is written when there are none. Raises what `Store.write_async` raises.
    """
    since = kept_since(store.clock())
    pruned = 0
    while some := await _find_old_async(store, since):
        pruned += sum(
            await asyncio.gather(*(store.write_batched_async(_prune, one) for one in some))
        )
    return pruned


async def _find_old_async(store: Store, since: str) -> list[_Old]:
    if store.is_remote:
        return await asyncio.to_thread(_find_old, store, since)
    return _find_old(store, since)


def _find_old(store: Store, since: str) -> list[_Old]:
    """The oldest of the keys, by account."""
    keys: dict[str, list[str]] = {}
    with store.read() as connection:
        for account_id, key in _OLDEST.run(connection, since=since, rows=SLICE_KEYS).fetchall():
            keys.setdefault(account_id, []).append(key)
    return [_Old(account_id, some, since) for account_id, some in keys.items()]


def _prune(connection: Connection, requests: Sequence[_Old]) -> list[int]:
    return [sum(_prune_one(connection, one, key) for key in one.keys) for one in requests]


def _prune_one(connection: Connection, old: _Old, key: str) -> int:
    pruned = _PRUNE.run(connection, account_id=old.account_id, key=key, since=old.since)
    return int(pruned.rowcount)
