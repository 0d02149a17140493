"""Opening a store, and what a store is to those who use it: reads, and writes through the lane."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from sqlalchemy import Connection, literal, select, update

from resumes.clock import Clock
from resumes.errors import OutcomeUnknown, ResumesError, StoreUnavailable
from resumes.store.schema import plans, store_facts
from resumes.store.statements import Prepared
from resumes.store.write_queue import (
    BUSY,
    PENDING,
    Apply,
    Lane,
    Proof,
    Request,
    SoonWriter,
    ThreadMailbox,
    ThreadWaiter,
    Write,
    apply_changes,
)

Row = tuple[Any, ...]


class Size(NamedTuple):
    """The bytes of a store's data, and of a log that is still to be copied there; None where a
    server looks after that."""

    data_bytes: int
    log_bytes: int | None


class Database(Protocol):
    """An open database: how it is read, and the lane by which it is written."""

    @property
    def lane(self) -> Lane:
        """How it is written."""

    @property
    def path(self) -> Path | None:
        """The file, where it is one."""

    @property
    def waits_for_network(self) -> bool:
        """Whether a read may take long through no fault of its own: event loops leave it to
        threads."""

    @property
    def url(self) -> str:
        """The address that opens the store again. May hold a password."""

    @property
    def label(self) -> str:
        """The address as people and logs are shown it: without a password."""

    @property
    def engine(self) -> Mapping[str, str]:
        """What is told of the engine beside the program's own version: names with values."""

    def read(self) -> AbstractContextManager[Connection]:
        """A block with a connection to read by, of this thread alone; SQLite's cannot write.

        Each statement sees what is committed when it starts. Errors of the driver become
        StoreUnavailable, or StoreIncompatible for a damaged file, and words that are not UTF-8
        InvalidArgument.
        """

    def read_version(self) -> int | None:
        """Return a number that changes with commits, for this thread; None where there is none."""

    async def fetch_soon(self, statement: Prepared, values: Mapping[str, Any]) -> Sequence[Row]:
        """The rows of a statement, for coroutines. Raises what `read` raises."""

    def measure(self) -> Size:
        """How large it is now. Raises StoreUnavailable."""

    def close(self) -> None:
        """Waiting writes are done, connections are closed."""


Q = TypeVar("Q", bound=Request)
R = TypeVar("R")

WRITE_DEADLINE_S = 10.0
"""How long a write waits for its turn when nobody says otherwise."""

COMMIT_GRACE_S = 20.0
"""How much longer the true outcome of a write that was taken is waited for."""

DELIVERY_S = 0.1
"""What the lane gets beyond a deadline, to say itself that it has passed."""


