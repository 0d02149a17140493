"""A store of any engine: how it is read, written, measured and closed.

A store that is being moved or was moved records the target and rejects writes, which would be
missing in the copy (pitfalls S13). For this, a copy stores a fact in the `store_facts` of its
source, and every write checks the fact inside its transaction. SQLite has only one writer at a
time, so a write checks it at the beginning. On PostgreSQL, a write checks it at the end: a
transaction that does not see the fact holds a lock by then, and the copy waits for this lock.
"""

import asyncio
import random
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar, overload

from sqlalchemy import ColumnElement, Connection, Executable, literal, update
from sqlmodel import Session, select
from sqlmodel.sql.expression import SelectOfScalar

from resumes.clock import Clock
from resumes.errors import Conflict, StoreUnavailable
from resumes.store.locks import retry
from resumes.store.schema import Account, AccountUsage, StoreFact, account_usage, metadata, plans
from resumes.store.statements import Prepared, pk_equals
from resumes.store.write_queue import THREAD_ENDED, LoopWriter, Write, WriteQueue, apply_changes

Row = tuple[Any, ...]
R = TypeVar("R")

WRITE_DEADLINE_S = 10.0
"""The default for how long a write may wait in the queue."""


class Size(NamedTuple):
    """The size of a store's data, and of its log, or None if the server manages the log."""

    data_bytes: int
    log_bytes: int | None


class PerLoop(Generic[R]):
    """One object for each running event loop, created on first use."""

    def __init__(
        self,
        make: Callable[[asyncio.AbstractEventLoop], R],
        discard: Callable[[R], object] = lambda _: None,
    ) -> None:
        self._make = make
        self._discard = discard
        self._objects: dict[asyncio.AbstractEventLoop, R] = {}

    def get(self) -> R:
        """Return the running loop's object.

        When a loop calls this for the first time, the objects of closed loops are discarded.
        """
        loop = asyncio.get_running_loop()
        found = self._objects.get(loop)
        if found is None:
            found = self._objects[loop] = self._make(loop)
            for closed in [loop for loop in list(self._objects) if loop.is_closed()]:
                if discarded := self._objects.pop(closed, None):  # or another thread did it
                    self._discard(discarded)
        return found

    def discard_all(self) -> None:
        """Discard the object of every loop."""
        for found in self._objects.values():
            self._discard(found)


