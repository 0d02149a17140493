"""Whether a store can be read and written at present, asked without changing what it holds."""

from collections.abc import Sequence

from sqlalchemy import Connection, literal, select

from resumes.store.engine import Store
from resumes.store.schema import plans

ONE_PLAN = select(literal(1)).select_from(plans).limit(1)


def probe_reading(store: Store) -> None:
    """The store could be read. Raises StoreUnavailable and StoreIncompatible."""
    with store.read() as connection:
        connection.execute(ONE_PLAN).all()


async def probe_writing_soon(store: Store, *, deadline_s: float) -> None:
    """A write went through the lane and to the disk: what the store held was committed once more.

    Raises what `Store.write_soon` raises.
    """
    await store.write_soon(_write_again, None, deadline_s=deadline_s)


def _write_again(connection: Connection, requests: Sequence[None]) -> Sequence[None]:
    # A number in the file's header that nothing of ours uses: one page goes to the log.
    version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    connection.exec_driver_sql(f"PRAGMA user_version={version}")
    return requests
