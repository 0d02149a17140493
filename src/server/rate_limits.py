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
from server.request import Headers, Request, error_body

SECOND_NS = 1_000_000_000
LENGTHS_S = (60, 3_600, 86_400)
REFUSAL = "Rate limit exceeded. Please try again later."


class Window(NamedTuple):
    """A limit on the requests in a window.

    A bucket's debt is the time until it is full: 0 when it is, `burst_ns` when it is empty.
    """

    word: int
    """Where in its slot a key's bucket is."""
    header: tuple[bytes, bytes]
    """The limit, as clients are told."""
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

    def admit(self, holder: KeyHolder, headers: Headers) -> int:
        """0: the request is counted. Else nothing is, and a token comes in so many seconds.

        Either way `headers` tell how the key stands.
        """
        windows = self._of(holder.rates)
        if not windows:
            return 0
        buckets = self._buckets
        buckets.lock()
        try:
            now_ns = self._clock_ns()
            slot = buckets.take_slot(holder.key_id, now_ns)
            debts_ns = _find_debts(windows, buckets.words, slot, now_ns)
            wait_ns, longest = _find_longest_wait(windows, debts_ns)
            if not wait_ns:
                _add_one(windows, debts_ns, buckets.words, slot, now_ns)
        finally:
            buckets.unlock()
        if not wait_ns:
            longest = _find_tightest(windows, debts_ns)
        self._put(headers, windows[longest], debts_ns[longest])
        return -(-wait_ns // SECOND_NS)

    def tell(self, holder: KeyHolder, headers: Headers) -> None:
        """`headers` tell how the key stands; nothing is counted."""
        windows = self._of(holder.rates)
        if not windows:
            return
        now_ns = self._clock_ns()
        slot = self._buckets.find_slot(holder.key_id, now_ns)
        debts_ns = [0] * len(windows)
        if slot is not None:
            debts_ns = _find_debts(windows, self._buckets.words, slot, now_ns)
        tightest = _find_tightest(windows, debts_ns)
        self._put(headers, windows[tightest], debts_ns[tightest])

    def _put(self, headers: Headers, window: Window, debt_ns: int) -> None:
        _, limit, _, interval_ns, burst_ns = window
        full_s = math.ceil(self._wall_s() + debt_ns / SECOND_NS)
        headers.append(limit)
        headers.append((b"x-ratelimit-remaining", b"%d" % ((burst_ns - debt_ns) // interval_ns)))
        headers.append((b"x-ratelimit-reset", b"%d" % full_s))

    def _of(self, rates: PlanRates) -> tuple[Window, ...]:
        """The windows that count for a plan with these rates."""
        windows = self._windows.get(rates)
        if windows is None:
            windows = self._windows[rates] = make_windows(rates, self._defaults)
        return windows

    def close(self) -> None:
        """Nothing more is counted here; others go on."""
        self._buckets.close()


def make_windows(rates: PlanRates, defaults: tuple[int, int, int]) -> tuple[Window, ...]:
    """The windows in which a plan limits requests. None in `rates` is the default; 0 no limit."""
    windows = []
    for at, (rate, default) in enumerate(zip(rates, defaults, strict=True)):
        limit = default if rate is None else rate
        if limit:
            length_ns = LENGTHS_S[at] * SECOND_NS
            interval_ns = length_ns // limit
            header = (b"x-ratelimit-limit", b"%d" % limit)
            windows.append(Window(at + 1, header, length_ns, interval_ns, limit * interval_ns))
    return tuple(windows)


def _find_debts(
    windows: tuple[Window, ...], words: memoryview, slot: int, now_ns: int
) -> list[int]:
    """Each bucket's debt. A moment further off than the window is of another clock: none."""
    debts_ns = []
    for word, _, length_ns, _, _ in windows:
        debt_ns = words[slot + word] - now_ns
        debts_ns.append(debt_ns if 0 < debt_ns <= length_ns else 0)
    return debts_ns


def _find_longest_wait(windows: tuple[Window, ...], debts_ns: list[int]) -> tuple[int, int]:
    """How long until every bucket has a token, 0 if all have, and for which that is."""
    longest_ns, longest = 0, 0
    for at, (_, _, _, interval_ns, burst_ns) in enumerate(windows):
        wait_ns = debts_ns[at] + interval_ns - burst_ns
        if wait_ns > longest_ns:
            longest_ns, longest = wait_ns, at
    return longest_ns, longest


def _add_one(
    windows: tuple[Window, ...],
    debts_ns: list[int],
    words: memoryview,
    slot: int,
    now_ns: int,
) -> None:
    """One token is taken from each bucket, in `debts_ns` and in the slot."""
    for at, (word, _, _, interval_ns, _) in enumerate(windows):
        debts_ns[at] += interval_ns
        words[slot + word] = now_ns + debts_ns[at]


def _find_tightest(windows: tuple[Window, ...], debts_ns: list[int]) -> int:
    """Of whose bucket the smallest part is left; the shorter window of two alike."""
    tightest, most = 0, -1.0
    for at, window in enumerate(windows):
        used = debts_ns[at] / window[4]
        if used > most:
            tightest, most = at, used
    return tightest


def refuse_too_many(request: Request, wait_s: int) -> None:
    """Answer 429, and say when to come again."""
    body = error_body(429, REFUSAL, request_id=request.id, retryAfter=wait_s)
    request.respond(429, body, [(b"retry-after", b"%d" % wait_s)])


def is_rate_limited(settings: Settings, *, is_loopback: bool) -> bool:
    """Whether requests are to be limited per key: as set, else when listening beyond loopback."""
    return not is_loopback if settings.rate_limit is None else settings.rate_limit
