"""Rate limits of keys: token buckets per minute, hour and day (docs/api.md, Rate limits).

A bucket of N tokens is refilled evenly with N tokens per window. A request takes one token from
each bucket, or is refused and takes none. The buckets are in a mapped file: all workers and servers
of a home on one machine count together, and no request writes to the store (pitfalls R2).

Locking the buckets takes longer than counting. So if a key's requests are frequent and its buckets
hold many tokens, a process takes a batch of tokens and soon returns those it did not need. Until
then other processes see too few tokens, but still enough to refuse no request.
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
"""The version of the layout, in the file's name, so that different layouts never share a file."""

SLOTS = 16_384
"""The number of keys counted at once. If there are more, the least used ones are forgotten."""

WORDS = 4
WORD_BYTES = 8
PROBES = 16
"""The number of adjacent slots to search for a key."""

LOCK_TIMEOUT_S = 1.0
"""How long a request waits for the lock. Other processes hold it for microseconds, on a busy
machine until they are scheduled again, and longer only if they are stopped."""

boot_clock_ns = functools.partial(
    time.clock_gettime_ns, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
)
"""Nanoseconds since boot: one clock for all processes, which is never adjusted."""

NAP_S = 0.000_05
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

# PyDLL keeps the GIL during the call, which never waits: no other thread of this process can run
# between lock and unlock and delay them.
_flock = ctypes.PyDLL(None).flock
_LOCK = fcntl.LOCK_EX | fcntl.LOCK_NB


def find_boot(boot_id: Path = BOOT_ID) -> int:
    """Return a non-zero number for this boot of the machine; a constant without a boot ID."""
    try:
        return _hash(boot_id.read_text())
    except OSError:
        return 1


class Buckets:
    """The table of buckets in the file at `path`, mapped by every process. Raises OSError.

    The file is accessible only to its owner, as is its folder if created here. A new one holds zeros.
    `words` are its numbers, read at any time, and written only between `lock` and `unlock`.
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
            # Allocated now: access beyond the file's end, or a full disk, would kill the process.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._descriptor, 0, size_bytes)
            else:  # macOS
                os.pwrite(self._descriptor, bytes(size_bytes), 0)
        self._map = mmap.mmap(self._descriptor, size_bytes)
        self.words = memoryview(self._map).cast("q")
        self._waits = True
        boot = find_boot() if boot is None else boot
        self.lock()
        if self.words[0] != boot:  # times from before a reboot, which restarted the clock
            self._map[:] = bytes(len(self._map))
            self.words[0] = boot
        self.unlock()

    def lock(self) -> None:
        """Lock the table until `unlock`; the lock of a process that ends is released.

        If a stopped process holds the lock, only the first request waits for it, and later ones
        continue without: a wrong count is better than no answers.
        """
        give_up_s = 0.0
        while _flock(self._descriptor, _LOCK):  # another process holds it
            give_up_s = give_up_s or time.monotonic() + self._timeout_s
            if not self._waits or time.monotonic() >= give_up_s:
                self._waits = False
                return
            time.sleep(NAP_S)
        self._waits = True

    def unlock(self) -> None:
        """Release the lock."""
        _flock(self._descriptor, fcntl.LOCK_UN)

    def find_slot(self, key_id: str, now_ns: int) -> int | None:
        """Return the offset of the key's slot in `words`; None if the key has no slot."""
        at = self._search(_hash(key_id), now_ns)
        return at if self.words[at] == _hash(key_id) else None

    def take_slot(self, key_id: str, now_ns: int) -> int:
        """Return the offset of the key's slot in `words`; create it if needed. Needs the lock."""
        words, key = self.words, _hash(key_id)
        at = self._search(key, now_ns)
        if words[at] != key:
            # In this order every slot stays valid even if the process ends in between.
            for word in (at + 1, at + 2, at + 3):
                words[word] = 0
            words[at] = key
        return at

    def _search(self, key: int, now_ns: int) -> int:
        """Return the key's slot, or one to take: an empty or refilled one, or the least used."""
        words = self.words
        seen = []
        for probe in range(min(PROBES, self._slots)):
            at = WORDS + (key + probe) % self._slots * WORDS
            if words[at] == key:
                return at
            seen.append(at)
            if not words[at]:
                break  # slots never become empty again, so the key cannot be further on
        return min(seen, key=lambda at: max(now_ns, *words[at + 1 : at + WORDS]))

    def close(self) -> None:
        """Unmap the table; the file stays for other processes and later starts."""
        self.words.release()
        self._map.close()
        os.close(self._descriptor)


