"""A store of any engine: how it is read, written, measured and closed.

A store that is being moved, or was moved, records the target and refuses writes, which would be lost
after it was copied (pitfalls S13). So a copy closes its source by a fact in `store_facts`, and every
write checks that inside its transaction: on SQLite, where writers exclude one another, at the
beginning; on PostgreSQL at the end, because a transaction that wrote before the store was closed holds
a lock by then, for which the copy waits.
"""

import asyncio
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar, overload

from sqlalchemy import Connection, Executable, literal, update
from sqlmodel import Session, select
from sqlmodel.sql.expression import SelectOfScalar

from resumes.clock import Clock
from resumes.errors import Conflict, StoreUnavailable
from resumes.store.locks import retry
from resumes.store.schema import AccountUsage, StoreFact, account_usage, metadata, plans
from resumes.store.statements import Prepared, pk_equals
from resumes.store.write_queue import THREAD_ENDED, LoopWriter, Write, WriteQueue, apply_changes

Row = tuple[Any, ...]
R = TypeVar("R")

WRITE_DEADLINE_S = 10.0
"""How long a write waits for its turn by default."""


class Size(NamedTuple):
    """The bytes of a store's data, and of the log that is still to be copied into it; None if the server
    manages its log."""

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
        """Return the running loop's object. The objects of closed loops are discarded when the next loop
        first calls this."""
        loop = asyncio.get_running_loop()
        found = self._objects.get(loop)
        if found is None:
            found = self._objects[loop] = self._make(loop)
            for closed in [loop for loop in list(self._objects) if loop.is_closed()]:
                if discarded := self._objects.pop(closed, None):  # another thread may have
                    self._discard(discarded)
        return found

    def discard_all(self) -> None:
        """Discard the object of every loop."""
        for found in self._objects.values():
            self._discard(found)


