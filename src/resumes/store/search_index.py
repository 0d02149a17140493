"""The search index: how far each account is indexed, and the indexer, which fills the index.

Create requests do not write to the index: an indexer adds the new resumes later, and stores one
position per account. IDs increase in commit order, so the resumes after the position are exactly
those that are not indexed yet. Code that removes or changes a resume updates the index in the same
transaction.
"""

import contextlib
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Final, NamedTuple

import sqlalchemy
from sqlalchemy import BigInteger, Connection, bindparam, func
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
    IndexText,
    SearchEngine,
    engine_on,
    engine_type,
    merge,
    remove_unused_words,
)
from resumes.store.statements import (
    Prepared,
    is_sharded,
    looked_up,
    params_equal,
    pk_equals,
    upsert,
)
from resumes.store.store import Store, as_write
from resumes.text import counted

# Corrections, in the transaction that removes or changes a resume


def remove(connection: Connection, account_id: str, resume_ids: Iterable[str]) -> None:
    """Remove the entries of these resumes from the index, if they have any."""
    keys = [{"account_id": account_id, "id": resume_id} for resume_id in resume_ids]
    found = _ENTRY.run_each(connection, keys)
    _remove(connection, account_id, [entry for rows in found for entry in rows])


def replace(session: Session, account_id: str, resume: ResumeRow, document: str | None) -> None:
    """Replace the words of a resume if it is indexed; a damaged resume gets no words."""
    key = {"account_id": account_id, "id": resume.id}
    entry = _ENTRY.run(session.connection(), **key).fetchone()
    if entry is not None:
        progress = session.get_one(SearchProgress, account_id)
        engine = _engine(session, progress)
        tokens: set[str] = set()
        with contextlib.suppress(StoreIncompatible):
            tokens = _find_tokens(document or "", resume)
        engine.replace(entry, engine.text_of(tokens))


# Prepared for speed, because create requests remove the versions that they replace.
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
    """The number of indexed resumes in the store, and the number of all resumes."""

    indexed: int
    resumes: int


def index_all_persons(session: Session, account_id: str) -> bool:
    """Add the account's resumes to the index of persons, and return True.

    If a resume that is not indexed for search yet has no person, do nothing and return False:
    perhaps version 1.0.0 stored it, so its person is not known yet.
    """
    progress = session.get(SearchProgress, account_id)
    after_us = 0 if progress is None else progress.indexed_us
    unread = ResumeRow.account_id == account_id, ResumeRow.id > _last_id(after_us)
    without = select(ResumeRow.id).where(*unread, col(ResumeRow.person).is_(None)).limit(1)
    if session.exec(without).first() is not None:
        return False
    _index_persons(session, account_id, _last_id(after_us), MAX_ID)
    return True


def _index_persons(session: Session, account_id: str, after: str, up_to: str) -> None:
    values = {"of_account": account_id, "after": after, "up_to": up_to}
    session.connection().execute(_INDEX_PERSONS, values)


_BETWEEN: Final = (
    resumes.c.account_id == bindparam("of_account"),
    resumes.c.id > bindparam("after"),
    resumes.c.id <= bindparam("up_to"),
)
"""The condition for the resumes of an account between two IDs."""

_INDEX_PERSONS: Final = (
    sqlalchemy.update(resumes)
    .where(*_BETWEEN, resumes.c.is_person_indexed.is_(None))
    .values(is_person_indexed=True)
)


def count_indexed(store: Store) -> IndexedCount:
    """Count the indexed resumes and all resumes of the store."""
    indexed, resumes = (func.coalesce(func.sum(column), 0) for column in _COUNTED)
    ((done, total),) = store.fetch(
        sqlalchemy.select(indexed, resumes)
        .select_from(account_usage)
        .outerjoin(search_progress, search_progress.c.account_id == account_usage.c.account_id)
    )
    return IndexedCount(int(done), int(total))


_COUNTED: Final = search_progress.c.entries, account_usage.c.resume_count


def _begin_progress(session: Session, account_id: str) -> SearchProgress:
    dialect, number = session.get_bind().dialect, search_progress.c.number
    row = {"account_id": account_id, "last_seq": 0, "entries": 0, "indexed_us": 0}
    statement = upsert(search_progress, dialect).values(row).on_conflict_do_nothing()
    while True:
        taken: Any = select(func.coalesce(func.max(number), 0) + 1).scalar_subquery()
        if is_sharded(session.connection()):  # avoids asking other accounts' shards
            taken = secrets.randbits(31)
        # Inserts nothing if another account has the number, which must be unique on one server.
        session.exec(statement.values(number=taken))
        if progress := session.get(SearchProgress, account_id):
            return progress


# The next resumes of an account

SLICE_RESUMES: Final = 50
"""How many resumes of one or more accounts are indexed together, while other writes wait."""

