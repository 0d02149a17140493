"""The search index: an entry for each resume, the trigrams that lead to it, and the indexer.

Entries are numbered in the order of ids. Trigrams are in an FTS5 table on SQLite, and in an array with a
GIN index on PostgreSQL, which needs no extension. A search compares the index's candidates with the
terms again, so the index may return too many, but never too few.
"""

import contextlib
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Self

import sqlalchemy
from sqlalchemy import Connection, delete, func, insert
from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar

from resumes.analyzer import list_title, load_stored
from resumes.errors import ResumesError, StoreIncompatible
from resumes.store.entry import Entry
from resumes.store.identifiers import position_of, resume_id
from resumes.store.schema import (
    Account,
    Document,
    ResumeRow,
    SearchEntry,
    SearchProgress,
    account_usage,
    accounts,
    documents,
    resumes,
    search_entries,
    search_progress,
)
from resumes.store.statements import (
    document_email,
    driver,
    in_order,
    looked_up,
    pk_equals,
    run_many,
    upsert,
)
from resumes.store.store import Store, as_write
from resumes.text import TRIGRAM_CHARS, WORD_BEGINS, counted, folded

# Words and their trigrams

MAX_FIELD_CHARS: Final = 500
"""How many characters of each field are searched; a title may have 20,000."""

SHORT_TERM_CHARS: Final = 8
"""Terms up to this length are looked up by all their trigrams."""

_BEGINNINGS = re.compile(rf"(?:{WORD_BEGINS})(?=(\S\S?))")


def searched_words(title: str | None, name: str | None, email: str | None) -> str:
    """Return the words of a resume, folded, each once, with one blank between them.

    Only the first 500 characters of each field count.
    """
    fields = (list_title(title, name), name or "", email or "")
    words = " ".join(field[:MAX_FIELD_CHARS] for field in fields)
    return " ".join(dict.fromkeys(folded(words).split()))


def trigrams_of_words(words: str) -> set[str]:
    """Return the trigrams of the words, and the first one and two characters of each word, by which
    shorter terms are looked up."""
    trigrams = set(_BEGINNINGS.findall(words))
    trigrams.update([beginning[0] for beginning in trigrams])
    for word in words.split(" "):
        trigrams.update([word[at : at + 3] for at in range(len(word) - 2)])
    return trigrams


def trigrams_of_terms(terms: Iterable[str]) -> set[str]:
    """Return trigrams that all words with these terms have; other words may have them too.

    For a short term these are all its trigrams: `comple` has only one that `example.com` lacks. For a
    long term they are every other trigram and the last: together they cover its characters, and each
    trigram costs a scan of all entries that have it.
    """
    trigrams = set()
    for term in terms:
        last = max(0, len(term) - TRIGRAM_CHARS)
        step = 1 if len(term) <= SHORT_TERM_CHARS else 2
        trigrams.update([term[at : at + TRIGRAM_CHARS] for at in (*range(0, last, step), last)])
    return trigrams


# The tables of trigrams


_ENTRY: Final = ", ".join(f"r.{name}" for name in Entry._fields)

# Trigrams on SQLite. An entry's row id is the account's number, and below it the entry's own. So an
# account is one range of rows, FTS5 gives rows with certain trigrams in the order of ids, and a search
# for common words ends early. Trigrams go in and are looked up as hexadecimal digits: nothing that
# people type reaches FTS5's query language, and its tokenizer has nothing to decide.

NUMBER_SHIFT: Final = 40
"""The number of bits for an account's entries; the bits above are for some eight million accounts."""

ADD_SQLITE: Final = "INSERT INTO search_trigrams (rowid, trigrams) VALUES (?, ?)"
# The table stores no text, so deleting a row needs the text that was inserted.
REMOVE_SQLITE: Final = (
    "INSERT INTO search_trigrams (search_trigrams, rowid, trigrams) VALUES ('delete', ?, ?)"
)
# CROSS JOIN fixes the order of the tables, so that rows are produced lazily and need no sort.
CANDIDATES_SQLITE: Final = (
    f"SELECT e.words, {_ENTRY} FROM search_trigrams"
    " CROSS JOIN search_entries AS e"
    " ON e.account_id = ? AND e.seq = search_trigrams.rowid - ?"
    " CROSS JOIN resumes AS r ON r.account_id = e.account_id AND r.id = e.id"
    " WHERE search_trigrams MATCH ? AND search_trigrams.rowid BETWEEN ? AND ?"
    " ORDER BY search_trigrams.rowid "
)

