"""The search index: how far each account is indexed, and the indexer, which fills the index.

Creates know nothing about the index: an indexer adds new resumes after them, and keeps one position per
account. Ids rise in the order of commits, so the resumes after the position are exactly those that are
not indexed. Whatever removes or changes a resume corrects the index in the same transaction.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Final, NamedTuple

import sqlalchemy
from sqlalchemy import Connection, bindparam, func
from sqlmodel import Session, col, select

from resumes.analyzer.person import find_person
from resumes.errors import ResumesError, StoreIncompatible
from resumes.search.words import index_tokens
from resumes.store.background import RETRY_S, BackgroundThread, logger
from resumes.store.identifiers import MAX_ID, position_of, resume_id
from resumes.store.schema import (
    ResumeRow,
    SearchProgress,
    account_usage,
    accounts,
    documents,
    resumes,
    search_entries,
    search_progress,
)
from resumes.store.search_engine import (
    EntryKey,
    SearchEngine,
    engine_on,
    merge,
    remove_unused_words,
)
from resumes.store.statements import (
    Prepared,
    in_order,
    looked_up,
    params_equal,
    pk_equals,
    upsert,
)
from resumes.store.store import Store, as_write
from resumes.text import counted

# Corrections, in the transaction that removes or changes a resume


def remove(connection: Connection, account_id: str, resume_ids: Iterable[str]) -> None:
    """Remove these resumes from the index, as far as they are there."""
    keys = [{"account_id": account_id, "id": resume_id} for resume_id in resume_ids]
    found = _ENTRY.run_each(connection, keys)
    _remove(connection, account_id, [entry for rows in found for entry in rows])


def replace(session: Session, account_id: str, resume: ResumeRow, document: str | None) -> None:
    """Index the resume as it is now, if it was indexed before; without words if it is damaged."""
    key = {"account_id": account_id, "id": resume.id}
    entry = _ENTRY.run(session.connection(), **key).fetchone()
    if entry is not None:
        progress = session.get_one(SearchProgress, account_id)
        tokens: set[str] = set()
        with contextlib.suppress(StoreIncompatible):
            tokens = index_tokens(
                document or "", title=resume.title, name=resume.name, label=resume.label
            )
        _engine(session, progress).replace(entry, tokens)


# Prepared, since a create removes the versions that it replaces.
_ENTRY: Final = Prepared(
    sqlalchemy.select(*search_entries.c["seq", "id"]).where(
        params_equal(search_entries.c.account_id, search_entries.c.id)
    )
)


def _remove(connection: Connection, account_id: str, entries: Sequence[EntryKey]) -> None:
    if entries:
        own = pk_equals(search_progress, account_id)
        number = connection.execute(sqlalchemy.select(search_progress.c.number).where(own))
        engine_on(connection, account_id, number.scalar_one()).remove(entries)
        count_down = sqlalchemy.update(search_progress).where(own)
        left = search_progress.c.entries - len(entries)
        connection.execute(count_down.values(entries=left))


def _engine(session: Session, progress: SearchProgress) -> SearchEngine:
    return engine_on(session.connection(), progress.account_id, progress.number)


# Progress


class IndexedCount(NamedTuple):
    """How many resumes of the store are indexed, and how many there are."""

    indexed: int
    resumes: int


def index_all_persons(session: Session, account_id: str) -> bool:
    """Add the account's resumes to the index of persons, unless one has no person, perhaps only because 1.0.0
    stored it and it was not read yet; return whether all were added."""
    progress = session.get(SearchProgress, account_id)
    after_us = 0 if progress is None else progress.indexed_us
    unread = ResumeRow.account_id == account_id, ResumeRow.id > _last_id(after_us)
    without = select(ResumeRow.id).where(*unread, col(ResumeRow.person).is_(None)).limit(1)
    if session.exec(without).first() is not None:
        return False
    _index_persons(session, account_id, _last_id(after_us), MAX_ID)
    return True


def _index_persons(session: Session, account_id: str, after: str, up_to: str) -> None:
    these = resumes.c.account_id == account_id, resumes.c.id > after, resumes.c.id <= up_to
    not_yet = sqlalchemy.update(resumes).where(*these, resumes.c.is_person_indexed.is_(None))
    session.connection().execute(not_yet.values(is_person_indexed=True))


def count_indexed(store: Store) -> IndexedCount:
    """Return how far the store is indexed."""
    indexed, resumes = (func.coalesce(func.sum(column), 0) for column in _COUNTED)
    ((done, total),) = store.fetch(
        sqlalchemy.select(indexed, resumes)
        .select_from(account_usage)
        .outerjoin(search_progress, search_progress.c.account_id == account_usage.c.account_id)
    )
    return IndexedCount(int(done), int(total))


_COUNTED: Final = search_progress.c.entries, account_usage.c.resume_count


def _begin_progress(session: Session, account_id: str) -> SearchProgress:
    number = select(func.coalesce(func.max(SearchProgress.number), 0) + 1).scalar_subquery()
    row = {"account_id": account_id, "number": number, "last_seq": 0, "entries": 0, "indexed_us": 0}
    # Has no effect if another process has taken the number.
    statement = upsert(search_progress, session.get_bind().dialect).values(row)
    while True:
        session.exec(statement.on_conflict_do_nothing(index_elements=["number"]))
        if progress := session.get(SearchProgress, account_id):
            return progress


# The next resumes of an account

SLICE_RESUMES: Final = 50
"""How many resumes, of one or more accounts, one step indexes. Other writes wait for a transaction."""

SLICE_BYTES: Final = 1024 * 1024
"""A resume with which the documents of a step exceed this is the last one of the step."""

SLICE_ACCOUNTS: Final = 50

DAMAGED: Final = (
    "The account %s has %s, which searches do not find. `resumes db check` says what to do"
)


class _Read(NamedTuple):
    """A resume that was read to be indexed. `tokens` is None if it is damaged.

    `person` is the one to store: only in a row that 1.0.0 wrote, and None if it has none.
    """

    id: str
    version: tuple[str, str | None]
    """What changes with the resume: `updated_at`, and the label."""
    tokens: set[str] | None
    person: bytes | None = None


class _Slice(NamedTuple):
    """All resumes of an account between two positions, to be indexed next."""

    account_id: str
    after_us: int
    up_to_us: int
    resumes: Sequence[_Read]
    is_last: bool
    """Whether the account has no more resumes to index."""


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


def _document(column: Any) -> Any:
    return looked_up(column, documents, resumes.c.account_id, resumes.c.id)


# Only of the document's length: the engines know it without reading the document.
_SIZES: Final = sqlalchemy.select(
    resumes.c.id, _document(func.octet_length(documents.c.document)).label("size_bytes")
)
_READ: Final = sqlalchemy.select(
    *resumes.c["id", "updated_at", "title", "name", "label"],
    _document(documents.c.document).label("document"),
    resumes.c.person.is_(None).label("lacks_person"),
)
_SET_PERSON: Final = (
    sqlalchemy.update(resumes)
    .where(
        pk_equals(resumes, bindparam("of_account"), bindparam("of_resume")),
        resumes.c.person.is_(None),
    )
    .values(person=bindparam("new_person"))
)


def _read_slices(
    store: Store, behind: Iterable[Any], positions: dict[str, int], count: int
) -> list[_Slice]:
    """Return the next slices of these accounts, at most `count`, with 50 resumes or fewer together for
    each. `positions` are those after which they begin, by account; move them on."""
    slices: list[_Slice] = []
    room, room_bytes = count * SLICE_RESUMES, SLICE_BYTES
    for account in behind:
        after_us = positions.setdefault(account.account_id, account.indexed_us)
        if after_us >= account.last_id_us:
            continue
        of_account = resumes.c.account_id == account.account_id
        # Resumes that are created later are read later; their ids may be between these.
        known = resumes.c.id <= _last_id(account.last_id_us)
        limit = min(room, SLICE_RESUMES)
        page = _SIZES.where(of_account, known).limit(limit)
        sizes = store.fetch(in_order(page, resumes.c.id, _last_id(after_us)))
        ids: list[str] = []
        for row in sizes:
            ids.append(row.id)
            room_bytes -= row.size_bytes or 0
            if room_bytes <= 0:
                break
        is_last = len(ids) == len(sizes) < limit
        up_to_us = account.last_id_us if is_last else position_of(ids[-1])
        read = _read_resumes(store, account.account_id, ids)
        slices.append(_Slice(account.account_id, after_us, up_to_us, read, is_last))
        positions[account.account_id] = up_to_us
        room -= len(ids)
        if room == 0 or room_bytes <= 0:
            break
    return slices


def _read_resumes(store: Store, account_id: str, ids: Sequence[str]) -> list[_Read]:
    """Return these resumes with their tokens, without those that are gone."""
    these = _READ.where(resumes.c.account_id == account_id, resumes.c.id.in_(ids))
    try:
        return [_tokenized(row) for row in store.fetch(these.order_by(resumes.c.id))]
    except (ResumesError, TypeError):  # perhaps because of one damaged resume
        if len(ids) > 1:
            return list(chain.from_iterable(_read_resumes(store, account_id, [one]) for one in ids))
        rows = store.fetch(these.with_only_columns(*resumes.c["id", "updated_at", "label"]))
        return [_Read(row.id, (row.updated_at, row.label), None) for row in rows]


def _tokenized(row: Any) -> _Read:
    *texts, lacks_person = row
    if not all(isinstance(value, str | None) for value in texts):
        raise TypeError
    tokens = index_tokens(row.document, title=row.title, name=row.name, label=row.label)
    person = find_person(row.document, row.name) if lacks_person else None
    return _Read(row.id, (row.updated_at, row.label), tokens, person)


def _add_slice(some: _Slice, session: Session) -> bool:
    """Index the slice, except resumes deleted since it was read.

    Do nothing and return False if another indexer has added it, the account is gone, or a resume was
    changed.
    """
    account_id, connection = some.account_id, session.connection()
    state = connection.execute(_STATE, {"account_id": account_id}).one_or_none()
    # The account may have been closed while this waited for its row.
    if state is None or state.closed_at is not None or some.after_us != (state.indexed_us or 0):
        return False
    progress = state if state.number is not None else _begin_progress(session, account_id)
    these = resumes.c.account_id == account_id, resumes.c.id.in_([read.id for read in some.resumes])
    versions = sqlalchemy.select(*resumes.c["id", "updated_at", "label"]).where(*these)
    stored = {id_: tuple(version) for id_, *version in connection.execute(versions)}
    kept = [read for read in some.resumes if read.id in stored]
    if any(stored[read.id] != read.version for read in kept):
        return False
    entries = [
        (seq, read.id, read.tokens or ()) for seq, read in enumerate(kept, progress.last_seq + 1)
    ]
    engine_on(connection, account_id, progress.number).add(entries, is_last=some.is_last)
    persons = [
        {"of_account": account_id, "of_resume": read.id, "new_person": read.person}
        for read in kept
        if read.person
    ]
    if persons:
        connection.execute(_SET_PERSON, persons)
    _index_persons(session, account_id, _last_id(some.after_us), _last_id(some.up_to_us))
    advance = sqlalchemy.update(search_progress).where(pk_equals(search_progress, account_id))
    connection.execute(
        advance.values(
            last_seq=search_progress.c.last_seq + len(entries),
            entries=search_progress.c.entries + len(entries),
            indexed_us=some.up_to_us,
        )
    )
    return True


_STATE: Final = (
    sqlalchemy.select(accounts.c.closed_at, *search_progress.c["number", "last_seq", "indexed_us"])
    .outerjoin(search_progress, search_progress.c.account_id == accounts.c.id)
    .where(accounts.c.id == bindparam("account_id"))
)


def _last_id(position_us: int) -> str:
    return resume_id(position_us, "f" * 8)


# The indexer

INTERVAL_S: Final = 0.5
"""How often the indexer checks for new resumes."""

IDLE_SHARE: Final = 0.9
"""The share of the time that indexing takes while there is much to index."""

BUSY_SHARE: Final = 0.04
"""The share while resumes arrive faster than they are indexed, or the process has requests to answer."""

MERGE_SHARE: Final = 0.2
"""The share of the time spent on merging: low, since not every process knows whether requests arrive."""

STEP_READS: Final = 8
"""How often a step reads the next slices, unless others are busy."""

PARALLEL_SLICES: Final = 4
"""How many slices a server adds at once, one of an account."""

YIELD_S: Final = 2.0
"""The pause after another indexer was faster."""

DEADLINE_S: Final = 10.0
"""How long a slice waits for its turn: the first slices of many accounts wait for each other."""

CLEANING_INTERVAL_S: Final = 3_600.0
"""How often words are removed that no resume has anymore, if any resumes were removed."""


class Indexer(BackgroundThread):
    """A thread that indexes resumes after their creates; it runs while the context is entered.

    A resume is indexed within a second of its create, or later while creates keep the store busy or,
    as `is_busy` says, requests keep the process busy. A store may have several indexers, in any number
    of processes.
    """

    NAME: ClassVar[str] = "search-indexer"
    FAILURE: ClassVar[str] = "The search index cannot be updated; will retry"

    def __init__(
        self,
        store: Store,
        *,
        interval_s: float = INTERVAL_S,
        retry_s: float = RETRY_S,
        clock: Callable[[], float] = time.perf_counter,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(store, interval_s=interval_s, retry_s=retry_s)
        self._is_busy = is_busy
        self._clock = clock
        self._idle_version: int | None = None
        """The store's `read_version` when everything was indexed."""
        self._newest_us = 0
        self._is_merged = store.path is None
        """Whether nothing is left to merge of what this indexer knows; a server has nothing to merge."""
        self._cleaning_due_s: float | None = None
        self._cleaned_to: str | None = None
        """The last word that was checked; None if no check is under way."""
        self._removed: Sequence[Any] = ()
        """What `_count_removed` returned when the last check began."""

    def step(self) -> float:
        """Index the next resumes, if any."""
        version = self._store.read_version()
        if version is not None and version == self._idle_version:
            return self._interval_s
        began_s = self._clock()
        behind = list_behind(self._store)
        if not behind:
            if not self._is_merged and not self._is_busy():
                return self._merge(began_s)
            if self._is_merged:
                self._idle_version = version
            return self._clean(began_s)
        newest_us = max(account.last_id_us for account in behind)
        is_busy = self._is_busy() or newest_us > self._newest_us
        self._newest_us = newest_us
        positions: dict[str, int] = {}
        self._is_merged = self._store.path is None
        if not self.index(behind, positions, is_busy=is_busy):
            return YIELD_S
        is_done = all(positions.get(row.account_id, 0) >= row.last_id_us for row in behind)
        if is_done and len(behind) < SLICE_ACCOUNTS:
            return self._interval_s
        return _pause_s(self._clock() - began_s, BUSY_SHARE if is_busy else IDLE_SHARE)

    def index(self, behind: Sequence[Any], positions: dict[str, int], *, is_busy: bool) -> bool:
        """Index slices of the accounts that are behind. Return False if nothing was read, or if another indexer
        was faster, after which this stops.

        A server works on some accounts at once while the next slices are read. In a file, that would only
        lengthen its transactions: both would wait for the interpreter.
        """
        is_file = self._store.path is not None
        count = 1 if is_file or is_busy else PARALLEL_SLICES
        commits: list[Future[bool]] = []
        with ThreadPoolExecutor(1, "search-indexer-commit") as pool:
            for _ in range(1 if is_busy else STEP_READS):
                if not (slices := _read_slices(self._store, behind, positions, count)):
                    break
                if commits and not commits[-1].result():
                    break
                commits.append(pool.submit(self._commit, slices))
                if is_file:
                    commits[-1].result()
            return bool(commits) and all(commit.result() for commit in commits)

    def _commit(self, slices: Sequence[_Slice]) -> bool:
        writes = [
            as_write(partial(_add_slice, some), some.account_id, DEADLINE_S) for some in slices
        ]
        is_added = False
        for some, outcome in zip(slices, self._store.commit(writes), strict=True):
            if isinstance(outcome, BaseException):
                raise outcome
            is_added |= outcome
            if outcome and (damaged := sum(read.tokens is None for read in some.resumes)):
                count = counted(damaged, "damaged resume")
                logger.warning(DAMAGED, some.account_id, count)
        return is_added

    def _merge(self, now_s: float) -> float:
        """Merge some parts of the index once everything is indexed; return the seconds until the next step."""
        self._is_merged = not self._store.write(merge)
        return _pause_s(self._clock() - now_s, MERGE_SHARE)

    def _clean(self, now_s: float) -> float:
        """Remove some of the words that no resume has anymore; return the seconds until the next step."""
        if self._cleaned_to is None:
            is_due = self._cleaning_due_s is not None and now_s >= self._cleaning_due_s
            if is_due or self._cleaning_due_s is None:
                self._cleaning_due_s = now_s + CLEANING_INTERVAL_S
            if not is_due:
                return self._interval_s
            removed = _count_removed(self._store)
            if removed == self._removed:
                return self._interval_s
            self._removed, self._cleaned_to = removed, ""
        self._cleaned_to = self._store.write(partial(remove_unused_words, after=self._cleaned_to))
        return _pause_s(self._clock() - now_s, BUSY_SHARE)


