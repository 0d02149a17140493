"""Threads that read a store across a network, so that no event loop waits for it (pitfalls S17).

They are few, and each has a connection of its own: a server of a database has room for a number of
connections, which all processes share.
"""

import asyncio
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from resumes.errors import StoreUnavailable

READERS: Final = 8
"""Threads of a process, and so connections."""

DEADLINE_S: Final = 10.0
"""How long a request waits for what it reads, as long as for a write."""

PATIENCE_S: Final = 5.0
"""How long one statement may take: then there is time left to try another connection."""

PAUSES_S: Final = (0.02, 0.05, 0.1, 0.2)
"""Before each further try; the last one goes on. A little chance is added."""

BUSY: Final = "The store's database does not answer; nothing was done, try again"

T = TypeVar("T")


class Readers:
    """A fixed number of threads, and a deadline for whoever wants one of them."""

    def __init__(self, *, threads: int = READERS, deadline_s: float = DEADLINE_S) -> None:
        self._threads = ThreadPoolExecutor(threads, "reader")
        self._deadline_s = deadline_s

    async def run(self, visit: Callable[[float], T]) -> T:
        """What the visit returns or raises, made in a thread. It is told its end on the monotonic clock.

        Raises StoreUnavailable at the deadline; a visit that has not begun by then never does.
        """
        ends_at = time.monotonic() + self._deadline_s
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._deadline_s):
                return await loop.run_in_executor(self._threads, visit, ends_at)
        except TimeoutError:
            raise StoreUnavailable(BUSY) from None

    def close(self) -> None:
        """No visit begins any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def read_until(ends_at: float, read: Callable[[], T]) -> T:
    """What the read returns or raises; one that finds no store is tried again as long as time is left.

    So a switch from one server to another, which takes seconds, is a slow answer and no failed one.
    Blocks this thread.
    """
    tries = 0
    while True:
        try:
            return read()
        except StoreUnavailable:
            pause_s = PAUSES_S[min(tries, len(PAUSES_S) - 1)] * random.uniform(0.5, 1.5)
            if time.monotonic() + pause_s >= ends_at:
                raise
        tries += 1
        time.sleep(pause_s)
