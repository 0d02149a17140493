"""Filling the search index, behind the creates and never in their way.

Ids rise in the order of commits, so one position in each account says what is indexed. Some resumes
after it are read, and added in a short transaction that first looks whether the position is still
the same: any number of processes may fill one store.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

from sqlalchemy import Connection, bindparam, func, select

from resumes.errors import ResumesError
from resumes.store import search_index
from resumes.store.engine import Store, each
from resumes.store.identifiers import POSITION_DIGITS, resume_id
from resumes.store.schema import account_usage, accounts, resumes, search_progress
from resumes.store.search_index import EMAIL, Slice
from resumes.store.search_words import searched_words
from resumes.store.statements import Prepared, at_most

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
    """How many slices were added, and how many seconds that took inside the lane."""

    slices: int
    took_s: float


@each
def add(connection: Connection, some: Slice) -> Added:
    """The slice is in the index, unless somebody else has added it."""
    began_s = time.perf_counter()
    is_added = search_index.add_slice(connection, some)
    return Added(int(is_added), time.perf_counter() - began_s)


def add_all(store: Store, slices: Sequence[Slice], *, deadline_s: float = DEADLINE_S) -> Added:
    """All of the slices that nobody else has added are in the index. Raises as `Store.write`."""
    outcomes = store.write_all(add, slices, deadline_s=deadline_s)
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