@functools.lru_cache(maxsize=4_096)
def _hash(text: str) -> int:
    """Return 63 bits of a digest, but never 0, which marks an empty slot."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1 or 1


SECOND_NS = 1_000_000_000
LENGTHS_S = (60, 3_600, 86_400)
REFUSAL = "Rate limit exceeded. Please try again later."
_LINES = b"x-ratelimit-limit: %d\r\nx-ratelimit-remaining: %d\r\nx-ratelimit-reset: %d\r\n"


class Window(NamedTuple):
    """A limit on the number of requests in a window of time.

    A bucket's debt is the time until it is full: 0 if it is full, `burst_ns` if it is empty.
    """

    word: int
    """The offset of the bucket in a key's slot."""
    limit: int
    length_ns: int
    interval_ns: int
    """The time in which one token is added."""
    burst_ns: int


Debts = list[tuple[Window, int]]
"""The debts of a key's buckets, in nanoseconds."""


BATCH_TOKENS = 32
"""Number of tokens taken in a batch."""

FREQUENT_S = 0.01
"""Requests of a key within this time are frequent; unused tokens are returned after the same
time."""

MIN_REMAINING = 1_000
"""Tokens that every bucket must keep: more than all processes need within FREQUENT_S."""

RETURN_WITHIN_NS = 100_000_000
"""After this time tokens are not returned, because the buckets may be full again."""

MAX_KEYS = 10_000
"""Number of keys whose last request is remembered."""


@dataclass(slots=True)
class _Batch:
    """A batch of tokens taken for a key. `tightest` is its tightest window for all of them."""

    tightest: Window
    debt_ns: int
    """The debt of the tightest bucket, counting only the tokens used so far."""
    left: int
    at_ns: int


