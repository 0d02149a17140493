"""Search of an account's resumes by the words of their title, name and email address.

A resume's words are its title as a list shows it, its name and its email address, without case
and accents. A term of a search is found in them anywhere if it has three characters or more, and
where a word begins if it has fewer (`find_term`).

Most results come from the index, which is written after the creates (resumes.store.search_index).
Resumes that are not indexed yet have the last ids, so they are searched one by one after that.
Both are compared by the same rule (`holds`), so a result does not depend on the index's progress.
"""

import contextlib
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Select, func, select

from resumes.errors import InvalidArgument
from resumes.store.entry import Entry
from resumes.store.schema import resumes
from resumes.store.search_index import EMAIL, find_candidates, searched_words
from resumes.store.statements import in_order
from resumes.store.store import Store
from resumes.store.stored_resumes import COLUMNS, MAX_LIMIT, Page, check_cursor
from resumes.text import find_term, folded

MAX_TEXT_CHARS: Final = 200
MAX_TERMS: Final = 10

TIMEOUT_S: Final = 0.05
"""How long resumes that are not indexed yet are searched by default."""

PAGE_ROWS: Final = 200
"""How many unindexed resumes one statement reads, so that none runs for long."""

CANDIDATES: Final = 5_000
"""How many results of the index are compared before the clock is checked. There are only so many if
many resumes have all trigrams of a term, but not the term."""

MAX_UNINDEXED: Final = 100_000
"""The maximum number of unsearched resumes that are counted."""


def parse_terms(text: str) -> list[str]:
    """Return the words to look for, folded, each once; empty for a blank text.

    Only the first 200 characters of the text count, and the first 10 words of them.
    """
    return list(dict.fromkeys(folded(text[:MAX_TEXT_CHARS]).split()))[:MAX_TERMS]


def holds(words: str, terms: Iterable[str]) -> bool:
    """Return whether the words of a resume contain all the terms."""
    return all(find_term(words, term) >= 0 for term in terms)


class SearchResult(NamedTuple):
    """Resumes that contain the words; and the number of unindexed resumes that were not searched.

    Those come after the page, or with the newest first before the indexed ones. `unindexed` is 0 if
    none was left out so far, and 100,000 for that many and more.
    """

    page: Page
    unindexed: int


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
    """Return the resumes after the cursor that contain all the words, oldest first, at most `limit`.

    Only the first 200 characters and 10 words of `words` count, and the first 500 characters of each
    field. The cursor is as in `list_page`, and `limit` is brought into 1 to 100. With the newest
    first, return the resumes before the cursor, in reverse order.

    Resumes that are not indexed yet are searched until `timeout_s` is over; then the page ends there,
    or with the newest first continues with indexed resumes, and `unindexed` says how many were left
    out. Raises InvalidArgument for blank words and a malformed cursor.
    """
    terms = parse_terms(words)
    if not terms:
        raise InvalidArgument("Nothing to search for: enter a word or part of one")
    check_cursor(cursor)
    limit = max(1, min(limit, MAX_LIMIT))
    deadline = monotonic() + timeout_s
    with store.read() as connection:
        scan = _Scan(
            connection, account_id, terms, is_newest_first, lambda: monotonic() >= deadline
        )
        # Close it immediately: an unfinished statement prevents checkpoints of the log.
        with contextlib.closing(scan.iter_found(cursor)) as found:
            entries = list(islice(found, limit + 1))
        unindexed = 0
        if scan.rest is not None:
            rest = scan.rest.with_only_columns(resumes.c.id).limit(MAX_UNINDEXED).subquery()
            unindexed = connection.execute(select(func.count()).select_from(rest)).scalar_one()
        if len(entries) > limit:
            return SearchResult(Page(entries[:limit], entries[limit - 1].id), unindexed)
        return SearchResult(Page(entries, scan.goes_on_at), unindexed)


@dataclass(slots=True)
class _Scan:
    """A scan of an account's resumes in the order of ids, or in reverse order, until the time is over."""

    connection: Connection
    account_id: str
    terms: Sequence[str]
    is_newest_first: bool
    is_late: Callable[[], bool]
    rest: Select[Any] | None = None
    """Selects the resumes that were not compared; None if all were."""

    goes_on_at: str | None = None
    """The cursor of the next page although this page is not full."""

    def iter_found(self, cursor: str) -> Generator[Entry, None, None]:
        """Yield the resumes after the cursor that contain the terms, until the time is over."""
        indexed, candidates = find_candidates(
            self.connection,
            self.account_id,
            self.terms,
            cursor,
            is_newest_first=self.is_newest_first,
        )
        with contextlib.closing(candidates):
            if self.is_newest_first:
                yield from self._iter_unindexed(cursor, down_to=indexed)
                self.goes_on_at = yield from self._iter_indexed(candidates)
                return
            stopped_at = yield from self._iter_indexed(candidates)
        after = stopped_at or max(cursor, indexed)
        if stopped_at is not None or self.is_late():
            self.rest = self._following(after)
        else:
            yield from self._iter_unindexed(after)

    def _iter_indexed(self, candidates: Any) -> Generator[Entry, None, str | None]:
        """Yield the candidates that contain the terms; return the id at which the time was over, if any."""
        for number, (words, *columns) in enumerate(candidates, 1):
            if holds(words, self.terms):
                yield Entry._make(columns)
            if number % CANDIDATES == 0 and self.is_late():
                return str(columns[0])
        return None

    def _iter_unindexed(self, cursor: str, *, down_to: str = "") -> Generator[Entry, None, None]:
        following = self._following(cursor, down_to)
        while page := self.connection.execute(following.limit(PAGE_ROWS)).all():
            for row in page:
                if holds(searched_words(row.title, row.name, row.email), self.terms):
                    yield Entry._make(row[:-1])
            following = self._following(page[-1].id, down_to)
            if self.is_late():
                self.rest = following
                return
            if len(page) < PAGE_ROWS:
                return

    def _following(self, cursor: str, down_to: str = "") -> Select[Any]:
        """Select the resumes after the cursor; with the newest first, only down to an id."""
        these = resumes.c.account_id == self.account_id, resumes.c.id > down_to
        statement = select(*COLUMNS, EMAIL).where(*these)
        return in_order(statement, resumes.c.id, cursor, is_newest_first=self.is_newest_first)
