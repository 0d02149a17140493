"""The store's id, the marks of a copy on its two stores (resumes.store.closed), and waiting for those
who write."""

import secrets
from collections.abc import Mapping
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, delete, select, text

from resumes.errors import Conflict, StoreUnavailable
from resumes.store.closed import FILLED_FROM, MOVING_TO
from resumes.store.locks import retry
from resumes.store.schema import store_facts
from resumes.store.statements import Prepared, replacing
from resumes.store.store import Store
from resumes.store.transfer.rows import TABLES

MOVE: Final = "move"
"""The fact that names a move: both of its stores say the same, unless one was written to since."""

STORE_ID: Final = "store_id"
"""The fact by which watched folders know their store (docs/decisions/0013)."""

WRITERS_S: Final = 30.0
"""How long those who began to write before the mark are waited for."""

RETRY_DELAYS_S: Final = (0.1,)

FACTS: Final = Prepared(select(store_facts.c.name, store_facts.c.value))
SET_FACT: Final = replacing(store_facts)
REMOVE_FACT: Final = Prepared(delete(store_facts).where(store_facts.c.name == bindparam("fact")))


class Marks(NamedTuple):
    """What a store says of itself and of a copy; what it does not say is empty."""

    moving_to: str
    filled_from: str
    move: str
    store_id: str


def read_marks(connection: Connection) -> Marks:
    """What the store says now."""
    facts: Mapping[str, str] = dict(FACTS.run(connection).fetchall())
    return Marks(*(facts.get(name, "") for name in (MOVING_TO, FILLED_FROM, MOVE, STORE_ID)))


def set_marks(
    connection: Connection,
    *,
    moving_to: str | None = None,
    filled_from: str | None = None,
    move: str | None = None,
    store_id: str | None = None,
) -> None:
    """The store says so; part of a transaction. What is empty is said no longer, and what is None
    stays as it is."""
    facts = {MOVING_TO: moving_to, FILLED_FROM: filled_from, MOVE: move, STORE_ID: store_id}
    for fact, value in facts.items():
        if value or (value is not None and fact == MOVING_TO):  # which every store has
            SET_FACT.run(connection, name=fact, value=value)
        elif value is not None:
            REMOVE_FACT.run(connection, fact=fact)


class Move(NamedTuple):
    """The rows of one store on their way to another: what both are called, a name of its own, and the
    store's id, which goes along."""

    source: str
    target: str
    name: str
    store_id: str


def new_name() -> str:
    """A name that no other move has."""
    return secrets.token_hex(8)


def plan_move(source: Store, target: str) -> Move:
    """The move that would go on, or a new one. Raises Conflict for a store on its way elsewhere, and
    for one that is not whole."""
    with source.read() as connection:
        marks = read_marks(connection)
    _check_departure(marks, target, source.label)
    name = marks.move if marks.moving_to else new_name()
    return Move(source.label, target, name, marks.store_id)


def _check_departure(marks: Marks, target: str, own_label: str) -> None:
    if marks.filled_from:
        raise Conflict(
            f"{own_label} is itself still being filled from {marks.filled_from}; let that end first"
        )
    if marks.moving_to not in ("", target):
        raise Conflict(
            f"{own_label} is being moved to {marks.moving_to}. Copy it there, or take it back with "
            "`resumes db reopen` first"
        )


def depart(source: Store, move: Move) -> None:
    """Nobody writes to the store from now on, until it is reopened: who had begun has ended.

    Raises Conflict, and StoreUnavailable when somebody does not end.
    """
    source.write(lambda connection: _mark(connection, move), ignores_closed=True)
    retry(
        lambda: source.write(_wait_for_writers, ignores_closed=True),
        timeout_s=WRITERS_S,
        delays_s=RETRY_DELAYS_S,
        is_retryable=lambda error: isinstance(error, StoreUnavailable),
    )


def _mark(connection: Connection, move: Move) -> None:
    marks = read_marks(connection)
    _check_departure(marks, move.target, "The store")
    if marks.moving_to and marks.move != move.name:
        raise Conflict("Somebody else has begun to copy the store at the same time")
    set_marks(connection, moving_to=move.target, move=move.name)


def _wait_for_writers(connection: Connection) -> None:
    # Whoever wrote to a table before the mark was there holds a lock on it until the end; whoever
    # begins to write after this lock sees the mark. On SQLite the mark itself has waited for all.
    if connection.dialect.name == "postgresql":
        names = ", ".join(table.name for table in TABLES)
        connection.execute(text(f"LOCK TABLE {names} IN SHARE MODE"))


def reopen(store: Store) -> str | None:
    """The store takes writes again; where it was being moved to, or None if it was not.

    Raises Conflict for one that is still being filled: it is not whole.
    """
    with store.read() as connection:
        marks = read_marks(connection)
    if marks.filled_from:
        raise Conflict(
            f"The store is still being filled from {marks.filled_from}, and is not whole. Let the "
            "copy end, or remove it"
        )
    if not marks.moving_to:
        return None
    give_back(store, marks.move)
    return marks.moving_to


def give_back(source: Store, name: str) -> None:
    """The store takes writes again, unless another move than this one keeps it from that."""

    def change(connection: Connection) -> None:
        if read_marks(connection).move == name:
            set_marks(connection, moving_to="", move="")

    source.write(change, ignores_closed=True)


def check_departed(source: Store, move: Move) -> None:
    """Nobody could write to the store since it departed. Raises Conflict."""
    with source.read() as connection:
        marks = read_marks(connection)
    if (marks.moving_to, marks.move) != (move.target, move.name):
        raise Conflict("The store was reopened while it was copied: what came since is not in it")