class Store:
    """An open store. Threads and event loops may share it; processes each open their own."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self.database = database
        self.clock = clock
        self._threads = ThreadMailbox()
        self._making_writers = threading.Lock()
        self._soon_writers: dict[asyncio.AbstractEventLoop, SoonWriter] = {}
        self._closed = False

    @property
    def path(self) -> Path | None:
        """The store's file, where it is one."""
        return self.database.path

    @property
    def url(self) -> str:
        """The address that opens this store again. May hold a password: not for people's eyes."""
        return self.database.url

    @property
    def label(self) -> str:
        """The address as people and logs are shown it: without a password."""
        return self.database.label

    @property
    def lane(self) -> Lane:
        """How this process writes."""
        return self.database.lane

    def read(self) -> AbstractContextManager[Connection]:
        """A block with a connection to read by, and to nothing else: SQLite's cannot write.

        Each statement sees what is committed when it starts; no transaction outlives it, so
        that readers never hold anything back. Errors of the driver become StoreUnavailable.
        """
        return self.database.read()

    def read_version(self) -> int | None:
        """Return a number that is another one after somebody else than this thread has committed.

        It is to be compared with what the same thread was told before. None: the engine has none.
        """
        return self.database.read_version()

    async def fetch_soon(self, statement: Prepared, /, **values: Any) -> Sequence[Row]:
        """The rows of a statement, as `read` would give them, for coroutines: their event loop goes
        on meanwhile. They may be shared with others who ask the same: not to be changed.

        A server that is away is asked again for some seconds. Raises what `read` raises.
        """
        return await self.database.fetch_soon(statement, values)

    def write(
        self,
        change: Callable[[Connection], R],
        *,
        account_id: str | None = None,
        deadline_s: float = WRITE_DEADLINE_S,
        ignores_closed: bool = False,
        proof: Proof | None = None,
    ) -> R:
        """Run the change in a transaction and return its result, committed. Blocks this thread.

        The change shares its transaction with others, in a savepoint of its own: a ResumesError that
        it raises undoes what it wrote, and is raised here. It may be run more than once; only what
        the last run wrote is committed. `account_id` is the account that it concerns. `ignores_closed`
        lets it write to a store that is being moved. `proof` finds out whether it was committed when
        the commit had no answer.

        Raises also StoreUnavailable when nothing was done within `deadline_s`, and OutcomeUnknown
        when a commit neither succeeded nor failed for certain.
        """
        write = Write(
            apply_changes,
            change,
            deadline=time.monotonic() + deadline_s,
            account_id=account_id,
            proof=proof,
            ignores_closed=ignores_closed,
        )
        (outcome,) = self._write_all([write])
        result: R = _result(outcome)
        return result

    async def write_async(
        self,
        change: Callable[[Connection], R],
        *,
        account_id: str | None = None,
        deadline_s: float = WRITE_DEADLINE_S,
    ) -> R:
        """`write` for coroutines: their event loop goes on meanwhile.

        A coroutine that is cancelled while it waits withdraws its write if the lane has not
        taken it.
        """
        write = Write(
            apply_changes, change, deadline=time.monotonic() + deadline_s, account_id=account_id
        )
        writer = self._soon_writer(asyncio.get_running_loop())
        result: R = _result(await writer.write(write))
        return result

    def write_batched(
        self,
        apply: Callable[[Connection, Sequence[Q]], Sequence[R | ResumesError]],
        request: Q,
        *,
        deadline_s: float = WRITE_DEADLINE_S,
        proof: Proof | None = None,
    ) -> R:
        """Return the result of the request, committed. Blocks this thread, and raises as `write`.

        `apply` is given all requests of its kind that meet in a batch, and returns one result each.
        """
        (outcome,) = self.write_all(apply, [request], deadline_s=deadline_s, proof=proof)
        result: R = _result(outcome)
        return result

    def write_all(
        self,
        apply: Callable[[Connection, Sequence[Q]], Sequence[R | ResumesError]],
        requests: Sequence[Q],
        *,
        deadline_s: float = WRITE_DEADLINE_S,
        proof: Proof | None = None,
    ) -> list[R | BaseException]:
        """Return what each of the requests came to: its result, or what `write_batched` would raise.

        They wait together, and share transactions as far as the engine allows.
        """
        deadline = time.monotonic() + deadline_s
        return self._write_all([_batched(apply, request, deadline, proof) for request in requests])

    async def write_batched_async(
        self,
        apply: Callable[[Connection, Sequence[Q]], Sequence[R | ResumesError]],
        request: Q,
        *,
        deadline_s: float = WRITE_DEADLINE_S,
        proof: Proof | None = None,
    ) -> R:
        """`write_batched` for coroutines, as `write_async`."""
        writer = self._soon_writer(asyncio.get_running_loop())
        write = _batched(apply, request, time.monotonic() + deadline_s, proof)
        result: R = _result(await writer.write(write))
        return result

    def _write_all(self, writes: Sequence[Write]) -> list[Any]:
        waiter = ThreadWaiter(len(writes))
        for write in writes:
            write.mailbox, write.waiter = self._threads, waiter
            self.lane.offer(write)
        self.lane.ask()
        ends_at = max((write.deadline for write in writes), default=0.0)
        if not waiter.wait(max(0.0, ends_at - time.monotonic()) + DELIVERY_S):
            for write in writes:
                if self.lane.withdraw(write):
                    write.outcome = StoreUnavailable(BUSY)
                    waiter.count_down()
            waiter.wait(COMMIT_GRACE_S)
        return [OutcomeUnknown() if one.outcome is PENDING else one.outcome for one in writes]

    def _soon_writer(self, loop: asyncio.AbstractEventLoop) -> SoonWriter:
        writer = self._soon_writers.get(loop)
        if writer is None:
            writer = SoonWriter(self.lane, loop, commit_grace_s=COMMIT_GRACE_S)
            with self._making_writers:
                for gone in [one for one in self._soon_writers if one.is_closed()]:
                    del self._soon_writers[gone]
                self._soon_writers[loop] = writer
        return writer

    def close(self) -> None:
        """Waiting writes are done, connections and locks are free. Safe to call twice."""
        if not self._closed:
            self._closed = True
            self.database.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _batched(apply: Apply, request: Request, deadline: float, proof: Proof | None) -> Write:
    account_id = request.account_id
    return Write(apply, request, deadline=deadline, account_id=account_id, proof=proof)


def _result(outcome: Any) -> Any:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


ONE_PLAN = select(literal(1)).select_from(plans).limit(1)


def probe_reading(store: Store) -> None:
    """The store could be read. Raises StoreUnavailable and StoreIncompatible."""
    with store.read() as connection:
        connection.execute(ONE_PLAN).all()


async def probe_writing_soon(store: Store, *, deadline_s: float) -> None:
    """A write went through the lane and to the disk: a fact that nobody reads was changed.

    Raises what `Store.write` raises.
    """

    def change(connection: Connection) -> None:
        # Another value each time: what is as it was, SQLite does not write.
        connection.execute(
            update(store_facts)
            .where(store_facts.c.name == "probe")
            .values(value=f"{store.clock()} {time.monotonic_ns()}")
        )

    await store.write_async(change, deadline_s=deadline_s)
