"""The search index as SQLite keeps it: an entry for each resume, and pieces in an FTS5 table.

Entries are numbered as ids rise, and the row of an entry's pieces is the account's number with the
entry's below it. So an account is one range of rows, FTS5 gives the rows that have certain pieces in
the order of ids, and common words end early. Pieces go in and are asked for as hexadecimal digits:
nothing that people type reaches FTS5's own language, and its tokenizer has nothing to decide.

This module is what another engine has to offer anew: from an account's entries, in the order of ids
and after a position, those that may hold the terms (pg_trgm's trigrams, which mark where words begin
as these do); the e-mail address out of a document; and a number that others' commits change. What is
found is compared with the terms once more, so finding too much is right, and too little is not.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Connection,
    Integer,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    text,
    update,
)

from resumes.store.engine import Store
from resumes.store.schema import (
    account_usage,
    accounts,
    documents,
    resumes,
    search_entries,
    search_progress,
)
from resumes.store.search_words import pieces_of_terms, pieces_of_words
from resumes.store.statements import Prepared, driver

NUMBER_SHIFT: Final = 40
"""Bits for the entries of an account; those above tell some eight million accounts apart."""

EMAIL: Final = func.json_extract(documents.c.document, literal_column("'$.header.email'"))
"""Of a document; None where it has none."""


class Progress(NamedTuple):
    """What an account's index holds: entries up to `last_seq`, of all resumes up to `indexed_us`."""

    number: int
    last_seq: int
    indexed_us: int


class Slice(NamedTuple):
    """Resumes of an account that come next: ids and words, all that there are between two positions."""

    account_id: str
    after_us: int
    up_to_us: int
    words: Sequence[tuple[str, str]]


PROGRESS = Prepared(
    select(
        search_progress.c.number, search_progress.c.last_seq, search_progress.c.indexed_us
    ).where(search_progress.c.account_id == bindparam("account_id"))
)
NEXT_NUMBER = Prepared(select(func.coalesce(func.max(search_progress.c.number), 0) + 1))
ADD_PROGRESS = Prepared(insert(search_progress))
MOVE_PROGRESS = Prepared(
    update(search_progress)
    .where(search_progress.c.account_id == bindparam("account"))
    .values(last_seq=bindparam("last_seq"), indexed_us=bindparam("indexed_us"))
)
# As in every write to an account: its row first.
LOCK_ACCOUNT = Prepared(
    select(account_usage.c.account_id)
    .join(accounts, accounts.c.id == account_usage.c.account_id)
    .where(account_usage.c.account_id == bindparam("account_id"), accounts.c.closed_at.is_(None))
    .with_for_update(of=account_usage)
)
STORED_BETWEEN = Prepared(
    select(resumes.c.id).where(
        resumes.c.account_id == bindparam("account_id"),
        resumes.c.id.between(bindparam("first"), bindparam("last")),
    )
)
ADD_ENTRY = Prepared(insert(search_entries))
ADD_PIECES = "INSERT INTO search_pieces (rowid, pieces) VALUES (?, ?)"
# The table has no text to take out by itself: it is told what was put in.
REMOVE_PIECES = "INSERT INTO search_pieces (search_pieces, rowid, pieces) VALUES ('delete', ?, ?)"
ENTRY = Prepared(
    select(search_entries.c.seq, search_entries.c.words).where(
        search_entries.c.account_id == bindparam("account_id"),
        search_entries.c.id == bindparam("resume_id"),
    )
)
OLDEST_ENTRIES = Prepared(
    select(search_entries.c.seq, search_entries.c.words)
    .where(search_entries.c.account_id == bindparam("account_id"))
    .order_by(search_entries.c.seq)
    .limit(bindparam("rows", type_=Integer) + 0)
)
REMOVE_ENTRY = Prepared(
    delete(search_entries).where(
        search_entries.c.account_id == bindparam("account_id"),
        search_entries.c.seq == bindparam("seq"),
    )
)
SEQ_AFTER = Prepared(
    select(search_entries.c.seq)
    .where(
        search_entries.c.account_id == bindparam("account_id"),
        search_entries.c.id > bindparam("after"),
    )
    .order_by(search_entries.c.id)
    .limit(1)
)
# CROSS JOIN: in this order, so that rows come as they are asked for and nothing is sorted.
CANDIDATES = Prepared(
    text(
        "SELECT e.words, r.id, r.title, r.name, r.filename, r.created_at, r.updated_at"
        " FROM search_pieces"
        " CROSS JOIN search_entries AS e"
        " ON e.account_id = :account_id AND e.seq = search_pieces.rowid - :base"
        " CROSS JOIN resumes AS r ON r.account_id = e.account_id AND r.id = e.id"
        " WHERE search_pieces MATCH :pieces AND search_pieces.rowid BETWEEN :first AND :last"
        " ORDER BY search_pieces.rowid"
    )
)


