"""Search of an account's resumes by the words of their title, name and e-mail address.

A resume's words are its title as a list shows it, its name and its e-mail address, without case
and accents. A term of a search is found in them anywhere if it has three characters or more, and
where a word begins if it has fewer.

Most answers come from the index, which is written behind the creates (resumes.store.search_index).
Resumes that are not indexed yet have the last ids, so they are looked through one by one after that.
Both are compared by one rule (`holds`), so an answer does not depend on how far the index reaches.
"""

import contextlib
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, bindparam, func, literal, select

from resumes.errors import InvalidArgument
from resumes.store.identifiers import AFTER_ALL
from resumes.store.schema import resumes
from resumes.store.search_index import EMAIL, TRIGRAM_CHARS, find_candidates, searched_words
from resumes.store.statements import Prepared, at_most, first_page, iter_pages
from resumes.store.store import Store
from resumes.store.stored_resumes import COLUMNS, MAX_LIMIT, Entry, Page, check_cursor
from resumes.text import folded

MAX_TEXT_CHARS: Final = 200
MAX_TERMS: Final = 10

TIMEOUT_S: Final = 0.05
"""How long resumes that are not indexed yet are looked through when nobody says otherwise."""

PAGE_ROWS: Final = 200
"""Resumes that are looked through at once: no statement reads for long."""

CANDIDATES: Final = 5_000
"""Of what the index gives, so many are compared before the clock is looked at: they are few unless
many have all the trigrams of a term, and not the term."""

MAX_UNINDEXED: Final = 100_000
"""So many at most are counted of those that were not looked through."""


def parse_terms(text: str) -> list[str]:
    """Return the words to look for, folded, each once; none for a blank text.

    Of the text the first 200 characters count, and of those the first 10 words.
    """
    return list(dict.fromkeys(folded(text[:MAX_TEXT_CHARS]).split()))[:MAX_TERMS]


def holds(words: str, terms: Iterable[str]) -> bool:
    """Return whether the words of a resume hold all the terms."""
    return all(
        term in words if len(term) >= TRIGRAM_CHARS else _begins(words, term) for term in terms
    )


def _begins(words: str, term: str) -> bool:
    """Return whether a word, or what follows a mark inside of one, begins with the term."""
    at = words.find(term)
    while at > 0 and words[at - 1].isalnum():
        at = words.find(term, at + 1)
    return at >= 0


class SearchResult(NamedTuple):
    """Resumes that hold the words; and how many after them were not looked through.

    `unindexed` is 0 if the page is full or the answer complete, and 100,000 for that many and more.
    """

    page: Page
    unindexed: int


_BETWEEN = (
    resumes.c.account_id == bindparam("account_id"),
    resumes.c.id > bindparam("after"),
    resumes.c.id < bindparam("before"),
)
_NOT_INDEXED = select(*COLUMNS, EMAIL).where(*_BETWEEN)
NOT_INDEXED = Prepared(first_page(_NOT_INDEXED, resumes.c.id))
NEWEST_NOT_INDEXED = Prepared(first_page(_NOT_INDEXED, resumes.c.id.desc()))
_REST = select(literal(1).label("one")).where(*_BETWEEN).limit(at_most("rows")).subquery()
COUNT_REST = Prepared(select(func.count()).select_from(_REST))