class Store(AbstractContextManager["Store", None]):
    """An open store. Threads and event loops may share it, but each process must open its own."""

    path: Path | None = None
    """The store's file, or None on a server. There, reads may wait for the network, so an event
    loop must use `fetch_async` or a thread."""

    is_sharded: bool = False
    """Whether accounts may be on several servers, some of which may not answer."""

    engine_info: Mapping[str, str]
    """The labels of the metric that describes the engine, with their values."""

    def __init__(self, write_queue: WriteQueue, *, url: str, label: str, clock: Clock) -> None:
        self.write_queue = write_queue
        self.url = url
        """The address to open this store again. Do not show it: it may contain a password."""
        self.label = label
        """The address without a password, for messages and logs."""
        self.clock = clock
        self._loop_writers = PerLoop(partial(LoopWriter, write_queue))
        self._is_closed = False
        self.threads: list[threading.Thread] = [*write_queue.threads]
        """The threads that must run while the store is open."""

    def check_threads(self) -> None:
        """Raise StoreUnavailable if a thread that the store depends on has ended.

        A service calls this repeatedly. If it raises, the service exits, because only a new process
        can replace the thread.
        """
        for thread in self.threads:
            if not (self._is_closed or thread.is_alive()):
                raise StoreUnavailable(f"{THREAD_ENDED} ({thread.name})")

    @abstractmethod
    def read(self) -> AbstractContextManager[Connection]:
        """Return a context manager that provides this thread's connection for reading.

        Each statement sees the data that was committed when it started, in a transaction of its
        own, so readers never block checkpoints. In the block, driver errors become
        StoreUnavailable, or StoreIncompatible for a damaged file; an argument that is not UTF-8
        raises InvalidArgument.
        """

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Connection]:
        """Return a context manager like `read`, whose statements all see the data of one moment."""

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Yield a session for reading; its models stay usable after the block.

        Raises the same errors as `read`.
        """
        with self.read() as connection, session_on(connection) as session:
            yield session

    @overload
    def fetch(self, statement: SelectOfScalar[R], /, **values: Any) -> Sequence[R]: ...

    @overload
    def fetch(self, statement: Prepared | Executable, /, **values: Any) -> Sequence[Any]: ...

    def fetch(self, statement: Any, /, **values: Any) -> Sequence[Any]:
        """Return a statement's rows, models or values. Raises the same errors as `read`."""
        if isinstance(statement, Prepared):
            with self.read() as connection:
                rows: Sequence[Any] = statement.run(connection, **values).fetchall()
                return rows
        with self.session() as session:
            found: Sequence[Any] = session.exec(statement, params=values or None).all()
        return found

    def fetch_reachable(self, statement: Any, owner: ColumnElement[str]) -> Sequence[Any]:
        """Return a statement's rows of all accounts, except those whose shard does not answer.

        `owner` is the statement's column with the account ID. If a shard does not answer, the
        statement runs separately for each account, in random order, until the time is up; a LIMIT
        then applies to each account. Raises the same errors as `read` if no account's shard
        answers.
        """
        try:
            return self.fetch(statement)
        except StoreUnavailable:
            rows: list[Any] = []
            is_answered = False
            account_ids = [*self.fetch(select(Account.id))] if self.is_sharded else []
            random.shuffle(account_ids)  # so that it is not always the same ones that are left out
            ends_at = time.monotonic() + REACHABLE_TIMEOUT_S
            for account_id in account_ids:
                if time.monotonic() >= ends_at:
                    break
                with suppress(StoreUnavailable):
                    rows += self.fetch(statement.where(owner == account_id))
                    is_answered = True
            if not is_answered:
                raise
            return rows

    @abstractmethod
    async def fetch_async(
        self, statement: Prepared | Executable, /, **values: Any
    ) -> Sequence[Row]:
        """Return a statement's rows without blocking the event loop.

        Do not change the rows: coroutines that run the same statement at the same time share them.
        If the server is unreachable, this retries for a few seconds. Raises the same errors as
        `read`.
        """

    def read_version(self) -> int | None:
        """Return a number that changes when a connection other than this thread's has committed.

        Compare it only with earlier numbers of the same thread. None if the engine has no such number.
        """
        return None

    def clear_log(self) -> bool:
        """Empty the store's log, which contains older data; return False if readers prevent this.

        A server's log is not changed.
        """
        return True

    @abstractmethod
    def measure(self) -> Size:
        """Return the current size of the store. Raises StoreUnavailable."""

    def write(
        self,
        change: Callable[[Session], R],
        *,
        account_id: str | None = None,
        deadline_s: float = WRITE_DEADLINE_S,
        ignores_closed: bool = False,
    ) -> R:
        """Run the change in a transaction, commit it, and return its result. Blocks the thread.

        The change may share its transaction with others, but has its own savepoint: if it raises a
        ResumesError, its effects are undone, and the error is raised here. It may run more than
        once; only the effects of the last run are committed. `account_id` is the account that the
        change concerns, whose row is locked first. With `ignores_closed`, it may write to a store
        that is being moved. Raises StoreUnavailable if nothing was done within `deadline_s`, and
        OutcomeUnknown if it is uncertain whether the commit succeeded.
        """
        (outcome,) = self.commit([as_write(change, account_id, deadline_s, ignores_closed)])
        if isinstance(outcome, BaseException):
            raise outcome
        result: R = outcome
        return result

    async def write_async(
        self,
        change: Callable[[Session], R],
        *,
        account_id: str | None = None,
        deadline_s: float = WRITE_DEADLINE_S,
    ) -> R:
        """Run and commit the change like `write`, but without blocking the event loop.

        If the coroutine is cancelled, the write is withdrawn unless it has already begun.
        """
        result: R = await self.commit_async(as_write(change, account_id, deadline_s))
        return result

    def commit(self, writes: Sequence[Write]) -> list[Any]:
        """Commit the writes, and return their results, or the errors that `write` would raise.

        They are queued together and share transactions if the engine allows it. Blocks the thread.
        """
        return self.write_queue.write_all(writes)

    async def commit_async(self, write: Write) -> Any:
        """Commit the write without blocking the event loop, and return its result.

        Raises the same errors as `write`.
        """
        outcome = await self._loop_writers.get().write(write)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def ping(self) -> None:
        """Test reading from the store. Raises StoreUnavailable or StoreIncompatible if it fails."""
        self.fetch(select(literal(1)).select_from(plans).limit(1))

    async def ping_write(self, *, deadline_s: float) -> None:
        """Test writing by changing an unused fact. Raises the same errors as `write`."""

        # The value changes each time, since SQLite does not write an unchanged value.
        value = f"{self.clock()} {time.monotonic_ns()}"
        await self.write_async(partial(set_facts, probe=value), deadline_s=deadline_s)

    def close(self) -> None:
        """Finish the waiting writes, then close connections and locks. This may be called twice."""
        if not self._is_closed:
            self._is_closed = True
            self.write_queue.close()
            self._disconnect()

    @abstractmethod
    def _disconnect(self) -> None:
        """Close all connections after the last write."""

    def __exit__(self, *_: object) -> None:
        self.close()


