"""What a driver's error means for whoever wanted something: try again, wait, or say so."""

from enum import Enum, auto
from typing import Final

import psycopg

from resumes.errors import ResumesError, StoreUnavailable
from resumes.store.writes import LostRace


class Trouble(Enum):
    """What can be done about an error."""

    GONE = auto()
    """The server, or its leave to write: try again with another connection, perhaps elsewhere."""

    RACE = auto()
    """Somebody else was first: undone, and to be tried again."""

    BUSY = auto()
    """Somebody holds the row for long: nothing was done."""

    FULL = auto()
    """There is no room: nothing was done."""

    OTHER = auto()
    """The statement itself."""


_BY_STATE: Final = {
    # A primary that is one no longer, seen through a pooler that keeps our connection: to write
    # cannot be begun there, nor done.
    "0A000": Trouble.GONE,
    "25006": Trouble.GONE,
    "25P03": Trouble.GONE,  # idle in a transaction for too long
    "40001": Trouble.RACE,
    "40P01": Trouble.RACE,  # deadlock
    "23505": Trouble.RACE,  # a unique name or number that somebody took at the same time
    "53100": Trouble.FULL,
    "55P03": Trouble.BUSY,  # lock_timeout
    "57014": Trouble.BUSY,  # statement_timeout
}
_BY_CLASS: Final = {"08": Trouble.GONE, "57": Trouble.GONE, "53": Trouble.GONE}
"""Connections, a server that stops or starts, and one that has no room for more connections."""

LOST: Final = (psycopg.OperationalError, psycopg.InterfaceError)
"""Without a word of the server: the connection is lost, or it fell silent."""


def trouble_of(error: BaseException) -> Trouble:
    """What can be done about it."""
    if isinstance(error, LostRace):
        return Trouble.RACE
    cause = getattr(error, "orig", error)
    state = getattr(cause, "sqlstate", None)
    if state is None:
        # Not the server's word: libpq lost it, or it fell silent.
        return Trouble.GONE if isinstance(cause, LOST) else Trouble.OTHER
    return _BY_STATE.get(state) or _BY_CLASS.get(state[:2], Trouble.OTHER)


def explain(error: BaseException, label: str) -> ResumesError:
    """What the driver's error is to those who use the store."""
    cause = getattr(error, "orig", error)
    text = str(cause).strip().partition("\n")[0]
    return StoreUnavailable(f"The database {label} cannot be used now: {text}")
