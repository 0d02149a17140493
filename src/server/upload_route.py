"""POST /api/v1/resumes/upload: a PDF or Word file, which the user's analyzer turns into a resume
(docs/api.md, Upload)."""

import asyncio
import hashlib
import logging
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import PurePath
from typing import IO, Final

from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header

from resumes.errors import InvalidInput, InvalidKey, Issue, NotFound, TooLarge
from resumes.external_analyzer import (
    BEGINNING_BYTES,
    AnalysisFailed,
    ExternalAnalyzer,
    Failure,
    is_of_type,
)
from resumes.settings import Settings
from resumes.store import Store, creation, stored_resumes
from resumes.store.api_keys import KeyHolder
from resumes.store.creation import Created, IdempotencyKey, NewResume
from server.auth import Authenticator
from server.request import ClientGone, Headers, HttpError, Request
from server.routes import LOW_DISK, Routes, answer_stored, find_key, find_label, in_thread, turn

logger = logging.getLogger("resumes.server")

MAX_BYTES: Final = 10 * 1024 * 1024
"""The maximum size of a file."""

FORM_BYTES: Final = 64 * 1024
"""The maximum number of bytes in a body in addition to its file."""

MAX_PARTS: Final = 16
"""The maximum number of fields in the form."""

MAX_UPLOADS: Final = 16
"""The number of uploads that a process receives or analyzes at once. Each has a temporary file."""

SUFFIXES: Final = (".pdf", ".doc", ".docx")
"""The accepted extensions of file names."""

NO_FILE: Final = "No file uploaded"
INVALID_TYPE: Final = "Invalid file type. Only PDF, DOC, and DOCX are allowed"
MORE_FILES: Final = "More than one file uploaded: send one"
BUSY: Final = "Too many files are being analyzed; try again later"
SAME_KEY: Final = "Another upload with this API key is being analyzed; send this one again later"
NOT_AVAILABLE: Final = "The analyzer cannot be started, so nothing was stored; try again later"
LEFT: Final = "The client ended sending, so nothing was stored; keep the connection open"
STOPPED: Final = "The server is shutting down, so nothing was stored; try again later"


class UploadRoute:
    """Receives files and has up to `settings.analyzers` of them analyzed at once."""

    def __init__(
        self, settings: Settings, store: Store, routes: Routes, authenticator: Authenticator
    ) -> None:
        self._store = store
        self._authenticator = authenticator
        self._routes = routes
        self._analyzer = ExternalAnalyzer(settings)
        self._timeout_s = settings.analyzer_timeout_s
        self._turns = asyncio.Semaphore(settings.analyzers)
        self._threads = ThreadPoolExecutor(settings.analyzers, thread_name_prefix="upload")
        self._keys: set[str] = set()
        """The keys with an upload that has not been answered yet."""

    async def __call__(self, request: Request, holder: KeyHolder) -> None:
        """Store the resume that the analyzer creates from the file, and answer with its ID.

        A repeated Idempotency-Key with the same file is answered without running the analyzer.
        """
        self._routes.check_disk()
        boundary = find_boundary(request.headers)
        label = find_label(request)
        key = find_key(request.headers)
        if holder.key_id in self._keys:
            raise HttpError(503, SAME_KEY)
        if len(self._keys) >= MAX_UPLOADS:
            raise HttpError(503, BUSY)
        self._keys.add(holder.key_id)
        try:
            # The file has no name, so that nothing is left of it even if the process is killed.
            with tempfile.TemporaryFile() as file:
                suffix, sha256 = await receive(request, boundary, file)
                once = None if key is None else IdempotencyKey(key, sha256)
                if await self._answer_early(request, holder, once):
                    return
                output = await self._analyze(request, file, suffix)
        except OSError as error:
            logger.error("Upload of request %s not stored: %s", request.id, error.strerror)
            raise HttpError(503, LOW_DISK) from None
        finally:
            self._keys.discard(holder.key_id)
        # The key may have been revoked during the minutes that this took.
        holder = await self._authenticator.authenticate_async(request.headers)
        try:
            parsed = await self._routes.parse(output, holder)
        except InvalidInput as error:
            why = f"The analyzer's output cannot be stored: {error.message}"
            raise HttpError(422, why) from None
        new = NewResume(parsed, label=label, idempotency=once)
        await self._routes.store(request, holder, new, status=200)

    async def _answer_early(
        self, request: Request, holder: KeyHolder, once: IdempotencyKey | None
    ) -> bool:
        """Answer if the outcome does not depend on the analyzer. Return whether this was the case.

        Raises QuotaReached and IdempotencyMismatch.
        """
        try:
            outcome = await creation.find_early_outcome(self._store, holder.account_id, once)
        except NotFound:
            raise InvalidKey from None  # the account was deleted after the key was checked
        if isinstance(outcome, Exception):
            raise outcome
        if isinstance(outcome, Created):
            warnings = await self._find_warnings(outcome.id, holder)
            answer_stored(request, 200, outcome, warnings)
        return outcome is not None

    async def _find_warnings(self, resume_id: str, holder: KeyHolder) -> Sequence[Issue]:
        """Return the warnings about the analyzer's output, or none if it is no longer stored."""
        with suppress(NotFound, InvalidInput):
            resume = await stored_resumes.get_resume_async(
                self._store, holder.account_id, resume_id
            )
            if resume.entry.updated_at == resume.entry.created_at:
                return (await self._routes.parse(resume.document.encode(), holder)).warnings
        return ()

    async def _analyze(self, request: Request, file: IO[bytes], suffix: str) -> bytes:
        """Return the analyzer's output. Stop it if the client leaves or the service stops.

        A client that closes the connection only seems to have stopped sending. It would not learn
        of a resume that is stored long afterwards, and would send the file again.
        """
        is_abandoned = threading.Event()

        def is_cancelled() -> bool:
            return request.is_gone or request.has_ended_sending or is_abandoned.is_set()

        run = partial(self._analyzer.run, file, suffix, is_cancelled=is_cancelled)
        async with turn(self._turns, self._timeout_s, partial(HttpError, 503, BUSY)):
            try:
                return (await in_thread(self._threads, run)).body
            except asyncio.CancelledError:
                raise HttpError(503, STOPPED) from None
            except AnalysisFailed as error:
                if error.reason is Failure.CANCELLED and request.has_ended_sending:
                    raise HttpError(503, LEFT) from None
                if error.reason is Failure.CANCELLED:
                    raise ClientGone from None
                if error.reason is Failure.CANNOT_START:
                    logger.error("Upload of request %s: %s", request.id, error.message)
                    raise HttpError(503, NOT_AVAILABLE) from None
                # Omit the analyzer's own message, which may contain personal data.
                logger.warning("Upload of request %s not analyzed: %s", request.id, error.reason)
                status = 504 if error.reason is Failure.TIMEOUT else 422
                raise HttpError(status, error.message) from None
            finally:
                is_abandoned.set()


