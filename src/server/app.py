"""The API as an ASGI application: who is asking, then where to, and every error in one shape.

    /api/v1/**  ->  Reception: authenticate, find the operation  ->  ListRoute, CreateRoute, …
    /healthz …  ->  Instruments
    elsewhere   ->  Starlette's router

The key comes first, so that without one nobody learns which paths exist; what holds for every
authenticated request belongs between the operation's being known and its being run (docs/api.md,
Errors). The operations are reached without the router and its request objects.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from resumes.errors import ErrorCode, OutcomeUnknown, ResumesError, StoreError
from resumes.log_writer import LogWriter
from resumes.settings import Settings
from resumes.store import Store
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
from server.operations import API, Operation, Operations
from server.rate_limits import RateLimits
from server.reception import Reception, RemoteReception
from server.responses import CLOSE, error_body
from server.resume_route import ResumeRoute

logger = logging.getLogger("resumes.server")

STOPPING = "The server is shutting down; whether the request was done is unknown"


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
        # Decided once: whoever has a file pays nothing for those who have a network.
        kind = RemoteReception if store.database.waits_for_network else Reception
        operations = self._operations(settings, store)
        self._reception = kind(self._authenticator, operations, self._rate_limits)
        self._receive = self._reception.receive
        routes = description_routes(settings.format)
        self._router = Router(routes, redirect_slashes=False, lifespan=self._lifespan)

    def _operations(self, settings: Settings, store: Store) -> Operations:
        list_ = ListRoute(store)
        resume = ResumeRoute(store, settings.format)
        create = self._instruments.room.guarding(CreateRoute(store, settings.format))
        return Operations(
            of_all={
                "GET": Operation("list", list_, list_.read),
                "POST": Operation("create", create),
            },
            of_one={
                "GET": Operation("get", resume.get, resume.read),
                "DELETE": Operation("delete", resume.delete),
            },
        )

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
        self._reception.close()
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
        except MemoryError:
            # Anywhere, so also behind a commit.
            logger.error("There was no memory for request %s", exchange.request_id)
            await exchange.respond_error(OutcomeUnknown())
        except Exception as error:  # noqa: BLE001  (the server's edge)
            await _respond_internal_error(exchange, error)
        finally:
            self._instruments.observe(exchange, time.perf_counter() - exchange.began_s)

    # No coroutine of its own, which every request would pay for.
    def _answer(self, exchange: Exchange) -> Awaitable[None]:
        """Raises what stood in the way, at once or when it is awaited."""
        scope = exchange.scope
        path: str = scope["path"]
        if path == API or path.startswith(f"{API}/"):
            return self._receive(exchange)
        probe = self._instruments.probes.get(path)
        if probe is not None:
            return probe.answer(exchange)
        scope["app"] = self  # makes the router raise its 404
        return self._router(scope, exchange.receive, exchange.send)


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