def session_on(connection: Connection) -> Session:
    """Return a session in the connection's transaction.

    Closing the session does not end the transaction, and its models stay usable.
    """
    return Session(connection, join_transaction_mode="rollback_only", expire_on_commit=False)


def change_count(session: Session, account_id: str, resumes: int) -> None:
    """Add `resumes` to the account's number of resumes, in the caller's transaction."""
    count = account_usage.c.resume_count + resumes
    this = pk_equals(account_usage, account_id)
    session.exec(update(account_usage).where(this).values(resume_count=count))


def lock_account(session: Session, account_id: str) -> int | None:
    """Lock the account's row for this transaction. Every write to the account must do this first.

    Return its number of resumes, or None if the account does not exist.
    """
    this = AccountUsage.account_id == account_id
    return session.exec(select(AccountUsage.resume_count).where(this).with_for_update()).first()


def as_write(
    change: Callable[[Session], Any],
    account_id: str | None,
    deadline_s: float,
    ignores_closed: bool = False,
) -> Write:
    """Return a write that runs the change like `Store.write`, to begin within `deadline_s`."""

    def run(connection: Connection) -> Any:
        with session_on(connection) as session:
            if account_id is not None:
                lock_account(session, account_id)
            result = change(session)
            session.flush()
        return result

    deadline = time.monotonic() + deadline_s
    return Write(
        apply_changes, run, deadline=deadline, account_id=account_id, ignores_closed=ignores_closed
    )


REACHABLE_TIMEOUT_S: Final = 5.0
"""How long accounts are queried one by one after a shard has not answered."""

# Closing a store to writes

WRITERS_TIMEOUT_S: Final = 30.0
"""How long a copy waits for transactions that had written before the store was closed."""


def read_fact(session: Session, name: str) -> str:
    """Return the current value of a fact about the store, or an empty string if it is missing."""
    fact = session.get(StoreFact, name)
    return "" if fact is None else fact.value


def set_facts(session: Session, **facts: str) -> None:
    """Set these facts about the store, in the caller's transaction."""
    for name, value in facts.items():
        session.merge(StoreFact(name=name, value=value))
    session.flush()


def refuse_if_closed(closed_for: str | None, batch: Sequence[Write]) -> None:
    """Raise StoreUnavailable if the store is closed to one of these writes.

    `closed_for` is the fact that their transaction has read, or None if it is empty.
    """
    if closed_for is not None and not all(write.ignores_closed for write in batch):
        raise StoreUnavailable(
            f"The store is being moved to {closed_for}, or has been moved; nothing was done. Use that one, "
            "or make this one writable again with `resumes db reopen`"
        )


def close_store(store: Store, target: str, copy_id: str) -> None:
    """Reject all writes from now on, and wait for writes that have begun.

    If an earlier copy to the same target closed the store, this copy takes it over. Raises Conflict
    if the store is being moved elsewhere, and StoreUnavailable if another process keeps writing.
    """

    def close(session: Session) -> None:
        closed_for = read_fact(session, "closed_for")
        if closed_for not in ("", target):
            raise Conflict(
                f"{store.label} is being moved to {closed_for}. Copy it there, or make it writable again "
                "with `resumes db reopen` first"
            )
        set_facts(session, closed_for=target, copy_id=copy_id)

    def wait_for_writers(session: Session) -> None:
        # A transaction that wrote before the store was closed holds a lock on its tables until it
        # ends. A transaction that writes after this lock sees that the store is closed. On SQLite,
        # closing the store has already waited for other writers.
        if session.get_bind().dialect.name == "postgresql":
            names = ", ".join(table.name for table in metadata.sorted_tables)
            session.connection().exec_driver_sql(f"LOCK TABLE {names} IN SHARE MODE")

    store.write(close, ignores_closed=True)
    retry(
        lambda: store.write(wait_for_writers, ignores_closed=True),
        timeout_s=WRITERS_TIMEOUT_S,
        delays_s=(0.1,),
        is_retryable=lambda error: isinstance(error, StoreUnavailable),
    )


def check_closed(store: Store, copy_id: str) -> None:
    """Raise Conflict if the store was reopened after this copy had closed it."""
    with store.session() as session:
        if read_fact(session, "copy_id") != copy_id:
            raise Conflict(
                "The store was reopened during the copy: what was added since is not in the copy"
            )


def reopen_store(store: Store, copy_id: str | None = None) -> str | None:
    """Accept writes again; with a `copy_id`, only if this copy closed the store.

    Return the target that the store was being moved to, or None if it was not reopened.
    """

    def change(session: Session) -> str | None:
        closed_for = read_fact(session, "closed_for")
        if not closed_for or copy_id not in (None, read_fact(session, "copy_id")):
            return None
        set_facts(session, closed_for="", copy_id="")
        return closed_for

    return store.write(change, ignores_closed=True)
