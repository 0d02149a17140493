"""How much of its requests each key has used: a table that the processes of a machine share.

A slot is a key and, for each window, the moment when the key's bucket is full again: the
theoretical arrival time of the generic cell rate algorithm, which is a token bucket in one
number. So a slot whose moments have all passed says nothing, and another key may have it.

    words 0 to 3     the machine's start that the moments count from, then nothing
    then, per slot   hash of the key's id, moment per minute, per hour, per day (nanoseconds)
"""

import ctypes
import fcntl
import functools
import hashlib
import os
import time
from pathlib import Path

from server.shared_memory import map_shared

LAYOUT = 1
"""Part of the file's name, so that programs of two layouts never share one."""

SLOTS = 16_384
"""As many keys are counted at once. When there are more, those that used least are forgotten."""

WORDS = 4
WORD_BYTES = 8
PROBES = 16
"""So many slots, side by side, a key may be in."""

PATIENCE_S = 1.0
"""How long a request waits for the table at most. Others have it for microseconds, and on a busy
machine for as long as they are not given a processor within; longer only if they were stopped."""

NAP_S = 0.000_05
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

# A call that keeps Python's own lock, and never waits: no thread of this process, which may
# then run for long, comes between having the table and leaving it.
_flock = ctypes.PyDLL(None).flock


def boot_clock_ns() -> int:
    """Nanoseconds since the machine's start: one clock for all processes, never set."""
    return time.clock_gettime_ns(_CLOCK)


_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def find_boot(boot_id: Path = BOOT_ID) -> int:
    """A number for this start of the machine, other than 0; the same for all if it has no id."""
    try:
        return _number(boot_id.read_bytes())
    except OSError:
        return 1


class Buckets:
    """The table in the file at `path`, which is made if need be. Raises OSError.

    `words` are its numbers. They are read at any time, and written between `lock` and `unlock`.
    """

    def __init__(
        self,
        path: Path,
        *,
        slots: int = SLOTS,
        boot: int | None = None,
        timeout_s: float = PATIENCE_S,
    ) -> None:
        self._slots = slots
        self._timeout_s = timeout_s
        self._map = map_shared(path, (slots + 1) * WORDS * WORD_BYTES)
        self._descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        self.words = memoryview(self._map).cast("q")
        self._is_patient = True
        self._begin(find_boot() if boot is None else boot)

    def _begin(self, boot: int) -> None:
        """Moments of an earlier start of the machine are forgotten: its clock began anew."""
        self.lock()
        try:
            if self.words[0] != boot:
                self._map[:] = bytes(len(self._map))
                self.words[0] = boot
        finally:
            self.unlock()

    def lock(self) -> None:
        """Nobody else changes the table until `unlock`; a process that ends leaves it unlocked.

        A process that was stopped while it had the table is waited for once, and not by every
        request: counting wrongly by one is better than answering nobody.
        """
        if _flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
            self._is_patient = self._wait()
        else:
            self._is_patient = True

    def _wait(self) -> bool:
        deadline = time.monotonic() + (self._timeout_s if self._is_patient else 0)
        while time.monotonic() < deadline:
            time.sleep(NAP_S)
            if not _flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
                return True
        return False

    def unlock(self) -> None:
        """Others may change the table."""
        _flock(self._descriptor, fcntl.LOCK_UN)

    def find_slot(self, key_id: str, now_ns: int) -> int | None:
        """Where in `words` the key's slot begins; None when nothing is known of the key."""
        at = self._search(_hash(key_id), now_ns)
        return at if self.words[at] == _hash(key_id) else None

    def take_slot(self, key_id: str, now_ns: int) -> int:
        """Where in `words` the key's slot begins, which is made if need be. Only when locked."""
        words, key = self.words, _hash(key_id)
        at = WORDS + key % self._slots * WORDS
        if words[at] == key:
            return at
        at = self._search(key, now_ns)
        if words[at] != key:
            # In this order a process may end between any two, and no slot is wrong.
            for word in (at + 1, at + 2, at + 3):
                words[word] = 0
            words[at] = key
        return at

    def _search(self, key: int, now_ns: int) -> int:
        """The key's slot, or the one that it may have: empty or full again, else the least used."""
        words = self.words
        spare, spare_until_ns = 0, 0
        for probe in range(min(PROBES, self._slots)):
            at = WORDS + (key + probe) % self._slots * WORDS
            if words[at] == key:
                return at
            until_ns = max(words[at + 1], words[at + 2], words[at + 3])
            if not spare or (spare_until_ns > now_ns and until_ns < spare_until_ns):
                spare, spare_until_ns = at, until_ns
            if not words[at]:
                break  # no slot becomes empty again, so the key is in none further on
        return spare

    def close(self) -> None:
        """The table is left; it stays for others, and for later."""
        self.words.release()
        self._map.close()
        os.close(self._descriptor)


@functools.lru_cache(maxsize=4_096)
def _hash(key_id: str) -> int:
    return _number(key_id.encode())


def _number(text: bytes) -> int:
    """63 bits of a digest, and never 0, which says that a slot is empty."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1 or 1