def find_page(
    store: Store,
    account_id: str,
    words: str,
    *,
    cursor: str = "",
    limit: int = MAX_LIMIT,
    is_newest_first: bool = False,
    timeout_s: float = TIMEOUT_S,
    monotonic: Callable[[], float] = time.monotonic,
) -> SearchResult:
    """Return the resumes after the cursor that hold all the words, oldest first, `limit` at most.

    Looked for are the words of a title as a list shows it, of `header.name` and of `header.email`,
    without regard to case and accents: three characters and more anywhere in a word, fewer where
    one begins. Only the first 200 characters and 10 words of `words` count, and the first 500
    characters of each field. The cursor is as in `list_page`, and `limit` is brought into 1 to 100.
    With the newest first it is the resumes before the cursor, in the reverse order.

    Resumes that are not indexed yet are looked through until `timeout_s` is over; then the page
    ends there, and `unindexed` says how many were left. Raises InvalidArgument for blank words and
    a malformed cursor.
    """
    terms = parse_terms(words)
    if not terms:
        raise InvalidArgument("Nothing to search for: give a word or part of one")
    after = check_cursor(cursor)
    limit = max(1, min(limit, MAX_LIMIT))
    deadline = monotonic() + timeout_s
    with store.read() as connection:
        scan = _Scan(connection, account_id, terms, after, lambda: monotonic() >= deadline)
        # Closed at once: a statement that is not at its end holds back the log.
        with contextlib.closing(
            scan.iter_newest() if is_newest_first else scan.iter_found()
        ) as found:
            entries = list(islice(found, limit + 1))
        if len(entries) > limit:
            return SearchResult(Page(entries[:limit], entries[limit - 1].id), 0)
        return SearchResult(Page(entries, scan.goes_on_at), scan.count_rest())


class _Scan:
    """A walk through an account's resumes in the order of ids, as far as there is time."""

    def __init__(
        self,
        connection: Connection,
        account_id: str,
        terms: Sequence[str],
        after: str,
        is_late: Callable[[], bool],
    ) -> None:
        self._connection = connection
        self._account_id = account_id
        self._terms = terms
        self._after: str | None = after
        """Up to which id all were compared; None: all that there are."""
        self._before = AFTER_ALL
        """From which id on all were compared, with the newest first."""
        self.goes_on_at: str | None = None
        """Where the next page begins although this one is not full."""
        self._is_late = is_late

    def iter_found(self) -> Generator[Entry, None, None]:
        """Yield the resumes that hold the terms, until it is late."""
        after = self._after or ""
        indexed, candidates = find_candidates(
            self._connection, self._account_id, self._terms, after
        )
        with contextlib.closing(candidates):
            for number, (words, *columns) in enumerate(candidates, 1):
                if holds(words, self._terms):
                    yield Entry._make(columns)
                if number % CANDIDATES == 0 and self._is_late():
                    self._after = columns[0]
                    return
        self._after = after = max(after, indexed)
        if self._is_late():
            return
        for page in iter_pages(self._read_page, PAGE_ROWS, after=after):
            yield from self._compare(page)
            self._after = page[-1][0]
            if self._is_late():
                return
        self._after = None

    def iter_newest(self) -> Generator[Entry, None, None]:
        """Yield the resumes that hold the terms, the newest first: first those without an entry, until
        it is late."""
        before = self._after or AFTER_ALL
        indexed, candidates = find_candidates(
            self._connection, self._account_id, self._terms, before, is_newest_first=True
        )
        with contextlib.closing(candidates):
            self._after, self._before = indexed, before
            for page in iter_pages(self._read_newest, PAGE_ROWS, after=before):
                yield from self._compare(page)
                self._before = page[-1][0]
                if self._is_late():
                    break
            else:
                self._after = None
            for number, (words, *columns) in enumerate(candidates, 1):
                if holds(words, self._terms):
                    yield Entry._make(columns)
                if number % CANDIDATES == 0 and self._is_late():
                    self.goes_on_at = columns[0]
                    return

    def _compare(self, page: Iterable[Any]) -> Iterator[Entry]:
        for *columns, email in page:
            _, title, name, *_ = columns
            if holds(searched_words(title, name, email), self._terms):
                yield Entry._make(columns)

    def _read_page(self, after: str) -> Any:
        return self._read(NOT_INDEXED, after, AFTER_ALL)

    def _read_newest(self, before: str) -> Any:
        return self._read(NEWEST_NOT_INDEXED, self._after or "", before)

    def _read(self, statement: Prepared, after: str, before: str) -> Any:
        return statement.run(
            self._connection,
            account_id=self._account_id,
            after=after,
            before=before,
            rows=PAGE_ROWS,
        ).fetchall()

    def count_rest(self) -> int:
        """Return how many were not compared, as `SearchResult` says it."""
        if self._after is None:
            return 0
        (count,) = COUNT_REST.run(
            self._connection,
            account_id=self._account_id,
            after=self._after,
            before=self._before,
            rows=MAX_UNINDEXED,
        ).fetchone()
        return int(count)
