"""The search index on each engine: how entries are added and removed, and how a query finds them.

The index maps tokens (resumes.search.words) to entries. An account's entries are numbered in the
order of their IDs (`seq`). A search reads the entries in windows of numbers, so that a search for
common words ends early. It needs no windows if the index returns entries in order and the query
excludes nothing.

User input never becomes part of an engine's query language: a query consists of tokens, which are
quoted for FTS5 and passed to PostgreSQL as parameters.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import ClassVar, Final, NamedTuple

import orjson
from sqlalchemy import Connection
from sqlmodel import Session

from resumes.search.query import Query, label_terms
from resumes.search.words import BY_BEGINNINGS, EVERY_RESUME
from resumes.store.entry import Entry
from resumes.store.statements import driver, is_sharded, run_many
from resumes.store.store import Store

SMALL_UNIT: Final = 1_024
LARGE_UNIT: Final = 16_384
"""The sizes, in entries, of the units that windows consist of."""

MAX_BEGINNINGS: Final = 1_000
"""The maximum number of tokens for the word beginnings in a query. If there are more, the texts of
the resumes are checked instead; most of them contain such a word then."""

MAX_CLAUSES: Final = 8
"""How many words the index looks up at once, since such a look-up cannot be interrupted. The other
words are checked in the texts of the resumes."""

LAST_CHAR: Final = "\U0010ffff"
"""Sorts after every character that can follow the beginning of a word."""


EntryKey = tuple[int, str]
"""The number of an entry, and the ID of its resume."""


class Lookup(NamedTuple):
    """The conditions for an entry: it has a token from each list in `some`, and no token in `none`.

    If `label` is not None, the resume also has this label. Unless `is_exact`, a resume that meets
    these conditions may still not match the query.
    """

    some: Sequence[Sequence[str]]
    none: Sequence[str]
    is_exact: bool
    label: str | None = None


class Window(NamedTuple):
    """The entries of an account numbered `first` to `last`, in parts of `unit` entries."""

    first: int
    last: int
    unit: int


class Found(NamedTuple):
    """An entry that a lookup found. `document` is the stored resume, or None if not requested."""

    seq: int
    entry: Entry
    document: str | bytes | None


class IndexText(NamedTuple):
    """The tokens of a resume as an engine stores them: two texts with spaces between the tokens.

    Texts use less memory than sets, which would slow down the extraction of the next tokens.
    """

    tokens: str
    listed: str = ""
    """The tokens to add to the engine's own list of words, if it has one."""


class SearchEngine(ABC):
    """The index of an account, on a connection for reading or in a transaction that writes.

    `number` identifies the account inside the index.
    """

    IS_IN_ORDER: ClassVar[bool]
    """Whether the index returns entries in order, one by one, so a window can have any size."""

    def __init__(self, connection: Connection, account_id: str, number: int) -> None:
        self._connection = connection
        self._account_id = account_id
        self._number = number

    # Writing

    @staticmethod
    @abstractmethod
    def text_of(tokens: Collection[str]) -> IndexText:
        """Return the tokens of a resume in the form that `add` and `replace` accept."""

    @abstractmethod
    def add(self, entries: Sequence[tuple[int, str, IndexText]], *, is_last: bool) -> None:
        """Add entries (number, resume ID, tokens). `is_last` means that no more follow soon."""

    @abstractmethod
    def replace(self, entry: EntryKey, text: IndexText) -> None:
        """Replace the tokens of an entry."""

    @abstractmethod
    def remove(self, entries: Sequence[EntryKey]) -> None:
        """Remove entries."""

    # Finding

    def look_up(self, query: Query, label: str | None = None) -> Lookup:
        """Return the conditions that the entries of all matching resumes with this label meet."""
        some: list[Sequence[str]] = []
        none: set[str] = set()
        is_exact, room = query.is_exact, MAX_BEGINNINGS
        for term in query.looked_up:
            rows, words = term.rows, self._list_words(term.beginnings, room)
            room -= len(words)
            if room <= 0:
                is_exact = False
            elif term.is_negative:  # `looked_up` omits it unless each row is one token
                none.update(words, *rows)
            else:
                some += _clauses(rows, words)
        # Looking up the label's words leaves out most entries with other labels.
        for term in () if label is None else label_terms(label):
            some += _clauses(term.rows, ())
        if len(some) > MAX_CLAUSES:
            some, is_exact = sorted(some, key=len)[:MAX_CLAUSES], False
        return Lookup(some, sorted(none), is_exact, label)

    def _list_words(self, beginnings: Iterable[str], limit: int) -> list[str]:
        """Return beginnings and tokens that start with them; `limit` or more if incomplete."""
        found: list[str] = []
        for beginning in beginnings:
            if limit > len(found):
                found += {beginning, *self._iter_words(beginning, limit - len(found))}
        return found

    @abstractmethod
    def _iter_words(self, beginning: str, limit: int) -> Iterable[str]:
        """Return at most `limit` tokens of the index that start with `beginning`."""

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
        """Return at most `limit` entries of the window that meet the conditions, in order."""


