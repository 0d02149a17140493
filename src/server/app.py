"""The service over an open store: dispatching requests, and answering every error in one shape.

    /api/v1/**  ->  key, operation, rate limits, access, plan, in this order  ->  Routes, RenderingRoute,
                                                                                    UploadRoute
    /healthz …  ->  HealthCheck, Exposition
    /docs …     ->  the description of the API

The key is checked first, so that a client without one cannot learn which paths exist. Checks for
every authenticated request belong between finding the operation and running it (docs/api.md,
Errors). A store in a file is read on the event loop; a store across a network is awaited.
"""

import asyncio
import contextlib
import http
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, Final, NamedTuple

from resumes.clock import system_clock, timestamp
from resumes.errors import (
    BusinessPlanRequired,
    OutcomeUnknown,
    ResumesError,
    StatementRefused,
    StoreError,
    StoreIncompatible,
)
from resumes.filesystems import DISK_FLOOR_BYTES
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
from server.request import ClientGone, HttpError, Request, Respond
from server.routes import Routes, prune_forever
from server.upload_route import UploadRoute

logger = logging.getLogger("resumes.server")

ROOT: Final = "/api/v1"
RESUMES: Final = f"{ROOT}/resumes"
UPLOAD: Final = f"{RESUMES}/upload"
# Without an analyzer, `upload` is no operation; it must never be taken for an ID.
ONE: Final = re.compile(rf"{RESUMES}/(?!upload\Z)[^/]+")
FILE: Final = re.compile(f"{RESUMES}/(?!upload/)[^/]+/(pdf|docx)")

READ_ONLY: Final = "This API key is read-only"
CUT_OFF: Final = "The server is shutting down; it is unknown whether the request succeeded"

BUSY_PER_S: Final = 20
"""At this rate of requests, work that is not urgent waits."""

Run = Callable[[Request, KeyHolder], Coroutine[Any, Any, None] | None]
"""Answers the request, or returns a coroutine that does. Either may raise the error to answer
with."""


class Operation(NamedTuple):
    """An operation of the API: its name in logs and metrics, and the function that runs it."""

    name: str
    run: Run
    needs_listing_plan: bool = True
    """Whether it requires a plan with API listing."""


