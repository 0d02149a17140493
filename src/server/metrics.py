"""The metrics of a server, and GET /metrics in the Prometheus format (docs/operations.md, Metrics).

Counters are in memory that a server's processes share, which takes 0.3 µs per request. The
multiprocess mode of prometheus_client takes 3.6 µs, more than 3 % of the time to read a resume.
Metrics never contain an account, a key, a name or a path.
"""

import asyncio
import contextlib
import ctypes
import http
import importlib.metadata
import multiprocessing
import platform
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import Any, TypeAlias

from prometheus_client import ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from resumes.errors import StoreError, StoreUnavailable
from resumes.health.metrics import QueryCache
from resumes.store import Store
from resumes.store.import_history import count_files, list_analysis_s
from resumes.store.importers import ImporterState, count_waiting, list_importers
from resumes.store.retention import count_expired, list_due
from server.request import Request

OPERATIONS = (
    "list",
    "create",
    "upload",
    "get",
    "update",
    "delete",
    "pdf",
    "docx",
    "health",
    "ready",
    "metrics",
    "",
)
"""All values of `Request.operation`; the last value is for requests that match no operation."""

STATUS_AT = {status: at for at, status in enumerate([*map(int, http.HTTPStatus), 0])}
"""The offset of each status in an operation; 0 is for clients that left before an answer."""

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds of durations of requests and commits, in seconds."""

WRITES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
"""The upper bounds of the number of writes in a batch."""

# A histogram has a count for each bound, a count for larger values, and the sum.
_Durations = ctypes.c_double * (len(SECONDS) + 2)
_Sizes = ctypes.c_double * (len(WRITES) + 2)


class _Operation(ctypes.Structure):
    _fields_ = (("statuses", ctypes.c_double * len(STATUS_AT)), ("durations", _Durations))


class Counters(ctypes.Structure):
    """The counts of one process. All values are doubles."""

    _fields_ = (
        ("in_flight", ctypes.c_double),
        ("connections", ctypes.c_double),
        ("waiting_writes", ctypes.c_double),
        ("dropped_lines", ctypes.c_double),
        ("operations", _Operation * len(OPERATIONS)),
        ("commits", _Durations),
        ("batches", _Sizes),
    )


Memory: TypeAlias = ctypes.Array[Counters]


def share_memory(processes: int) -> Memory:
    """Return memory for the counters of this many processes. Pass it to them when they are spawned.

    Raises StoreUnavailable if the memory cannot be allocated.
    """
    try:
        return multiprocessing.get_context("spawn").RawArray(Counters, processes)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreUnavailable(
            f"Several workers need a writable /dev/shm, and where that is full a writable /tmp or TMPDIR: "
            f"{reason}. Make them writable, or use one worker"
        ) from error


class Metrics:
    """The counters of a process. The event loop's thread counts requests, a writer thread batches.

    `slot` is this process's part of the shared `memory`; no other live process may use it. The
    counts of the slot's previous owner are kept. Without `memory`, only this process is counted.
    """

    def __init__(self, memory: Memory | None = None, slot: int = 0) -> None:
        self.is_alone = memory is None
        self._all = (Counters * 1)() if memory is None else memory
        self._mine = mine = self._all[slot]
        self._operations = {
            name: (each.statuses, each.durations)
            for name, each in zip(OPERATIONS, mine.operations, strict=True)
        }
        # Requests and connections of the slot's previous owner ended with it.
        mine.in_flight = mine.connections = mine.waiting_writes = 0.0
        self._dropped_before = mine.dropped_lines

    def begin(self) -> None:
        """Count a request that has begun; call `end` once for each."""
        self._mine.in_flight += 1.0

    def end(self, operation: str, status: int, took_s: float) -> None:
        """Count a finished request by its status; 0 if the client left before an answer."""
        statuses, durations = self._operations[operation]
        self._mine.in_flight -= 1.0
        statuses[STATUS_AT[status]] += 1.0
        _observe(durations, SECONDS, took_s)

    def observe_batch(self, writes: int, took_s: float) -> None:
        """Count a batch of writes that was committed or failed."""
        _observe(self._mine.batches, WRITES, writes)
        _observe(self._mine.commits, SECONDS, took_s)

    def put(self, *, connections: int, waiting_writes: int, dropped_lines: int) -> None:
        """Set this process's current values, which all processes of the server may report."""
        self._mine.connections = connections
        self._mine.waiting_writes = waiting_writes
        self._mine.dropped_lines = self._dropped_before + dropped_lines

    def sums(self) -> Counters:
        """Return each value summed over all processes."""
        values = memoryview(self._all).cast("B").cast("d")
        count = len(values) // len(self._all)
        sums = array("d", (sum(values[at::count]) for at in range(count)))
        return Counters.from_buffer(sums)


def _observe(histogram: Any, bounds: Sequence[float], value: float) -> None:
    """Count the value in the histogram."""
    histogram[bisect_left(bounds, value)] += 1.0
    histogram[len(bounds) + 1] += value


def _histogram(histogram: Any, bounds: Sequence[float]) -> tuple[list[tuple[str, float]], float]:
    """Return each upper bound with its cumulative count, and the sum of the values."""
    *counts, total = histogram
    return [*zip([*map(str, bounds), "+Inf"], accumulate(counts), strict=True)], total


CACHE_S = 10.0
"""The minimum time for which metrics from the store are cached."""

CACHE_TIMES = 100
"""Metrics from the store are cached for this many times as long as it took to read them, so that
counting a large ledger takes at most 1 % of the time."""

WITHIN_S = 5.0
"""How long an answer waits for the store's metrics before it is sent without them."""


