"""Idempotency-Keys in the store: which resume each made, for as long as that is told.

A key's row is written in its resume's transaction (resumes.store.creating). Reading passes over
rows that are too old, whether they are removed yet or not; `prune_soon` removes them, outside of
anybody's request, so that no create pays for it.
"""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import Connection, Integer, bindparam, delete, select, tuple_

from resumes.clock import later
from resumes.store.engine import Store
from resumes.store.schema import idempotency
from resumes.store.statements import Prepared, replacing

KEPT = timedelta(hours=24)
"""How long a key is answered with what it made."""

PRUNE_SLICE = 200
"""Rows that go in one transaction, so that others get their turn."""

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
_FIND_OLD = Prepared(select(idempotency.c.key).where(_TOO_OLD).limit(1))
_PRUNE = Prepared(
    delete(idempotency).where(
        tuple_(idempotency.c.account_id, idempotency.c.key).in_(
            select(idempotency.c.account_id, idempotency.c.key)
            .where(_TOO_OLD)
            .order_by(idempotency.c.created_at)
            .limit(bindparam("rows", type_=Integer) + 0)
        )
    )
)


def kept_since(now_us: int) -> str:
    """The instant after which a key must have been used for the first time to count now."""
    return later(now_us, -KEPT)


async def prune_soon(store: Store) -> int:
    """Keys that count no more are gone; the number. Others write in between.

    Nothing is written when there are none. Raises what `Store.write_soon` raises.
    """
    since = kept_since(store.clock())
    pruned = 0
    while _has_old(store, since):
        pruned += await store.write_soon(_prune, since)
    return pruned


def _has_old(store: Store, since: str) -> bool:
    with store.read() as connection:
        return _FIND_OLD.run(connection, since=since).fetchone() is not None


def _prune(connection: Connection, instants: Sequence[str]) -> list[int]:
    return [_PRUNE.run(connection, since=since, rows=PRUNE_SLICE).rowcount for since in instants]
