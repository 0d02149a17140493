"""Read the metrics of an installation, and cache queries that are slow in large stores."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from resumes.filesystems import free_bytes
from resumes.health.import_checks import count_by_outcome, oldest_request_age_s
from resumes.store import accounts, import_history, importers
from resumes.store.import_ledger import FileOutcome
from resumes.store.store import Size, Store

T = TypeVar("T")

CACHE_TIMES = 50
"""The time for which a result is kept, as a multiple of the time that its query took, so that
queries take at most 2 % of the time."""


class QueryCache:
    """Caches the results of queries whose duration grows with the size of the store.

    A result is kept for `times` times the duration of its query, but at least `min_s`. Threads may
    share the cache; at worst, two of them run the same query.
    """

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        times: int = CACHE_TIMES,
        min_s: float = 0.0,
    ) -> None:
        self._monotonic = monotonic
        self._times = times
        self._min_s = min_s
        self._answers: dict[Callable[[Store], Any], tuple[Any, float]] = {}
        """The result of each query, and the time until which it is kept."""

    def get(self, query: Callable[[Store], T], store: Store) -> T:
        """Return the cached result, or run the query. Raises the errors of the query."""
        begin_s = self._monotonic()
        answer, until_s = self._answers.get(query, (None, begin_s))
        if begin_s >= until_s:
            answer = query(store)
            end_s = self._monotonic()
            keep_s = max(self._min_s, self._times * (end_s - begin_s))
            self._answers[query] = (answer, end_s + keep_s)
        found: T = answer
        return found

    def clear(self) -> None:
        """Remove all results."""
        self._answers.clear()


@dataclass(frozen=True, slots=True)
class InstallationMetrics:
    """The metrics of an installation. `files` contains a number for each outcome.

    `free_bytes` is the free space on the store's disk, or None if it is unknown, for example on a
    database server. `live_importers` is the number of importers that reported within the last
    minute, and `waiting_files` the number of files that wait for them. `oldest_request_s` is the
    time for which the oldest request to an importer has been waiting, or None if there is no
    request.
    """

    size: Size
    free_bytes: int | None
    accounts: int
    resumes: int
    files: Mapping[FileOutcome, int]
    live_importers: int
    waiting_files: int
    oldest_request_s: float | None


def read_metrics(store: Store, cache: QueryCache) -> InstallationMetrics:
    """Return the current metrics; `files` may come from `cache`. Raises StoreError."""
    known = accounts.list_accounts(store)
    seen = importers.list_importers(store)
    try:
        free = None if store.path is None else free_bytes(store.path.parent)
    except OSError:
        free = None
    return InstallationMetrics(
        size=store.measure(),
        free_bytes=free,
        accounts=len(known),
        resumes=sum(account.resume_count for account in known),
        files=count_by_outcome(cache.get(import_history.count_files, store)),
        live_importers=sum(importer.is_live for importer in seen),
        waiting_files=importers.count_waiting(seen),
        oldest_request_s=oldest_request_age_s(store),
    )
