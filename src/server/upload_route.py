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
from pathlib import PurePath
from typing import IO, Final, NamedTuple

from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header

from resumes.errors import InvalidInput, InvalidKey, Issue, NotFound, TooLarge
from resumes.external_analyzer import BEGINNINGS, AnalysisFailed, ExternalAnalyzer, Failure
from resumes.settings import Settings
from resumes.store import Store, creation, stored_resumes
from resumes.store.api_keys import KeyHolder
from resumes.store.creation import Created, IdempotencyKey, NewResume
from server.request import ClientGone, Headers, HttpError, Request
from server.routes import LOW_DISK, Routes, find_key, find_label, in_thread

logger = logging.getLogger("resumes.server")

MAX_BYTES: Final = 10 * 1024 * 1024
"""The largest file."""

FORM_BYTES: Final = 64 * 1024
"""How much larger than its file a body may be."""

MAX_PARTS: Final = 16
"""The largest number of fields of the form."""

MAX_UPLOADS: Final = 16
"""How many uploads a process receives or analyzes at once; each has a temporary file."""

SUFFIXES: Final = (".pdf", ".doc", ".docx")
"""How the names of files may end."""

NO_FILE: Final = "No file uploaded"
INVALID_TYPE: Final = "Invalid file type. Only PDF, DOC, and DOCX are allowed"
MORE_FILES: Final = "More than one file uploaded: send one"
BUSY: Final = "Too many files are being analyzed; try again later"
SAME_KEY: Final = "Another upload with this API key is being analyzed; send this one again later"
NOT_AVAILABLE: Final = "The analyzer cannot be started, so nothing was stored; try again later"
STOPPED: Final = "The server is shutting down, so nothing was stored; try again later"


class _Upload(NamedTuple):
    """A received file: the end of its name, in lower case, and the SHA-256 of its content."""

    suffix: str
    sha256: bytes


class UploadRoute:
    """Receives files, and has them analyzed, `settings.analyzers` at once."""

    def __init__(self, settings: Settings, store: Store, routes: Routes) -> None:
        self._store = store
        self._routes = routes
        self._analyzer = ExternalAnalyzer(settings)
        self._timeout_s = settings.analyzer_timeout_s
        self._turns = asyncio.Semaphore(settings.analyzers)
        self._threads = ThreadPoolExecutor(settings.analyzers, thread_name_prefix="upload")
        self._keys: set[str] = set()
        """The keys with an upload that is not answered."""
        self._is_closed = False

    async def __call__(self, request: Request, holder: KeyHolder) -> None:
        """Store the resume that the analyzer makes of the file, and answer with its ID.

        A repeated Idempotency-Key with the same file is answered without the analyzer.
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
            # It has no name, so that nothing is left of it even if the process is killed.
            with tempfile.TemporaryFile() as file:
                upload = await receive(request, boundary, file)
                once = None if key is None else IdempotencyKey(key, upload.sha256)
                if await self._answer_early(request, holder, once):
                    return
                output = await self._analyze(request, file, upload.suffix)
        except OSError as error:
            logger.error("Upload of request %s not stored: %s", request.id, error.strerror)
            raise HttpError(503, LOW_DISK) from None
        finally:
            self._keys.discard(holder.key_id)
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
        """Answer if the outcome does not depend on the analyzer. Return whether it was answered.

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
            self._routes.answer_stored(request, outcome, warnings, status=200)
        return outcome is not None

    async def _find_warnings(self, resume_id: str, holder: KeyHolder) -> Sequence[Issue]:
        """Return the warnings about the analyzer's output; none if it is no longer stored."""
        with suppress(NotFound, InvalidInput):
            resume = await stored_resumes.get_resume_async(
                self._store, holder.account_id, resume_id
            )
            if resume.entry.updated_at == resume.entry.created_at:
                return (await self._routes.parse(resume.document.encode(), holder)).warnings
        return ()

    async def _analyze(self, request: Request, file: IO[bytes], suffix: str) -> bytes:
        """Return the analyzer's output. End the analyzer if the client leaves or the service stops."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._turns.acquire()
        except TimeoutError:
            raise HttpError(503, BUSY) from None
        is_abandoned = threading.Event()

        def analyze() -> bytes:
            output = self._analyzer.run(
                file,
                suffix,
                is_cancelled=lambda: request.is_gone or self._is_closed or is_abandoned.is_set(),
            )
            return output.body

        try:
            return await in_thread(self._threads, analyze)
        except asyncio.CancelledError:
            raise HttpError(503, STOPPED) from None
        except AnalysisFailed as error:
            if error.reason is Failure.CANCELLED:
                raise ClientGone from None
            if error.reason is Failure.CANNOT_START:
                logger.error("Upload of request %s: %s", request.id, error.message)
                raise HttpError(503, NOT_AVAILABLE) from None
            # Without the analyzer's own message, which may contain personal data.
            logger.warning("Upload of request %s not analyzed: %s", request.id, error.reason)
            status = 504 if error.reason is Failure.TIMEOUT else 422
            raise HttpError(status, error.message) from None
        finally:
            is_abandoned.set()
            self._turns.release()

    def close(self) -> None:
        """End running analyzers."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)


def find_boundary(headers: Headers) -> str:
    """Return the boundary of a multipart body. Raises HttpError if it is none, TooLarge."""
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


async def receive(request: Request, boundary: str, file: IO[bytes]) -> _Upload:
    """Write the content of the form's field `file` to the file, as it arrives.

    Raises TooLarge; HttpError for an invalid form or type, and for none or more than one file; OSError.
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
    except MultipartError as error:
        raise HttpError(400, f"Invalid multipart body: {error}") from None
    if not suffix:
        raise HttpError(400, NO_FILE)
    file.seek(0)
    if not file.read(16).startswith(BEGINNINGS[suffix]):
        raise HttpError(400, INVALID_TYPE)
    return _Upload(suffix, digest.digest())
