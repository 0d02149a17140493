"""The service over an open store: where a request goes, and every error in one shape.

    /api/v1/**  ->  Api: authenticate, find the operation  ->  ListRoute, CreateRoute, …
    /healthz …  ->  Instruments
    /docs …     ->  the API described

The key comes first, so that without one nobody learns which paths exist; what holds for every
authenticated request belongs between the operation's being known and its being run (docs/api.md,
Errors).
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final

from resumes.errors import ErrorCode, OutcomeUnknown, ResumesError, StoreError
from resumes.log_writer import LogWriter
from resumes.rendering import Renderer
from resumes.rendering.fonts import font_folders
from resumes.settings import Settings
from resumes.store import Store
from resumes.store.search_index import Indexer
from server import api
from server.api import Api, Operation
from server.auth import Authenticator
from server.connections import Connections
from server.docs_page import description_files
from server.idempotency import pruning
from server.instruments import Instruments, Respond
from server.metrics import Counters
from server.pdf_route import PdfRoute
from server.rate_limits import RateLimits
from server.request import ClientGone, HttpError, Request, error_body
from server.routes import CreateRoute, ListRoute, ResumeRoute

logger = logging.getLogger("resumes.server")

CUT_OFF: Final = "The server is shutting down; whether the request was done is unknown"


class App:
    """Answers requests from a store that is its own, as are the counters and the log.

    It limits requests only if `settings.rate_limit` says so: it does not know where it listens.
    It indexes for search while it runs only if `runs_indexer`: one process of several is enough.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        counters: Counters | None = None,
        log: LogWriter | None = None,
        runs_indexer: bool = False,
    ) -> None:
        self._store = store
        self._runs_indexer = runs_indexer
        self.connections = Connections(settings)
        self._instruments = Instruments(
            settings, store, connections=self.connections, counters=counters, log=log
        )
        self._authenticator = Authenticator(store, self.connections)
        self._rate_limits = RateLimits(settings, takes_ahead=True) if settings.rate_limit else None
        self._api = self._make_api(settings, store)
        # What needs no key.
        self._open: dict[str, tuple[str, Respond]] = {
            **self._instruments.probes,
            **{path: ("", file) for path, file in description_files(settings.format).items()},
        }

    def _make_api(self, settings: Settings, store: Store) -> Api:
        resume = ResumeRoute(store, settings.format)
        create = CreateRoute(store, settings.format, self._instruments.room)
        list_ = ListRoute(store)
        self._pdf = PdfRoute(
            store,
            settings.format,
            Renderer(font_folders(settings.home), timeout_s=settings.pdf_timeout_s),
        )
        return Api(
            self._authenticator,
            self._rate_limits,
            of_all={
                "GET": Operation("list", read=list_.read, read_async=list_.read_async),
                "POST": Operation("create", run=create),
            },
            of_one={
                "GET": Operation("get", read=resume.read, read_async=resume.read_async),
                "DELETE": Operation("delete", run=resume.delete),
            },
            of_pdf={"GET": Operation("pdf", run=self._pdf)} if settings.pdf else {},
            # Decided once: whoever has a file pays nothing for those who have a network.
            waits_for_store=store.is_remote,
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Do during the block what is done beside answering; close the store behind it."""
        async with pruning(self._store), self._instruments.sampling():
            with self._indexing() if self._runs_indexer else contextlib.nullcontext():
                yield
        await self.close()

    def _indexing(self) -> Indexer:
        return Indexer(self._store, is_busy=self._instruments.is_busy)

    async def close(self) -> None:
        """Do what was begun behind answers, and close the store."""
        await self._authenticator.finish()
        if self._rate_limits is not None:
            self._rate_limits.close()
        await self._instruments.close()
        self._pdf.close()
        self._store.close()

    def begin(self, request: Request) -> Coroutine[Any, Any, None] | None:
        """Answer the request, whatever happens, or return what is to be awaited for that."""
        self._instruments.begin()
        try:
            rest = self._begin(request)
        except Exception as error:  # noqa: BLE001  (the server's edge)
            rest = None
            _respond_error(request, error)
        if rest is not None:
            return self._finish(request, rest)
        self._instruments.observe(request, time.perf_counter() - request.began_s)
        return None

    def _begin(self, request: Request) -> Coroutine[Any, Any, None] | None:
        path = request.path
        if path == api.ROOT or path.startswith(f"{api.ROOT}/"):
            return self._api.begin(request)
        if path not in self._open:
            raise HttpError(404)
        name, respond = self._open[path]
        if request.method not in ("GET", "HEAD"):
            raise HttpError(405, headers=[(b"allow", b"GET")])
        request.operation = name
        return respond(request)

    async def _finish(self, request: Request, rest: Coroutine[Any, Any, None]) -> None:
        try:
            await rest
        except ClientGone:
            return
        except asyncio.CancelledError:
            request.keep_alive = False
            body = error_body(503, CUT_OFF, request_id=request.id)
            request.respond(503, body)
        except Exception as error:  # noqa: BLE001  (the server's edge)
            _respond_error(request, error)
        finally:
            self._instruments.observe(request, time.perf_counter() - request.began_s)


def _respond_error(request: Request, error: Exception) -> None:
    match error:
        case StoreError(code=ErrorCode.STORE_INCOMPATIBLE):
            _respond_internal_error(request, error)
        case StoreError():
            logger.error("Answered 503 to request %s: %s", request.id, error.message)
            request.respond_error(error)
        case ResumesError():
            request.respond_error(error)
        case HttpError():
            request.respond_http_error(error)
        case MemoryError():
            # Anywhere, so also behind a commit.
            logger.error("There was no memory for request %s", request.id)
            request.respond_error(OutcomeUnknown())
        case _:
            _respond_internal_error(request, error)


def _respond_internal_error(request: Request, error: Exception) -> None:
    """Log the error, whole, under an id, which is all that the client is told."""
    error_id = secrets.token_hex(8)
    logger.error("Internal error %s of request %s", error_id, request.id, exc_info=error)
    request.respond(500, error_body(500, f"Internal error {error_id}", request_id=request.id))