def _count_removed(store: Store) -> Sequence[Any]:
    """Return what changes whenever an indexed resume is removed."""
    removed = func.sum(search_progress.c.last_seq - search_progress.c.entries)
    return store.fetch(sqlalchemy.select(func.count(), removed).select_from(search_progress))


def catch_up(
    store: Store,
    account_id: str,
    *,
    timeout_s: float,
    on_step: Callable[[], None] = lambda: None,
    monotonic: Callable[[], float] = time.monotonic,
) -> int:
    """Index the resumes that the account has now; return how many of them are still not indexed.

    That is more than 0 if the time was not enough, or the store cannot be written. For a command: perhaps
    no service is running. `on_step` is called after each step.
    """
    indexer, ends_at = Indexer(store), monotonic() + timeout_s
    up_to_us, is_refused = 0, False
    while behind := store.fetch(_BEHIND.where(account_usage.c.account_id == account_id)):
        (account,) = behind
        up_to_us = up_to_us or account.last_id_us
        if account.indexed_us >= up_to_us:
            break
        if is_refused or monotonic() >= ends_at:
            ids = sqlalchemy.select(func.count()).where(
                resumes.c.account_id == account_id,
                resumes.c.id > _last_id(account.indexed_us),
                resumes.c.id <= _last_id(up_to_us),
            )
            ((count,),) = store.fetch(ids)
            return int(count)
        try:
            indexer.index(behind, {}, is_busy=False)
        except ResumesError:
            is_refused = True
        on_step()
    return 0


def _pause_s(took_s: float, share: float) -> float:
    return took_s * (1 / share - 1)