SLICE_BYTES: Final = 1024 * 1024
"""After the documents reach this size, no further resumes are indexed together with them."""

SLICE_ACCOUNTS: Final = 50

DAMAGED: Final = (
    "The account %s has %s, which searches do not find. `resumes db check` says what to do"
)


class _Read(NamedTuple):
    """A resume that was read for the index. `text` is None if the resume is damaged.

    `person` is set if version 1.0.0 wrote the row without a person, and a person was found now.
    """

    id: str
    version: tuple[str, str | None]
    """The values `updated_at` and `label`, which change whenever the resume changes."""
    text: IndexText | None
    person: bytes | None = None


class _Slice(NamedTuple):
    """All resumes of an account between two positions; they are indexed together."""

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
    """Return `account_id`, `last_id_us` and `indexed_us` of at most 50 accounts that are not fully
    indexed; there may be more if a shard does not answer."""
    return store.fetch_reachable(_BEHIND, account_usage.c.account_id)


def _document(column: Any) -> Any:
    return looked_up(column, documents, bindparam("of_account"), resumes.c.id)


# Reads only the length of the document, which the engines know without reading the document.
_SIZES: Final = (
    sqlalchemy.select(
        resumes.c.id, _document(func.octet_length(documents.c.document)).label("size_bytes")
    )
    .where(*_BETWEEN)
    .order_by(resumes.c.id)
    .limit(bindparam("limit"))
)
_READ: Final = sqlalchemy.select(
    *resumes.c["id", "updated_at", "title", "name", "label"],
    _document(documents.c.document).label("document"),
    resumes.c.person.is_(None).label("lacks_person"),
).where(resumes.c.account_id == bindparam("of_account"))
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
    """Return the next slices: at most 50 resumes per account, and `count` times 50 in total.

    `positions` maps each account to the position after which its slice begins, and is advanced.
    """
    slices: list[_Slice] = []
    room, room_bytes = count * SLICE_RESUMES, SLICE_BYTES
    for account in behind:
        after_us = positions.setdefault(account.account_id, account.indexed_us)
        if after_us >= account.last_id_us:
            continue
        limit = min(room, SLICE_RESUMES)
        # Leave out resumes that were created after `behind` was read: they are read next time.
        sizes = store.fetch(
            _SIZES,
            of_account=account.account_id,
            after=_last_id(after_us),
            up_to=_last_id(account.last_id_us),
            limit=limit,
        )
        ids: list[str] = []
        for row in sizes:
            ids.append(row.id)
            room_bytes -= row.size_bytes or 0
            if room_bytes <= 0:
                break
        up_to_us = account.last_id_us
        if len(ids) < len(sizes) or len(sizes) == limit:
            up_to_us = position_of(ids[-1])
        is_last = up_to_us >= account.last_id_us
        read = _read_resumes(store, account.account_id, ids)
        slices.append(_Slice(account.account_id, after_us, up_to_us, read, is_last))
        positions[account.account_id] = up_to_us
        room -= len(ids)
        if room == 0 or room_bytes <= 0:
            break
    return slices


def _read_resumes(store: Store, account_id: str, ids: Sequence[str]) -> list[_Read]:
    """Return these resumes with their tokens; leave out resumes that were deleted since."""
    these = _READ.where(resumes.c.id.in_(ids)).order_by(resumes.c.id)
    engine = engine_type(is_file=store.path is not None)
    try:
        return [_tokenized(row, engine) for row in store.fetch(these, of_account=account_id)]
    except (ResumesError, TypeError):  # perhaps one resume is damaged
        if len(ids) > 1:
            return list(chain.from_iterable(_read_resumes(store, account_id, [one]) for one in ids))
        kept = these.with_only_columns(*resumes.c["id", "updated_at", "label"])
        rows = store.fetch(kept, of_account=account_id)
        return [_Read(row.id, (row.updated_at, row.label), None) for row in rows]


def _tokenized(row: Any, engine: type[SearchEngine]) -> _Read:
    *texts, lacks_person = row
    if not all(isinstance(value, str | None) for value in texts):
        raise TypeError
    text = engine.text_of(_find_tokens(row.document, row))
    person = find_person(row.document, row.name) if lacks_person else None
    return _Read(row.id, (row.updated_at, row.label), text, person)


def _find_tokens(document: str | bytes, columns: Any) -> set[str]:
    return index_tokens(document, title=columns.title, name=columns.name, label=columns.label)


