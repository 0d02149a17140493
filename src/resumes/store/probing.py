"""Whether a store can be read and written at present, asked without changing what it holds."""

import time
from collections.abc import Sequence

from sqlalchemy import Connection, literal, select, update

from resumes.store.engine import Store
from resumes.store.schema import plans, store_facts

ONE_PLAN = select(literal(1)).select_from(plans).limit(1)


def probe_reading(store: Store) -> None:
    """The store could be read. Raises StoreUnavailable and StoreIncompatible."""
    with store.read() as connection:
        connection.execute(ONE_PLAN).all()


async def probe_writing_soon(store: Store, *, deadline_s: float) -> None:
    """A write went through the lane and to the disk: a fact that nobody reads was changed.

    Raises what `Store.write_soon` raises.
    """
    await store.write_soon(_write_again, store.clock(), deadline_s=deadline_s)


def _write_again(connection: Connection, instants: Sequence[int]) -> Sequence[int]:
    # Another value each time: what is as it was, SQLite does not write.
    connection.execute(
        update(store_facts)
        .where(store_facts.c.name == "probe")
        .values(value=f"{instants[-1]} {time.monotonic_ns()}")
    )
    return instants
