"""The search index on each engine: how entries are added and removed, and how a query finds them.

The index maps tokens (resumes.search.words) to entries. An account's entries are numbered in the order
of ids (`seq`), and are looked through in windows of numbers, unless the index gives them in order and the
query excludes nothing. So a search for common words ends early.

Nothing that people type reaches the language of an engine: a query is a choice of tokens, which FTS5
gets quoted and PostgreSQL as parameters.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import ClassVar, Final, NamedTuple

import orjson
from sqlalchemy import Connection
from sqlmodel import Session

from resumes.search.query import Query, label_terms
from resumes.search.words import BY_BEGINNINGS, EVERY_RESUME
from resumes.store.entry import Entry
from resumes.store.statements import driver, run_many
from resumes.store.store import Store

SMALL_UNIT: Final = 1_024
LARGE_UNIT: Final = 16_384
"""The numbers of entries that windows are made of."""

MAX_BEGINNINGS: Final = 1_000
"""How many tokens are listed for the beginnings of words in a query. With more, the texts of resumes
decide, most of which then have such a word."""

MAX_CLAUSES: Final = 8
"""How many words the index looks up at once: nothing interrupts a search for entries that have all of them.
The texts of resumes decide about the other words."""

LAST_CHAR: Final = "\U0010ffff"
"""Comes after all that may follow the beginning of a word."""


EntryKey = tuple[int, str]
"""The number of an entry, and the resume's ID."""


class Lookup(NamedTuple):
    """The tokens that an entry has: at least one of each of `some`, and none of `none`.

    Its resume has the `label`, unless that is None. Unless `is_exact`, one that has all of this may still
    not match the query.
    """

    some: Sequence[Sequence[str]]
    none: Sequence[str]
    is_exact: bool
    label: str | None = None


class Window(NamedTuple):
    """Entries of an account by number, from `first` to `last`; `unit` is the size of its parts."""

    first: int
    last: int
    unit: int


class Found(NamedTuple):
    """An entry that a lookup found. `document` is the stored resume, if it is asked for."""

    seq: int
    entry: Entry
    document: str | bytes | None


class SearchEngine(ABC):
    """The index of an account, on a connection that reads, or in a transaction that writes.

    `number` stands for the account inside the index.
    """

    IS_IN_ORDER: ClassVar[bool]
    """Whether the index gives entries in order one by one, so that a window can have any size."""

    def __init__(self, connection: Connection, account_id: str, number: int) -> None:
        self._connection = connection
        self._account_id = account_id
        self._number = number

    # Writing

    @abstractmethod
    def add(self, entries: Sequence[tuple[int, str, Iterable[str]]], *, is_last: bool) -> None:
        """Add entries: the number, the resume's id and its tokens. `is_last` if none follow soon."""

    @abstractmethod
    def replace(self, entry: EntryKey, tokens: Iterable[str]) -> None:
        """Replace the tokens of an entry."""

    @abstractmethod
    def remove(self, entries: Sequence[EntryKey]) -> None:
        """Remove entries."""

    # Finding

    def look_up(self, query: Query, label: str | None = None) -> Lookup:
        """Return the tokens that an entry has if its resume matches the query, and has the label."""
        some: list[Sequence[str]] = []
        none: set[str] = set()
        is_exact, room = query.is_exact, MAX_BEGINNINGS
        for term in query.looked_up:
            rows, words = term.rows, self._list_words(term.beginnings, room)
            room -= len(words)
            if room <= 0:
                is_exact = False
            elif term.is_negative:  # and needs no proof: each row is one token
                none.update(words, *rows)
            else:
                some += _clauses(rows, words)
        # The words of the label keep the index from giving what has another one.
        for term in () if label is None else label_terms(label):
            some += _clauses(term.rows, ())
        if len(some) > MAX_CLAUSES:
            some, is_exact = sorted(some, key=len)[:MAX_CLAUSES], False
        return Lookup(some, sorted(none), is_exact, label)

    def _list_words(self, beginnings: Iterable[str], limit: int) -> list[str]:
        """Return tokens that begin with these and the beginnings themselves, `limit` or more if cut off."""
        found: list[str] = []
        for beginning in beginnings:
            if limit > len(found):
                found += {beginning, *self._iter_words(beginning, limit - len(found))}
        return found

    @abstractmethod
    def _iter_words(self, beginning: str, limit: int) -> Iterable[str]:
        """Return the tokens of the index that begin with this, at most `limit`."""

    @abstractmethod
    def find(
        self,
        lookup: Lookup,
        window: Window,
        *,
        limit: int,
        is_newest_first: bool,
        with_documents: bool,
    ) -> list[Found]:
        """Return the entries of the window that have the tokens, in order, at most `limit`."""


