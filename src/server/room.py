"""Whether the store's disk has room: creates are refused before SQLite meets its end.

At the end of a disk a transaction fails in the middle, the write-ahead log cannot be copied, and
even a delete finds no room. So there is a floor that creates do not go below; reads and deletes go
on, and creates too, by themselves, once there is room again.
"""

import logging
import time
from collections.abc import Callable
from pathlib import Path

from resumes.filesystems import free_bytes
from server.request import HttpError

logger = logging.getLogger("resumes.server")

LOOK_EVERY_S = 1.0
RETRY_WHEN_THERE_IS_ROOM = (b"retry-after", b"10")
LOW = "The server is low on disk space; nothing was stored, try again later"


class Room:
    """What is free on the disk of a folder, against a floor in bytes; 0 is no floor.

    None is a disk that is somewhere else, which its own server looks after.
    """

    def __init__(
        self,
        folder: Path | None,
        *,
        floor_bytes: int,
        find_free_bytes: Callable[[Path], int] = free_bytes,
    ) -> None:
        self._folder = folder
        self._floor_bytes = floor_bytes
        self._find_free_bytes = find_free_bytes
        self._look_at_s = 0.0
        self._is_low = False

    def is_low(self, now_s: float | None = None) -> bool:
        """Whether less than the floor is free, as it was within the last second.

        `now_s` is on the clock of `time.perf_counter`. A disk that does not say counts as having
        room: what is wrong with it, its writes will tell.
        """
        now_s = time.perf_counter() if now_s is None else now_s
        if now_s >= self._look_at_s:
            self._look_at_s = now_s + LOOK_EVERY_S
            self._look()
        return self._is_low

    def check(self, now_s: float) -> None:
        """Refuse to store anything while the disk is low: raises HttpError 503."""
        if self.is_low(now_s):
            raise HttpError(503, LOW, [RETRY_WHEN_THERE_IS_ROOM])

    def _look(self) -> None:
        if self._folder is None:
            return
        was_low = self._is_low
        try:
            self._is_low = self._find_free_bytes(self._folder) < self._floor_bytes
        except OSError:
            self._is_low = False
        if self._is_low and not was_low:
            logger.warning(
                "Less than %d MiB are free on the store's disk: creates are refused until there "
                "is room",
                self._floor_bytes // 1024**2,
            )
        elif was_low and not self._is_low:
            logger.warning("There is room on the store's disk again: creates are accepted")