def find_boundary(headers: Headers) -> str:
    """Return the boundary of a multipart body. Raises HttpError for other bodies, and TooLarge."""
    fields = dict(headers)
    length = fields.get(b"content-length", b"")
    if length.isdigit() and float(length) > MAX_BYTES + FORM_BYTES:
        raise TooLarge(limit_bytes=MAX_BYTES)
    content_type = fields.get(b"content-type", b"").decode("latin-1")
    kind, options = parse_options_header(content_type)
    boundary: str = options.get("boundary", "")
    if kind != "multipart/form-data" or not boundary:
        raise HttpError(400, NO_FILE)
    return boundary


async def receive(request: Request, boundary: str, file: IO[bytes]) -> tuple[str, bytes]:
    """Write the content of the form's field `file` to the file as it arrives. Return the file
    name's extension in lower case and the SHA-256 of the content.

    Raises TooLarge, OSError, and HttpError for an invalid form or type, or not exactly one file.
    """
    suffix = ""
    is_file = False
    received_bytes = size_bytes = 0
    digest = hashlib.sha256()
    try:
        parser = PushMultipartParser(boundary, max_segment_count=MAX_PARTS)
        while part := await request.read_part():
            received_bytes += len(part)
            for event in parser.parse(part):
                if isinstance(event, MultipartSegment):
                    is_file = event.name == "file" and bool(event.filename)
                    if is_file and suffix:
                        raise HttpError(400, MORE_FILES)
                    if is_file:
                        suffix = PurePath(event.filename).suffix.lower()
                        if suffix not in SUFFIXES:
                            raise HttpError(400, INVALID_TYPE)
                elif event and is_file:
                    size_bytes += len(event)
                    digest.update(event)
                    file.write(event)
            if size_bytes > MAX_BYTES or received_bytes > MAX_BYTES + FORM_BYTES:
                raise TooLarge(limit_bytes=MAX_BYTES)
        parser.close()
    except MultipartError as error:  # a second argument would repeat the input
        raise HttpError(400, f"Invalid multipart body: {error.args[0]}") from None
    if not suffix:
        raise HttpError(400, NO_FILE)
    file.seek(0)
    if not is_of_type(suffix, file.read(BEGINNING_BYTES)):
        raise HttpError(400, INVALID_TYPE)
    return suffix, digest.digest()
