"""How often a key may ask: token buckets of a minute, an hour and a day (docs/api.md, Rate limits).

A bucket of N tokens fills by N in its window, evenly. A request takes one token of each, or is
refused and takes none. The buckets are in a file that is mapped, so that all workers and servers of
a home on one machine count together, and a read costs no write to the store (pitfalls R2).

Having the buckets to oneself takes longer than counting. So where requests of a key follow each
other closely and its buckets hold many tokens, a process takes several at once, and a moment later
gives back what it did not need. Until then other processes count too few tokens, but not so few
that they refuse anybody.
"""

import asyncio
import ctypes
import fcntl
import functools
import hashlib
import math
import mmap
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from resumes.errors import StoreUnavailable
from resumes.settings import Settings
from resumes.store.api_keys import KeyHolder

LAYOUT = 1
"""Part of the file's name, so that programs of two layouts never share one."""

SLOTS = 16_384
"""As many keys are counted at once. When there are more, those that used least are forgotten."""

WORDS = 4
WORD_BYTES = 8
PROBES = 16
"""How many adjacent slots a key may be in."""

LOCK_TIMEOUT_S = 1.0
"""How long a request waits for the table at most. Others have it for microseconds, and on a busy
machine for as long as they are not given a processor within; longer only if they were stopped."""

boot_clock_ns = functools.partial(
    time.clock_gettime_ns, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
)
"""Nanoseconds since the machine's start: one clock for all processes, never set."""

NAP_S = 0.000_05
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

# A call that keeps Python's own lock, and never waits: no thread of this process, which may
# then run for long, comes between having the table and leaving it.
_flock = ctypes.PyDLL(None).flock
_LOCK = fcntl.LOCK_EX | fcntl.LOCK_NB


def find_boot(boot_id: Path = BOOT_ID) -> int:
    """Return a number for this start of the machine, other than 0; the same for all if it has no id."""
    try:
        return _hash(boot_id.read_text())
    except OSError:
        return 1


class Buckets:
    """The table in the file at `path`, mapped by every process that counts. Raises OSError.

    The file is for its owner alone, as is its folder if that is made here. A new one holds zeros.
    `words` are its numbers. They are read at any time, and written between `lock` and `unlock`.
    """

    def __init__(
        self,
        path: Path,
        *,
        slots: int = SLOTS,
        boot: int | None = None,
        timeout_s: float = LOCK_TIMEOUT_S,
    ) -> None:
        self._slots = slots
        self._timeout_s = timeout_s
        path.parent.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        size_bytes = (slots + 1) * WORDS * WORD_BYTES
        if os.fstat(self._descriptor).st_size < size_bytes:
            # Whole now: memory beyond a file's end, or that finds no disk later, ends a process.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._descriptor, 0, size_bytes)
            else:  # macOS
                os.pwrite(self._descriptor, bytes(size_bytes), 0)
        self._map = mmap.mmap(self._descriptor, size_bytes)
        self.words = memoryview(self._map).cast("q")
        self._waits = True
        boot = find_boot() if boot is None else boot
        self.lock()
        if self.words[0] != boot:  # moments of an earlier start: the machine's clock started again
            self._map[:] = bytes(len(self._map))
            self.words[0] = boot
        self.unlock()

    def lock(self) -> None:
        """Keep others from changing the table until `unlock`; a process that ends leaves it unlocked.

        A process that was stopped while it had the table is waited for once, and not by every
        request: counting wrongly by one is better than answering nobody.
        """
        give_up_s = 0.0
        while _flock(self._descriptor, _LOCK):  # somebody else has it
            give_up_s = give_up_s or time.monotonic() + self._timeout_s
            if not self._waits or time.monotonic() >= give_up_s:
                self._waits = False
                return
            time.sleep(NAP_S)
        self._waits = True

    def unlock(self) -> None:
        """Let others change the table."""
        _flock(self._descriptor, fcntl.LOCK_UN)

    def find_slot(self, key_id: str, now_ns: int) -> int | None:
        """Return where in `words` the key's slot begins; None when nothing is known of the key."""
        at = self._search(_hash(key_id), now_ns)
        return at if self.words[at] == _hash(key_id) else None

    def take_slot(self, key_id: str, now_ns: int) -> int:
        """Return where in `words` the key's slot begins, which is made if need be. Only when locked."""
        words, key = self.words, _hash(key_id)
        at = self._search(key, now_ns)
        if words[at] != key:
            # In this order a process may end between any two, and no slot is wrong.
            for word in (at + 1, at + 2, at + 3):
                words[word] = 0
            words[at] = key
        return at

    def _search(self, key: int, now_ns: int) -> int:
        """Return the key's slot, or the one that it may have: empty or full again, else the least used."""
        words = self.words
        seen = []
        for probe in range(min(PROBES, self._slots)):
            at = WORDS + (key + probe) % self._slots * WORDS
            if words[at] == key:
                return at
            seen.append(at)
            if not words[at]:
                break  # no slot becomes empty again, so the key is in none further on
        return min(seen, key=lambda at: max(now_ns, *words[at + 1 : at + WORDS]))

    def close(self) -> None:
        """Unmap the table; it stays for others, and for later."""
        self.words.release()
        self._map.close()
        os.close(self._descriptor)


