"""Pieces of the search index in an FTS5 table.

The row of an entry's pieces is the account's number with the entry's below it. So an account is one
range of rows, FTS5 gives the rows that have certain pieces in the order of ids, and common words end
early. Pieces go in and are asked for as hexadecimal digits: nothing that people type reaches FTS5's
own language, and its tokenizer has nothing to decide.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from resumes.store.search_text import Wanted, pieces_of_words
from resumes.store.statements import driver, run_many

NUMBER_SHIFT: Final = 40
"""Bits for the entries of an account; those above tell some eight million accounts apart."""

ADD: Final = "INSERT INTO search_pieces (rowid, pieces) VALUES (?, ?)"
# The table has no text to take out by itself: it is told what was put in.
REMOVE: Final = "INSERT INTO search_pieces (search_pieces, rowid, pieces) VALUES ('delete', ?, ?)"
# CROSS JOIN: in this order, so that rows come as they are asked for and nothing is sorted.
CANDIDATES: Final = (
    "SELECT e.words, r.id, r.title, r.name, r.filename, r.created_at, r.updated_at"
    " FROM search_pieces"
    " CROSS JOIN search_entries AS e"
    " ON e.account_id = ? AND e.seq = search_pieces.rowid - ?"
    " CROSS JOIN resumes AS r ON r.account_id = e.account_id AND r.id = e.id"
    " WHERE search_pieces MATCH ? AND search_pieces.rowid BETWEEN ? AND ?"
    " ORDER BY search_pieces.rowid"
)


def add(
    connection: Connection, account_id: str, number: int, entries: Iterable[tuple[int, str]]
) -> None:
    """The entries are found by the pieces of their words."""
    run_many(connection, ADD, _rows(number, entries))


def remove(
    connection: Connection, account_id: str, number: int, entries: Sequence[tuple[int, str]]
) -> None:
    """They no longer are."""
    run_many(connection, REMOVE, _rows(number, entries))


def begin(connection: Connection, wanted: Wanted) -> Any:
    """The driver's cursor over the entries that have the pieces."""
    base = wanted.number << NUMBER_SHIFT
    pieces = " AND ".join(sorted(map(_token, wanted.pieces)))
    values = [wanted.account_id, base, pieces, base + wanted.first, base + wanted.last]
    return driver(connection).execute(CANDIDATES, values)


def _rows(number: int, entries: Iterable[tuple[int, str]]) -> list[list[Any]]:
    base = number << NUMBER_SHIFT
    return [[base + seq, " ".join(map(_token, pieces_of_words(words)))] for seq, words in entries]


def _token(piece: str) -> str:
    return piece.encode("utf-8", "surrogatepass").hex()
