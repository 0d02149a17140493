"""The server: the gate before everything, the page, and the socket behind it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web
from textual_serve.server import Server, to_int

from tui.web import pages
from tui.web.gate import HOST, Gate
from tui.web.sessions import END_WITHIN_S, PageSession

logger = logging.getLogger("resumes.tui.web")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEARTBEAT_S = 15.0
"""How often a page is asked whether it is still there."""

FAREWELL_S = 2.0
"""How long a page has to say goodbye."""

MOST_CELLS = 1_000


class PageServer(Server):
    """Shows what `command` draws, to those whom the gate lets through."""

    def __init__(
        self,
        command: Sequence[str],
        gate: Gate,
        port: int,
        *,
        end_within_s: float = END_WITHIN_S,
    ) -> None:
        super().__init__(command[0], host=HOST, port=port, title="Resumes")
        self._arguments = tuple(command)
        self._gate = gate
        self._end_within_s = end_within_s
        self._sessions: set[PageSession] = set()

    async def application(self) -> web.Application:
        """The server's routes, all behind the gate."""

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            return self._refusal_or_entry(request) or await handler(request)

        application = web.Application(middlewares=[guard])
        application.add_routes(
            [
                web.get("/", self.handle_page),
                web.get("/page.js", self.handle_script),
                web.get("/ws", self.handle_websocket),
                web.get("/download/{key}", self.handle_download),
                web.static("/static", self.statics_path),
            ]
        )
        application.on_response_prepare.append(self._add_headers)
        application.on_shutdown.append(self.on_shutdown)
        return application

    def _refusal_or_entry(self, request: web.Request) -> web.Response | None:
        """What to answer in place of what was asked for; None lets it through."""
        host = request.headers.get("Host")
        if not self._gate.knows_host(host):
            return pages.refusal(pages.REFUSAL)
        token = request.query.get("token") if request.path == "/" else None
        # A look at the address is no visit: it would spend the token.
        is_visit = request.method == "GET"
        if token is not None and is_visit and (cookie := self._gate.find_cookie(token)) is not None:
            return self._give_cookie(cookie)
        if not self._gate.admits(request.cookies.get(self._gate.cookie_name)):
            return pages.refusal(pages.REFUSAL)
        if request.path == "/ws" and not self._gate.knows_origin(
            request.headers.get("Origin"), host
        ):
            return pages.refusal(pages.WRONG_ORIGIN)
        return None if token is None else pages.entry()

    def _give_cookie(self, cookie: str) -> web.Response:
        response = pages.entry()
        response.set_cookie(
            self._gate.cookie_name, cookie, httponly=True, samesite="Strict", path="/"
        )
        return response

    async def handle_page(self, request: web.Request) -> web.Response:
        """The page."""
        return pages.page(request.headers["Host"])

    async def handle_script(self, _: web.Request) -> web.Response:
        """The page's own script."""
        return pages.script()

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A page has come, and has left again; its process ran meanwhile."""
        page = web.WebSocketResponse(heartbeat=HEARTBEAT_S, timeout=FAREWELL_S)
        await page.prepare(request)
        session = PageSession(
            self._arguments, page, self.download_manager, end_within_s=self._end_within_s
        )
        self._sessions.add(session)
        try:
            await session.start(_cells(request, "width", 80), _cells(request, "height", 24))
        except OSError as error:
            logger.error("Cannot start the terminal UI for a page: %s", error.strerror)
        else:
            await self._process_messages(page, session)
        finally:
            self._sessions.discard(session)
            await session.stop()
        return page

    async def handle_download(self, request: web.Request) -> web.StreamResponse:
        """A file that a process sends to its page; once."""
        key = request.match_info["key"]
        try:
            download = await self.download_manager.get_download_metadata(key)
        except KeyError:
            raise web.HTTPNotFound(text=pages.NO_DOWNLOAD) from None
        response = web.StreamResponse(headers=pages.download_headers(download))
        await response.prepare(request)
        async for chunk in self.download_manager.download(key):
            await response.write(chunk)
        await response.write_eof()
        return response

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        host = request.headers.get("Host", "")
        known = host if self._gate.knows_host(host) else f"{HOST}:{self.port}"
        response.headers.update(pages.headers(known))

    async def on_shutdown(self, app: web.Application) -> None:
        """All pages were told to leave, which ends their processes."""
        await asyncio.gather(*(session.leave() for session in self._sessions))


def _cells(request: web.Request, name: str, default: int) -> int:
    return max(1, min(to_int(request.query.get(name, ""), default), MOST_CELLS))
