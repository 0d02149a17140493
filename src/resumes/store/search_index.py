"""The search index: an entry for each resume, and the pieces that its words can be looked up by.

Entries are numbered as ids rise. How pieces are kept is each engine's own (`store/sqlite/pieces`,
`store/postgresql/pieces`): from an account's entries, in the order of their numbers, those that may
hold the terms. What is found is compared with the terms once more, so finding too much is right, and
too little is not.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from sqlalchemy import (
    Connection,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from resumes.errors import ResumesError
from resumes.store.identifiers import POSITION_DIGITS, resume_id
from resumes.store.postgresql import pieces as postgresql_pieces
from resumes.store.schema import (
    Text,
    account_usage,
    accounts,
    documents,
    resumes,
    search_entries,
    search_progress,
)
from resumes.store.search_text import Pieces, Wanted, pieces_of_terms, searched_words
from resumes.store.sqlite import pieces as sqlite_pieces
from resumes.store.statements import Prepared, at_most, looked_up
from resumes.store.store import Store


class Progress(NamedTuple):
    """What an account's index holds: entries up to `last_seq`, of all resumes up to `indexed_us`."""

    number: int
    last_seq: int
    indexed_us: int


class Slice(NamedTuple):
    """Resumes of an account that come next: ids and words, all that there are between two positions."""

    account_id: str
    after_us: int
    up_to_us: int
    words: Sequence[tuple[str, str]]


PROGRESS = Prepared(
    select(
        search_progress.c.number, search_progress.c.last_seq, search_progress.c.indexed_us
    ).where(search_progress.c.account_id == bindparam("account_id"))
)
NEXT_NUMBER = Prepared(select(func.coalesce(func.max(search_progress.c.number), 0) + 1))
# Without effect where somebody else has taken the number meanwhile.
ADD_PROGRESS = Prepared(
    lambda insert: (
        insert(search_progress)
        .values({column.name: bindparam(column.name) for column in search_progress.columns})
        .on_conflict_do_nothing(index_elements=["number"])
    )
)
MOVE_PROGRESS = Prepared(
    update(search_progress)
    .where(search_progress.c.account_id == bindparam("account"))
    .values(last_seq=bindparam("last_seq"), indexed_us=bindparam("indexed_us"))
)
# As in every write to an account: its row first. Then, by a statement of its own, which sees what
# was committed while that one waited, whether the account is still open.
LOCK_ACCOUNT = Prepared(
    select(account_usage.c.account_id)
    .where(account_usage.c.account_id == bindparam("account_id"))
    .with_for_update()
)
OPEN_ACCOUNT = Prepared(
    select(accounts.c.id).where(
        accounts.c.id == bindparam("account_id"), accounts.c.closed_at.is_(None)
    )
)
STORED_BETWEEN = Prepared(
    select(resumes.c.id).where(
        resumes.c.account_id == bindparam("account_id"),
        resumes.c.id.between(bindparam("first"), bindparam("last")),
    )
)
ADD_ENTRY = Prepared(insert(search_entries))
ENTRY = Prepared(
    select(search_entries.c.seq, search_entries.c.words).where(
        search_entries.c.account_id == bindparam("account_id"),
        search_entries.c.id == bindparam("resume_id"),
    )
)
OLDEST_ENTRIES = Prepared(
    select(search_entries.c.seq, search_entries.c.words)
    .where(search_entries.c.account_id == bindparam("account_id"))
    .order_by(search_entries.c.seq)
    .limit(at_most("rows"))
)
REMOVE_ENTRY = Prepared(
    delete(search_entries).where(
        search_entries.c.account_id == bindparam("account_id"),
        search_entries.c.seq == bindparam("seq"),
    )
)
SEQ_AFTER = Prepared(
    select(search_entries.c.seq)
    .where(
        search_entries.c.account_id == bindparam("account_id"),
        search_entries.c.id > bindparam("after"),
    )
    .order_by(search_entries.c.id)
    .limit(1)
)


class document_email(FunctionElement[str]):
    """The e-mail address of a document; None where it has none."""

    type = Text()
    inherit_cache = True


