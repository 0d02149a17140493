"""Refuse writes to a store that is closed: one that was copied elsewhere, or is not filled yet.

What is written to a store after it was copied would stay behind (pitfalls S13). So a copy marks both
of its stores in `store_facts`, and every write looks there inside its transaction: on SQLite, where
writers exclude one another, first of all; on PostgreSQL last, because whoever wrote before the mark
was set holds a lock by then, and the copy waits for those.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, or_, select

from resumes.errors import StoreUnavailable
from resumes.store.schema import store_facts
from resumes.store.statements import Prepared
from resumes.store.write_queue import Write

MOVING_TO: Final = "moving_to"
"""The fact that names where the store is being copied, or was; empty if it is not."""

FILLED_FROM: Final = "filled_from"
"""The fact that names from where a copy that has not ended fills the store; usually missing."""

MARKS: Final = Prepared(
    select(store_facts.c.name, store_facts.c.value).where(
        or_(store_facts.c.name == MOVING_TO, store_facts.c.name == FILLED_FROM),
        store_facts.c.value != "",
    )
)


def refuse_if_closed(connection: Connection, batch: Sequence[Write]) -> None:
    """Raise StoreUnavailable if the store is closed, inside the transaction of these writes.

    A copy's own writes ignore the marks.
    """
    marks = dict(MARKS.run(connection).fetchall())
    if not marks or all(write.ignores_closed for write in batch):
        return
    if target := marks.get(MOVING_TO):
        raise StoreUnavailable(
            f"The store is being moved to {target}, or was; nothing was done. Use that one, or "
            "take this one back with `resumes db reopen`"
        )
    raise StoreUnavailable(
        f"The store is still being filled from {marks[FILLED_FROM]}; nothing was done. Let "
        "`resumes db copy` or `resumes db restore` end first"
    )
