"""Finding resumes by the words of their title, name and e-mail address.

Most answers come from the index, which is filled behind the creates (resumes.store.search_index).
What it does not hold yet is looked through one by one, and being the last in the order of ids it
simply follows. Both are compared by one rule (resumes.store.search_text), so an answer is the same
wherever the index ends.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, func, literal, select

from resumes.errors import InvalidArgument
from resumes.store import search_index
from resumes.store.identifiers import resume_id
from resumes.store.schema import resumes
from resumes.store.search_index import EMAIL, Progress
from resumes.store.search_text import holds, parse_terms, searched_words
from resumes.store.statements import Prepared, at_most
from resumes.store.store import Store
from resumes.store.stored_resumes import COLUMNS, MAX_LIMIT, Entry, Page, check_cursor

PATIENCE_S: Final = 0.05
"""How long resumes that are not indexed yet are looked through when nobody says otherwise."""

CHUNK: Final = 200
"""Resumes that are looked through at once: no statement reads for long."""

CANDIDATES: Final = 5_000
"""Of what the index gives, so many are compared before the clock is looked at: they are few unless
many have all the pieces of a term, and not the term."""

COUNTED: Final = 100_000
"""So many at most are counted of those that were not looked through."""


class Found(NamedTuple):
    """Resumes that hold the words; and how many after them were not looked through.

    `unindexed` is 0 if the page is full or the answer complete, and 100,000 for that many and more.
    """

    page: Page
    unindexed: int


NOT_INDEXED = Prepared(
    select(*COLUMNS, EMAIL)
    .where(resumes.c.account_id == bindparam("account_id"), resumes.c.id > bindparam("after"))
    .order_by(resumes.c.id)
    .limit(at_most("rows"))
)
_REST = (
    select(literal(1).label("one"))
    .where(resumes.c.account_id == bindparam("account_id"), resumes.c.id > bindparam("after"))
    .limit(at_most("most"))
    .subquery()
)
COUNT_REST = Prepared(select(func.count()).select_from(_REST))


def find_page(
    store: Store,
    account_id: str,
    words: str,
    *,
    cursor: str = "",
    limit: int = MAX_LIMIT,
    patience_s: float = PATIENCE_S,
    candidates: int = CANDIDATES,
    monotonic: Callable[[], float] = time.monotonic,
) -> Found:
    """The resumes after the cursor that hold all the words, oldest first, `limit` at most.

    Looked for are the words of a title as a list shows it, of `header.name` and of `header.email`,
    without regard to case and accents: three characters and more anywhere in a word, fewer where
    one begins. Only the first 200 characters and 10 words of `words` count, and the first 500
    characters of each field. The cursor is as in `list_page`, and `limit` is brought into 1 to 100.

    Resumes that are not indexed yet are looked through until `patience_s` are over; then the page
    ends there, and `unindexed` says how many were left. Of what the index gives, so many
    `candidates` are compared before the time is looked at. Raises InvalidArgument for blank words
    and a malformed cursor.
    """
    terms = parse_terms(words)
    if not terms:
        raise InvalidArgument("Nothing to search for: give a word, or a part of one")
    search = _Search(account_id, terms, check_cursor(cursor), max(1, min(limit, MAX_LIMIT)))
    ends_at = monotonic() + patience_s

    def is_late() -> bool:
        return monotonic() >= ends_at

    with store.read() as connection:
        progress = search_index.find_progress(connection, account_id)
        if progress is not None:
            search.ask_index(connection, progress, candidates, is_late)
        while not search.is_over and not is_late():
            search.look_through_some(connection)
        return Found(search.page(), search.count_rest(connection))


class _Search:
    """A page that fills up, one entry more than it has room for, to know whether more follows."""

    def __init__(self, account_id: str, terms: Sequence[str], after: str, limit: int) -> None:
        self._account_id = account_id
        self._terms = terms
        self._after = after
        self._limit = limit
        self._entries: list[Entry] = []
        self._is_at_end = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more is wanted, or nothing more there."""
        return self._is_at_end or len(self._entries) > self._limit

    def ask_index(
        self,
        connection: Connection,
        progress: Progress,
        candidates: int,
        is_late: Callable[[], bool],
    ) -> None:
        """Entries of the index are in the page; what was not compared comes after `_after`."""
        indexed = resume_id(progress.indexed_us, "f" * 8)
        if self._after >= indexed:
            return
        cursor = search_index.begin_candidates(
            connection, self._account_id, progress, self._terms, self._after
        )
        # Closed at once: a statement that is not at its end holds back the log.
        with contextlib.closing(cursor):
            for number, (words, *columns) in enumerate(cursor, 1):
                self._consider(words, columns)
                if self.is_over:
                    return
                if number % candidates == 0 and is_late():
                    self._after = columns[0]
                    return
        self._after = indexed

    def look_through_some(self, connection: Connection) -> None:
        """Some more resumes that are not indexed were compared."""
        rows = NOT_INDEXED.run(
            connection, account_id=self._account_id, after=self._after, rows=CHUNK
        ).fetchall()
        for *columns, email in rows:
            _, title, name, *_ = columns
            self._consider(searched_words(title, name, email), columns)
        if len(rows) < CHUNK:
            self._is_at_end = True
        else:
            self._after = rows[-1][0]

    def _consider(self, words: str, columns: Sequence[str]) -> None:
        if holds(words, self._terms):
            self._entries.append(Entry._make(columns))

    def page(self) -> Page:
        """What was found, and the cursor if more was."""
        entries = self._entries[: self._limit]
        has_more = len(self._entries) > self._limit
        return Page(entries, entries[-1].id if has_more else None)

    def count_rest(self, connection: Connection) -> int:
        """How many were not looked through, as `Found` says it."""
        if self.is_over:
            return 0
        (count,) = COUNT_REST.run(
            connection, account_id=self._account_id, after=self._after, most=COUNTED
        ).fetchone()
        return int(count)
