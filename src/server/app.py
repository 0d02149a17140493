"""The API over an open store: dispatches requests, and answers all errors in the same format.

    /api/v1/**  ->  key, operation, rate limits, access and plan are checked in this order; then
                    Routes, RenderingRoute or UploadRoute
    /healthz …  ->  HealthCheck, Exposition
    /docs …     ->  the description of the API

The key is checked first, so that a client without a key cannot find out which paths exist. Checks
for all authenticated requests belong between finding the operation and running it (docs/api.md,
Errors). A store in a file is read on the event loop; a remote store is awaited.
"""

import asyncio
import contextlib
import http
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, Final

import orjson

from resumes.clock import system_clock, timestamp
from resumes.errors import (
    BusinessPlanRequired,
    OutcomeUnknown,
    ResumesError,
    StatementRefused,
    StoreError,
    StoreIncompatible,
)
from resumes.log_writer import LogWriter
from resumes.rendering import FileType, Renderer
from resumes.rendering.fonts import font_folders
from resumes.settings import LogFormat, Settings
from resumes.store import Store
from resumes.store.api_keys import KeyHolder
from server.auth import Authenticator
from server.connections import Connections
from server.health import HealthCheck
from server.metrics import Exposition, Metrics
from server.openapi import description_files
from server.rate_limits import REFUSAL, RateLimits
from server.rendering_route import RenderingRoute
from server.request import ClientGone, HttpError, Request, Respond, http_error
from server.routes import Routes, prune_forever
from server.upload_route import UploadRoute

logger = logging.getLogger("resumes.server")

ROOT: Final = "/api/v1"
RESUMES: Final = f"{ROOT}/resumes"
UPLOAD: Final = f"{RESUMES}/upload"
# Even without an analyzer, `upload` must never be treated as an ID.
ONE: Final = re.compile(rf"{RESUMES}/(?!upload(?:/|\Z))[^/]+(/pdf|/docx)?")

READ_ONLY: Final = "This API key is read-only"
CUT_OFF: Final = "The server is shutting down; it is unknown whether the request succeeded"

BUSY_PER_S: Final = 20
"""At this rate of requests per second, work that is not urgent waits."""

Run = Callable[[Request, KeyHolder], Coroutine[Any, Any, None] | None]
"""Answers the request or returns a coroutine that answers it. Both may raise the error to send."""


Operation = tuple[str, Run]
"""An operation of the API: its name in logs and metrics, and the function that runs it."""