class App:
    """Answers requests from a store.

    It limits requests only if `settings.rate_limit` is set, because it does not know its own address.
    `metrics` None: count only this app's requests. `log` None: log no requests.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        metrics: Metrics | None = None,
        log: LogWriter | None = None,
    ) -> None:
        self._store = store
        self._log = log
        self.connections = Connections(settings)
        self.authenticator = Authenticator(store, self.connections)
        self._rate_limits = RateLimits(settings, is_batched=True) if settings.rate_limit else None
        self._metrics = metrics or Metrics()
        store.write_queue.observe = self._metrics.observe_batch
        self._begun = 0
        """The number of requests that have begun."""
        self._seen = (0, time.monotonic())
        self._access_log: AccessLog | None = None
        is_json = settings.log_format is LogFormat.JSON
        if log is not None and (is_json if settings.access_log is None else settings.access_log):
            self._access_log = AccessLog(log, is_json=is_json)
        self._health = HealthCheck(store, floor_bytes=DISK_FLOOR_BYTES)
        self._exposition = Exposition(self._metrics, store, sample=self._sample)
        self._pdf = RenderingRoute(
            store,
            settings.format,
            Renderer(font_folders(settings.home), timeout_s=settings.pdf_timeout_s),
            settings.home,
        )
        self._routes = routes = Routes(store, settings.format, lambda: self._health.is_disk_low)
        # Decided once, so that a store in a file costs nothing extra.
        self._waits_for_store = is_remote = store.path is None
        self._of_all: Mapping[str, Operation] = {
            "GET": Operation("list", routes.list_async if is_remote else routes.list),
            "POST": Operation("create", routes.create, needs_listing_plan=False),
        }
        self._of_one: Mapping[str, Operation] = {
            "GET": Operation("get", routes.get_async if is_remote else routes.get),
            "PUT": Operation("update", routes.update, needs_listing_plan=False),
            "DELETE": Operation("delete", routes.delete, needs_listing_plan=False),
        }
        self._of_file: Mapping[str, Mapping[str, Operation]] = {
            name: {"GET": Operation(name, self._pdf)} for name in FileType if settings.pdf
        }
        self._upload = UploadRoute(settings, store, routes) if settings.analyzer else None
        self._of_upload: Mapping[str, Operation] = (
            {"POST": Operation("upload", self._upload, needs_listing_plan=False)}
            if self._upload
            else {}
        )
        # Paths that need no key.
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

        On exit, finish writes that were begun after answers.
        """
        tasks = [
            asyncio.create_task(self._check_forever()),
            asyncio.create_task(prune_forever(self._store)),
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
            await self._health.close()
            await self._exposition.close()
            self._pdf.close()
            if self._upload is not None:
                self._upload.close()
            self._routes.close()

    async def _check_forever(self) -> None:
        while True:
            with contextlib.suppress(MemoryError):  # the next check is in a second
                self._sample()  # for the server's other processes
                self._health.check_disk()
            await self.connections.check()

    def _sample(self) -> None:
        self._metrics.put(
            connections=len(self.connections),
            waiting_writes=self._store.write_queue.waiting,
            dropped_lines=0 if self._log is None else self._log.dropped_count,
        )

    def check_threads(self) -> None:
        """Raise StoreUnavailable if a thread of the store has ended, so that this process must end."""
        self._store.check_threads()

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
        except Exception as error:  # noqa: BLE001  (the server's edge)
            rest = None
            _respond_error(request, error)
        if rest is not None:
            return self._finish(request, rest)
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
        operation = operations.get("GET" if request.method == "HEAD" else request.method)
        if operation is None:
            if self._rate_limits is not None:
                self._rate_limits.add_headers(holder, request.lines)
            if not operations:
                raise HttpError(404)
            raise HttpError(405, headers=[(b"allow", ", ".join(operations).encode())])
        request.operation = operation.name
        if self._rate_limits is not None and (
            wait_s := self._rate_limits.admit(holder, request.lines)
        ):
            headers = [(b"retry-after", b"%d" % wait_s)]
            raise HttpError(429, REFUSAL, headers, retryAfter=wait_s)
        if holder.is_read_only and request.method not in ("GET", "HEAD"):
            raise HttpError(403, READ_ONLY)
        if operation.needs_listing_plan and not holder.api_listing:
            raise BusinessPlanRequired
        return operation.run(request, holder)

    def _operations_at(self, path: str) -> Mapping[str, Operation]:
        """Return the operations at the path, by method."""
        if path == RESUMES:
            return self._of_all
        if path == UPLOAD:
            return self._of_upload
        if ONE.fullmatch(path):
            return self._of_one
        found = FILE.fullmatch(path)
        return self._of_file.get(found[1], {}) if found else {}

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
    # A second answer inside the first one would be taken for a part of it.
    cause = None if isinstance(error, ResumesError | HttpError) else error
    logger.error("Cut off the response to request %s: %s", request.id, error, exc_info=cause)
    if not (request.is_answered or request.is_gone):
        request.cut_off()


def public_error(error: BaseException, request_id: str) -> ResumesError | HttpError:
    """Return the error as the client may see it; log what only operators may see."""
    if isinstance(error, MemoryError):  # possible anywhere, even after a commit
        logger.error("Out of memory for request %s", request_id)
        return OutcomeUnknown()
    if isinstance(error, StatementRefused):
        # Not its cause, in which a database may repeat its input.
        return _internal_error(request_id, error.message, None)
    if isinstance(error, StoreIncompatible) or not isinstance(error, ResumesError | HttpError):
        return _internal_error(request_id, "see below", error)
    if isinstance(error, StoreError):
        logger.error("Answered 503 to request %s: %s", request_id, error.message)
    return error


def _internal_error(request_id: str, why: str, cause: BaseException | None) -> HttpError:
    """Log the error under an ID, and return an answer that contains only this ID."""
    error_id = secrets.token_hex(8)
    logger.error("Internal error %s of request %s: %s", error_id, request_id, why, exc_info=cause)
    return HttpError(500, f"Internal error {error_id}")


METHODS = frozenset[str](http.HTTPMethod)
"""Methods that are logged by name; unknown ones come from clients and are not."""

# Formatted here, because the logging package would cost more than the request's look-up. Every
# value is generated here, or has a form that needs no escaping.
JSON_LINE = (
    '{"at":"%s","level":"INFO","logger":"resumes.access","message":"request","requestId":"%s",'
    '"method":"%s","operation":"%s","status":%d,"ms":%.2f,"account":%s,"key":%s}\n'
)
TEXT_LINE = "%s INFO resumes.access: request %s: %s %s, status %d, %.2f ms, account %s, key %s\n"


class AccessLog:
    """Writes a line for each finished request (docs/operations.md, Logs).

    A line has the IDs of the account and the key, and the operation's name, but never a path, a query,
    a body, a name or a key.
    """

    def __init__(self, writer: LogWriter, *, is_json: bool) -> None:
        self._put = writer.put
        self._line = JSON_LINE if is_json else TEXT_LINE
        self._id, self._no_id = ('"%s"', "null") if is_json else ("%s", "none")

    def observe(self, request: Request, took_s: float) -> None:
        """Log the request; the line is written after the answer."""
        line = self._line % (
            timestamp(system_clock()),
            request.id,
            request.method if request.method in METHODS else "other",
            request.operation or "other",
            request.status,
            took_s * 1_000,
            self._id % request.account_id if request.account_id else self._no_id,
            self._id % request.key_id if request.key_id else self._no_id,
        )
        self._put(line.encode())
