"""Searching an account's resumes with a query (resumes.search.query), page by page.

All results come from the index, to which new resumes are added later (resumes.store.search_index).
Each page includes the number of resumes that are not indexed yet. If more of the index must be read
than a page shows, it is read in windows, beginning at the cursor. For some queries, the text of a
resume must prove that it matches. If that takes long, or many windows contain no results, a page
ends early and has a cursor.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, func, select

from resumes.errors import InvalidArgument, StoreIncompatible
from resumes.search.query import MAX_QUERY_CHARS, MAX_REPEATS, MAX_TERMS, Query, parse_query
from resumes.store.entry import Entry
from resumes.store.schema import account_usage, search_entries, search_progress
from resumes.store.search_engine import (
    LARGE_UNIT,
    SMALL_UNIT,
    Found,
    Lookup,
    SearchEngine,
    Window,
    engine_on,
)
from resumes.store.statements import in_order
from resumes.store.store import Store
from resumes.store.stored_resumes import MAX_LIMIT, Page, check_cursor, list_page
from resumes.store.versions import newest_of

T = TypeVar("T")

TIMEOUT_S: Final = 0.05
"""The default time after which a page ends early."""

PROVED_ROWS: Final = 20
"""How many resumes of a window are first read for proof. Each may have several megabytes."""

WINDOW_STEPS: Final = 2_000_000
"""The maximum product of a query's tokens and a window's entries, so that no window takes long."""

EXCLUDED_STEPS: Final = 10
"""The weight of a token that must not occur, because all its entries in a window are read."""


class SearchResult(NamedTuple):
    """Resumes that match the query, and the number of new resumes that are not searched yet."""

    page: Page
    unindexed: int


def find_page(
    store: Store,
    account_id: str,
    text: str,
    *,
    cursor: str = "",
    limit: int = MAX_LIMIT,
    is_newest_first: bool = False,
    label: str | None = None,
    is_latest: bool = False,
    is_typing: bool = False,
    timeout_s: float = TIMEOUT_S,
    monotonic: Callable[[], float] = time.monotonic,
) -> SearchResult:
    """Return at most `limit` resumes after the cursor that match the query, oldest first.

    With a `label`, return only resumes with this label; with `is_latest`, only each person's newest
    resume. The cursor and `limit` have the same meaning as in `list_page`. With `is_newest_first`,
    return the resumes before the cursor, in reverse order. With `is_typing`, the last word may be
    incomplete. After `timeout_s`, the page ends early; its cursor is None only if nothing follows.

    Raises InvalidArgument if the text has no words or too many, and for a malformed cursor.
    """
    query = parse_query(text, is_typing=is_typing)
    if not query.terms:
        raise InvalidArgument("Nothing to search for: enter a word")
    if query.is_cut:  # a truncated query would find too much
        raise InvalidArgument(
            f"Too much to search for: at most {MAX_TERMS} words and phrases in {MAX_QUERY_CHARS} characters, "
            f"with the same two words in a row at most {MAX_REPEATS} times"
        )
    check_cursor(cursor)
    limit = max(1, min(limit, MAX_LIMIT))
    ends_at = monotonic() + timeout_s
    with store.read() as connection:
        account = connection.execute(
            _ACCOUNT.where(account_usage.c.account_id == account_id)
        ).first()
        if account is None:
            return SearchResult(Page([], None), 0)
        search = _Search(
            connection,
            account_id,
            query,
            label,
            limit,
            is_newest_first,
            lambda: monotonic() >= ends_at,
        )
        entries, stopped_at = search.run(account.number, cursor, account.last_seq)
        if is_latest:
            entries, stopped_at = search.only_newest(account, entries, stopped_at)
    unindexed = max(0, account.resume_count - account.entries)
    if len(entries) > limit:
        return SearchResult(Page(entries[:limit], entries[limit - 1].id), unindexed)
    return SearchResult(Page(entries, stopped_at), unindexed)


def iter_entries(
    store: Store,
    account_id: str,
    text: str | None = None,
    *,
    label: str | None = None,
    is_typing: bool = False,
) -> Iterator[Entry]:
    """Yield the account's resumes that match the query and have the label, if given, oldest first.

    A query does not find resumes that are not indexed yet: see `search_index.catch_up`. Raises
    InvalidArgument if the text of the query has no words.
    """
    cursor: str | None = ""
    while cursor is not None:
        if text is None:
            page = list_page(store, account_id, cursor=cursor, limit=MAX_LIMIT, label=label)
        else:
            page, _ = find_page(
                store, account_id, text, cursor=cursor, label=label, is_typing=is_typing
            )
        yield from page.entries
        cursor = page.cursor


_ACCOUNT: Final = select(
    account_usage.c.resume_count,
    search_progress.c.number,
    *(func.coalesce(search_progress.c[name], 0).label(name) for name in ("last_seq", "entries")),
).outerjoin(search_progress, search_progress.c.account_id == account_usage.c.account_id)


@dataclass(frozen=True, slots=True)
class _Search:
    """A search in an account's entries, in the order of IDs or in reverse, until it is late."""

    connection: Connection
    account_id: str
    query: Query
    label: str | None
    limit: int
    is_newest_first: bool
    is_late: Callable[[], bool]

    def run(self, number: int | None, cursor: str, last_seq: int) -> tuple[list[Entry], str | None]:
        """Return the matching entries after the cursor, at most one more than the limit.

        Also return the ID at which the search stopped because it was late, or None.
        """
        first, last = self._range(cursor, last_seq)
        found: list[Entry] = []
        if number is None or first > last:
            return found, None
        engine = engine_on(self.connection, self.account_id, number)
        lookup = engine.look_up(self.query, self.label)
        windows: Iterable[Window] = [Window(first, last, LARGE_UNIT)]
        # A label may have no words, and an entry with its words may have another label.
        if lookup.none or self.label is not None or not engine.IS_IN_ORDER:
            tokens = EXCLUDED_STEPS * len(lookup.none) + sum(map(len, lookup.some))
            windows = _iter_windows(first, last, tokens, self.is_newest_first)
        for window in windows:
            for candidate in self._iter_candidates(engine, lookup, window, found):
                if lookup.is_exact or self._is_proved(candidate):
                    found.append(candidate.entry)
                if len(found) > self.limit:
                    return found, None
                if not lookup.is_exact and self.is_late():
                    return found, candidate.entry.id
            is_all = window.first == first if self.is_newest_first else window.last == last
            if not is_all and self.is_late() and (at := self._last_id(window)) is not None:
                return found, at
        return found, None

    def only_newest(
        self, account: Any, found: list[Entry], stopped_at: str | None
    ) -> tuple[list[Entry], str | None]:
        """Keep each person's newest entry in a result of `run`; search on if too few are left."""
        kept: list[Entry] = []
        while True:
            newest = newest_of(self.connection, self.account_id, [entry.id for entry in found])
            kept += [entry for entry in found if entry.id in newest]
            if len(kept) > self.limit or len(found) <= self.limit:
                return kept, stopped_at
            if self.is_late():
                return kept, found[-1].id
            found, stopped_at = self.run(account.number, found[-1].id, account.last_seq)

    def _range(self, cursor: str, last_seq: int) -> tuple[int, int]:
        """Return the lowest and the highest number of the entries after the cursor."""
        if not cursor:
            return 1, last_seq
        seqs = self._entries(search_entries.c.seq)
        seqs = in_order(seqs, search_entries.c.id, cursor, is_newest_first=self.is_newest_first)
        seq = self.connection.execute(seqs).scalar()
        if seq is None:
            return 1, 0
        return (1, seq) if self.is_newest_first else (seq, last_seq)

    def _last_id(self, window: Window) -> str | None:
        """Return the ID of the last entry in or before the window, if there is one."""
        seq = search_entries.c.seq
        ids = self._entries(search_entries.c.id)
        if self.is_newest_first:
            ids = ids.where(seq >= window.first).order_by(seq)
        else:
            ids = ids.where(seq <= window.last).order_by(seq.desc())
        return self.connection.execute(ids).scalar()

    def _entries(self, column: ColumnElement[T]) -> Select[T]:
        return select(column).where(search_entries.c.account_id == self.account_id).limit(1)

    def _iter_candidates(
        self, engine: SearchEngine, lookup: Lookup, window: Window, found: Sized
    ) -> Iterator[Found]:
        """Yield the entries that the index finds in the window, in the order of the search."""
        proved = PROVED_ROWS
        while window.first <= window.last:
            rows = self.limit + 1 - len(found) if lookup.is_exact else proved
            candidates = engine.find(
                lookup,
                window,
                limit=rows,
                is_newest_first=self.is_newest_first,
                with_documents=not lookup.is_exact,
            )
            yield from candidates
            if len(candidates) < rows:
                return
            seq = candidates[-1].seq
            proved = min(2 * proved, MAX_LIMIT)
            side = {"last": seq - 1} if self.is_newest_first else {"first": seq + 1}
            window = window._replace(**side)

    def _is_proved(self, candidate: Found) -> bool:
        if candidate.document is None:
            return False
        entry = candidate.entry
        with contextlib.suppress(StoreIncompatible):  # a damaged resume matches nothing
            return self.query.matches(
                candidate.document, title=entry.title, name=entry.name, label=entry.label
            )
        return False


def _iter_windows(first: int, last: int, tokens: int, is_newest_first: bool) -> Iterator[Window]:
    """Yield windows from one end, small ones first because common words need no large ones."""
    largest = max(1, WINDOW_STEPS // max(1, tokens) // LARGE_UNIT) * LARGE_UNIT
    size, unit = 2 * SMALL_UNIT, SMALL_UNIT
    while first <= last:
        if is_newest_first:
            start = max(first, last // unit * unit + unit - size)
            yield Window(start, last, unit)
            last = start - 1
        else:
            end = min(last, first // unit * unit + size - 1)
            yield Window(first, end, unit)
            first = end + 1
        size, unit = min(2 * LARGE_UNIT if unit == SMALL_UNIT else largest, largest), LARGE_UNIT


def describe_unsearched(count: int) -> str:
    """Return a sentence such as `The 3 newest resumes are not searched yet`."""
    if count == 1:
        return "The newest resume is not searched yet"
    return f"The {count:,} newest resumes are not searched yet"
