"""The API as an ASGI application: who is asking, then where to, and every error in one shape.

    /api/v1/**  ->  authenticate  ->  GET, POST /api/v1/resumes  ->  ListRoute, CreateRoute
                                  ->  everything else            ->  Starlette's router
    elsewhere   ->  Starlette's router

The key comes first, so that without one nobody learns which paths exist; what holds for every
authenticated request belongs between it and the routes (docs/api.md, Errors). The two
operations that are called most are reached without the router and its request objects.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from resumes.errors import ErrorCode, ResumesError, StoreError
from resumes.settings import Settings
from resumes.store import Store
from server.auth import Authenticator
from server.create_route import CreateRoute
from server.limits import BodyTooLarge, refuse_too_large
from server.list_route import ListRoute
from server.responses import CLOSE, error_body, respond, respond_error, respond_http_error
from server.resume_route import ResumeRoute

logger = logging.getLogger("resumes.server")

API = "/api/v1"
RESUMES = f"{API}/resumes"
STOPPING = "The server is shutting down; whether the request was done is unknown"


class App:
    """The application over an open store, which it closes when it is shut down."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._store = store
        self._authenticator = Authenticator(store)
        self._list = ListRoute(store)
        self._create = CreateRoute(store, settings.format)
        self._router = Router(
            [Route(f"{RESUMES}/{{id}}", ResumeRoute(store, settings.format))],
            redirect_slashes=False,
            lifespan=self._lifespan,
        )

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
        try:
            await self._answer(scope, receive, send)
        except BodyTooLarge as error:
            await refuse_too_large(receive, send, error)
        except StoreError as error:
            await _respond_store_error(send, error)
        except ResumesError as error:
            await respond_error(send, error)
        except HTTPException as error:
            await respond_http_error(send, error)
        except ClientDisconnect:
            return
        except asyncio.CancelledError:
            await respond(send, 503, error_body(503, STOPPING), [CLOSE])
        except Exception as error:  # noqa: BLE001  (the server's edge)
            await _respond_internal_error(send, error)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if path == API or path.startswith(f"{API}/"):
            holder = self._authenticator.authenticate(scope["headers"])
            if path == RESUMES:
                match scope["method"]:
                    case "GET":
                        return await self._list(holder, scope, send)
                    case "POST":
                        return await self._create(holder, scope, receive, send)
                    case _:
                        raise HTTPException(405, headers={"Allow": "GET, POST"})
            scope["holder"] = holder
        scope["app"] = self  # makes the router raise its 404
        await self._router(scope, receive, send)


def create_app(settings: Settings, store: Store) -> App:
    """The API over a store that is its own from now on."""
    return App(settings, store)


async def _respond_store_error(send: Send, error: StoreError) -> None:
    if error.code is ErrorCode.STORE_INCOMPATIBLE:
        await _respond_internal_error(send, error)
        return
    logger.error("Answered 503: %s", error.message)
    await respond_error(send, error)


async def _respond_internal_error(send: Send, error: Exception) -> None:
    """The error is in the log, whole, under an id, which is all that the client is told."""
    error_id = secrets.token_hex(8)
    logger.error("Internal error %s", error_id, exc_info=error)
    await respond(send, 500, error_body(500, f"Internal error {error_id}"))
