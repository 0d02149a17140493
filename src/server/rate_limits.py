"""How often a key may ask: token buckets of a minute, an hour and a day (docs/api.md, Rate limits).

A bucket of N tokens fills by N in its window, evenly. A request takes one token of each, or is
refused and takes none. The buckets are in `server.buckets`, so that all workers and servers of
a home on one machine count together, and a read costs no write to the store (pitfalls R2).
"""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from resumes.errors import StoreUnavailable
from resumes.settings import Settings
from resumes.store.keys import KeyHolder, PlanRates
from server.buckets import LAYOUT, Buckets, boot_clock_ns
from server.request import Request, error_body

SECOND_NS = 1_000_000_000
LENGTHS_S = (60, 3_600, 86_400)
REFUSAL = "Rate limit exceeded. Please try again later."
_LINES = b"x-ratelimit-limit: %d\r\nx-ratelimit-remaining: %d\r\nx-ratelimit-reset: %d\r\n"


class Window(NamedTuple):
    """A limit on the requests in a window.

    A bucket's debt is the time until it is full: 0 when it is, `burst_ns` when it is empty.
    """

    word: int
    """Where in its slot a key's bucket is."""
    limit: int
    length_ns: int
    interval_ns: int
    """In which one token comes."""
    burst_ns: int


class RateLimits:
    """Counts the requests of keys. The default clocks are those of the machine.

    Raises StoreUnavailable when the memory to count in cannot be had.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock_ns: Callable[[], int] = boot_clock_ns,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._defaults = (
            settings.rate_per_minute,
            settings.rate_per_hour,
            settings.rate_per_day,
        )
        self._clock_ns = clock_ns
        self._wall_s = wall_s
        self._windows: dict[PlanRates, tuple[Window, ...]] = {}
        path = settings.home.absolute() / "run" / f"rate-limits.{LAYOUT}"
        try:
            self._buckets = Buckets(path)
        except OSError as error:
            raise StoreUnavailable(
                f"Cannot count requests in {path}: {error.strerror}. "
                "Mend that, or serve with --no-rate-limit"
            ) from None

    def admit(self, holder: KeyHolder, lines: list[bytes]) -> int:
        """Count the request and return 0; else count nothing, and return in how many seconds a
        token comes.

        Either way the headers that tell how the key stands are added to `lines`.
        """
        windows = self._of(holder.rates)
        if not windows:
            return 0
        buckets = self._buckets
        words = buckets.words
        buckets.lock()
        try:
            now_ns = self._clock_ns()
            slot = buckets.take_slot(holder.key_id, now_ns)
            debts_ns = []
            longest_ns = 0
            for window in windows:
                debt_ns = _find_debt(window, words, slot, now_ns)
                wait_ns = debt_ns + window.interval_ns - window.burst_ns
                if wait_ns > longest_ns:
                    longest_ns, longest, its_debt_ns = wait_ns, window, debt_ns
                debts_ns.append(debt_ns)
            if not longest_ns:
                for at, window in enumerate(windows):
                    debts_ns[at] += window.interval_ns
                    words[slot + window.word] = now_ns + debts_ns[at]
        finally:
            buckets.unlock()
        if longest_ns:
            lines.append(self._line(longest, its_debt_ns))
        else:
            lines.append(self._line(*_find_tightest(windows, debts_ns)))
        return -(-longest_ns // SECOND_NS)

    def tell(self, holder: KeyHolder, lines: list[bytes]) -> None:
        """Add to `lines` the headers that tell how the key stands; count nothing."""
        windows = self._of(holder.rates)
        if not windows:
            return
        now_ns = self._clock_ns()
        slot = self._buckets.find_slot(holder.key_id, now_ns)
        debts_ns = [0] * len(windows)
        if slot is not None:
            words = self._buckets.words
            debts_ns = [_find_debt(window, words, slot, now_ns) for window in windows]
        lines.append(self._line(*_find_tightest(windows, debts_ns)))

    def _line(self, window: Window, debt_ns: int) -> bytes:
        left = (window.burst_ns - debt_ns) // window.interval_ns
        full_s = math.ceil(self._wall_s() + debt_ns / SECOND_NS)
        return _LINES % (window.limit, left, full_s)

    def _of(self, rates: PlanRates) -> tuple[Window, ...]:
        """Return the windows that count for a plan with these rates."""
        windows = self._windows.get(rates)
        if windows is None:
            windows = self._windows[rates] = make_windows(rates, self._defaults)
        return windows

    def close(self) -> None:
        """Count nothing more here; others go on."""
        self._buckets.close()


def make_windows(rates: PlanRates, defaults: tuple[int, int, int]) -> tuple[Window, ...]:
    """Return the windows in which a plan limits requests. None in `rates` is the default; 0 no limit."""
    windows = []
    for at, (rate, default) in enumerate(zip(rates, defaults, strict=True)):
        limit = default if rate is None else rate
        if limit:
            length_ns = LENGTHS_S[at] * SECOND_NS
            interval_ns = length_ns // limit
            windows.append(Window(at + 1, limit, length_ns, interval_ns, limit * interval_ns))
    return tuple(windows)


def _find_debt(window: Window, words: memoryview, slot: int, now_ns: int) -> int:
    """A bucket's debt. A moment further off than the window is of another clock: none."""
    debt_ns: int = words[slot + window.word] - now_ns
    return debt_ns if 0 < debt_ns <= window.length_ns else 0


def _find_tightest(windows: tuple[Window, ...], debts_ns: list[int]) -> tuple[Window, int]:
    """The window of whose bucket the smallest part is left, and its debt; the shorter of two alike."""
    tightest, its_debt_ns, most = windows[0], 0, -1.0
    for window, debt_ns in zip(windows, debts_ns, strict=True):
        used = debt_ns / window.burst_ns
        if used > most:
            tightest, its_debt_ns, most = window, debt_ns, used
    return tightest, its_debt_ns


def refuse_too_many(request: Request, wait_s: int) -> None:
    """Answer 429, and say when to come again."""
    body = error_body(429, REFUSAL, request_id=request.id, retryAfter=wait_s)
    request.respond(429, body, [(b"retry-after", b"%d" % wait_s)])


def is_rate_limited(settings: Settings, *, is_loopback: bool) -> bool:
    """Whether requests are to be limited per key: as set, else when listening beyond loopback."""
    return not is_loopback if settings.rate_limit is None else settings.rate_limit
