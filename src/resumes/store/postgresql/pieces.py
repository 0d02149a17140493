"""Pieces of the search index in an array with a GIN index, which needs no extension.

Each piece is a number of 64 bits that its account's number and its characters give, so that what
accounts have in common is not common in the index. Two pieces may meet in one number: what is found
is compared once more.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, Final

from sqlalchemy import Connection

from resumes.store.search_text import Wanted, pieces_of_words
from resumes.store.statements import driver, run_many

AT_ONCE: Final = 500
"""Entries that one statement gives: the reader may want no more."""

ADD: Final = "INSERT INTO search_pieces (account_id, seq, pieces) VALUES (%s, %s, %s)"
REMOVE: Final = "DELETE FROM search_pieces WHERE account_id = %s AND seq = %s"
# Lookups rather than joins (see `looked_up`), with limits so that they remain such. An entry is the
# first one from its number on: in that order only the index of numbers gives it without a sort.
CANDIDATES: Final = (
    "SELECT p.seq, e.words, r.id, r.title, r.name, r.filename, r.created_at, r.updated_at"
    " FROM search_pieces p"
    " JOIN LATERAL (SELECT s.seq, s.id, s.words FROM search_entries s"
    " WHERE s.account_id = p.account_id AND s.seq >= p.seq ORDER BY s.seq LIMIT 1) e"
    " ON e.seq = p.seq"
    " JOIN LATERAL (SELECT o.* FROM resumes o"
    " WHERE o.account_id = p.account_id AND o.id = e.id LIMIT 1) r ON true"
    " WHERE p.account_id = %s AND p.seq BETWEEN %s AND %s AND p.pieces @> %s"
    " ORDER BY p.seq LIMIT %s"
)


def add(
    connection: Connection, account_id: str, number: int, entries: Iterable[tuple[int, str]]
) -> None:
    """The entries are found by the pieces of their words."""
    rows = [
        [account_id, seq, f"{{{','.join(map(str, _numbers(number, pieces_of_words(words))))}}}"]
        for seq, words in entries
    ]
    run_many(connection, ADD, rows)


def remove(
    connection: Connection, account_id: str, number: int, entries: Sequence[tuple[int, str]]
) -> None:
    """They no longer are."""
    run_many(connection, REMOVE, [[account_id, seq] for seq, _ in entries])


def begin(connection: Connection, wanted: Wanted) -> Iterator[Any]:
    """The entries that have the pieces, some at a time."""
    pieces = _numbers(wanted.number, wanted.pieces)
    first = wanted.first
    while True:
        values = [wanted.account_id, first, wanted.last, pieces, AT_ONCE]
        rows = driver(connection).execute(CANDIDATES, values).fetchall()
        for _, *row in rows:
            yield row
        if len(rows) < AT_ONCE:
            return
        first = rows[-1][0] + 1


def _numbers(number: int, pieces: Iterable[str]) -> list[int]:
    return sorted(_hash(f"{number} {piece}") for piece in pieces)


def _hash(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)
