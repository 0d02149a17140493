"""The API as an ASGI application: who is asking, then where to, and every error in one shape.

    /api/v1/**  ->  authenticate  ->  find the operation  ->  ListRoute, CreateRoute, ResumeRoute
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
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from resumes.errors import ErrorCode, ResumesError, StoreError
from resumes.settings import Settings
from resumes.store import Store
from resumes.store.keys import KeyHolder
from server.auth import Authenticator
from server.create_route import CreateRoute
from server.exchange import Exchange
from server.limits import BodyTooLarge, refuse_too_large
from server.list_route import ListRoute
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
    """The application over an open store, which it closes when it is shut down."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._store = store
        self._authenticator = Authenticator(store)
        resume = ResumeRoute(store, settings.format)
        self._of_all: Mapping[str, Operation] = {
            "GET": Operation("list", ListRoute(store)),
            "POST": Operation("create", CreateRoute(store, settings.format)),
        }
        self._of_one: Mapping[str, Operation] = {
            "GET": Operation("get", resume.get),
            "DELETE": Operation("delete", resume.delete),
        }
        self._router = Router(redirect_slashes=False, lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        # The server sends the shutdown when the requests that it has accepted are answered.
        yield
        await self.close()

    async def close(self) -> None:
        """What was begun behind answers is done, and the store is closed."""
        await self._authenticator.finish()
        self._store.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The request is answered, whatever happens; errors leave in the one shape."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send)
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

    async def _answer(self, exchange: Exchange) -> None:
        scope = exchange.scope
        path: str = scope["path"]
        if path == API or path.startswith(f"{API}/"):
            holder = self._authenticator.authenticate(scope["headers"])
            exchange.holder = holder
            operation = self._find(path, scope["method"])
            exchange.operation = operation.name
            await operation.run(exchange, holder)
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


def create_app(settings: Settings, store: Store) -> App:
    """The API over a store that is its own from now on."""
    return App(settings, store)


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
