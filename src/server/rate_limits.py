"""Rate limits of keys: token buckets per minute, hour and day (docs/api.md, Rate limits).

A bucket of N tokens is refilled evenly with N tokens per window. A request takes one token from
each bucket, or is rejected and takes none. The buckets are in a mapped file, so all workers and
servers that use a home on one machine share the counts, and no request writes to the store
(pitfalls R2).
"""

import ctypes
import fcntl
import functools
import hashlib
import math
import mmap
import operator
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from resumes.errors import StoreUnavailable
from resumes.settings import Settings

LAYOUT = 1
"""The version of the layout. It is part of the file's name, so that layouts never share a file."""

SLOTS = 16_384
"""The number of keys counted at the same time. Beyond it, the least used keys are forgotten."""

WORDS = 4
WORD_BYTES = 8
PROBES = 16
"""The number of adjacent slots that are searched for a key."""

LOCK_TIMEOUT_S = 1.0
"""How long a request waits for the lock. Other processes hold it for microseconds, longer on a busy
machine until they are scheduled again, and much longer only if they are stopped."""

boot_clock_ns = functools.partial(
    time.clock_gettime_ns, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
)
"""Nanoseconds since boot, a clock that all processes share and that is never adjusted."""

NAP_S = 0.000_05
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

# PyDLL keeps the GIL during the call, which never blocks: no other thread of this process can run
# between lock and unlock and delay the unlock.
_flock = ctypes.PyDLL(None).flock
_LOCK = fcntl.LOCK_EX | fcntl.LOCK_NB


def find_boot(boot_id: Path = BOOT_ID) -> int:
    """Return a non-zero number for this boot of the machine, or a constant without a boot ID."""
    try:
        return _hash(boot_id.read_text())
    except OSError:
        return 1


class Buckets:
    """The table of buckets in the file at `path`, which every process maps. Raises OSError.

    Only its owner can access the file, and its folder if that is created here. A new file contains
    zeros. `words` are the numbers in the table. They may be read at any time, and written only
    between `lock` and `unlock`.
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
            # Allocated now: access beyond the file's end, or to a full disk, kills the process.
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
        """Lock the table until `unlock`. If a process exits, its lock is released.

        If a stopped process holds the lock, only the first request waits for it, and later requests
        continue without it: wrong counts are better than no answers.
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

    def take_slot(self, key_id: str, now_ns: int) -> int:
        """Return the offset of the key's slot in `words`. The caller must hold the lock.

        A new key gets an empty slot, a slot whose buckets are full, or the least used slot.
        """
        words, key = self.words, _hash(key_id)
        seen = []
        for probe in range(min(PROBES, self._slots)):
            at = WORDS + (key + probe) % self._slots * WORDS
            if words[at] == key:
                return at
            seen.append(at)
            if not words[at]:
                break  # slots never become empty again, so the key is in no later slot
        at = min(seen, key=lambda at: max(now_ns, *words[at + 1 : at + WORDS]))
        # In this order, every slot stays valid even if the process is killed in between.
        for word in (at + 1, at + 2, at + 3):
            words[word] = 0
        words[at] = key
        return at

    def close(self) -> None:
        """Unmap the table. The file stays for other processes and later starts."""
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
_WAIT_NS, _USED_SHARE = operator.itemgetter(0), operator.itemgetter(1)


class Window(NamedTuple):
    """A limit on the number of requests in a time window.

    A bucket's debt is the time until it is full: 0 for a full bucket, `burst_ns` for an empty one.
    """

    word: int
    """The offset of the bucket in a key's slot."""
    limit: int
    interval_ns: int
    """The time in which one token is added."""
    burst_ns: int


class RateLimits:
    """Counts the requests of keys. By default, it uses the machine's clocks.

    Raises StoreUnavailable if the table cannot be mapped.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock_ns: Callable[[], int] = boot_clock_ns,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        rates = settings.rate_per_minute, settings.rate_per_hour, settings.rate_per_day
        self._windows: list[Window] = []
        for word, (limit, length_s) in enumerate(zip(rates, LENGTHS_S, strict=True), start=1):
            if limit:
                interval_ns = length_s * SECOND_NS // limit
                self._windows.append(Window(word, limit, interval_ns, limit * interval_ns))
        self._clock_ns = clock_ns
        self._wall_s = wall_s
        path = settings.home.absolute() / "run" / f"rate-limits.{LAYOUT}"
        try:
            self._buckets = Buckets(path)
        except OSError as error:
            raise StoreUnavailable(
                f"Cannot count requests in {path}: {error.strerror}. "
                "Fix that, or serve with --no-rate-limit"
            ) from None

    def admit(self, key_id: str, lines: list[bytes], *, tokens: int = 1) -> int:
        """Count the request and return 0. If it exceeds a limit, do not count it, and return the
        seconds until the next token. If `tokens` is 0, count nothing.

        In all cases, add the key's rate limit headers to `lines`.
        """
        if not self._windows:
            return 0
        self._buckets.lock()
        try:
            now_ns = self._clock_ns()
            slot = self._buckets.take_slot(key_id, now_ns)
            words, debts = self._buckets.words, []
            for window in self._windows:
                debt_ns = words[slot + window.word] - now_ns
                if not 0 < debt_ns <= window.burst_ns:  # beyond: a time of another clock
                    debt_ns = 0
                debt_ns += tokens * window.interval_ns
                wait_ns, used_share = debt_ns - window.burst_ns, debt_ns / window.burst_ns
                debts.append((wait_ns, used_share, window, debt_ns))
            # Of equal windows the shortest.
            wait_ns, _, window, debt_ns = max(debts, key=_WAIT_NS)
            if wait_ns > 0:
                debt_ns -= tokens * window.interval_ns
            else:
                for _, _, window, debt_ns in debts:
                    words[slot + window.word] = now_ns + debt_ns
                _, _, window, debt_ns = max(debts, key=_USED_SHARE)
        finally:
            self._buckets.unlock()
        left = (window.burst_ns - debt_ns) // window.interval_ns
        full_s = math.ceil(self._wall_s() + debt_ns / SECOND_NS)
        lines.append(_LINES % (window.limit, left, full_s))
        return max(0, -(-wait_ns // SECOND_NS))

    def close(self) -> None:
        """Stop counting in this process; other processes continue."""
        self._buckets.close()