def _clauses(rows: Sequence[Sequence[str]], words: Iterable[str]) -> Iterator[Sequence[str]]:
    """Yield sets of tokens: who has all tokens of a row, or one of the words, has one of each set."""
    for position in range(max(map(len, rows), default=1)):
        yield sorted({*words, *(row[min(position, len(row) - 1)] for row in rows)})


def engine_on(connection: Connection, account_id: str, number: int) -> SearchEngine:
    """Return the index of the account with this number."""
    kind = _Sqlite if connection.dialect.name == "sqlite" else _Postgres
    return kind(connection, account_id, number)


_COLUMNS: Final = ", ".join(f"r.{name}" for name in Entry._fields)


class _Sqlite(SearchEngine):
    """An FTS5 table without text, positions or lengths (`search_tokens`), and its list of tokens
    (`search_words`).

    A row's id is the account's number, and below it the entry's own. So an account is one range of rows,
    which FTS5 gives in the order of ids, and a search for common words reads little.
    """

    IS_IN_ORDER = True

    NUMBER_SHIFT = 40
    """The number of bits for an account's entries; the bits above are for some eight million accounts."""

    # One statement for all rows, since between two of them the thread may have to wait for others.
    ADD_ENTRIES = (
        "INSERT INTO search_entries (account_id, seq, id)"
        " SELECT ?, value ->> 0, value ->> 1 FROM json_each(?)"
    )
    ADD = (
        "INSERT INTO search_tokens (rowid, tokens)"
        " SELECT ? + (value ->> 0), value ->> 2 FROM json_each(?)"
    )
    REPLACE = "UPDATE search_tokens SET tokens = ? WHERE rowid = ?"
    REMOVE_ENTRY = "DELETE FROM search_entries WHERE account_id = ? AND seq = ?"
    REMOVE = "DELETE FROM search_tokens WHERE rowid = ?"
    # For each word found, the next one: all occurrences of a word in one account or more are skipped.
    WORDS = (
        "WITH RECURSIVE words (term) AS (SELECT (SELECT term FROM search_words"
        " WHERE term >= ?1 AND term < ?2 LIMIT 1) UNION ALL SELECT (SELECT term FROM search_words"
        " WHERE term >= words.term || char(1) AND term < ?2 LIMIT 1) FROM words"
        " WHERE words.term IS NOT NULL LIMIT ?3 + 0) SELECT term FROM words WHERE term IS NOT NULL"
    )
    # CROSS JOIN fixes the order of the tables, so that rows are produced lazily and need no sort. The
    # document is read as bytes, since one that is not UTF-8 should not keep others from being found.
    FIND = (
        f"SELECT e.seq, {{}}, {_COLUMNS} FROM search_tokens"
        " CROSS JOIN search_entries AS e"
        " ON e.account_id = ? AND e.seq = search_tokens.rowid - ?"
        " CROSS JOIN resumes AS r ON r.account_id = e.account_id AND r.id = e.id"
        " WHERE search_tokens MATCH ? AND search_tokens.rowid BETWEEN ? AND ?{}"
        " ORDER BY search_tokens.rowid {} LIMIT ? + 0"
    )
    # Not FTS5's own NOT, which looks for a row beyond the window if all in it are excluded (pitfalls S28).
    WITHOUT = (
        " AND search_tokens.rowid NOT IN (SELECT rowid FROM search_tokens"
        " WHERE search_tokens MATCH ? AND rowid BETWEEN ? AND ?)"
    )
    DOCUMENT = (
        "(SELECT CAST(d.document AS BLOB) FROM documents AS d"
        " WHERE d.account_id = r.account_id AND d.id = r.id)"
    )

    @property
    def _base(self) -> int:
        return self._number << self.NUMBER_SHIFT

    def add(self, entries: Sequence[tuple[int, str, Iterable[str]]], *, is_last: bool) -> None:
        rows = [(seq, resume_id, " ".join(tokens)) for seq, resume_id, tokens in entries]
        text = orjson.dumps(rows).decode()
        run_many(self._connection, self.ADD_ENTRIES, [(self._account_id, text)])
        run_many(self._connection, self.ADD, [(self._base, text)])

    def replace(self, entry: EntryKey, tokens: Iterable[str]) -> None:
        values = [" ".join(tokens), self._base + entry[0]]
        run_many(self._connection, self.REPLACE, [values])

    def remove(self, entries: Sequence[EntryKey]) -> None:
        run_many(self._connection, self.REMOVE, [(self._base + seq,) for seq, _ in entries])
        keys = [(self._account_id, seq) for seq, _ in entries]
        run_many(self._connection, self.REMOVE_ENTRY, keys)

    def _iter_words(self, beginning: str, limit: int) -> Iterable[str]:
        values = (beginning, beginning + LAST_CHAR, limit)
        return [term for (term,) in driver(self._connection).execute(self.WORDS, values)]

    def find(
        self,
        lookup: Lookup,
        window: Window,
        *,
        limit: int,
        is_newest_first: bool,
        with_documents: bool,
    ) -> list[Found]:
        some = lookup.some or [[EVERY_RESUME]]
        query = " AND ".join(f"({_any(tokens)})" for tokens in some)
        first, last = self._base + window.first, self._base + window.last
        values = [self._account_id, self._base, query, first, last]
        condition = ""
        if lookup.none:
            condition += self.WITHOUT
            values += [_any(lookup.none), first, last]
        if lookup.label is not None:
            condition += " AND r.label = ?"
            values.append(lookup.label)
        statement = self.FIND.format(
            self.DOCUMENT if with_documents else "NULL",
            condition,
            "DESC" if is_newest_first else "ASC",
        )
        values.append(limit)
        rows = driver(self._connection).execute(statement, values).fetchall()
        return [Found(seq, Entry._make(columns), document) for seq, document, *columns in rows]