class App:
    """Answers requests from a store.

    Rate limits apply only if `settings.rate_limit` is set, since the app does not know its own
    address. Without `metrics`, it counts only this app's requests; without `log`, it logs none.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        metrics: Metrics | None = None,
        log: LogWriter | None = None,
    ) -> None:
        self.store = store
        self._log = log
        self.connections = Connections(settings)
        self.authenticator = Authenticator(store, self.connections)
        self._rate_limits = RateLimits(settings) if settings.rate_limit else None
        self._metrics = metrics or Metrics()
        store.write_queue.observe = self._metrics.observe_batch
        self._begun = 0
        """The number of requests that have started."""
        self._seen = (0, time.monotonic())
        self._access_log: AccessLog | None = None
        is_json = settings.log_format is LogFormat.JSON
        if log is not None and (is_json if settings.access_log is None else settings.access_log):
            self._access_log = AccessLog(log, is_json=is_json)
        self._health = HealthCheck(store)
        self._exposition = Exposition(self._metrics, store, sample=self._sample)
        self._renderer = Renderer(font_folders(settings.home), timeout_s=settings.pdf_timeout_s)
        pdf = RenderingRoute(store, settings.format, self._renderer, settings.home)
        routes = Routes(store, settings.format, lambda: self._health.is_disk_low)
        # This is decided once, so that a store in a file has no extra cost per request.
        self._waits_for_store = is_remote = store.path is None
        self._operations: dict[str, dict[str, Operation]] = {
            RESUMES: {
                "GET": ("list", routes.list_async if is_remote else routes.list),
                "POST": ("create", routes.create),
            },
            f"{RESUMES}/*": {
                "GET": ("get", routes.get_async if is_remote else routes.get),
                "PUT": ("update", routes.update),
                "DELETE": ("delete", routes.delete),
            },
        }
        """The operations by path and method; `*` stands for an ID."""
        if settings.pdf:
            for name in FileType:
                self._operations[f"{RESUMES}/*/{name}"] = {"GET": (name, pdf)}
        if settings.analyzer:
            upload = UploadRoute(settings, store, routes, self.authenticator)
            self._operations[UPLOAD] = {"POST": ("upload", upload)}
        # Paths that require no key.
        self._open: dict[str, tuple[str, Respond]] = {
            "/healthz": ("health", self._health.live),
            "/readyz": ("ready", self._health.ready),
            "/metrics": ("metrics", self._exposition),
            **{path: ("", file) for path, file in description_files(settings.format).items()},
        }

    # Background work

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the background tasks during the block.

        On exit, finish the writes that were started after answers were sent.
        """
        tasks = [
            asyncio.create_task(self._check_forever()),
            asyncio.create_task(prune_forever(self.store)),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await self.authenticator.finish()
            if self._rate_limits is not None:
                self._rate_limits.close()
            self._renderer.close()

    async def _check_forever(self) -> None:
        while True:
            with contextlib.suppress(MemoryError):  # the next check is in a second
                self._sample()  # for metrics requests to other processes
                self._health.check_disk()
            await self.connections.check()

    def _sample(self) -> None:
        self._metrics.put(
            connections=len(self.connections),
            waiting_writes=self.store.write_queue.waiting,
            dropped_lines=0 if self._log is None else self._log.dropped_count,
        )

    def is_busy(self) -> bool:
        """Return whether requests were frequent since the last call."""
        begun, now_s = self._begun, time.monotonic()
        before, since_s = self._seen
        self._seen = (begun, now_s)
        return begun - before > BUSY_PER_S * (now_s - since_s)

    # A request

    def begin(self, request: Request) -> Coroutine[Any, Any, None] | None:
        """Answer the request even if it fails, or return a coroutine that does."""
        self._begun += 1
        self._metrics.begin()
        try:
            rest = self._begin(request)
            if rest is not None:
                return self._finish(request, rest)
        except Exception as error:  # noqa: BLE001  (the server's edge)
            _respond_error(request, error)
        self._observe(request)
        return None

    def _begin(self, request: Request) -> Coroutine[Any, Any, None] | None:
        path = request.path
        if path == ROOT or path.startswith(f"{ROOT}/"):
            if self._waits_for_store:
                return self._run_async(request)
            return self._run(request, self.authenticator.authenticate(request.headers))
        if path not in self._open:
            raise HttpError(404)
        name, respond = self._open[path]
        if request.method not in ("GET", "HEAD"):
            raise HttpError(405, headers=[(b"allow", b"GET")])
        request.operation = name
        return respond(request)

    async def _run_async(self, request: Request) -> None:
        holder = await self.authenticator.authenticate_async(request.headers)
        rest = self._run(request, holder)
        if rest is not None:
            await rest

    def _run(self, request: Request, holder: KeyHolder) -> Coroutine[Any, Any, None] | None:
        """Count the request against its key's limits, then run the operation."""
        request.account_id, request.key_id = holder.account_id, holder.key_id
        operations = self._operations_at(request.path)
        is_reading = request.method in ("GET", "HEAD")
        operation = operations.get("GET" if is_reading else request.method)
        wait_s = 0
        if self._rate_limits is not None:
            tokens = 1 if operation else 0
            wait_s = self._rate_limits.admit(holder.key_id, request.lines, tokens=tokens)
        if operation is None:
            allowed = [(b"allow", ", ".join(operations).encode())]
            raise HttpError(405, headers=allowed) if operations else HttpError(404)
        request.operation, run = operation
        if wait_s:
            raise HttpError(429, REFUSAL, [(b"retry-after", b"%d" % wait_s)], retryAfter=wait_s)
        if is_reading and not holder.api_listing:
            raise BusinessPlanRequired
        if holder.is_read_only and not is_reading:
            raise HttpError(403, READ_ONLY)
        return run(request, holder)

    def _operations_at(self, path: str) -> Mapping[str, Operation]:
        """Return the operations at the path, by method."""
        operations = self._operations.get(path)
        if operations is None and (one := ONE.fullmatch(path)):
            operations = self._operations.get(f"{RESUMES}/*{one[1] or ''}")
        return operations or {}

    async def _finish(self, request: Request, rest: Coroutine[Any, Any, None]) -> None:
        try:
            await rest
        except ClientGone:
            return
        except asyncio.CancelledError:
            request.keep_alive = False
            _respond_error(request, HttpError(503, CUT_OFF))
        except Exception as error:  # noqa: BLE001  (the server's edge)
            _respond_error(request, error)
        finally:
            self._observe(request)

    def _observe(self, request: Request) -> None:
        """Count the finished request, and log it if requests are logged."""
        took_s = time.perf_counter() - request.began_s
        self._metrics.end(request.operation, request.status, took_s)
        if self._access_log is not None:
            self._access_log.observe(request, took_s)


def _respond_error(request: Request, error: BaseException) -> None:
    if not request.status:
        request.respond_error(public_error(error, request.id))
        return
    # A second answer inside the first answer would be read as part of it.
    cause = None if isinstance(error, ResumesError | HttpError) else error
    logger.error("Cut off the response to request %s: %s", request.id, error, exc_info=cause)
    if not (request.is_answered or request.is_gone):
        request.cut_off()


def public_error(error: BaseException, request_id: str) -> HttpError:
    """Return the error as the client may see it, and log what only operators may see."""
    if isinstance(error, HttpError):
        return error
    if isinstance(error, MemoryError):  # possible anywhere, even after a commit
        logger.error("Out of memory for request %s", request_id)
        return http_error(OutcomeUnknown())
    if isinstance(error, StatementRefused):
        # Omit the cause, in which a database may repeat its input.
        return _internal_error(request_id, error.message, None)
    if isinstance(error, StoreIncompatible) or not isinstance(error, ResumesError):
        return _internal_error(request_id, "see below", error)
    if isinstance(error, StoreError):
        logger.error("Answered 503 to request %s: %s", request_id, error.message)
    return http_error(error)


def _internal_error(request_id: str, why: str, cause: BaseException | None) -> HttpError:
    """Log the error under an ID, and return an answer that contains only this ID."""
    error_id = secrets.token_hex(8)
    logger.error("Internal error %s of request %s: %s", error_id, request_id, why, exc_info=cause)
    return HttpError(500, f"Internal error {error_id}")


TEXT_LINE = (
    "{at} {level} {logger}: {message} {requestId}: {method} {operation}, status {status}, {ms:.2f} ms, "
    "account {account}, key {key}\n"
)


class AccessLog:
    """Writes a line for each finished request (docs/operations.md, Logs).

    A line contains the IDs of the account and the key, and the operation's name, but never a path,
    a query, a body, a name or a key.
    """

    def __init__(self, writer: LogWriter, *, is_json: bool) -> None:
        self._writer = writer
        self._is_json = is_json
        self._nobody = None if is_json else "none"

    def observe(self, request: Request, took_s: float) -> None:
        """Log the request; the line is written after the answer."""
        # Formatted here, because the logging package would take longer than looking up the request.
        line = {
            "at": timestamp(system_clock()),
            "level": "INFO",
            "logger": "resumes.access",
            "message": "request",
            "requestId": request.id,
            # Only known methods are logged, since a client could send its data as a method.
            "method": request.method if request.method in http.HTTPMethod.__members__ else "other",
            "operation": request.operation or "other",
            "status": request.status,
            "ms": round(took_s * 1_000, 2),
            "account": request.account_id or self._nobody,
            "key": request.key_id or self._nobody,
        }
        if self._is_json:
            self._writer.put(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        else:
            self._writer.write(TEXT_LINE.format_map(line))
