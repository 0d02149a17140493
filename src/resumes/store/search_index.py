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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Self

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update
from sqlmodel import Session

from resumes.analyzer import list_title, load_stored
from resumes.errors import ResumesError, StoreIncompatible
from resumes.store.identifiers import position_of, resume_id
from resumes.store.schema import (
    account_usage,
    accounts,
    documents,
    resumes,
    search_entries,
    search_progress,
)
from resumes.store.statements import (
    Prepared,
    document_email,
    driver,
    first_page,
    limit_param,
    looked_up,
    params_equal,
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


def _in_both_orders(sql: str) -> Mapping[bool, str]:
    """Return the statement for both orders; the key is whether the newest come first."""
    # Constant strings: a driver hashes and compares a new string each time.
    return {False: sql.format(order="ASC"), True: sql.format(order="DESC")}


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
CANDIDATES_SQLITE: Final = _in_both_orders(
    "SELECT e.words, r.id, r.title, r.name, r.filename, r.created_at, r.updated_at"
    " FROM search_trigrams"
    " CROSS JOIN search_entries AS e"
    " ON e.account_id = ? AND e.seq = search_trigrams.rowid - ?"
    " CROSS JOIN resumes AS r ON r.account_id = e.account_id AND r.id = e.id"
    " WHERE search_trigrams MATCH ? AND search_trigrams.rowid BETWEEN ? AND ?"
    " ORDER BY search_trigrams.rowid {order}"
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
CANDIDATES_POSTGRESQL: Final = _in_both_orders(
    "SELECT p.seq, e.words, r.id, r.title, r.name, r.filename, r.created_at, r.updated_at"
    " FROM search_trigrams p"
    " JOIN LATERAL (SELECT s.seq, s.id, s.words FROM search_entries s"
    " WHERE s.account_id = p.account_id AND s.seq >= p.seq ORDER BY s.seq LIMIT 1) e"
    " ON e.seq = p.seq"
    " JOIN LATERAL (SELECT o.* FROM resumes o"
    " WHERE o.account_id = p.account_id AND o.id = e.id LIMIT 1) r ON true"
    " WHERE p.account_id = %s AND p.seq BETWEEN %s AND %s AND p.trigrams @> %s::bigint[]"
    " ORDER BY p.seq {order} LIMIT %s"
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

_OF_ACCOUNT = params_equal(search_entries.c.account_id)
PROGRESS = Prepared(
    select(
        search_progress.c.number, search_progress.c.last_seq, search_progress.c.indexed_us
    ).where(pk_equals(search_progress))
)
NEXT_NUMBER = Prepared(select(func.coalesce(func.max(search_progress.c.number), 0) + 1))
# Has no effect if another process has taken the number.
ADD_PROGRESS = Prepared(upsert(search_progress).on_conflict_do_nothing(index_elements=["number"]))
MOVE_PROGRESS = Prepared(
    update(search_progress)
    .where(search_progress.c.account_id == bindparam("account"))
    .values(last_seq=bindparam("last_seq"), indexed_us=bindparam("indexed_us"))
)
OPEN_ACCOUNT = Prepared(
    select(accounts.c.id).where(pk_equals(accounts), accounts.c.closed_at.is_(None))
)
STORED_BETWEEN = Prepared(
    select(resumes.c.id).where(
        params_equal(resumes.c.account_id),
        resumes.c.id.between(bindparam("first"), bindparam("last")),
    )
)
ADD_ENTRY = Prepared(insert(search_entries))
_ENTRIES = select(search_entries.c.seq, search_entries.c.words).where(_OF_ACCOUNT)
ENTRY = Prepared(_ENTRIES.where(params_equal(search_entries.c.id)))
OLDEST_ENTRIES = Prepared(first_page(_ENTRIES, search_entries.c.seq))
REMOVE_ENTRY = Prepared(delete(search_entries).where(pk_equals(search_entries)))
_SEQ = select(search_entries.c.seq).where(_OF_ACCOUNT).limit(1)
SEQ_AFTER = Prepared(
    _SEQ.where(search_entries.c.id > bindparam("cursor")).order_by(search_entries.c.id)
)
SEQ_BEFORE = Prepared(
    _SEQ.where(search_entries.c.id < bindparam("cursor")).order_by(search_entries.c.id.desc())
)


EMAIL: Final = looked_up(
    document_email(documents.c.document), documents, resumes.c.account_id, resumes.c.id
)
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
    progress = PROGRESS.run(connection, account_id=account_id).fetchone()
    indexed = "" if progress is None else _last_id(progress[2])
    if not indexed or (cursor >= indexed and not is_newest_first):
        return indexed, (_ for _ in ())
    number, last, _ = progress
    seq = SEQ_BEFORE if is_newest_first else SEQ_AFTER
    row = seq.run(connection, account_id=account_id, cursor=cursor).fetchone()
    if is_newest_first:
        first, last = 0, -1 if row is None else row[0]
    else:
        first = last + 1 if row is None else row[0]
    trigrams = trigrams_of_terms(terms)
    if connection.dialect.name == "sqlite":
        base = number << NUMBER_SHIFT
        query = " AND ".join(sorted(map(_token, trigrams)))
        values = [account_id, base, query, base + first, base + last]
        return indexed, driver(connection).execute(CANDIDATES_SQLITE[is_newest_first], values)
    sql, hashes = CANDIDATES_POSTGRESQL[is_newest_first], _hashes(number, trigrams)

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
    connection = session.connection()
    _remove(connection, account_id, ENTRY.run(connection, account_id=account_id, id=resume_id))


def remove_oldest(session: Session, account_id: str, count: int) -> None:
    """Remove this many of the account's entries, oldest first, when the account is deleted."""
    connection = session.connection()
    _remove(
        connection, account_id, OLDEST_ENTRIES.run(connection, account_id=account_id, rows=count)
    )


def remove_strays(session: Session, account_id: str) -> None:
    """Remove trigrams of the account that have no entry, when the account is deleted.

    Only an edit by hand leaves some. In SQLite's table they stay, as no search finds them.
    """
    connection = session.connection()
    if connection.dialect.name == "postgresql":
        run_many(connection, REMOVE_ALL_POSTGRESQL, [[account_id]])


def _remove(connection: Connection, account_id: str, found: Any) -> None:
    entries: Sequence[tuple[int, str]] = found.fetchall()
    if not entries:
        return
    number, *_ = PROGRESS.run(connection, account_id=account_id).fetchone()
    if connection.dialect.name == "sqlite":
        run_many(connection, REMOVE_SQLITE, _fts_rows(number, entries))
    else:
        run_many(connection, REMOVE_POSTGRESQL, [[account_id, seq] for seq, _ in entries])
    rows = ({"account_id": account_id, "seq": seq} for seq, _ in entries)
    REMOVE_ENTRY.run_many(connection, rows)


def _begin_progress(connection: Connection, account_id: str) -> tuple[int, int, int]:
    while True:
        (number,) = NEXT_NUMBER.run(connection).fetchone()
        row = {"account_id": account_id, "number": number, "last_seq": 0, "indexed_us": 0}
        if ADD_PROGRESS.run(connection, **row).rowcount:
            return number, 0, 0


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
    # The account may have been closed while this waited for its row.
    if OPEN_ACCOUNT.run(connection, id=account_id).fetchone() is None:
        return None
    progress = PROGRESS.run(connection, account_id=account_id).fetchone()
    if some.after_us != (0 if progress is None else progress[2]):
        return None
    number, last_seq, _ = progress or _begin_progress(connection, account_id)
    first, last = (some.words[0][0], some.words[-1][0]) if some.words else ("", "")
    found = STORED_BETWEEN.run(connection, account_id=account_id, first=first, last=last)
    stored = {resume_id for (resume_id,) in found.fetchall()}
    entries = list(enumerate((row for row in some.words if row[0] in stored), last_seq + 1))
    rows = (
        {"account_id": account_id, "seq": seq, "id": resume_id, "words": words}
        for seq, (resume_id, words) in entries
    )
    ADD_ENTRY.run_many(connection, rows)
    words = [(seq, text) for seq, (_, text) in entries]
    if connection.dialect.name == "sqlite":
        run_many(connection, ADD_SQLITE, _fts_rows(number, words))
    else:
        hashed = ((seq, _hashes(number, trigrams_of_words(text))) for seq, text in words)
        run_many(connection, ADD_POSTGRESQL, [[account_id, *row] for row in hashed])
    last_seq += len(entries)
    MOVE_PROGRESS.run(connection, account=account_id, last_seq=last_seq, indexed_us=some.up_to_us)
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

DEADLINE_S: Final = 2.0

FAILURE: Final = "The search index cannot be updated; will retry"

DAMAGED: Final = (
    "The account %s has %s, which searches do not find. `resumes db check` says what to do"
)

_INDEXED_US = func.coalesce(search_progress.c.indexed_us, 0)
BEHIND = Prepared(
    select(account_usage.c.account_id, account_usage.c.last_id_us, _INDEXED_US)
    .join(accounts, accounts.c.id == account_usage.c.account_id)
    .outerjoin(search_progress, search_progress.c.account_id == account_usage.c.account_id)
    .where(account_usage.c.last_id_us > _INDEXED_US, accounts.c.closed_at.is_(None))
    .order_by(account_usage.c.account_id)
    .limit(limit_param("accounts"))
)
_NEXT_IDS = first_page(
    select(resumes.c.id).where(
        params_equal(resumes.c.account_id),
        resumes.c.id > bindparam("after"),
        resumes.c.id <= bindparam("last"),
    ),
    resumes.c.id,
)
NEXT_IDS = Prepared(_NEXT_IDS)
NEXT = Prepared(_NEXT_IDS.add_columns(resumes.c.title, resumes.c.name, EMAIL))
ONE = Prepared(
    select(
        resumes.c.title,
        resumes.c.name,
        looked_up(documents.c.document, documents, resumes.c.account_id, resumes.c.id),
    ).where(pk_equals(resumes))
)


def list_behind(store: Store) -> Sequence[tuple[str, int, int]]:
    """Return id, newest position and indexed position of accounts not fully indexed, 50 at most."""
    return store.fetch(BEHIND, accounts=SLICE_ACCOUNTS)


def _read_slices(store: Store, behind: Iterable[tuple[str, int, int]]) -> list[_Slice]:
    slices: list[_Slice] = []
    room = SLICE_RESUMES
    for account_id, newest_us, indexed_us in behind:
        words, damaged = _read_words(
            store,
            account_id,
            after=_last_id(indexed_us),
            # Resumes that are created later are read later; their ids may be between these.
            last=_last_id(newest_us),
            rows=room,
        )
        is_all = len(words) < room
        up_to_us = newest_us if is_all else position_of(words[-1][0])
        slices.append(_Slice(account_id, indexed_us, up_to_us, words, damaged))
        room -= len(words)
        if room == 0:
            break
    return slices


def _read_words(store: Store, account_id: str, **page: Any) -> tuple[list[tuple[str, str]], int]:
    """Return the id and the words of each resume on the page, and the number of damaged resumes."""
    try:
        rows = store.fetch(NEXT, account_id=account_id, **page)
        return [(resume_id, searched_words(*fields)) for resume_id, *fields in rows], 0
    except (ResumesError, TypeError):  # perhaps because of one damaged resume
        ids = store.fetch(NEXT_IDS, account_id=account_id, **page)
    found = {resume_id: _find_words(store, account_id, resume_id) for (resume_id,) in ids}
    damaged = sum(words is None for words in found.values())
    return [(resume_id, words or "") for resume_id, words in found.items()], damaged


def _find_words(store: Store, account_id: str, resume_id: str) -> str | None:
    """Return the words of one resume; None if it is damaged, empty if it is gone."""
    with contextlib.suppress(StoreIncompatible, TypeError):
        for title, name, document in store.fetch(ONE, account_id=account_id, id=resume_id):
            email = None if document is None else load_stored(document)["header"].get("email")
            return searched_words(title, name, email if isinstance(email, str) else None)
        return ""
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
        newest_us = max(newest_us for _, newest_us, _ in behind)
        more_came, self._newest_us = newest_us > self._newest_us, newest_us
        is_busy = self._is_busy()
        if not is_added:
            return YIELD_S
        if sum(len(some.words) for some in slices) < SLICE_RESUMES:
            return self._interval_s
        share = BUSY_SHARE if more_came or is_busy else IDLE_SHARE
        return took_s * (1 / share - 1)
