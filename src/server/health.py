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
from resumes.filesystems import free_bytes
from resumes.store import Store
from server.request import RETRY_AFTER, Request

logger = logging.getLogger("resumes.server")

ALIVE = b'{"status":"ok"}'
OK, FAILED = "ok", "failed"

PROBE_S = 2.0
"""A check that takes longer than this counts as failed."""

CACHE_S = 1.0
"""How long an answer is cached: any number of probes costs one check a second."""


class HealthCheck:
    """Checks whether the store can be read and written, and whether its disk has room.

    `floor_bytes` is the minimum free space. The disk of a database server is not checked.
    """

    def __init__(self, store: Store, *, floor_bytes: int) -> None:
        self._store = store
        self._floor_bytes = floor_bytes
        self.is_disk_low = False
        """Whether less than the floor was free at the last `check_disk`."""
        # Its own thread: a check that hangs on a dead disk must not block the parsing of bodies.
        self._thread = ThreadPoolExecutor(1, "readiness")
        self._check: asyncio.Task[Mapping[str, str]] | None = None
        self._keep_until_s = 0.0

    async def live(self, request: Request) -> None:
        """Answer 200: the event loop is running."""
        request.respond(200, ALIVE)

    async def ready(self, request: Request) -> None:
        """Answer 200 if requests can be served, as of the last second, otherwise 503.

        Concurrent requests share one check.
        """
        if self._check is None or (self._check.done() and time.monotonic() >= self._keep_until_s):
            self._check = asyncio.create_task(self._find())
        checks = await asyncio.shield(self._check)
        is_ready = FAILED not in checks.values()
        body = orjson.dumps({"status": "ready" if is_ready else "not ready", "checks": checks})
        request.respond(200 if is_ready else 503, body, [] if is_ready else [RETRY_AFTER])

    async def _find(self) -> Mapping[str, str]:
        reading = asyncio.get_running_loop().run_in_executor(self._thread, self._store.ping)
        writing = self._store.ping_write(deadline_s=PROBE_S)
        read, write = await asyncio.gather(_judge(reading), _judge(writing))
        self._keep_until_s = time.monotonic() + CACHE_S
        return {"read": read, "write": write, "disk": FAILED if self.is_disk_low else OK}

    def check_disk(self) -> None:
        """Update `is_disk_low`; called about once a second.

        A disk that cannot be queried counts as having room; if it is broken, writes will fail.
        """
        was_low, self.is_disk_low = self.is_disk_low, False
        with contextlib.suppress(OSError):
            if self._floor_bytes and self._store.path is not None:
                self.is_disk_low = free_bytes(self._store.path.parent) < self._floor_bytes
        if self.is_disk_low and not was_low:
            logger.warning(
                "Less than %d MiB is free on the store's disk: creates are refused until there "
                "is more space",
                self._floor_bytes // 1024**2,
            )
        elif was_low and not self.is_disk_low:
            logger.warning("There is enough space on the store's disk again: creates are accepted")

    async def close(self) -> None:
        """Stop checking, so that the store may be closed."""
        if self._check is not None:
            await asyncio.wait([self._check])  # ignores its result
        self._thread.shutdown(wait=False, cancel_futures=True)


async def _judge(probe: Awaitable[None]) -> str:
    try:
        async with asyncio.timeout(PROBE_S):
            await probe
    except (ResumesError, TimeoutError):
        return FAILED
    return OK
