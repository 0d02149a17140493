"""Health, metrics and access log of one server, put together."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sized
from typing import Any

from resumes.log_writer import LogWriter
from resumes.settings import Settings
from resumes.store import Store
from server.access_log import AccessLog, has_access_log
from server.exposition import Exposition, StoreFigures
from server.health import HealthCheck, Room
from server.metrics import PLACES, Counters, Metrics
from server.request import Request

Respond = Callable[[Request], Coroutine[Any, Any, None]]

BUSY_PER_S = 20
"""From so many requests a second on, what need not be done now waits."""

SAMPLE_EVERY_S = 1.0
"""How old may be what other processes of the server tell of this one's moment."""


class Instruments:
    """Those of one process. Every request is told to `begin` and, when it is over, to `observe`.

    Without `counters` it counts for itself alone; without `log` no request is logged.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        connections: Sized = (),
        counters: Counters | None = None,
        log: LogWriter | None = None,
    ) -> None:
        self._store = store
        self._connections = connections
        self._log = log
        self._metrics = Metrics(counters or Counters.alone(PLACES.size))
        self._access_log: AccessLog | None = None
        if log is not None and has_access_log(settings):
            self._access_log = AccessLog(log, log_format=settings.log_format)
        self.room = Room(store.path and store.path.parent, floor_bytes=settings.disk_floor_bytes)
        self._health = HealthCheck(store, self.room)
        self._figures = StoreFigures(store)
        exposition = Exposition(
            self._metrics,
            self._figures,
            sample=self._sample,
            is_alone=counters is None,
            engine=store.engine_info,
        )
        self.probes: Mapping[str, tuple[str, Respond]] = {
            "/healthz": ("health", self._health.live),
            "/readyz": ("ready", self._health.ready),
            "/metrics": ("metrics", exposition),
        }
        """What needs no key and is not for clients, by path, with the names that metrics know."""
        self.begin = self._metrics.begin
        """Count a request that begins."""
        store.write_queue.observe = self._metrics.observe_batch
        self._seen = (self._metrics.started, time.monotonic())

    def is_busy(self) -> bool:
        """Tell whether requests have come in quick succession since this was last asked."""
        started, now_s = self._metrics.started, time.monotonic()
        before, since_s = self._seen
        self._seen = (started, now_s)
        return started - before > BUSY_PER_S * (now_s - since_s)

    def observe(self, request: Request, took_s: float) -> None:
        """Count the request, which is over, and log it if requests are logged."""
        self._metrics.end(request.operation, request.status, took_s)
        if self._access_log is not None:
            self._access_log.observe(request, took_s)

    @contextlib.asynccontextmanager
    async def sampling(self) -> AsyncIterator[None]:
        """During the block the other processes of the server know of this one's moment."""
        task = asyncio.create_task(self._sample_for_ever())
        try:
            yield
        finally:
            task.cancel()

    async def _sample_for_ever(self) -> None:
        while True:
            self._sample()
            await asyncio.sleep(SAMPLE_EVERY_S)

    def _sample(self) -> None:
        self._metrics.put(
            connections=len(self._connections),
            waiting_writes=self._store.write_queue.waiting,
            dropped_lines=0 if self._log is None else self._log.dropped_count,
        )

    async def close(self) -> None:
        """Look at nothing any more, write the log to its end, and leave the counters to a successor."""
        await self._health.close()
        await self._figures.close()
        self._metrics.counters.close()
        if self._log is not None:
            self._log.close()
