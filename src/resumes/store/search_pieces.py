"""What an engine has to offer for the search index: pieces kept, and entries found by them."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Connection


class Wanted(NamedTuple):
    """Entries of an account from number `first` to `last` that have all the pieces.

    `number` is the account's own, which engines may put before a piece.
    """

    account_id: str
    number: int
    pieces: Collection[str]
    first: int
    last: int


class Pieces(Protocol):
    """The pieces of entries, given by their number and words. All inside a transaction."""

    def add(
        self,
        connection: Connection,
        account_id: str,
        number: int,
        entries: Iterable[tuple[int, str]],
    ) -> None:
        """The entries are found by the pieces of their words."""

    def remove(
        self,
        connection: Connection,
        account_id: str,
        number: int,
        entries: Sequence[tuple[int, str]],
    ) -> None:
        """They no longer are."""

    def begin(self, connection: Connection, wanted: Wanted) -> Any:
        """The entries that have the pieces, and perhaps some that have not: an iterator to be
        closed, over rows of words and the columns of a list's entry, in the order of entries."""
