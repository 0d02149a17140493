"""A page's process: started when the page connects, gone when it has left."""

import asyncio
import contextlib
import shlex
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import Sequence

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from tui.web.child import environment_of

END_WITHIN_S = 5.0
"""A process that was told to quit and has not ended after this is killed."""


class PageSession(AppService):
    """One page and its process. The page is told when the process has ended."""

    def __init__(
        self,
        command: Sequence[str],
        page: web.WebSocketResponse,
        downloads: DownloadManager,
        *,
        end_within_s: float = END_WITHIN_S,
    ) -> None:
        super().__init__(
            shlex.join(command),
            write_bytes=page.send_bytes,
            write_str=page.send_str,
            close=self.leave,
            download_manager=downloads,
        )
        self._arguments = tuple(command)
        self._page = page
        self._end_within_s = end_within_s

    async def leave(self) -> None:
        """The page is told that this is the end."""
        await self._page.close()

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        # No shell. A session of its own: Ctrl-C reaches the server alone, which ends it in order.
        self._process = process = await create_subprocess_exec(
            *self._arguments,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=environment_of(width, height),
            start_new_session=True,
        )
        self._stdin = process.stdin
        return process

    async def run(self) -> None:
        """What the process draws reaches the page, until one of them ends."""
        try:
            with contextlib.suppress(ConnectionError):
                await super().run()
        finally:
            await self.leave()

    async def stop(self) -> None:
        """The process has ended: by itself, or killed."""
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(super().stop(), self._end_within_s)
        finally:
            await self._make_sure()

    async def _make_sure(self) -> None:
        if self._process is None:
            return
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), self._end_within_s)
        finally:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._process.wait()