def _add_slice(some: _Slice, session: Session) -> bool:
    """Index the slice, except resumes that were deleted since it was read; return True.

    Do nothing and return False if another indexer has added the slice, the account was closed, or a
    resume was changed.
    """
    account_id, connection = some.account_id, session.connection()
    state = connection.execute(_STATE, {"account_id": account_id}).one_or_none()
    # The account may have been closed while this transaction waited for its row.
    if state is None or state.closed_at is not None or some.after_us != (state.indexed_us or 0):
        return False
    progress = state if state.number is not None else _begin_progress(session, account_id)
    between = {
        "of_account": account_id,
        "after": _last_id(some.after_us),
        "up_to": _last_id(some.up_to_us),
    }
    stored = {id_: tuple(version) for id_, *version in connection.execute(_VERSIONS, between)}
    kept = [read for read in some.resumes if read.id in stored]
    if any(stored[read.id] != read.version for read in kept):
        return False
    entries = [
        (seq, read.id, read.text or IndexText(""))
        for seq, read in enumerate(kept, progress.last_seq + 1)
    ]
    engine_on(connection, account_id, progress.number).add(entries, is_last=some.is_last)
    persons = [
        {"of_account": account_id, "of_resume": read.id, "new_person": read.person}
        for read in kept
        if read.person
    ]
    if persons:
        connection.execute(_SET_PERSON, persons)
    connection.execute(_INDEX_PERSONS, between)
    advance = {"of_account": account_id, "added": len(entries), "to_us": some.up_to_us}
    connection.execute(_ADVANCE, advance)
    return True


_VERSIONS: Final = sqlalchemy.select(*resumes.c["id", "updated_at", "label"]).where(*_BETWEEN)
_ADVANCE: Final = (
    sqlalchemy.update(search_progress)
    .where(pk_equals(search_progress, bindparam("of_account")))
    .values(
        last_seq=search_progress.c.last_seq + bindparam("added", type_=BigInteger),
        entries=search_progress.c.entries + bindparam("added", type_=BigInteger),
        indexed_us=bindparam("to_us"),
    )
)

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

BUSY_SHARE: Final = 0.04
"""The share of the time spent on indexing while new resumes keep arriving or the process has
requests to answer. At other times, indexing runs without pauses."""

MERGE_SHARE: Final = 0.2
"""The share of the time spent on merging. It is low since an indexer may not know all requests."""

STEP_READS: Final = 8
"""How many times a step reads slices if nothing else is busy; otherwise, it reads once."""

PARALLEL_SLICES: Final = 4
"""How many slices are added at once on PostgreSQL, at most one per account."""

YIELD_S: Final = 2.0
"""The pause after another indexer has added the slices first."""

DEADLINE_S: Final = 10.0
"""The maximum wait before a slice is written: first slices of many accounts wait for each other."""

CLEANING_INTERVAL_S: Final = 3_600.0
"""How often unused words are removed from the index, if any resumes have been removed."""


class Indexer(BackgroundThread):
    """A thread that indexes new resumes; it runs while the context is entered.

    A resume is indexed within a second of being created, or later if many new resumes arrive or
    `is_busy` reports that the process is answering requests. A store may have several indexers,
    also in different processes.
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
        """Whether everything that this indexer added has been merged. Always True on PostgreSQL."""
        self._cleaning_due_s: float | None = None
        self._cleaned_to: str | None = None
        """The last word that was checked, or None if no check is in progress."""
        self._removed: Sequence[Any] = ()
        """The result of `_count_removed` when the last check began."""

    def step(self) -> float:
        """Fill, merge or clean the index, and return the seconds until the next step."""
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
        return _pause_s(self._clock() - began_s, BUSY_SHARE) if is_busy else 0.0

    def index(self, behind: Sequence[Any], positions: dict[str, int], *, is_busy: bool) -> bool:
        """Index slices of the accounts that are behind.

        Return False if nothing was read, or if another indexer was faster, in which case this
        stops. The next slices are read while the engine, which does not need Python's global lock,
        adds the previous ones. On PostgreSQL, slices of several accounts are added at once.
        """
        count = 1 if self._store.path is not None or is_busy else PARALLEL_SLICES
        commits: list[Future[bool]] = []
        with ThreadPoolExecutor(1, "search-indexer-commit") as pool:
            for _ in range(1 if is_busy else STEP_READS):
                if not (slices := _read_slices(self._store, behind, positions, count)):
                    break
                if commits and not commits[-1].result():
                    break
                commits.append(pool.submit(self._commit, slices))
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
            if outcome and (damaged := sum(read.text is None for read in some.resumes)):
                count = counted(damaged, "damaged resume")
                logger.warning(DAMAGED, some.account_id, count)
        return is_added

    def _merge(self, now_s: float) -> float:
        """Merge some parts of the index; return the seconds until the next step."""
        self._is_merged = not self._store.write(merge)
        return _pause_s(self._clock() - now_s, MERGE_SHARE)

    def _clean(self, now_s: float) -> float:
        """Remove some unused words from the index; return the seconds until the next step."""
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
    """Return figures that change whenever an indexed resume is removed."""
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

    Some may be left if the timeout expires or the store cannot be written to. Commands call this
    because the service, whose indexer would do it, may not be running. `on_step` is called after
    each step.
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