def _clauses(rows: Sequence[Sequence[str]], words: Iterable[str]) -> Iterator[Sequence[str]]:
    """Yield token lists. An entry with a word, or all tokens of a row, has a token of each list."""
    for position in range(max(map(len, rows), default=1)):
        yield sorted({*words, *(row[min(position, len(row) - 1)] for row in rows)})


def engine_on(connection: Connection, account_id: str, number: int) -> SearchEngine:
    """Return the index of the account, which has this number in the index."""
    return engine_type(is_file=connection.dialect.name == "sqlite")(connection, account_id, number)


def engine_type(*, is_file: bool) -> type[SearchEngine]:
    """Return the engine for a store in a file, or for a store on a server."""
    return _Sqlite if is_file else _Postgres


_COLUMNS: Final = ", ".join(f"r.{name}" for name in Entry._fields)


class _Sqlite(SearchEngine):
    """An FTS5 table without text, positions or lengths (`search_tokens`), and its list of tokens
    (`search_words`).

    A row ID consists of the account's number and, in the lower bits, the entry's number. An account
    is thus one range of rows, which FTS5 returns in order, so a search for common words reads few
    rows.
    """

    IS_IN_ORDER = True

    NUMBER_SHIFT = 40
    """The bits for the entry's number. The bits above them suffice for eight million accounts."""

    # One statement for all rows: between two statements, the thread might have to wait for others.
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
    # Finds each next word from the last one, and so skips the other occurrences of the last word.
    WORDS = (
        "WITH RECURSIVE words (term) AS (SELECT (SELECT term FROM search_words"
        " WHERE term >= ?1 AND term < ?2 LIMIT 1) UNION ALL SELECT (SELECT term FROM search_words"
        " WHERE term >= words.term || char(1) AND term < ?2 LIMIT 1) FROM words"
        " WHERE words.term IS NOT NULL LIMIT ?3 + 0) SELECT term FROM words WHERE term IS NOT NULL"
    )
    # CROSS JOIN fixes the order of the tables, so that rows are produced lazily and need no sort.
    # The document is read as bytes, or a document that is not UTF-8 would make the search fail.
    FIND = (
        f"SELECT e.seq, {{}}, {_COLUMNS} FROM search_tokens"
        " CROSS JOIN search_entries AS e"
        " ON e.account_id = ? AND e.seq = search_tokens.rowid - ?"
        " CROSS JOIN resumes AS r ON r.account_id = e.account_id AND r.id = e.id"
        " WHERE search_tokens MATCH ? AND search_tokens.rowid BETWEEN ? AND ?{}"
        " ORDER BY search_tokens.rowid {} LIMIT ? + 0"
    )
    # FTS5's own NOT would search beyond the window if it excludes all rows there (pitfalls S28).
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

    @staticmethod
    def text_of(tokens: Collection[str]) -> IndexText:
        return IndexText(" ".join(tokens))

    def add(self, entries: Sequence[tuple[int, str, IndexText]], *, is_last: bool) -> None:
        text = orjson.dumps([(seq, id_, text.tokens) for seq, id_, text in entries]).decode()
        run_many(self._connection, self.ADD_ENTRIES, [(self._account_id, text)])
        run_many(self._connection, self.ADD, [(self._base, text)])

    def replace(self, entry: EntryKey, text: IndexText) -> None:
        run_many(self._connection, self.REPLACE, [(text.tokens, self._base + entry[0])])

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


LISTED_CHARS: Final = 6
"""The minimum length of tokens that PostgreSQL lists: the group's letter, and a word that is longer
than the shortest beginning in a query. The beginning itself is always looked up."""