class Exposition:
    """Answers requests for the metrics of all processes of a server.

    `sample` is called before each answer and updates the current values. The store's metrics are
    read in a thread and cached.
    """

    def __init__(
        self,
        metrics: Metrics,
        store: Store,
        *,
        sample: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._metrics = metrics
        self._store = store
        self._sample = sample
        self._cache = QueryCache(clock, times=CACHE_TIMES, min_s=CACHE_S)
        self._thread = ThreadPoolExecutor(1, "store-metrics")
        self._of_store: Sequence[Metric] = ()
        """The store's metrics. While they are unknown, they are missing rather than zero."""

    async def __call__(self, request: Request) -> None:
        """Answer with the metrics."""
        await self.refresh()
        self._sample()
        body = generate_latest(self)
        headers = [
            (b"content-type", CONTENT_TYPE_PLAIN_0_0_4.encode()),
            (b"cache-control", b"no-store"),
        ]
        await request.respond_file(body, headers)

    async def refresh(self) -> None:
        """Update the store's metrics if they are too old, and wait for at most WITHIN_S."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WITHIN_S):
                await asyncio.get_running_loop().run_in_executor(self._thread, self._read)

    def _read(self) -> None:
        try:
            self._of_store = self._cache.get(_read_store_metrics, self._store)
        except StoreError:
            self._of_store = ()

    def collect(self) -> Iterator[Metric]:
        """Yield all metric families. With several processes, omit those about the process."""
        sums = self._metrics.sums()
        versions = {
            "version": importlib.metadata.version("resume-service"),
            "python": platform.python_version(),
            **self._store.engine_info,
        }
        yield InfoMetricFamily(
            "resumes_build", "Versions of the program, Python and the engine.", value=versions
        )
        yield from _iter_request_metrics(sums)
        yield HistogramMetricFamily(
            "resumes_commit_duration_seconds",
            "Time from the start of a batch to its commit.",
            *_histogram(sums.commits, SECONDS),
        )
        yield HistogramMetricFamily(
            "resumes_commit_writes", "Writes per commit.", *_histogram(sums.batches, WRITES)
        )
        yield GaugeMetricFamily(
            "resumes_writes_waiting", "Writes waiting in the queue.", sums.waiting_writes
        )
        yield GaugeMetricFamily("resumes_connections", "Open connections.", sums.connections)
        yield CounterMetricFamily(
            "resumes_log_lines_dropped", "Log lines that could not be written.", sums.dropped_lines
        )
        yield from self._of_store
        if self._metrics.is_alone:
            yield from ProcessCollector(registry=None).collect()


INITIAL_STATUSES = frozenset({500, 503})
"""Statuses whose series exist from the start: alerts on growth miss a series that begins at 1."""


def _iter_request_metrics(sums: Counters) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "resumes_requests", "Finished requests.", labels=["operation", "status"]
    )
    durations = HistogramMetricFamily(
        "resumes_request_duration_seconds",
        "Time from a request's head to the end of its response.",
        labels=["operation"],
    )
    operations = dict(zip(OPERATIONS, sums.operations, strict=True))
    for name, counters in operations.items():
        operation = name or "other"
        for status, count in zip(STATUS_AT, counters.statuses, strict=True):
            if count or status in INITIAL_STATUSES:
                requests.add_metric([operation, str(status or "other")], count)
        durations.add_metric([operation], *_histogram(counters.durations, SECONDS))
    yield requests
    yield durations
    yield GaugeMetricFamily(
        "resumes_requests_in_flight", "Requests being processed.", sums.in_flight
    )
    yield CounterMetricFamily(
        "resumes_quota_refusals",
        "Creates refused because the account is full.",
        operations["create"].statuses[STATUS_AT[403]],
    )
    yield CounterMetricFamily(
        "resumes_rate_limited",
        "Requests refused because their key made too many.",
        sum(each.statuses[STATUS_AT[429]] for each in operations.values()),
    )


def _read_store_metrics(store: Store) -> list[Metric]:
    """Return the metrics of files, importers and resumes past their plan's retention period."""
    files = GaugeMetricFamily(
        "resumes_import_files",
        "Files that importers processed, by outcome and reason.",
        labels=["outcome", "reason"],
    )
    for tally in count_files(store):
        files.add_metric([tally.outcome, tally.reason or ""], tally.files)
    importers = list_importers(store)
    live = [importer.state for importer in importers if importer.is_live]
    states = GaugeMetricFamily("resumes_importers", "Importers, by state.", labels=["state"])
    for state in ImporterState:
        states.add_metric([state], live.count(state))
    # The successor of an importer that died works in its folder: nothing is left to do. A store in a
    # file belongs to one machine, and a container that was recreated has another host name.
    is_local = store.path is not None
    places = [(is_local or importer.host, importer.root) for importer in importers]
    watched = {place for place, each in zip(places, importers, strict=True) if each.is_live}
    states.add_metric(["silent"], sum(place not in watched for place in places))
    waiting = count_waiting(importers)
    due = sum(some.resumes for some in list_due(store))
    metrics = [
        files,
        states,
        GaugeMetricFamily(
            "resumes_import_files_waiting", "Files waiting in watched folders.", waiting
        ),
        GaugeMetricFamily("resumes_due", "Resumes that are older than their plan allows.", due),
        CounterMetricFamily(
            "resumes_expired",
            "Resumes erased because their plan no longer kept them.",
            count_expired(store),
        ),
    ]
    if took_s := list_analysis_s(store):
        analyses = GaugeMetricFamily(
            "resumes_import_analysis_seconds",
            "Time that the analyzer took for each of the newest files.",
            labels=["quantile"],
        )
        analyses.add_metric(["0.5"], took_s[len(took_s) // 2])
        analyses.add_metric(["1"], took_s[-1])
        metrics.append(analyses)
    return metrics
