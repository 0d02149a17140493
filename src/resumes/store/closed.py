"""A store that is being moved, or has been: it records where to, and refuses writes.

What is written to a store after it was copied stays behind (pitfalls S13). So a copy closes its
source by a fact in `store_facts`, and every write looks there inside its transaction: on SQLite,
where writers exclude one another, first of all; on PostgreSQL last, because whoever wrote before the
store was closed holds a lock by then, and the copy waits for those.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, select, text

from resumes.errors import Conflict, StoreUnavailable
from resumes.store.locks import retry
from resumes.store.schema import metadata, store_facts
from resumes.store.statements import Prepared, replacing
from resumes.store.store import Store
from resumes.store.write_queue import Write

WRITERS_TIMEOUT_S: Final = 30.0
"""How long a copy waits for those who began to write before the store was closed."""

RETRY_DELAYS_S: Final = (0.1,)

FACTS: Final = Prepared(select(store_facts.c.name, store_facts.c.value))
SET_FACT: Final = replacing(store_facts)
MOVING_TO: Final = Prepared(
    select(store_facts.c.value).where(store_facts.c.name == "moving_to", store_facts.c.value != "")
)


class Facts(NamedTuple):
    """A store's facts about itself; missing ones are empty.

    `moving_to`: where it is being copied, or was; `copy_id`: random, which copy closed it;
    `store_id`: by which watched folders know their store (docs/decisions/0013).
    """

    moving_to: str
    copy_id: str
    store_id: str


def read_facts(connection: Connection) -> Facts:
    """Return the store's facts as they are now."""
    facts: dict[str, str] = dict(FACTS.run(connection).fetchall())
    return Facts(*(facts.get(name, "") for name in Facts._fields))


def set_facts(connection: Connection, **facts: str) -> None:
    """Set these facts of the store, in the caller's transaction."""
    for name, value in facts.items():
        SET_FACT.run(connection, name=name, value=value)


def refuse_if_closed(connection: Connection, batch: Sequence[Write]) -> None:
    """Raise StoreUnavailable if the store is closed, inside the transaction of these writes."""
    found = MOVING_TO.run(connection).fetchone()
    if found is not None and not all(write.ignores_closed for write in batch):
        raise StoreUnavailable(
            f"The store is being moved to {found[0]}, or has been moved; nothing was done. Use that one, "
            "or make this one writable again with `resumes db reopen`"
        )


def close_store(store: Store, target: str, copy_id: str) -> None:
    """Refuse all writes from now on, and wait for those that have begun.

    A store that an earlier copy to the same target closed belongs to this copy then. Raises Conflict
    for one that is being moved elsewhere, and StoreUnavailable when somebody continues writing.
    """

    def close(connection: Connection) -> None:
        moving_to = read_facts(connection).moving_to
        if moving_to not in ("", target):
            raise Conflict(
                f"{store.label} is being moved to {moving_to}. Copy it there, or make it writable again "
                "with `resumes db reopen` first"
            )
        set_facts(connection, moving_to=target, copy_id=copy_id)

    store.write(close, ignores_closed=True)
    retry(
        lambda: store.write(_wait_for_writers, ignores_closed=True),
        timeout_s=WRITERS_TIMEOUT_S,
        delays_s=RETRY_DELAYS_S,
        is_retryable=lambda error: isinstance(error, StoreUnavailable),
    )


def _wait_for_writers(connection: Connection) -> None:
    # Whoever wrote to a table before the store was closed holds a lock on it until the end; whoever
    # begins to write after this lock sees that it is closed. On SQLite closing has waited for all.
    if connection.dialect.name == "postgresql":
        names = ", ".join(table.name for table in metadata.sorted_tables)
        connection.execute(text(f"LOCK TABLE {names} IN SHARE MODE"))


def check_closed(store: Store, copy_id: str) -> None:
    """Raise Conflict unless the store has been closed ever since this copy closed it."""
    with store.read() as connection:
        if read_facts(connection).copy_id != copy_id:
            raise Conflict(
                "The store was reopened during the copy: what was added since is not in the copy"
            )


def reopen(store: Store, copy_id: str | None = None) -> str | None:
    """Let the store take writes again; with `copy_id`, only if that copy closed it.

    Return where it was being moved to, or None if nothing was done.
    """

    def change(connection: Connection) -> str | None:
        facts = read_facts(connection)
        if not facts.moving_to or copy_id not in (None, facts.copy_id):
            return None
        set_facts(connection, moving_to="", copy_id="")
        return facts.moving_to

    return store.write(change, ignores_closed=True)