# Trigrams on PostgreSQL. Each is hashed together with the account's number to 64 bits, so that trigrams
# that many accounts have are not common in the index. Two trigrams may have the same hash.

CANDIDATE_ROWS: Final = 500
"""How many entries one statement returns, since the reader may not need more."""

ADD_POSTGRESQL: Final = (
    "INSERT INTO search_trigrams (account_id, seq, trigrams) VALUES (%s, %s, %s)"
)
REMOVE_POSTGRESQL: Final = "DELETE FROM search_trigrams WHERE account_id = %s AND seq = %s"
REMOVE_ALL_POSTGRESQL: Final = "DELETE FROM search_trigrams WHERE account_id = %s"
# Lookups rather than joins (see `looked_up`), with limits so that they remain such. An entry is the
# first one from its number on: in that order only the index of numbers gives it without a sort.
CANDIDATES_POSTGRESQL: Final = (
    f"SELECT p.seq, e.words, {_ENTRY} FROM search_trigrams p"
    " JOIN LATERAL (SELECT s.seq, s.id, s.words FROM search_entries s"
    " WHERE s.account_id = p.account_id AND s.seq >= p.seq ORDER BY s.seq LIMIT 1) e"
    " ON e.seq = p.seq"
    " JOIN LATERAL (SELECT o.* FROM resumes o"
    " WHERE o.account_id = p.account_id AND o.id = e.id LIMIT 1) r ON true"
    " WHERE p.account_id = %s AND p.seq BETWEEN %s AND %s AND p.trigrams @> %s::bigint[]"
    " ORDER BY p.seq "
)


def _fts_rows(number: int, entries: Iterable[tuple[int, str]]) -> list[list[Any]]:
    base = number << NUMBER_SHIFT
    return [[base + seq, " ".join(map(_token, trigrams_of_words(words)))] for seq, words in entries]


def _token(trigram: str) -> str:
    return trigram.encode("utf-8", "surrogatepass").hex()


def _hashes(number: int, trigrams: Iterable[str]) -> str:
    texts = (f"{number} {trigram}".encode("utf-8", "surrogatepass") for trigram in trigrams)
    digests = (blake2b(text, digest_size=8).digest() for text in texts)
    return f"{{{','.join(sorted(str(int.from_bytes(digest, signed=True)) for digest in digests))}}}"


# The index

EMAIL: Final = looked_up(
    document_email(documents.c.document), documents, resumes.c.account_id, resumes.c.id
).label("email")
"""The email address of a resume, for statements that select from `resumes`."""


