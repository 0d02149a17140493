"""The API as an ASGI application: who is asking, then where to, and every error in one shape.

    /api/v1/**  ->  authenticate  ->  find the operation  ->  ListRoute, CreateRoute, ResumeRoute
    /healthz …  ->  Instruments
    elsewhere   ->  Starlette's router

The key comes first, so that without one nobody learns which paths exist; what holds for every
authenticated request belongs between the operation's being known and its being run (docs/api.md,
Errors). The operations are reached without the router and its request objects.
"""

import asyncio
import contextlib
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from resumes.errors import ErrorCode, ResumesError, StoreError
from resumes.log_writer import LogWriter
from resumes.settings import Settings
from resumes.store import Store
from resumes.store.keys import KeyHolder
from resumes.store.search_filler import Filler
from server.auth import Authenticator
from server.connections import Connections
from server.counters import Counters
from server.create_route import CreateRoute
from server.docs_page import description_routes
from server.exchange import Exchange
from server.idempotency import pruning
from server.instruments import Instruments
from server.limits import BodyTooLarge, refuse_too_large
from server.list_route import ListRoute
from server.rate_limits import RateLimits, refuse_too_many
from server.responses import CLOSE, error_body
from server.resume_route import ResumeRoute

logger = logging.getLogger("resumes.server")

API = "/api/v1"
RESUMES = f"{API}/resumes"
ONE = re.compile(f"{RESUMES}/[^/]+")
STOPPING = "The server is shutting down; whether the request was done is unknown"

Run = Callable[[Exchange, KeyHolder], Awaitable[None]]
"""Answers the requests of one operation, or raises what stood in the way."""


class Operation(NamedTuple):
    """What can be asked for: its name in logs and metrics, and what answers it."""

    name: str
    run: Run


class App:
    """The application over an open store, which it closes when it is shut down.

    It limits requests only if `settings.rate_limit` says so: it does not know where it listens.
    It fills the search index while it runs only if `fills_index`: one process of several is enough.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        counters: Counters | None = None,
        log: LogWriter | None = None,
        fills_index: bool = False,
    ) -> None:
        self._store = store
        self._fills_index = fills_index
        self._connections = Connections(settings)
        self._instruments = Instruments(
            settings, store, connections=self._connections, counters=counters, log=log
        )
        self._authenticator = Authenticator(store)
        self._rate_limits = RateLimits(settings) if settings.rate_limit else None
        resume = ResumeRoute(store, settings.format)
        create = CreateRoute(store, settings.format)
        self._of_all: Mapping[str, Operation] = {
            "GET": Operation("list", ListRoute(store)),
            "POST": Operation("create", self._instruments.room.guarding(create)),
        }
        self._of_one: Mapping[str, Operation] = {
            "GET": Operation("get", resume.get),
            "DELETE": Operation("delete", resume.delete),
        }
        routes = description_routes(settings.format)
        self._router = Router(routes, redirect_slashes=False, lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[dict[str, Any]]:
        # The server sends the shutdown when the requests that it has accepted are answered.
        async with pruning(self._store), self._instruments.sampling():
            with Filler(self._store) if self._fills_index else contextlib.nullcontext():
                yield {"connections": self._connections}
        await self.close()

    async def close(self) -> None:
        """What was begun behind answers is done, and the store is closed."""
        await self._authenticator.finish()
        if self._rate_limits is not None:
            self._rate_limits.close()
        await self._instruments.close()
        self._store.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The request is answered, whatever happens; errors leave in the one shape."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send)
        self._instruments.begin()
        try:
            await self._answer(exchange)
        except BodyTooLarge as error:
            await refuse_too_large(exchange, error)
        except StoreError as error:
            await _respond_store_error(exchange, error)
        except ResumesError as error:
            await exchange.respond_error(error)
        except HTTPException as error:
            await exchange.respond_http_error(error)
        except ClientDisconnect:
            return
        except asyncio.CancelledError:
            body = error_body(503, STOPPING, request_id=exchange.request_id)
            await exchange.respond(503, body, [CLOSE])
        except Exception as error:  # noqa: BLE001  (the server's edge)
            await _respond_internal_error(exchange, error)
        finally:
            self._instruments.observe(exchange, time.perf_counter() - exchange.began_s)

    async def _answer(self, exchange: Exchange) -> None:
        scope = exchange.scope
        path: str = scope["path"]
        if path == API or path.startswith(f"{API}/"):
            holder = self._authenticator.authenticate(scope["headers"])
            exchange.holder = holder
            try:
                operation = self._find(path, scope["method"])
            except HTTPException:
                if self._rate_limits is not None:
                    self._rate_limits.tell(holder, exchange.headers)
                raise
            exchange.operation = operation.name
            if self._rate_limits is not None:
                wait_s = self._rate_limits.admit(holder, exchange.headers)
                if wait_s:
                    await refuse_too_many(exchange, wait_s)
                    return
            await operation.run(exchange, holder)
            return
        probe = self._instruments.probes.get(path)
        if probe is not None:
            await probe.answer(exchange)
            return
        scope["app"] = self  # makes the router raise its 404
        await self._router(scope, exchange.receive, exchange.send)

    def _find(self, path: str, method: str) -> Operation:
        """What is asked for below the API. Raises HTTPException 404 and 405."""
        if path == RESUMES:
            operations = self._of_all
        elif ONE.fullmatch(path):
            operations = self._of_one
        else:
            raise HTTPException(404)
        operation = operations.get(method)
        if operation is None:
            raise HTTPException(405, headers={"Allow": ", ".join(operations)})
        return operation


def create_app(
    settings: Settings,
    store: Store,
    *,
    counters: Counters | None = None,
    log: LogWriter | None = None,
    fills_index: bool = False,
) -> App:
    """The API over a store that is its own from now on, as are the counters and the log."""
    return App(settings, store, counters=counters, log=log, fills_index=fills_index)


async def _respond_store_error(exchange: Exchange, error: StoreError) -> None:
    if error.code is ErrorCode.STORE_INCOMPATIBLE:
        await _respond_internal_error(exchange, error)
        return
    logger.error("Answered 503 to request %s: %s", exchange.request_id, error.message)
    await exchange.respond_error(error)


async def _respond_internal_error(exchange: Exchange, error: Exception) -> None:
    """The error is in the log, whole, under an id, which is all that the client is told."""
    error_id = secrets.token_hex(8)
    request_id = exchange.request_id
    logger.error("Internal error %s of request %s", error_id, request_id, exc_info=error)
    body = error_body(500, f"Internal error {error_id}", request_id=request_id)
    await exchange.respond(500, body)