class Store(AbstractContextManager["Store", None]):
    """An open store. Threads and event loops may share it; each process opens its own."""

    path: Path | None = None
    """The store's file. None on a server, where a read may wait for a network, so that an event loop must
    use `fetch_async` or a thread."""

    engine_info: Mapping[str, str]
    """The labels of the engine's metric, with their values."""

    def __init__(self, write_queue: WriteQueue, *, url: str, label: str, clock: Clock) -> None:
        self.write_queue = write_queue
        self.url = url
        """The address that opens this store again. May hold a password: do not show it."""
        self.label = label
        """The address without a password, for people and logs."""
        self.clock = clock
        self._loop_writers = PerLoop(partial(LoopWriter, write_queue))
        self._is_closed = False
        self.threads: list[threading.Thread] = [*write_queue.threads]
        """The threads that must run for as long as the store is open."""

    def check_threads(self) -> None:
        """Raise StoreUnavailable if a thread that the store depends on has ended. A service calls this
        repeatedly, and ends then, since only a new process can do the thread's work."""
        for thread in self.threads:
            if not (self._is_closed or thread.is_alive()):
                raise StoreUnavailable(f"{THREAD_ENDED} ({thread.name})")

    @abstractmethod
    def read(self) -> AbstractContextManager[Connection]:
        """Return a block with this thread's connection for reading; SQLite's cannot write.

        Each statement sees what was committed when it started; no transaction outlives it, so readers
        never block checkpoints. In the block, errors of the driver become StoreUnavailable, or
        StoreIncompatible for a damaged file, and text that is not UTF-8 becomes InvalidArgument.
        """

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Connection]:
        """Return a block as `read`, whose statements all see the same moment, while others write."""

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Yield a session for reading, whose models may be used after it. Raises what `read` raises."""
        with self.read() as connection, session_on(connection) as session:
            yield session

    @overload
    def fetch(self, statement: SelectOfScalar[R], /, **values: Any) -> Sequence[R]: ...

    @overload
    def fetch(self, statement: Prepared | Executable, /, **values: Any) -> Sequence[Any]: ...

    def fetch(self, statement: Any, /, **values: Any) -> Sequence[Any]:
        """Return a statement's rows, models or values. Raises what `read` raises."""
        if isinstance(statement, Prepared):
            with self.read() as connection:
                rows: Sequence[Any] = statement.run(connection, **values).fetchall()
                return rows
        with self.session() as session:
            found: Sequence[Any] = session.exec(statement, params=values or None).all()
        return found

    @abstractmethod
    async def fetch_async(
        self, statement: Prepared | Executable, /, **values: Any
    ) -> Sequence[Row]:
        """Return a statement's rows without blocking the event loop.

        Coroutines that run the same statement at the same time share the rows: do not change them. If the
        server is unreachable, this retries for some seconds. Raises what `read` raises.
        """

    def read_version(self) -> int | None:
        """Return a number that changes when a connection other than this thread's has committed.

        Compare it only with earlier numbers of the same thread. None if the engine has no such number.
        """
        return None

    def clear_log(self) -> bool:
        """Empty the store's log, which holds what was overwritten since; return False if readers prevent it.

        A server keeps its log as its owner configured it.
        """
        return True

    @abstractmethod
    def measure(self) -> Size:
        """Return how large the store is now. Raises StoreUnavailable."""

    def write(
        self,
        change: Callable[[Session], R],
        *,
        account_id: str | None = None,
        deadline_s: float = WRITE_DEADLINE_S,
        ignores_closed: bool = False,
    ) -> R:
        """Run the change in a transaction, commit it, and return its result. Blocks this thread.

        The change shares its transaction with others, in its own savepoint: a ResumesError that it
        raises undoes what it wrote, and is raised here. It may be run more than once; only what the last
        run wrote is committed. `account_id` is the account that it concerns, whose row is locked first.
        `ignores_closed` lets it write to a store that is being moved.

        Also raises StoreUnavailable if nothing was done within `deadline_s`, and OutcomeUnknown if it is
        not certain whether a commit succeeded.
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
        """Do what `write` does without blocking the event loop.

        If the coroutine is cancelled while it waits, the write is withdrawn unless it has begun.
        """
        result: R = await self.commit_async(as_write(change, account_id, deadline_s))
        return result

    def commit(self, writes: Sequence[Write]) -> list[Any]:
        """Commit the writes, and return the result of each, or the error that `write` would raise.

        They are queued together, and share transactions as far as the engine allows. Blocks this thread.
        """
        return self.write_queue.write_all(writes)

    async def commit_async(self, write: Write) -> Any:
        """Commit the write and return its result, without blocking the event loop. Raises as `write`."""
        outcome = await self._loop_writers.get().write(write)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def ping(self) -> None:
        """Read from the store. Raises StoreUnavailable and StoreIncompatible if that fails."""
        self.fetch(select(literal(1)).select_from(plans).limit(1))

    async def ping_write(self, *, deadline_s: float) -> None:
        """Change an unused fact, through the queue and to the disk, to test writing. Raises what `write`
        raises."""

        # A new value each time, since SQLite does not write an unchanged one.
        value = f"{self.clock()} {time.monotonic_ns()}"
        await self.write_async(partial(set_facts, probe=value), deadline_s=deadline_s)

    def close(self) -> None:
        """Finish the waiting writes, then close connections and locks. Safe to call twice."""
        if not self._is_closed:
            self._is_closed = True
            self.write_queue.close()
            self._disconnect()

    @abstractmethod
    def _disconnect(self) -> None:
        """Close all connections, after the last write."""

    def __exit__(self, *_: object) -> None:
        self.close()


def session_on(connection: Connection) -> Session:
    """Return a session in the connection's transaction, which closing the session does not end.

    Its models may be used after it.
    """
    return Session(connection, join_transaction_mode="rollback_only", expire_on_commit=False)


def change_count(session: Session, account_id: str, resumes: int) -> None:
    """Add this to the account's number of resumes, in the caller's transaction."""
    count = account_usage.c.resume_count + resumes
    this = pk_equals(account_usage, account_id)
    session.exec(update(account_usage).where(this).values(resume_count=count))


def lock_account(session: Session, account_id: str) -> int | None:
    """Lock the account's row for this transaction, as every write to the account does first.

    Return its number of resumes; None if the account does not exist.
    """
    this = AccountUsage.account_id == account_id
    return session.exec(select(AccountUsage.resume_count).where(this).with_for_update()).first()


def as_write(
    change: Callable[[Session], Any],
    account_id: str | None,
    deadline_s: float,
    ignores_closed: bool = False,
) -> Write:
    """Return the write of `Store.write`, to be begun within `deadline_s` seconds."""

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


# Closed for writes

WRITERS_TIMEOUT_S: Final = 30.0
"""How long a copy waits for transactions that began to write before the store was closed."""


def read_fact(session: Session, name: str) -> str:
    """Return a fact about the store as it is now; empty if it is missing."""
    fact = session.get(StoreFact, name)
    return "" if fact is None else fact.value


def set_facts(session: Session, **facts: str) -> None:
    """Set these facts of the store, in the caller's transaction."""
    for name, value in facts.items():
        session.merge(StoreFact(name=name, value=value))
    session.flush()


def refuse_if_closed(closed_for: str | None, batch: Sequence[Write]) -> None:
    """Raise StoreUnavailable if the store is closed; `closed_for` is the fact that the transaction of
    these writes has read, None if it is empty."""
    if closed_for is not None and not all(write.ignores_closed for write in batch):
        raise StoreUnavailable(
            f"The store is being moved to {closed_for}, or has been moved; nothing was done. Use that one, "
            "or make this one writable again with `resumes db reopen`"
        )


def close_store(store: Store, target: str, copy_id: str) -> None:
    """Refuse all writes from now on, and wait for those that have begun.

    This copy takes over a store that an earlier copy to the same target closed. Raises Conflict for a
    store that is being moved elsewhere, and StoreUnavailable when another process continues writing.
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
        # A transaction that wrote before the store was closed holds a lock on its tables until its end;
        # one that writes after this lock sees that it is closed. On SQLite closing waited for all.
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
    """Raise Conflict if the store was reopened since this copy closed it."""
    with store.session() as session:
        if read_fact(session, "copy_id") != copy_id:
            raise Conflict(
                "The store was reopened during the copy: what was added since is not in the copy"
            )


def reopen_store(store: Store, copy_id: str | None = None) -> str | None:
    """Accept writes again; with `copy_id`, only if that copy closed the store.

    Return the target that it was being moved to; None if it was not closed.
    """

    def change(session: Session) -> str | None:
        closed_for = read_fact(session, "closed_for")
        if not closed_for or copy_id not in (None, read_fact(session, "copy_id")):
            return None
        set_facts(session, closed_for="", copy_id="")
        return closed_for

    return store.write(change, ignores_closed=True)