def find_candidates(
    connection: Connection,
    account_id: str,
    terms: Iterable[str],
    cursor: str,
    *,
    is_newest_first: bool = False,
) -> tuple[str, Any]:
    """Return the id up to which the account is indexed, and its indexed resumes after `cursor` that may
    hold the terms: an iterator in the order of ids, which the caller closes. With the newest first
    it is those before `cursor`, in the reverse order.

    A row has the resume's words and then the columns of an `Entry`. The id is empty if no resume of the
    account is indexed yet.
    """
    this = pk_equals(search_progress, account_id)
    progress = connection.execute(sqlalchemy.select(search_progress).where(this)).one_or_none()
    indexed = "" if progress is None else _last_id(progress.indexed_us)
    if progress is None or (cursor >= indexed and not is_newest_first):
        return indexed, (_ for _ in ())
    number, order = progress.number, "DESC" if is_newest_first else "ASC"
    entries = search_entries.c
    seqs = sqlalchemy.select(entries.seq).where(entries.account_id == account_id).limit(1)
    seqs = in_order(seqs, entries.id, cursor, is_newest_first=is_newest_first)
    seq = connection.execute(seqs).scalar_one_or_none()
    if is_newest_first:
        first, last = 0, -1 if seq is None else seq
    else:
        first, last = progress.last_seq + 1 if seq is None else seq, progress.last_seq
    trigrams = trigrams_of_terms(terms)
    # These two go past SQLAlchemy, since a common word has thousands of rows.
    if connection.dialect.name == "sqlite":
        base = number << NUMBER_SHIFT
        query = " AND ".join(sorted(map(_token, trigrams)))
        values = [account_id, base, query, base + first, base + last]
        return indexed, driver(connection).execute(CANDIDATES_SQLITE + order, values)
    sql, hashes = f"{CANDIDATES_POSTGRESQL}{order} LIMIT %s", _hashes(number, trigrams)

    def iter_rows(first: int, last: int) -> Iterator[Sequence[Any]]:
        while True:
            values = [account_id, first, last, hashes, CANDIDATE_ROWS]
            rows = driver(connection).execute(sql, values).fetchall()
            yield from (row for _, *row in rows)
            if len(rows) < CANDIDATE_ROWS:
                return
            seq = rows[-1][0]
            first, last = (first, seq - 1) if is_newest_first else (seq + 1, last)

    return indexed, iter_rows(first, last)


def remove(session: Session, account_id: str, resume_id: str) -> None:
    """Remove the resume from the index, in the transaction that deletes it."""
    entries = select(SearchEntry).where(SearchEntry.account_id == account_id)
    _remove(session, account_id, entries.where(SearchEntry.id == resume_id))


def remove_oldest(session: Session, account_id: str, count: int) -> None:
    """Remove this many of the account's entries, oldest first, when the account is deleted."""
    entries = select(SearchEntry).where(SearchEntry.account_id == account_id)
    _remove(session, account_id, entries.order_by(col(SearchEntry.seq)).limit(count))