class RateLimits:
    """Counts the requests of keys. By default it uses the machine's clocks.

    `is_batched` needs a running event loop. Raises StoreUnavailable if the table cannot be mapped.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        is_batched: bool = False,
        clock_ns: Callable[[], int] = boot_clock_ns,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        rates = settings.rate_per_minute, settings.rate_per_hour, settings.rate_per_day
        self._windows = tuple(_iter_windows(rates))
        self._clock_ns = clock_ns
        self._wall_s = wall_s
        self._is_batched = is_batched
        self._asked_ns: dict[str, int] = {}
        """When each key was last counted against the table."""
        self._batches: dict[str, _Batch] = {}
        path = settings.home.absolute() / "run" / f"rate-limits.{LAYOUT}"
        try:
            self._buckets = Buckets(path)
        except OSError as error:
            raise StoreUnavailable(
                f"Cannot count requests in {path}: {error.strerror}. "
                "Fix that, or serve with --no-rate-limit"
            ) from None

    def admit(self, holder: KeyHolder, lines: list[bytes]) -> int:
        """Count the request and return 0; or if it exceeds a limit, do not count it, and return the
        seconds until the next token.

        In both cases add the rate limit headers of the key to `lines`.
        """
        if not self._windows:
            return 0
        batch = self._batches.get(holder.key_id)
        if batch is not None and batch.left:
            batch.left -= 1
            batch.debt_ns += batch.tightest.interval_ns
            lines.append(self._line(batch.tightest, batch.debt_ns))
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
            if self._is_batched and self._is_batch_due(holder, debts, tightest, now_ns):
                tokens = BATCH_TOKENS
                if not self._batches:
                    asyncio.get_running_loop().call_later(FREQUENT_S, self._return_unused)
                self._batches[holder.key_id] = _Batch(tightest, debt_ns, BATCH_TOKENS - 1, now_ns)
            for window, debt_ns in debts:
                full_ns = now_ns + debt_ns + tokens * window.interval_ns
                self._buckets.words[slot + window.word] = full_ns
            return 0
        finally:
            self._buckets.unlock()

    def add_headers(self, holder: KeyHolder, lines: list[bytes]) -> None:
        """Add the rate limit headers of the key to `lines`; count nothing."""
        if not self._windows:
            return
        self._return_unused()
        now_ns = self._clock_ns()
        slot = self._buckets.find_slot(holder.key_id, now_ns)
        debts = self._debts(slot, now_ns) if slot else [(each, 0) for each in self._windows]
        lines.append(self._line(*_find_tightest(debts, 0)))

    def _debts(self, slot: int, now_ns: int) -> Debts:
        words = self._buckets.words
        debts = [(window, words[slot + window.word] - now_ns) for window in self._windows]
        # A time beyond the window is from another clock.
        return [(each, debt_ns if 0 < debt_ns <= each.length_ns else 0) for each, debt_ns in debts]

    def _is_batch_due(self, holder: KeyHolder, debts: Debts, tightest: Window, now_ns: int) -> bool:
        """Return whether to take a batch of tokens now; `tightest` is the window for one token."""
        if len(self._asked_ns) >= MAX_KEYS:
            self._asked_ns.clear()
        asked_ns = self._asked_ns.get(holder.key_id, 0)
        self._asked_ns[holder.key_id] = now_ns
        return (
            now_ns - asked_ns <= FREQUENT_S * SECOND_NS
            and all(
                window.burst_ns - debt_ns >= (BATCH_TOKENS + MIN_REMAINING) * window.interval_ns
                for window, debt_ns in debts
            )
            # If a bucket is tightest for the first and the last token, it is for those in between.
            and _find_tightest(debts, BATCH_TOKENS)[0] is tightest
        )

    def _return_unused(self) -> None:
        """Return the unused tokens of all batches."""
        batches, self._batches = self._batches, {}
        if not batches:
            return
        self._buckets.lock()
        try:
            now_ns = self._clock_ns()
            for key_id, batch in batches.items():
                slot = self._buckets.find_slot(key_id, now_ns)
                if slot is not None and now_ns - batch.at_ns < RETURN_WITHIN_NS:
                    for window in self._windows:
                        self._buckets.words[slot + window.word] -= batch.left * window.interval_ns
        finally:
            self._buckets.unlock()

    def _line(self, window: Window, debt_ns: int) -> bytes:
        left = (window.burst_ns - debt_ns) // window.interval_ns
        full_s = math.ceil(self._wall_s() + debt_ns / SECOND_NS)
        return _LINES % (window.limit, left, full_s)

    def close(self) -> None:
        """Stop counting in this process; other processes continue."""
        self._return_unused()
        self._buckets.close()


def _iter_windows(rates: Iterable[int]) -> Iterator[Window]:
    """Yield the windows of the limits per minute, hour and day; 0 means no limit."""
    for word, (limit, length_s) in enumerate(zip(rates, LENGTHS_S, strict=True), start=1):
        if limit:
            length_ns = length_s * SECOND_NS
            interval_ns = length_ns // limit
            yield Window(word, limit, length_ns, interval_ns, limit * interval_ns)


def _find_tightest(debts: Debts, tokens: int) -> tuple[Window, int]:
    """Return the window whose bucket has the smallest share left after taking this many tokens, and
    its debt then; of equal ones, the shortest."""
    after = [(window, debt_ns + tokens * window.interval_ns) for window, debt_ns in debts]
    used = [debt_ns / window.burst_ns for window, debt_ns in after]
    return after[used.index(max(used))]
