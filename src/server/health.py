"""GET /healthz and /readyz: whether the process lives, and whether it can serve.

What each check means is told to operators (docs/operations.md, Health).
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum

import orjson

from resumes.errors import ResumesError
from resumes.store import Store
from server.request import RETRY_AFTER, Request
from server.room import Room

ALIVE = b'{"status":"ok"}'

PROBE_S = 2.0
"""What takes longer than this is not ready."""

KEEP_S = 1.0
"""How long an answer is given again: probing, by however many, costs one look a second."""


class Check(StrEnum):
    """How a thing that readiness depends on fares."""

    OK = "ok"
    FAILED = "failed"


class Health:
    """Looks whether the store can be read and written, and whether its disk has room.

    `clock` counts seconds.
    """

    def __init__(
        self, store: Store, room: Room, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._room = room
        self._clock = clock
        # A thread of its own: what hangs on a dead disk must not take those that parse bodies.
        self._thread = ThreadPoolExecutor(1, "readiness")
        self._look: asyncio.Task[Mapping[str, Check]] | None = None
        self._keep_until_s = 0.0

    async def live(self, request: Request) -> None:
        """Say that the event loop answers."""
        request.respond(200, ALIVE)

    async def ready(self, request: Request) -> None:
        """Say, with 200 or 503, whether requests can be served, as of the last second."""
        checks = await self.find_checks()
        is_ready = Check.FAILED not in checks.values()
        body = orjson.dumps({"status": "ready" if is_ready else "not ready", "checks": checks})
        request.respond(200 if is_ready else 503, body, [] if is_ready else [RETRY_AFTER])

    async def find_checks(self) -> Mapping[str, Check]:
        """What was found within the last second, looked at by one for all who ask."""
        if self._look is None or (self._look.done() and self._clock() >= self._keep_until_s):
            self._look = asyncio.create_task(self._find())
        return await asyncio.shield(self._look)

    async def _find(self) -> Mapping[str, Check]:
        read, write = await asyncio.gather(_judge(self._read()), _judge(self._write()))
        disk = Check.FAILED if self._room.is_low() else Check.OK
        self._keep_until_s = self._clock() + KEEP_S
        return {"read": read, "write": write, "disk": disk}

    async def _read(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._store.ping)

    async def _write(self) -> None:
        await self._store.ping_write(deadline_s=PROBE_S)

    async def close(self) -> None:
        """Nothing is looked at any more."""
        if self._look is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._look
        self._thread.shutdown(wait=False, cancel_futures=True)


async def _judge(probe: Awaitable[None]) -> Check:
    try:
        async with asyncio.timeout(PROBE_S):
            await probe
    except (ResumesError, TimeoutError):
        return Check.FAILED
    return Check.OK
