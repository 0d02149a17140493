"""GET /metrics: what was counted, in the Prometheus format (docs/operations.md, Metrics).

It holds counts only: no account, no key, no name, no path.
"""

import asyncio
import importlib.metadata
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from resumes.errors import StoreError
from resumes.store import Store
from resumes.store.import_history import FileCount, count_files
from resumes.store.importers import ImporterState, SeenImporter, count_waiting, list_importers
from server.metrics import OPERATIONS, PLACES, STATUSES, Metrics, Spread
from server.request import Request

KEEP_S = 10.0
"""How long what the store knows is given again,"""

KEEP_TIMES = 100
"""and so many times as long as it took, so that counting a large ledger costs one part in 100."""

WITHIN_S = 5.0
"""How long an answer waits for the store; after that it goes without what the store knows."""


class StoreFigures:
    """What the store knows about files and importers, read in a thread and kept for a while."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "figures")
        self._reading: asyncio.Future[None] | None = None
        self._keep_until_s = 0.0
        self.tallies: Sequence[FileCount] = ()
        self.importers: Sequence[SeenImporter] = ()

    async def refresh(self) -> None:
        """Make them as new as they have to be, or as new as can be had within a few seconds."""
        if self._clock() >= self._keep_until_s and (self._reading is None or self._reading.done()):
            loop = asyncio.get_running_loop()
            self._reading = loop.run_in_executor(self._thread, self._read)
        if self._reading is not None:
            await asyncio.wait([self._reading], timeout=WITHIN_S)
            if self._reading.done():
                self._reading.result()

    def _read(self) -> None:
        began_s = self._clock()
        try:
            self.tallies = count_files(self._store)
            self.importers = list_importers(self._store)
        except StoreError:
            # What cannot be known is not told: a zero would look like an answer.
            self.tallies = self.importers = ()
        now_s = self._clock()
        self._keep_until_s = now_s + max(KEEP_S, (now_s - began_s) * KEEP_TIMES)

    async def close(self) -> None:
        """Nothing is read any more, so the store may be closed."""
        if self._reading is not None:
            await asyncio.wait([self._reading], timeout=WITHIN_S)
        self._thread.shutdown(wait=False, cancel_futures=True)


class Exposition(Collector):
    """All metrics of a server, whichever of its processes is asked.

    `sample` is called before each answer and puts what is so at this moment. What the system knows
    of a process is told only where there `is_alone` one. `engine` says what keeps the store.
    """

    def __init__(
        self,
        metrics: Metrics,
        figures: StoreFigures,
        *,
        sample: Callable[[], None],
        is_alone: bool,
        engine: Mapping[str, str],
    ) -> None:
        self._metrics = metrics
        self._figures = figures
        self._sample = sample
        self._engine = engine
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        if is_alone:
            ProcessCollector(registry=self._registry)

    async def __call__(self, request: Request) -> None:
        """Answer with the metrics."""
        await self._figures.refresh()
        self._sample()
        body = generate_latest(self._registry)
        headers = [
            (b"content-type", CONTENT_TYPE_PLAIN_0_0_4.encode()),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
        ]
        await request.respond_file(body, headers)

    def describe(self) -> Iterator[Metric]:
        """Nothing: names are given when they are collected."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield every family of metrics."""
        sums = self._metrics.counters.sums()
        yield _build_info(self._engine)
        yield from _iter_request_metrics(sums)
        yield from _iter_write_metrics(sums)
        yield _gauge("resumes_connections", "Open connections.", sums[PLACES.connections])
        yield _counter(
            "resumes_log_lines_dropped",
            "Log lines that could not be written.",
            sums[PLACES.dropped_lines],
        )
        yield from _iter_file_metrics(self._figures.tallies)
        yield from _iter_importer_metrics(self._figures.importers)


def _build_info(engine: Mapping[str, str]) -> Metric:
    info = {
        "version": importlib.metadata.version("resume-service"),
        "python": platform.python_version(),
        **engine,
    }
    return InfoMetricFamily("resumes_build", "What is running.", value=info)


ALWAYS_THERE = frozenset({"500", "503"})
"""Statuses that have a series before the first of them: what begins at 1 has not grown, and an
alert on growth would miss it."""


def _iter_request_metrics(sums: Sequence[float]) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "resumes_requests", "Finished requests.", labels=["operation", "status"]
    )
    durations = HistogramMetricFamily(
        "resumes_request_duration_seconds",
        "Time from a request's head to the end of its response.",
        labels=["operation"],
    )
    for number, name in enumerate(OPERATIONS):
        operation = name or "other"
        for at, status in enumerate([*map(str, STATUSES), "other"]):
            count = sums[PLACES.requests_of(number, at)]
            if count or status in ALWAYS_THERE:
                requests.add_metric([operation, status], count)
        spread = PLACES.durations[number]
        durations.add_metric([operation], _buckets(sums, spread), sums[spread.sum_at])
    yield requests
    yield durations
    finished = sum(sums[PLACES.requests : PLACES.durations[0].at])
    yield _gauge(
        "resumes_requests_in_flight",
        "Requests being processed.",
        max(0.0, sums[PLACES.started] - finished),
    )
    yield _counter(
        "resumes_quota_refusals",
        "Creates refused because the account is full.",
        _requests(sums, "create", 403),
    )
    yield _counter(
        "resumes_rate_limited",
        "Requests refused because their key made too many.",
        sum(_requests(sums, name, 429) for name in OPERATIONS),
    )


def _requests(sums: Sequence[float], operation: str, status: int) -> float:
    return sums[PLACES.requests_of(OPERATIONS.index(operation), STATUSES.index(status))]


def _iter_write_metrics(sums: Sequence[float]) -> Iterator[Metric]:
    for name, text, spread in (
        (
            "resumes_commit_duration_seconds",
            "Time from the start of a batch to its commit.",
            PLACES.commits,
        ),
        ("resumes_commit_writes", "Writes per commit.", PLACES.batches),
    ):
        yield HistogramMetricFamily(name, text, _buckets(sums, spread), sums[spread.sum_at])
    yield _gauge(
        "resumes_writes_waiting", "Writes waiting in the queue.", sums[PLACES.waiting_writes]
    )


def _buckets(sums: Sequence[float], spread: Spread) -> list[tuple[str, float]]:
    """Yield each upper bound with what is at or below it."""
    below = 0.0
    buckets = []
    for at, bound in enumerate([*map(str, spread.bounds), "+Inf"]):
        below += sums[spread.at + at]
        buckets.append((bound, below))
    return buckets


def _iter_file_metrics(tallies: Sequence[FileCount]) -> Iterator[Metric]:
    files = GaugeMetricFamily(
        "resumes_import_files",
        "Files that importers processed, by outcome and reason.",
        labels=["outcome", "reason"],
    )
    for tally in tallies:
        files.add_metric([tally.outcome, tally.reason or ""], tally.files)
    yield files


def _iter_importer_metrics(importers: Sequence[SeenImporter]) -> Iterator[Metric]:
    live = [seen.importer for seen in importers if seen.is_live]
    states = GaugeMetricFamily("resumes_importers", "Importers, by state.", labels=["state"])
    for state in ImporterState:
        states.add_metric([state], sum(importer.state is state for importer in live))
    states.add_metric(["silent"], len(importers) - len(live))
    yield states
    yield _gauge(
        "resumes_import_files_waiting",
        "Files waiting in watched folders.",
        count_waiting(importers),
    )


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)
