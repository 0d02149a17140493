"""When to look again: after an event, at intervals, and later while things are in trouble."""

from collections.abc import Callable

from importer.options import DEFAULT_TUNING, Tuning

SCAN_SHARE = 10
"""A scan that took a second is repeated after ten at the earliest, unless an event asks."""

ASKED_SHARE = 2
"""The same for events, so that a storm of them in a large folder leaves time for work."""


class Rhythm:
    """Times on the monotonic clock, in seconds. A scan is due at first."""

    def __init__(self, scan_s: float, *, monotonic: Callable[[], float]) -> None:
        self._scan_s = scan_s
        self._monotonic = monotonic
        self._next_scan = monotonic()
        self._earliest = self._next_scan

    @property
    def is_scan_due(self) -> bool:
        """Whether to look through the folder now."""
        return self._monotonic() >= self._next_scan

    def ask(self, at: float | None = None) -> None:
        """A scan is due now, or at the time, or as soon as the last one's length allows."""
        wanted = self._monotonic() if at is None else at
        self._next_scan = min(self._next_scan, max(wanted, self._earliest))

    def force(self) -> None:
        """A scan is due now, whatever the last one took."""
        self._next_scan = self._earliest = self._monotonic()

    def scanned(self, took_s: float) -> None:
        """A scan ended that spent so long on looking alone."""
        now = self._monotonic()
        self._next_scan = now + max(self._scan_s, SCAN_SHARE * took_s)
        self._earliest = now + ASKED_SHARE * took_s

    def until_scan_s(self) -> float:
        """Seconds until a scan is due."""
        return max(0.0, self._next_scan - self._monotonic())

    def until_earliest_s(self) -> float:
        """Seconds until a scan may be asked for."""
        return max(0.0, self._earliest - self._monotonic())


class BackOff:
    """How long nothing is tried after failures in a row. `random` returns 0 to 1."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], float],
        random: Callable[[], float],
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        self._monotonic = monotonic
        self._random = random
        self._tuning = tuning
        self._until = monotonic()
        self.failures = 0
        """In a row."""

    def failed(self) -> None:
        """Nothing is tried for a while, longer each time, and not by all importers at once."""
        back_off_s = min(
            self._tuning.first_back_off_s * 2**self.failures, self._tuning.longest_back_off_s
        )
        self.failures += 1
        self._until = self._monotonic() + back_off_s * (1 + self._random()) / 2

    def succeeded(self) -> None:
        """The next failure is the first again."""
        self.failures = 0
        self._until = self._monotonic()

    def left_s(self) -> float:
        """Seconds until the next try; 0 unless the last one failed."""
        return max(0.0, self._until - self._monotonic())