class _Postgres(SearchEngine):
    """A column of `search_entries` with the tokens of each entry, and a GIN index on this column.

    GIN returns no order, and filtering or sorting an account takes long. So there are also tokens
    for the parts of the account that contain the entry: a window is then a condition of the same
    index scan, which skips all entries outside of the window. The tokens of a GIN index cannot be
    listed, so the tokens of longer words are also in a table (`search_words`).
    """

    IS_IN_ORDER = False

    PARTS: ClassVar = {SMALL_UNIT: "q", LARGE_UNIT: "Q"}
    """The first letter of a part's token, by the part's size. No group uses these letters."""

    ADD = (
        "INSERT INTO search_entries (account_id, seq, id, words)"
        " SELECT %s, * FROM unnest(%b::bigint[], %b::text[], %b::text[])"
    )
    # Most words are in the table, and looking them up costs less than a conflict for each word.
    ADD_WORDS = (
        "INSERT INTO search_words (term) SELECT new FROM unnest(string_to_array(%s, ' ')) AS new"
        " WHERE new NOT IN"
        " (SELECT term FROM search_words WHERE term = ANY(string_to_array(%s, ' ')))"
        " ON CONFLICT DO NOTHING"
    )
    # Every search reads the index's pending list until it is merged, which only the owner may do.
    WRITE_PENDING = (
        "SELECT gin_clean_pending_list(oid) FROM pg_class"
        " WHERE oid = 'ix_search_entries_words'::regclass AND pg_has_role(relowner, 'USAGE')"
    )
    # With the number and the ID, either index finds the row directly. With only one of them,
    # PostgreSQL may scan the account in the wrong index, because without statistics for the account
    # both indexes seem to cost the same (pitfalls S24).
    THIS = " WHERE account_id = %s AND seq = %s AND id = %s"
    REPLACE = f"UPDATE search_entries SET words = %s{THIS}"
    REMOVE = f"DELETE FROM search_entries{THIS}"
    WORDS = "SELECT term FROM search_words WHERE term >= %s AND term < %s ORDER BY term LIMIT %s"
    # `IS TRUE` prevents a scan of the primary key, which would seem cheap without statistics for
    # the account (pitfalls S24). A sharded store needs the plain condition to find the account's
    # shard.
    IN_WINDOW = "(account_id = %s) IS TRUE AND search_keys(words) && %s::text[]"
    IN_WINDOW_OF_SHARD = "account_id = %s AND search_keys(words) && %s::text[]"
    HAS = " AND search_keys(words) && %s::text[]"
    FIND = (
        f"SELECT e.seq, {{}}, {_COLUMNS} FROM"
        " (SELECT seq, id FROM search_entries WHERE {} AND seq + 0 BETWEEN %s AND %s ORDER BY seq {}) e"
        " JOIN LATERAL (SELECT o.* FROM resumes o WHERE o.account_id = %s AND o.id = e.id LIMIT 1) r"
        " ON true WHERE {} ORDER BY e.seq {} LIMIT %s"
    )
    DOCUMENT = "(SELECT d.document FROM documents d WHERE d.account_id = %s AND d.id = r.id)"

    @staticmethod
    def text_of(tokens: Collection[str]) -> IndexText:
        # Sorted, which saves the server most of its own sorting and makes the stored text smaller.
        in_order = sorted(tokens)
        listed = [
            token
            for token in in_order
            if len(token) >= LISTED_CHARS and token[0] not in BY_BEGINNINGS
        ]
        return IndexText(" ".join(in_order), " ".join(listed))

    def add(self, entries: Sequence[tuple[int, str, IndexText]], *, is_last: bool) -> None:
        rows = [(seq, id_, self._with_parts(seq, text)) for seq, id_, text in entries]
        columns = ([row[column] for row in rows] for column in range(3))
        driver(self._connection).execute(self.ADD, [self._account_id, *columns])
        self._list(text for _, _, text in entries)
        if is_last:
            run_many(self._connection, self.WRITE_PENDING, [()])

    def replace(self, entry: EntryKey, text: IndexText) -> None:
        values = [self._with_parts(entry[0], text), self._account_id, *entry]
        run_many(self._connection, self.REPLACE, [values])
        self._list([text])

    def _with_parts(self, seq: int, text: IndexText) -> str:
        return " ".join([text.tokens, *(self._part(seq // unit, unit) for unit in self.PARTS)])

    def _part(self, part: int, unit: int) -> str:
        return f"{self.PARTS[unit]}{self._number}.{part}"

    def _list(self, texts: Iterable[IndexText]) -> None:
        # Sorted: transactions that lock rows in the same order cannot deadlock.
        words = " ".join(sorted(set(" ".join([text.listed for text in texts]).split())))
        run_many(self._connection, self.ADD_WORDS, [(words, words)])

    def remove(self, entries: Sequence[EntryKey]) -> None:
        run_many(self._connection, self.REMOVE, [(self._account_id, *entry) for entry in entries])

    def _iter_words(self, beginning: str, limit: int) -> Iterable[str]:
        values = [beginning, beginning + LAST_CHAR, limit]
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
        unit = window.unit
        parts = range(window.first // unit, window.last // unit + 1)
        in_window = [self._account_id, _array(self._part(part, unit) for part in parts)]
        window_condition = (
            self.IN_WINDOW_OF_SHARD if is_sharded(self._connection) else self.IN_WINDOW
        )
        condition = window_condition + self.HAS * len(lookup.some)
        of_document = [self._account_id] * with_documents
        values: list[str | int] = [*of_document, *in_window, *map(_array, lookup.some)]
        if lookup.none:
            without = f"SELECT seq FROM search_entries WHERE {window_condition}{self.HAS}"
            condition += f" AND seq NOT IN ({without})"
            values += [*in_window, _array(lookup.none)]
        document = self.DOCUMENT if with_documents else "NULL"
        order = "DESC" if is_newest_first else "ASC"
        has_label = "true" if lookup.label is None else "r.label = %s"
        statement = self.FIND.format(document, condition, order, has_label, order)
        labels = [] if lookup.label is None else [lookup.label]
        values += [window.first, window.last, self._account_id, *labels, limit]
        rows = driver(self._connection).execute(statement, values)
        return [Found(seq, Entry._make(columns), document) for seq, document, *columns in rows]


def _array(tokens: Iterable[str]) -> str:
    """Return the tokens as a PostgreSQL array literal."""
    return "{" + ",".join(f'"{token}"' for token in tokens) + "}"


# Unused words

CHECKED_WORDS: Final = 50
"""How many words one transaction checks. It is low because checking common words is slow."""

_NEXT_WORDS: Final = "SELECT term FROM search_words WHERE term > %s ORDER BY term LIMIT %s"
# Another transaction may be adding an entry with one of these words; it then adds the word later.
_LOCK_WORDS: Final = "LOCK TABLE search_words IN SHARE ROW EXCLUSIVE MODE"
_REMOVE_UNUSED: Final = (
    "DELETE FROM search_words w WHERE w.term = ANY(%s::text[]) AND NOT EXISTS"
    " (SELECT 1 FROM search_entries WHERE search_keys(words) && ARRAY[w.term])"
)
# Citus cannot join a local table with a distributed one in a DELETE.
_IS_USED: Final = "SELECT 1 FROM search_entries WHERE search_keys(words) && ARRAY[%s] LIMIT 1"
_REMOVE: Final = "DELETE FROM search_words WHERE term = ANY(%s::text[])"


def remove_unused_words(session: Session, after: str) -> str | None:
    """Check the next words after `after`, remove the unused ones, and return the last checked word.

    Return None if no words are left, and on SQLite, where the index itself is the list of words.
    """
    connection = session.connection()
    if connection.dialect.name == "sqlite":
        return None
    words = driver(connection).execute(_NEXT_WORDS, [after, CHECKED_WORDS]).fetchall()
    if not words:
        return None
    _remove_unused(session, [word for (word,) in words])
    return str(words[-1][0])


def _remove_unused(session: Session, words: Iterable[str]) -> None:
    connection = session.connection()
    run_many(connection, _LOCK_WORDS, [()])
    if not is_sharded(connection):
        run_many(connection, _REMOVE_UNUSED, [(_array(words),)])
        return
    run = driver(connection).execute
    unused = [word for word in words if run(_IS_USED, [word]).fetchone() is None]
    run_many(connection, _REMOVE, [(_array(unused),)])


MERGED_PAGES: Final = 64
"""How many pages of the index one transaction merges."""


def purge(store: Store, tokens: Iterable[str]) -> None:
    """Remove all traces of removed entries, which had these `tokens`, from the index.

    FTS5 keeps the tokens of removed rows until it merges the parts that contain them. This merges
    all parts, in many short transactions.
    """
    if store.path is None:
        words = sorted(tokens)
        for start in range(0, len(words), CHECKED_WORDS):
            some = words[start : start + CHECKED_WORDS]
            store.write(partial(_remove_unused, words=some))
        return

    pages = -MERGED_PAGES  # a negative number starts a merge of all parts
    while store.write(partial(merge, pages=pages)):
        pages = MERGED_PAGES


def merge(session: Session, pages: int = MERGED_PAGES) -> bool:
    """Merge parts of SQLite's index, so that a search reads fewer; return whether more are left.

    Each transaction adds a part. FTS5 itself merges four parts of similar size; this merges two.
    """
    connection = session.connection()
    if connection.dialect.name != "sqlite":
        return False
    raw = driver(connection)
    before = raw.total_changes
    raw.execute(_MERGE, [pages])
    return bool(raw.total_changes - before >= 2)  # as FTS5's documentation says


_MERGE: Final = "INSERT INTO search_tokens (search_tokens, rank) VALUES ('merge', ?)"