def _any(tokens: Iterable[str]) -> str:
    return " OR ".join(f'"{token}"' for token in tokens)


class _Postgres(SearchEngine):
    """A column of `search_entries` with the tokens of each entry, and a GIN index of them.

    GIN gives no order, and a plan that filters or sorts an account takes long. So the parts of an account
    that an entry is in are tokens, too: a window is a condition of the same index scan, which skips
    what is outside of it. The tokens of a GIN index cannot be listed; those of longer words are in a
    table (`search_words`).
    """

    IS_IN_ORDER = False

    PARTS: ClassVar = {SMALL_UNIT: "q", LARGE_UNIT: "Q"}
    """The first letter of the token of a part, by the size of the part. No group has it."""

    LISTED_CHARS = 6
    """The length from which tokens are listed: a letter for the group, and a longer word than the
    shortest beginning that is looked up. Beginnings are looked up themselves, too."""

    ADD = (
        "INSERT INTO search_entries (account_id, seq, id, words)"
        " SELECT %s, * FROM unnest(%b::bigint[], %b::text[], %b::text[])"
    )
    ADD_WORDS = "INSERT INTO search_words (term) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING"
    # Until its pending list is written to the index, every search looks through it. Only the owner may.
    WRITE_PENDING = (
        "SELECT gin_clean_pending_list(oid) FROM pg_class"
        " WHERE oid = 'ix_search_entries_words'::regclass AND pg_has_role(relowner, 'USAGE')"
    )
    # With the number and the ID, either index leads to one row. With one of them, the other index may be
    # taken, and be walked through: by statistics that lack the account, both cost the same (pitfalls S24).
    THIS = " WHERE account_id = %s AND seq = %s AND id = %s"
    REPLACE = f"UPDATE search_entries SET words = %s{THIS}"
    REMOVE = f"DELETE FROM search_entries{THIS}"
    WORDS = "SELECT term FROM search_words WHERE term >= %s AND term < %s ORDER BY term LIMIT %s"
    # The first condition is not one that the primary key could be scanned for: by statistics that lack
    # the account (pitfalls S24), that would be cheap.
    IN_WINDOW = "(account_id = %s) IS TRUE AND search_keys(words) && %s::text[]"
    HAS = " AND search_keys(words) && %s::text[]"
    FIND = (
        f"SELECT e.seq, {{}}, {_COLUMNS} FROM"
        " (SELECT seq, id FROM search_entries WHERE {} AND seq + 0 BETWEEN %s AND %s ORDER BY seq {}) e"
        " JOIN LATERAL (SELECT o.* FROM resumes o WHERE o.account_id = %s AND o.id = e.id LIMIT 1) r"
        " ON true WHERE {} ORDER BY e.seq {} LIMIT %s"
    )
    DOCUMENT = (
        "(SELECT d.document FROM documents d WHERE d.account_id = r.account_id AND d.id = r.id)"
    )

    def add(self, entries: Sequence[tuple[int, str, Iterable[str]]], *, is_last: bool) -> None:
        rows = [(seq, resume_id, self._text(seq, some)) for seq, resume_id, some in entries]
        columns = ([row[column] for row in rows] for column in range(3))
        driver(self._connection).run(self.ADD, [self._account_id, *columns])
        self._list(chain.from_iterable(tokens for _, _, tokens in entries))
        if is_last:
            run_many(self._connection, self.WRITE_PENDING, [()])

    def replace(self, entry: EntryKey, tokens: Iterable[str]) -> None:
        values = [self._text(entry[0], tokens), self._account_id, *entry]
        run_many(self._connection, self.REPLACE, [values])
        self._list(tokens)

    def _text(self, seq: int, tokens: Iterable[str]) -> str:
        parts = (self._part(seq // unit, unit) for unit in self.PARTS)
        return " ".join([*sorted(tokens), *parts])

    def _part(self, part: int, unit: int) -> str:
        return f"{self.PARTS[unit]}{self._number}.{part}"

    def _list(self, tokens: Iterable[str]) -> None:
        # In one order, so that no two transactions wait for each other.
        words = sorted(
            {
                token
                for token in tokens
                if len(token) >= self.LISTED_CHARS and token[0] not in BY_BEGINNINGS
            }
        )
        run_many(self._connection, self.ADD_WORDS, [(_array(words),)])

    def remove(self, entries: Sequence[EntryKey]) -> None:
        run_many(self._connection, self.REMOVE, [(self._account_id, *entry) for entry in entries])

    def _iter_words(self, beginning: str, limit: int) -> Iterable[str]:
        values = [beginning, beginning + LAST_CHAR, limit]
        return [term for (term,) in driver(self._connection).run(self.WORDS, values)]

    def find(
        self,
        lookup: Lookup,
        window: Window,
        *,
        limit: int,
        is_newest_first: bool,
        with_documents: bool,
    ) -> list[Found]:
        unit = window.unit
        parts = range(window.first // unit, window.last // unit + 1)
        in_window = [self._account_id, _array(self._part(part, unit) for part in parts)]
        condition = self.IN_WINDOW + self.HAS * len(lookup.some)
        values: list[str | int] = [*in_window, *map(_array, lookup.some)]
        if lookup.none:
            without = f"SELECT seq FROM search_entries WHERE {self.IN_WINDOW}{self.HAS}"
            condition += f" AND seq NOT IN ({without})"
            values += [*in_window, _array(lookup.none)]
        document = self.DOCUMENT if with_documents else "NULL"
        order = "DESC" if is_newest_first else "ASC"
        has_label = "true" if lookup.label is None else "r.label = %s"
        statement = self.FIND.format(document, condition, order, has_label, order)
        labels = [] if lookup.label is None else [lookup.label]
        values += [window.first, window.last, self._account_id, *labels, limit]
        rows = driver(self._connection).run(statement, values)
        return [Found(seq, Entry._make(columns), document) for seq, document, *columns in rows]


def _array(tokens: Iterable[str]) -> str:
    """Return tokens as an array in the text form that the server reads."""
    return "{" + ",".join(f'"{token}"' for token in tokens) + "}"


# Words that no resume has anymore

CHECKED_WORDS: Final = 50
"""How many words one transaction checks; for common ones the index is slow."""

_NEXT_WORDS: Final = "SELECT term FROM search_words WHERE term > %s ORDER BY term LIMIT %s"
# An entry that is being added may have one of the words; its transaction adds the word after this.
_LOCK_WORDS: Final = "LOCK TABLE search_words IN SHARE ROW EXCLUSIVE MODE"
_REMOVE_UNUSED: Final = (
    "DELETE FROM search_words w WHERE w.term = ANY(%s::text[]) AND NOT EXISTS"
    " (SELECT 1 FROM search_entries WHERE search_keys(words) && ARRAY[w.term])"
)


def remove_unused_words(session: Session, after: str) -> str | None:
    """Check the words after this one, and remove those that no entry has; return the last one checked.

    None if there are no more, and on SQLite, whose list of words is the index itself.
    """
    connection = session.connection()
    if connection.dialect.name == "sqlite":
        return None
    words = driver(connection).run(_NEXT_WORDS, [after, CHECKED_WORDS]).fetchall()
    if not words:
        return None
    _remove_unused(session, [word for (word,) in words])
    return str(words[-1][0])


def _remove_unused(session: Session, words: Iterable[str]) -> None:
    connection = session.connection()
    run_many(connection, _LOCK_WORDS, [()])
    run_many(connection, _REMOVE_UNUSED, [(_array(words),)])


MERGED_PAGES: Final = 64
"""How many pages of the index one transaction merges."""


def purge(store: Store, tokens: Iterable[str]) -> None:
    """Let no trace of removed entries stay in the index; `tokens` are those that they had.

    FTS5 keeps the tokens of removed rows until it merges what has them. This merges all, in many short
    transactions.
    """
    if store.path is None:
        words = sorted(tokens)
        for start in range(0, len(words), CHECKED_WORDS):
            some = words[start : start + CHECKED_WORDS]
            store.write(partial(_remove_unused, words=some))
        return

    pages = -MERGED_PAGES  # begins a merge of all
    while store.write(partial(merge, pages=pages)):
        pages = MERGED_PAGES


def merge(session: Session, pages: int = MERGED_PAGES) -> bool:
    """Merge parts of the index on SQLite, so that a search reads fewer; return whether there is more to merge.

    Each transaction adds a part. FTS5 merges four of a size by itself; this merges two.
    """
    connection = session.connection()
    if connection.dialect.name != "sqlite":
        return False
    raw = driver(connection)
    before = raw.total_changes
    raw.execute(_MERGE, [pages])
    return bool(raw.total_changes - before >= 2)  # as FTS5's documentation says


_MERGE: Final = "INSERT INTO search_tokens (search_tokens, rank) VALUES ('merge', ?)"