@functools.lru_cache(maxsize=4_096)
def _hash(text: str) -> int:
    """Return 63 bits of a digest, and never 0, which says that a slot is empty."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1 or 1


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


Debts = list[tuple[Window, int]]
"""The debt of each of a key's buckets, in nanoseconds."""


BORROWED = 32
"""Tokens that are taken at once."""

AHEAD_S = 0.01
"""Requests of a key that are closer than this follow each other closely; tokens that were not
needed are given back after as long."""

MIN_REMAINING = 1_000
"""Tokens that every bucket must have left: more than all processes are asked for in that time."""

RETURN_WITHIN_NS = 100_000_000
"""After this long tokens are not given back: the buckets may have filled in the meantime."""

MAX_KEYS = 10_000
"""How many keys' last requests are remembered."""


@dataclass(slots=True)
class _Taken:
    """Tokens of a key that were taken ahead. The window is the tightest for all of them."""

    tightest: Window
    debt_ns: int
    """The tightest bucket's, with the tokens that were needed."""
    left: int
    at_ns: int


class RateLimits:
    """Counts the requests of keys. The default clocks are those of the machine.

    `takes_ahead` needs a running event loop. Raises StoreUnavailable when the memory to count in is unavailable.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        takes_ahead: bool = False,
        clock_ns: Callable[[], int] = boot_clock_ns,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        rates = settings.rate_per_minute, settings.rate_per_hour, settings.rate_per_day
        self._windows = tuple(_iter_windows(rates))
        self._clock_ns = clock_ns
        self._wall_s = wall_s
        self._takes_ahead = takes_ahead
        self._asked_ns: dict[str, int] = {}
        """When each key was last counted."""
        self._taken: dict[str, _Taken] = {}
        path = settings.home.absolute() / "run" / f"rate-limits.{LAYOUT}"
        try:
            self._buckets = Buckets(path)
        except OSError as error:
            raise StoreUnavailable(
                f"Cannot count requests in {path}: {error.strerror}. "
                "Fix that, or serve with --no-rate-limit"
            ) from None

    def admit(self, holder: KeyHolder, lines: list[bytes]) -> int:
        """Count the request and return 0; else count nothing, and return in how many seconds a
        token comes.

        Either way the headers that tell how the key stands are added to `lines`.
        """
        if not self._windows:
            return 0
        taken = self._taken.get(holder.key_id)
        if taken is not None and taken.left:
            taken.left -= 1
            taken.debt_ns += taken.tightest.interval_ns
            lines.append(self._line(taken.tightest, taken.debt_ns))
            return 0
        self._buckets.lock()
        try:
            now_ns = self._clock_ns()
            slot = self._buckets.take_slot(holder.key_id, now_ns)
            debts = self._debts(slot, now_ns)
            waits_ns = [debt_ns + each.interval_ns - each.burst_ns for each, debt_ns in debts]
            wait_ns = max(waits_ns)
            if wait_ns > 0:
                lines.append(self._line(*debts[waits_ns.index(wait_ns)]))
                return -(-wait_ns // SECOND_NS)
            tightest, debt_ns = _find_tightest(debts, 1)
            lines.append(self._line(tightest, debt_ns))
            tokens = 1
            if self._takes_ahead and self._is_ahead_due(holder, debts, tightest, now_ns):
                tokens = BORROWED
                if not self._taken:
                    asyncio.get_running_loop().call_later(AHEAD_S, self._give_back)
                self._taken[holder.key_id] = _Taken(tightest, debt_ns, BORROWED - 1, now_ns)
            for window, debt_ns in debts:
                full_ns = now_ns + debt_ns + tokens * window.interval_ns
                self._buckets.words[slot + window.word] = full_ns
            return 0
        finally:
            self._buckets.unlock()

    def add_headers(self, holder: KeyHolder, lines: list[bytes]) -> None:
        """Add to `lines` the headers that tell how the key stands; count nothing."""
        if not self._windows:
            return
        self._give_back()
        now_ns = self._clock_ns()
        slot = self._buckets.find_slot(holder.key_id, now_ns)
        debts = self._debts(slot, now_ns) if slot else [(each, 0) for each in self._windows]
        lines.append(self._line(*_find_tightest(debts, 0)))

    def _debts(self, slot: int, now_ns: int) -> Debts:
        words = self._buckets.words
        debts = [(window, words[slot + window.word] - now_ns) for window in self._windows]
        # A time further off than the window is of another clock.
        return [(each, debt_ns if 0 < debt_ns <= each.length_ns else 0) for each, debt_ns in debts]

    def _is_ahead_due(self, holder: KeyHolder, debts: Debts, tightest: Window, now_ns: int) -> bool:
        """Return whether to take several tokens for the key now; `tightest` is for one."""
        if len(self._asked_ns) >= MAX_KEYS:
            self._asked_ns.clear()
        asked_ns = self._asked_ns.get(holder.key_id, 0)
        self._asked_ns[holder.key_id] = now_ns
        return (
            now_ns - asked_ns <= AHEAD_S * SECOND_NS
            and all(
                window.burst_ns - debt_ns >= (BORROWED + MIN_REMAINING) * window.interval_ns
                for window, debt_ns in debts
            )
            # What is tightest at both ends is so in between: each bucket's part grows evenly.
            and _find_tightest(debts, BORROWED)[0] is tightest
        )

    def _give_back(self) -> None:
        """Give back the tokens that were taken ahead and not needed."""
        taken, self._taken = self._taken, {}
        if not taken:
            return
        self._buckets.lock()
        try:
            now_ns = self._clock_ns()
            for key_id, one in taken.items():
                slot = self._buckets.find_slot(key_id, now_ns)
                if slot is not None and now_ns - one.at_ns < RETURN_WITHIN_NS:
                    for window in self._windows:
                        self._buckets.words[slot + window.word] -= one.left * window.interval_ns
        finally:
            self._buckets.unlock()

    def _line(self, window: Window, debt_ns: int) -> bytes:
        left = (window.burst_ns - debt_ns) // window.interval_ns
        full_s = math.ceil(self._wall_s() + debt_ns / SECOND_NS)
        return _LINES % (window.limit, left, full_s)

    def close(self) -> None:
        """Count nothing more here; others continue."""
        self._give_back()
        self._buckets.close()


def _iter_windows(rates: Iterable[int]) -> Iterator[Window]:
    """Yield the windows of limits a minute, an hour and a day; 0 is no limit."""
    for word, (limit, length_s) in enumerate(zip(rates, LENGTHS_S, strict=True), start=1):
        if limit:
            length_ns = length_s * SECOND_NS
            interval_ns = length_ns // limit
            yield Window(word, limit, length_ns, interval_ns, limit * interval_ns)


def _find_tightest(debts: Debts, tokens: int) -> tuple[Window, int]:
    """Return the window of whose bucket the smallest part is left once this many tokens are taken,
    and its debt then; the shorter of two alike."""
    after = [(window, debt_ns + tokens * window.interval_ns) for window, debt_ns in debts]
    used = [debt_ns / window.burst_ns for window, debt_ns in after]
    return after[used.index(max(used))]