def find_progress(connection: Connection, account_id: str) -> Progress | None:
    """How far the account's index is; None before anything of it was indexed."""
    row = PROGRESS.run(connection, account_id=account_id).fetchone()
    return None if row is None else Progress._make(row)


def begin_candidates(
    connection: Connection, account_id: str, progress: Progress, terms: Iterable[str], after: str
) -> Any:
    """The driver's cursor over the resumes that may hold the terms, in the order of ids.

    Each row is the words and then the columns of a list's entry. Those after the id `after` come,
    as far as `progress` says. Whoever asks closes the cursor.
    """
    row = SEQ_AFTER.run(connection, account_id=account_id, after=after).fetchone()
    base = progress.number << NUMBER_SHIFT
    return CANDIDATES.run(
        connection,
        account_id=account_id,
        base=base,
        pieces=" AND ".join(sorted(map(_token, pieces_of_terms(terms)))),
        first=base + (progress.last_seq + 1 if row is None else row[0]),
        last=base + progress.last_seq,
    )


def add_slice(connection: Connection, some: Slice) -> bool:
    """The slice is in the index, but for what was deleted since it was read.

    False, and nothing is done, if somebody else has indexed it or the account is gone.
    """
    if LOCK_ACCOUNT.run(connection, account_id=some.account_id).fetchone() is None:
        return False
    progress = find_progress(connection, some.account_id)
    if some.after_us != (0 if progress is None else progress.indexed_us):
        return False
    progress = progress or _begin_progress(connection, some.account_id)
    last_seq = _add_entries(connection, some, progress)
    MOVE_PROGRESS.run(
        connection, account=some.account_id, last_seq=last_seq, indexed_us=some.up_to_us
    )
    return True


def _begin_progress(connection: Connection, account_id: str) -> Progress:
    (number,) = NEXT_NUMBER.run(connection).fetchone()
    ADD_PROGRESS.run(connection, account_id=account_id, number=number, last_seq=0, indexed_us=0)
    return Progress(number, 0, 0)


def _add_entries(connection: Connection, some: Slice, progress: Progress) -> int:
    """The slice has its entries; the last one's number."""
    if not some.words:
        return progress.last_seq
    rows = STORED_BETWEEN.run(
        connection, account_id=some.account_id, first=some.words[0][0], last=some.words[-1][0]
    )
    stored = {resume_id for (resume_id,) in rows.fetchall()}
    kept = [one for one in some.words if one[0] in stored]
    numbered = list(enumerate(kept, progress.last_seq + 1))
    ADD_ENTRY.run_many(
        connection,
        (
            {"account_id": some.account_id, "seq": seq, "id": resume_id, "words": words}
            for seq, (resume_id, words) in numbered
        ),
    )
    base = progress.number << NUMBER_SHIFT
    driver(connection).executemany(
        ADD_PIECES, [(base + seq, _tokens(words)) for seq, (_, words) in numbered]
    )
    return progress.last_seq + len(kept)


def remove(connection: Connection, account_id: str, resume_id: str) -> None:
    """The resume is not in the index; part of the transaction that deletes it."""
    _remove(
        connection, account_id, ENTRY.run(connection, account_id=account_id, resume_id=resume_id)
    )


def remove_oldest(connection: Connection, account_id: str, count: int) -> None:
    """So many of the account's entries have gone, oldest first; part of deleting the account."""
    _remove(
        connection, account_id, OLDEST_ENTRIES.run(connection, account_id=account_id, rows=count)
    )


def _remove(connection: Connection, account_id: str, entries: Any) -> None:
    rows: list[tuple[int, str]] = entries.fetchall()
    progress = find_progress(connection, account_id)
    if not rows or progress is None:
        return
    base = progress.number << NUMBER_SHIFT
    driver(connection).executemany(
        REMOVE_PIECES, [(base + seq, _tokens(words)) for seq, words in rows]
    )
    REMOVE_ENTRY.run_many(connection, ({"account_id": account_id, "seq": seq} for seq, _ in rows))


def _tokens(words: str) -> str:
    return " ".join(map(_token, pieces_of_words(words)))


def _token(piece: str) -> str:
    return piece.encode("utf-8", "surrogatepass").hex()


def read_version(store: Store) -> int:
    """A number that is another one after somebody has committed to the store.

    It is to be compared with what the same thread was told before.
    """
    with store.read() as connection:
        (version,) = driver(connection).execute("PRAGMA data_version").fetchone()
    return int(version)
