"""A store that is away for a while, or takes its time: a real one, with a hand on its door."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from sqlalchemy import Connection
from textual.pilot import Pilot

from resumes.errors import StoreUnavailable
from resumes.store.store import Row, Size, Store
from resumes.store.write_queue import Write
from tests.support.terminal.driving import LIMIT_S, at_rest, presses, until

AWAY: Final = "The store is not there"


class Hold:
    """Where calls wait until `go` is set. `begun`: one waits; `ended`: one that waited is over."""

    def __init__(self, after: int) -> None:
        self.left = after
        self.begun = threading.Event()
        self.go = threading.Event()
        self.ended = threading.Event()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self.begun.set()
        assert self.go.wait(LIMIT_S)
        try:
            yield
        finally:
            self.ended.set()

    async def arrives(self, pilot: Pilot[int]) -> None:
        """What was held back arrives, and nothing more is to come of it."""
        self.go.set()
        await until(self.ended.is_set)
        await at_rest(pilot)
        await pilot.pause()


class UnsteadyStore(Store):
    """The store as the app sees it; tests keep the one that it was made of, which is always there."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.write_queue, url=store.url, label=store.label, clock=store.clock)
        self.path = store.path
        self._store = store
        self._refusals: dict[str, str] = {}
        self._holds: dict[str, Hold] = {}

    def go_away(self, message: str = AWAY, *, only: str = "") -> None:
        """From now on nothing can be read or written; or `only` "read", or "write"."""
        self._refusals = dict.fromkeys([only] if only else ["read", "write"], message)

    def come_back(self) -> None:
        """All is as it was."""
        self._refusals = {}

    def hold(self, kind: str, *, after: int = 0) -> Hold:
        """Whoever wants to "read", or to "write", or has read and is about to "answer", waits from
        now on; so many go on before."""
        self._holds[kind] = hold = Hold(after)
        return hold

    def hold_no_more(self) -> None:
        """Those who come now go on at once; those who wait do so still."""
        self._holds = {}

    async def holds_back(self, pilot: Pilot[int], *keys: str) -> Hold:
        """The first read that these keys lead to waits, and no other."""
        hold = self.hold("read")
        await presses(pilot, *keys)
        await until(hold.begun.is_set)
        self.hold_no_more()
        return hold

    @contextmanager
    def held_reads(self) -> Iterator[Hold]:
        """Reads wait until the hold is let go, or the block ends."""
        hold = self.hold("read")
        try:
            yield hold
        finally:
            self.hold_no_more()
            hold.go.set()

    @contextmanager
    def _admission(self, kind: str) -> Iterator[None]:
        if kind in self._refusals:
            raise StoreUnavailable(self._refusals[kind])
        hold = self._holds.get(kind)
        if hold is None or hold.left:
            if hold is not None:
                hold.left -= 1
            yield
            return
        with hold():
            yield

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with self._admission("read"), self._store.read() as connection:
            yield connection
        with self._admission("answer"):
            pass

    def snapshot(self) -> AbstractContextManager[Connection]:
        return self._store.snapshot()

    async def fetch_async(self, statement: Any, /, **values: Any) -> Sequence[Row]:
        return await self._store.fetch_async(statement, **values)

    def read_version(self) -> int | None:
        return self._store.read_version()

    def measure(self) -> Size:
        return self._store.measure()

    def _disconnect(self) -> None:
        self._store.close()

    def commit(self, writes: Sequence[Write]) -> list[Any]:
        with self._admission("write"):
            return super().commit(writes)
