"""Keeping one listener at work: made, made anew when it fails or no longer fits, and in time."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from importer.health import HealthState
from importer.listening import Listener, find_limit

logger = logging.getLogger("resumes.importer")

LONGEST_PAUSE_S = 60.0
"""Between a listener that failed and the next: none at first, then 1 s, twice as long each time."""

LIMIT_PAUSE_S = 300.0
"""After a limit of the system, which only people raise."""

PROVEN_S = 10.0
"""How long one must have heard for its forerunner's failure to be over."""

ANEW_S = 1.0
"""The shortest between two that did not fail, when the folders keep changing."""

RENEW_S = 600.0
"""After this long one is made anew although it seems to serve. It may have lost a folder without
a word: when events overflow, at the limit of watches, when a disk was taken away and put back."""

END_S = 0.5
"""How long the end of a listener is waited for."""

SYSCTLS = Path("/proc/sys")

Identity = tuple[int, int]
"""A folder's device and number."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why there is no listener that serves."""

    state: HealthState
    sentence: str


class Keeper:
    """Keeps a listener on the folders that are asked for. For one thread."""

    def __init__(
        self,
        listen: Callable[[Sequence[str]], Listener],
        find_obstacle: Callable[[str], str | None],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listen = listen
        self._find_obstacle = find_obstacle
        self._monotonic = monotonic
        self._listener: Listener | None = None
        self._kept: Mapping[str, Identity] = {}
        self._failures = 0
        self._earliest_s = -math.inf
        self._renewal_s = math.inf
        self.unheard: Mapping[str, str] = {}
        """The folders that are left to scans, each with the reason."""
        self.trouble: Trouble | None = None
        """What the listener failed of, until another has proven itself."""

    def keep(self, wanted: Mapping[str, Identity]) -> None:
        """A listener is on the wanted folders, by path, or will be after a pause.

        To be called again and again: it is here that a failure is seen.
        """
        now_s = self._monotonic()
        if self._listener is not None:
            self._judge(self._listener, now_s)
        if now_s >= self._earliest_s and self._must_begin(wanted, now_s):
            self._begin(wanted, now_s)

    def end(self) -> None:
        """There is no listener."""
        if self._listener is not None:
            self._listener.end(END_S)
            self._listener = None

    def stop(self) -> None:
        """The listener ends soon."""
        if self._listener is not None:
            self._listener.stop()

    def _judge(self, listener: Listener, now_s: float) -> None:
        if listener.is_over:
            self._failed(listener.error, now_s)
        elif listener.alive_since_s is not None and now_s - listener.alive_since_s >= PROVEN_S:
            self._failures = 0
            self.trouble = None

    def _must_begin(self, wanted: Mapping[str, Identity], now_s: float) -> bool:
        is_outdated = self._listener is not None and self._listener.is_outdated
        has_failed = self._failures > 0 and self._listener is None
        return wanted != self._kept or is_outdated or has_failed or now_s >= self._renewal_s

    def _begin(self, wanted: Mapping[str, Identity], now_s: float) -> None:
        self.end()
        self._kept = wanted
        self._earliest_s = now_s + ANEW_S
        self._renewal_s = now_s + RENEW_S
        obstacles = {path: self._find_obstacle(path) for path in wanted}
        self.unheard = {path: why for path, why in obstacles.items() if why is not None}
        paths = [path for path in wanted if path not in self.unheard]
        if paths:
            self._listener = self._listen(paths)
        else:
            self._failures = 0
            self.trouble = None

    def _failed(self, error: Exception | None, now_s: float) -> None:
        self.end()
        self._failures += 1
        trouble = trouble_of(error)
        # The first time, a folder went away while the listener was made.
        if trouble != self.trouble and not (
            self._failures == 1 and isinstance(error, FileNotFoundError)
        ):
            logger.info("The system's watcher failed", exc_info=error)
            self.trouble = trouble
        self._earliest_s = now_s + self._pause_s(error)

    def _pause_s(self, error: Exception | None) -> float:
        if find_limit(error) is not None:
            return LIMIT_PAUSE_S
        # A single failure has a passing cause more often than not.
        return 0.0 if self._failures == 1 else min(2.0 ** (self._failures - 2), LONGEST_PAUSE_S)


def trouble_of(error: Exception | None) -> Trouble:
    """What a listener's failure means; the sentence is the same for each of its kind."""
    limit = find_limit(error)
    if limit is not None:
        return Trouble(
            HealthState.POLLING,
            f"The system makes no more watchers (limit {limit}{_value_of(limit)}), so new files "
            "are found by scans, a little later. Raise that limit with sysctl",
        )
    if "Unable to decode path" in str(error):
        why = "over a file name that is not UTF-8"
    else:
        why = f"({type(error).__name__})" if error is not None else "by itself"
    return Trouble(
        HealthState.DEGRADED,
        f"The system's watcher ended {why} and is made anew; meanwhile new files are found by "
        "scans, a little later",
    )


def _value_of(limit: str) -> str:
    try:
        return f", now {(SYSCTLS / limit.replace('.', '/')).read_text().strip()}"
    except OSError:
        return ""
