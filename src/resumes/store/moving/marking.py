"""The marks of a copy on its two stores (resumes.store.transit), and waiting for those who write."""

import secrets
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, delete, select, text

from resumes.errors import Conflict, StoreUnavailable
from resumes.store.engine import Store, each
from resumes.store.moving.tables import TABLES
from resumes.store.schema import store_facts
from resumes.store.statements import Prepared, replacing
from resumes.store.transit import FILLED_FROM, MOVING_TO, allowed_in_transit

MOVE: Final = "move"
"""The fact that names a copy: both of its stores say the same, unless one was written to since."""

WRITERS_S: Final = 30.0
"""How long those who began to write before the mark are waited for."""

PAUSE_S: Final = 0.1

FACTS: Final = Prepared(select(store_facts.c.name, store_facts.c.value))
SET_FACT: Final = replacing(store_facts)
REMOVE_FACT: Final = Prepared(delete(store_facts).where(store_facts.c.name == bindparam("fact")))


class Marks(NamedTuple):
    """What a store says of a copy; what it does not say is empty."""

    moving_to: str
    filled_from: str
    move: str


def read_marks(connection: Connection) -> Marks:
    """What the store says now."""
    facts: Mapping[str, str] = dict(FACTS.run(connection).fetchall())
    return Marks(*(facts.get(name, "") for name in (MOVING_TO, FILLED_FROM, MOVE)))


def set_marks(connection: Connection, **facts: str) -> None:
    """The store says so; part of a transaction. What is empty is said no longer."""
    for name, value in facts.items():
        if value or name == MOVING_TO:  # which every store has
            SET_FACT.run(connection, name=name, value=value)
        else:
            REMOVE_FACT.run(connection, fact=name)


class Departure(NamedTuple):
    """A copy of a store, named `move`, to the store that is called `label`."""

    label: str
    move: str


def plan_departure(source: Store, label: str) -> Departure:
    """The copy that would go on, or a new one. Raises Conflict for a store on its way elsewhere, and
    for one that is not whole."""
    with source.read() as connection:
        marks = read_marks(connection)
    _check_departure(marks, label, source.database.label)
    return Departure(label, marks.move if marks.moving_to else secrets.token_hex(8))


def _check_departure(marks: Marks, label: str, own_label: str) -> None:
    if marks.filled_from:
        raise Conflict(
            f"{own_label} is itself still being filled from {marks.filled_from}; let that end first"
        )
    if marks.moving_to not in ("", label):
        raise Conflict(
            f"{own_label} is being moved to {marks.moving_to}. Copy it there, or take it back with "
            "`resumes db reopen` first"
        )


def depart(source: Store, departure: Departure) -> None:
    """Nobody writes to the store from now on, until it is reopened: who had begun has ended.

    Raises Conflict, and StoreUnavailable when somebody does not end.
    """
    source.write(_mark, departure)
    ends_at = time.monotonic() + WRITERS_S
    while True:
        try:
            source.write(_wait_for_writers, departure)
        except StoreUnavailable:
            if time.monotonic() > ends_at:
                raise
            time.sleep(PAUSE_S)
        else:
            return


@allowed_in_transit
@each
def _mark(connection: Connection, departure: Departure) -> None:
    marks = read_marks(connection)
    _check_departure(marks, departure.label, "The store")
    if marks.moving_to and marks.move != departure.move:
        raise Conflict("Somebody else has begun to copy the store at the same time")
    set_marks(connection, moving_to=departure.label, move=departure.move)


@allowed_in_transit
@each
def _wait_for_writers(connection: Connection, departure: Departure) -> None:
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


def give_back(source: Store, move: str) -> None:
    """The store takes writes again, unless another copy than this one keeps it from that."""
    source.write(_give_back, move)


@allowed_in_transit
@each
def _give_back(connection: Connection, move: str) -> None:
    if read_marks(connection).move == move:
        set_marks(connection, moving_to="", move="")


def check_departed(source: Store, departure: Departure) -> None:
    """Nobody could write to the store since it departed. Raises Conflict."""
    with source.read() as connection:
        marks = read_marks(connection)
    if (marks.moving_to, marks.move) != departure:
        raise Conflict("The store was reopened while it was copied: what came since is not in it")