def remove_strays(session: Session, account_id: str) -> None:
    """Remove trigrams of the account that have no entry, when the account is deleted.

    Only an edit by hand leaves some. In SQLite's table they stay, as no search finds them.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.connection().exec_driver_sql(REMOVE_ALL_POSTGRESQL, (account_id,))


def _remove(session: Session, account_id: str, entries: SelectOfScalar[SearchEntry]) -> None:
    words = {entry.seq: entry.words for entry in session.exec(entries)}
    if not words:
        return
    connection = session.connection()
    if connection.dialect.name == "sqlite":
        number = session.get_one(SearchProgress, account_id).number
        run_many(connection, REMOVE_SQLITE, _fts_rows(number, words.items()))
    else:
        run_many(connection, REMOVE_POSTGRESQL, [[account_id, seq] for seq in words])
    these = search_entries.c.account_id == account_id, search_entries.c.seq.in_(words)
    session.exec(delete(search_entries).where(*these))


def _begin_progress(session: Session, account_id: str) -> SearchProgress:
    number = select(func.coalesce(func.max(SearchProgress.number), 0) + 1).scalar_subquery()
    row = {"account_id": account_id, "number": number, "last_seq": 0, "indexed_us": 0}
    # Has no effect if another process has taken the number.
    statement = upsert(search_progress, session.get_bind().dialect).values(row)
    while True:
        session.exec(statement.on_conflict_do_nothing(index_elements=["number"]))
        if progress := session.get(SearchProgress, account_id):
            return progress


class _Slice(NamedTuple):
    """All resumes of an account between two positions, to be indexed next."""

    account_id: str
    after_us: int
    up_to_us: int
    words: Sequence[tuple[str, str]]
    """The id and the words of each resume; a damaged resume has no words."""
    damaged: int
    """The number of damaged resumes."""


def _add_slice(some: _Slice, session: Session) -> float | None:
    """Index the slice, except resumes deleted since it was read; return how many seconds that took.

    Do nothing and return None if another indexer has added it or the account is gone.
    """
    began_s = time.perf_counter()
    account_id = some.account_id
    connection = session.connection()
    account = session.get(Account, account_id)
    # The account may have been closed while this waited for its row.
    if account is None or account.closed_at is not None:
        return None
    progress = session.get(SearchProgress, account_id)
    if some.after_us != (0 if progress is None else progress.indexed_us):
        return None
    progress = progress or _begin_progress(session, account_id)
    these = col(ResumeRow.id).in_([resume_id for resume_id, _ in some.words])
    of_account = ResumeRow.account_id == account_id
    stored = set(session.exec(select(ResumeRow.id).where(of_account, these)))
    kept = (row for row in some.words if row[0] in stored)
    entries = list(enumerate(kept, progress.last_seq + 1))
    rows = [
        {"account_id": account_id, "seq": seq, "id": resume_id, "words": words}
        for seq, (resume_id, words) in entries
    ]
    if rows:
        session.exec(insert(search_entries), params=rows)
    words = [(seq, text) for seq, (_, text) in entries]
    if connection.dialect.name == "sqlite":
        run_many(connection, ADD_SQLITE, _fts_rows(progress.number, words))
    else:
        hashed = ((seq, _hashes(progress.number, trigrams_of_words(text))) for seq, text in words)
        run_many(connection, ADD_POSTGRESQL, [[account_id, *row] for row in hashed])
    progress.last_seq += len(rows)
    progress.indexed_us = some.up_to_us
    session.flush()
    return time.perf_counter() - began_s


def _last_id(position_us: int) -> str:
    return resume_id(position_us, "f" * 8)


# The indexer

logger = logging.getLogger("resumes.store")

INTERVAL_S: Final = 0.5
"""How often the indexer checks for new resumes."""

SLICE_RESUMES: Final = 200
"""How many resumes, of one or more accounts, one transaction indexes."""

SLICE_ACCOUNTS: Final = 50

IDLE_SHARE: Final = 0.5
"""The share of the time that indexing takes while there is much to index."""

BUSY_SHARE: Final = 0.04
"""The share while resumes arrive faster than they are indexed, or the process has requests to answer."""

YIELD_S: Final = 2.0
"""The pause after another indexer was faster."""

RETRY_S: Final = 5.0
"""The pause after a failure."""

DEADLINE_S: Final = 10.0
"""How long a slice waits for its turn: the first slices of many accounts wait for each other."""

FAILURE: Final = "The search index cannot be updated; will retry"

DAMAGED: Final = (
    "The account %s has %s, which searches do not find. `resumes db check` says what to do"
)

_INDEXED_US = func.coalesce(search_progress.c.indexed_us, 0)
_BEHIND: Final = (
    sqlalchemy.select(*account_usage.columns, _INDEXED_US.label("indexed_us"))
    .join(accounts, accounts.c.id == account_usage.c.account_id)
    .outerjoin(search_progress, search_progress.c.account_id == account_usage.c.account_id)
    .where(account_usage.c.last_id_us > _INDEXED_US, accounts.c.closed_at.is_(None))
    .order_by(account_usage.c.account_id)
    .limit(SLICE_ACCOUNTS)
)


def list_behind(store: Store) -> Sequence[Any]:
    """Return `account_id`, `last_id_us` and `indexed_us` of accounts not fully indexed, 50 at most."""
    return store.fetch(_BEHIND)


def _read_slices(store: Store, behind: Iterable[Any]) -> list[_Slice]:
    slices: list[_Slice] = []
    room = SLICE_RESUMES
    for account in behind:
        of_account = resumes.c.account_id == account.account_id
        # Resumes that are created later are read later; their ids may be between these.
        known = resumes.c.id <= _last_id(account.last_id_us)
        page = sqlalchemy.select(resumes.c.id).where(of_account, known).limit(room)
        page = in_order(page, resumes.c.id, _last_id(account.indexed_us))
        words, damaged = _read_words(store, account.account_id, page)
        is_all = len(words) < room
        up_to_us = account.last_id_us if is_all else position_of(words[-1][0])
        slices.append(_Slice(account.account_id, account.indexed_us, up_to_us, words, damaged))
        room -= len(words)
        if room == 0:
            break
    return slices


def _read_words(
    store: Store, account_id: str, page: sqlalchemy.Select[Any]
) -> tuple[list[tuple[str, str]], int]:
    """Return the id and the words of each resume on the page, and the number of damaged resumes."""
    try:
        rows = store.fetch(page.add_columns(resumes.c.title, resumes.c.name, EMAIL))
        return [(row.id, searched_words(row.title, row.name, row.email)) for row in rows], 0
    except (ResumesError, TypeError):  # perhaps because of one damaged resume
        ids = [row.id for row in store.fetch(page)]
    found = {resume_id: _find_words(store, account_id, resume_id) for resume_id in ids}
    damaged = sum(words is None for words in found.values())
    return [(resume_id, words or "") for resume_id, words in found.items()], damaged


def _find_words(store: Store, account_id: str, resume_id: str) -> str | None:
    """Return the words of one resume; None if it is damaged, empty if it is gone."""
    with contextlib.suppress(StoreIncompatible, TypeError), store.session() as session:
        row = session.get(ResumeRow, (account_id, resume_id))
        stored = session.get(Document, (account_id, resume_id))
        if row is None:
            return ""
        email = None if stored is None else load_stored(stored.document)["header"].get("email")
        return searched_words(row.title, row.name, email if isinstance(email, str) else None)
    return None


class Indexer:
    """A thread that indexes resumes after their creates; it runs while the context is entered.

    A resume is indexed within a second of its create, or later while creates keep the store busy or,
    as `is_busy` says, requests keep the process busy. A failure is logged once and retried. A store
    may have several indexers, in any number of processes.
    """

    def __init__(
        self,
        store: Store,
        *,
        interval_s: float = INTERVAL_S,
        retry_s: float = RETRY_S,
        clock: Callable[[], float] = time.perf_counter,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._is_busy = is_busy
        self._interval_s = interval_s
        self._retry_s = retry_s
        self._clock = clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="search-indexer", daemon=True)
        self._idle_version: int | None = None
        """The store's `read_version` when everything was indexed."""
        self._newest_us = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._store.threads.append(self._thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._store.threads.remove(self._thread)
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        pause_s = self._interval_s
        is_failing = False
        while not self._stopping.wait(pause_s):
            try:
                pause_s = self.step()
                is_failing = False
            except (
                Exception
            ) as error:  # the thread's edge: nothing here may end it, logging neither
                with contextlib.suppress(Exception):
                    if not is_failing and isinstance(error, ResumesError):
                        logger.warning("%s: %s", FAILURE, error.message)
                    elif not is_failing:
                        logger.error(FAILURE, exc_info=error)
                is_failing = True
                pause_s = self._retry_s

    def step(self) -> float:
        """Index the next resumes, if any; return the seconds until the next step is due.

        Raises what `Store.write` raises.
        """
        version = self._store.read_version()
        if version is not None and version == self._idle_version:
            return self._interval_s
        began_s = self._clock()
        behind = list_behind(self._store)
        if not behind:
            self._idle_version = version
            return self._interval_s
        slices = _read_slices(self._store, behind)
        took_s = self._clock() - began_s
        is_added = False
        writes = [
            as_write(partial(_add_slice, some), some.account_id, DEADLINE_S) for some in slices
        ]
        for some, outcome in zip(slices, self._store.commit(writes), strict=True):
            if isinstance(outcome, BaseException):
                raise outcome
            if outcome is not None:
                is_added, took_s = True, took_s + outcome
                if some.damaged:
                    logger.warning(
                        DAMAGED, some.account_id, counted(some.damaged, "damaged resume")
                    )
        newest_us = max(account.last_id_us for account in behind)
        more_came, self._newest_us = newest_us > self._newest_us, newest_us
        is_busy = self._is_busy()
        if not is_added:
            return YIELD_S
        if sum(len(some.words) for some in slices) < SLICE_RESUMES:
            return self._interval_s
        share = BUSY_SHARE if more_came or is_busy else IDLE_SHARE
        return took_s * (1 / share - 1)