@compiles(document_email, "sqlite")
def _email_sqlite(element: document_email, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_extract({compiler.process(element.clauses, **options)}, '$.header.email')"


@compiles(document_email, "postgresql")
def _email_postgresql(element: document_email, compiler: SQLCompiler, **options: Any) -> str:
    return f"({compiler.process(element.clauses, **options)}::json #>> '{{header,email}}')"


EMAIL: Final = looked_up(
    document_email(documents.c.document), documents, resumes.c.account_id, resumes.c.id
)
"""Of a resume, for statements that select from `resumes`."""


def find_progress(connection: Connection, account_id: str) -> Progress | None:
    """How far the account's index is; None before anything of it was indexed."""
    row = PROGRESS.run(connection, account_id=account_id).fetchone()
    return None if row is None else Progress._make(row)


def begin_candidates(
    connection: Connection, account_id: str, progress: Progress, terms: Iterable[str], after: str
) -> Any:
    """The resumes that may hold the terms, in the order of ids; whoever asks closes it.

    Each row is the words and then the columns of a list's entry. Those after the id `after` come,
    as far as `progress` says.
    """
    row = SEQ_AFTER.run(connection, account_id=account_id, after=after).fetchone()
    first = progress.last_seq + 1 if row is None else row[0]
    wanted = Wanted(account_id, progress.number, pieces_of_terms(terms), first, progress.last_seq)
    return pieces_of(connection).begin(connection, wanted)


def add_slice(connection: Connection, some: Slice) -> bool:
    """The slice is in the index, but for what was deleted since it was read.

    False, and nothing is done, if somebody else has indexed it or the account is gone.
    """
    LOCK_ACCOUNT.run(connection, account_id=some.account_id).fetchall()
    if OPEN_ACCOUNT.run(connection, account_id=some.account_id).fetchone() is None:
        return False
    progress = find_progress(connection, some.account_id)
    if some.after_us != (0 if progress is None else progress.indexed_us):
        return False
    progress = progress or _begin_progress(connection, some.account_id)
    last_seq = _add_entries(connection, some, progress)
    MOVE_PROGRESS.run(
        connection, account=some.account_id, last_seq=last_seq, indexed_us=some.up_to_us
    )
    return True


def _begin_progress(connection: Connection, account_id: str) -> Progress:
    while True:
        (number,) = NEXT_NUMBER.run(connection).fetchone()
        row = {"account_id": account_id, "number": number, "last_seq": 0, "indexed_us": 0}
        if ADD_PROGRESS.run(connection, **row).rowcount:
            return Progress(number, 0, 0)


def _add_entries(connection: Connection, some: Slice, progress: Progress) -> int:
    """The slice has its entries; the last one's number."""
    if not some.words:
        return progress.last_seq
    rows = STORED_BETWEEN.run(
        connection, account_id=some.account_id, first=some.words[0][0], last=some.words[-1][0]
    )
    stored = {resume_id for (resume_id,) in rows.fetchall()}
    kept = [one for one in some.words if one[0] in stored]
    numbered = list(enumerate(kept, progress.last_seq + 1))
    ADD_ENTRY.run_many(
        connection,
        (
            {"account_id": some.account_id, "seq": seq, "id": resume_id, "words": words}
            for seq, (resume_id, words) in numbered
        ),
    )
    pieces_of(connection).add(
        connection, some.account_id, progress.number, [(seq, words) for seq, (_, words) in numbered]
    )
    return progress.last_seq + len(kept)


def remove(connection: Connection, account_id: str, resume_id: str) -> None:
    """The resume is not in the index; part of the transaction that deletes it."""
    _remove(
        connection, account_id, ENTRY.run(connection, account_id=account_id, resume_id=resume_id)
    )


def remove_oldest(connection: Connection, account_id: str, count: int) -> None:
    """So many of the account's entries have gone, oldest first; part of deleting the account."""
    _remove(
        connection, account_id, OLDEST_ENTRIES.run(connection, account_id=account_id, rows=count)
    )


def _remove(connection: Connection, account_id: str, entries: Any) -> None:
    rows: list[tuple[int, str]] = entries.fetchall()
    progress = find_progress(connection, account_id)
    if not rows or progress is None:
        return
    pieces_of(connection).remove(connection, account_id, progress.number, rows)
    REMOVE_ENTRY.run_many(connection, ({"account_id": account_id, "seq": seq} for seq, _ in rows))


def pieces_of(connection: Connection) -> Pieces:
    """How this engine keeps pieces."""
    if connection.dialect.name == "sqlite":
        return sqlite_pieces
    return postgresql_pieces


logger = logging.getLogger("resumes.store")

LOOK_S: Final = 0.5
"""How often it is looked whether somebody has written."""

SLICE: Final = 200
"""Resumes that are added in one transaction, of however many accounts."""

ACCOUNTS_AT_ONCE: Final = 50

CALM_SHARE: Final = 0.5
"""The part of the time that adding takes while much is to be added,"""

BUSY_SHARE: Final = 0.04
"""and while resumes come in faster than they are added, or the process has requests to answer."""

YIELD_S: Final = 2.0
"""A pause after somebody else has added the same."""

AGAIN_S: Final = 5.0
"""A pause after a failure."""

DEADLINE_S: Final = 2.0


class _Behind(NamedTuple):
    account_id: str
    last_id_us: int
    indexed_us: int


_INDEXED_US = func.coalesce(search_progress.c.indexed_us, 0)
BEHIND = Prepared(
    select(account_usage.c.account_id, account_usage.c.last_id_us, _INDEXED_US)
    .join(accounts, accounts.c.id == account_usage.c.account_id)
    .outerjoin(search_progress, search_progress.c.account_id == account_usage.c.account_id)
    .where(account_usage.c.last_id_us > _INDEXED_US, accounts.c.closed_at.is_(None))
    .order_by(account_usage.c.account_id)
    .limit(at_most("accounts"))
)
NEXT = Prepared(
    select(resumes.c.id, resumes.c.title, resumes.c.name, EMAIL)
    .where(
        resumes.c.account_id == bindparam("account_id"),
        resumes.c.id > bindparam("after"),
        resumes.c.id <= bindparam("last"),
    )
    .order_by(resumes.c.id)
    .limit(at_most("rows"))
)


class Gathered(NamedTuple):
    """What can be added next. `newest_us`: the position of the newest resume of these accounts."""

    slices: Sequence[Slice]
    newest_us: int

    @property
    def is_full(self) -> bool:
        """Whether there is probably more."""
        return sum(len(one.words) for one in self.slices) >= SLICE


def gather(store: Store) -> Gathered:
    """The next resumes that the index lacks, 200 at most, of up to 50 accounts."""
    slices: list[Slice] = []
    room = SLICE
    with store.read() as connection:
        behind = [
            _Behind._make(row)
            for row in BEHIND.run(connection, accounts=ACCOUNTS_AT_ONCE).fetchall()
        ]
        for one in behind:
            if room == 0:
                break
            slices.append(_read_slice(connection, one, room))
            room -= len(slices[-1].words)
    return Gathered(slices, max((one.last_id_us for one in behind), default=0))


def _read_slice(connection: Connection, behind: _Behind, most: int) -> Slice:
    rows = NEXT.run(
        connection,
        account_id=behind.account_id,
        after=resume_id(behind.indexed_us, "f" * 8),
        # What comes later is read another time: its ids may still be between these.
        last=resume_id(behind.last_id_us, "f" * 8),
        rows=most,
    ).fetchall()
    is_all = len(rows) < most
    return Slice(
        behind.account_id,
        after_us=behind.indexed_us,
        up_to_us=behind.last_id_us if is_all else int(rows[-1][0][:POSITION_DIGITS], 16),
        words=[(row[0], searched_words(*row[1:])) for row in rows],
    )


class Added(NamedTuple):
    """How many slices were added, and how many seconds that took inside the transaction."""

    slices: int
    took_s: float


def _add(connection: Connection, slices: Sequence[Slice]) -> list[Added]:
    added: list[Added] = []
    for some in slices:
        began_s = time.perf_counter()
        is_added = add_slice(connection, some)
        added.append(Added(int(is_added), time.perf_counter() - began_s))
    return added


def add_all(store: Store, slices: Sequence[Slice], *, deadline_s: float = DEADLINE_S) -> Added:
    """All of the slices that nobody else has added are in the index. Raises as `Store.write`."""
    outcomes = store.write_all(_add, slices, deadline_s=deadline_s)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    added, took_s = zip(*outcomes, strict=True)
    return Added(sum(added), sum(took_s))


def fill(store: Store, *, deadline_s: float = DEADLINE_S) -> None:
    """All that was stored is indexed. Raises what `Store.write` raises."""
    while slices := gather(store).slices:
        add_all(store, slices, deadline_s=deadline_s)


class Filler:
    """During the block a thread fills the index within a second of each create, or more slowly
    while creates keep the store busy, or other work the process, which `is_busy` tells. Failures are
    logged once, and what failed is tried again."""

    def __init__(
        self,
        store: Store,
        *,
        look_s: float = LOOK_S,
        again_s: float = AGAIN_S,
        clock: Callable[[], float] = time.perf_counter,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._is_busy = is_busy
        self._look_s = look_s
        self._again_s = again_s
        self._clock = clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._live, name="search-filler", daemon=True)
        self._calm_version: int | None = None
        """Of the store when nothing was to be added."""
        self._newest_us = 0
        self._is_failing = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()

    def _live(self) -> None:
        pause_s = self._look_s
        while not self._stopping.wait(pause_s):
            try:
                pause_s = self.step()
                self._is_failing = False
            except Exception as error:  # noqa: BLE001  (the thread's edge: nothing here may end it)
                self._tell(error)
                pause_s = self._again_s

    def step(self) -> float:
        """Some resumes were added, if any are to be; the seconds until the next step is due."""
        version = self._store.read_version()
        if version is not None and version == self._calm_version:
            return self._look_s
        began_s = self._clock()
        gathered = gather(self._store)
        if not gathered.slices:
            self._calm_version = version
            return self._look_s
        read_s = self._clock() - began_s
        added = add_all(self._store, gathered.slices)
        return self._pause_s(gathered, added, read_s)

    def _pause_s(self, gathered: Gathered, added: Added, read_s: float) -> float:
        comes_more = gathered.newest_us > self._newest_us
        self._newest_us = gathered.newest_us
        is_busy = self._is_busy()
        if added.slices == 0:
            return YIELD_S
        if not gathered.is_full:
            return self._look_s
        share = BUSY_SHARE if comes_more or is_busy else CALM_SHARE
        return (read_s + added.took_s) * (1 / share - 1)

    def _tell(self, error: Exception) -> None:
        if self._is_failing:
            return
        self._is_failing = True
        if isinstance(error, ResumesError):
            logger.warning("The search index is not being filled; will try on: %s", error.message)
        else:
            logger.error("The search index is not being filled; will try on", exc_info=error)
