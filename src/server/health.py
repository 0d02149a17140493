"""GET /healthz and /readyz: liveness and readiness.

docs/operations.md, Health, explains each check to operators.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Mapping
from concurrent.futures import ThreadPoolExecutor

import orjson

from resumes.errors import ResumesError
from resumes.filesystems import DISK_FLOOR_BYTES, free_bytes
from resumes.store import Store
from server.request import Request

logger = logging.getLogger("resumes.server")

ALIVE = b'{"status":"ok"}'
OK, FAILED = "ok", "failed"

DISK_IS_LOW = (
    f"Less than {DISK_FLOOR_BYTES // 1024**2} MiB is free on the store's disk: creates are refused until "
    "there is more space"
)
DISK_IS_FREE = "There is enough space on the store's disk again: creates are accepted"

PROBE_S = 2.0
"""The number of seconds after which a check counts as failed."""

CACHE_S = 1.0
"""How long an answer is cached, so that any number of probes cause only one check a second."""


class HealthCheck:
    """Checks whether the store can be read and written, and whether its disk has free space.

    The disk of a database server is not checked.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_disk_low = False
        """Whether less than the minimum was free at the last `check_disk`."""
        # A separate thread, since a check that hangs on a broken disk must not block parsing.
        self._thread = ThreadPoolExecutor(1, "readiness")
        self._checking = asyncio.Lock()
        self._checks: Mapping[str, str] = {}
        self._kept_until_s = 0.0

    async def live(self, request: Request) -> None:
        """Answer 200: the event loop is running."""
        request.respond(200, ALIVE)

    async def ready(self, request: Request) -> None:
        """Answer 200 if a check in the last second found that requests can be served, else 503.

        Concurrent requests share one check.
        """
        async with self._checking:
            if time.monotonic() >= self._kept_until_s:
                self._checks = await self._check()
                self._kept_until_s = time.monotonic() + CACHE_S
        is_ready = FAILED not in self._checks.values()
        answer = {"status": "ready" if is_ready else "not ready", "checks": self._checks}
        request.respond(200 if is_ready else 503, orjson.dumps(answer))

    async def _check(self) -> Mapping[str, str]:
        reading = asyncio.get_running_loop().run_in_executor(self._thread, self._store.ping)
        writing = self._store.ping_write(deadline_s=PROBE_S)
        read, write = await asyncio.gather(_judge(reading), _judge(writing))
        return {"read": read, "write": write, "disk": FAILED if self.is_disk_low else OK}

    def check_disk(self) -> None:
        """Update `is_disk_low`. This is called about once a second.

        A disk that cannot be queried counts as having space; if it is broken, writes will fail.
        """
        is_low = False
        with contextlib.suppress(OSError):
            if self._store.path is not None:
                is_low = free_bytes(self._store.path.parent) < DISK_FLOOR_BYTES
        if is_low != self.is_disk_low:
            self.is_disk_low = is_low
            logger.warning(DISK_IS_LOW if is_low else DISK_IS_FREE)


async def _judge(probe: Awaitable[None]) -> str:
    try:
        async with asyncio.timeout(PROBE_S):
            await probe
    except (ResumesError, TimeoutError):
        return FAILED
    return OK
