"""GET /api/v1/resumes/{id}/pdf and /docx: the resume as a PDF or Word file (docs/api.md, PDF)."""

import asyncio
import functools
import hashlib
import logging
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from resumes.analyzer import Format, attachment
from resumes.analyzer.schema import LAYOUTS
from resumes.errors import InvalidArgument
from resumes.rendering import (
    FileType,
    PageOptions,
    Paper,
    Rendered,
    Renderer,
    RenderingFailed,
    TemplateFailed,
    TooLong,
)
from resumes.rendering.branding import FOLDER, load_branding
from resumes.rendering.fonts import font_packages, version
from resumes.rendering.page import file_name
from resumes.store import Store, accounts, stored_resumes
from resumes.store.api_keys import KeyHolder
from resumes.store.stored_resumes import StoredResume
from server.request import ClientGone, Headers, HttpError, Request, find_tags, parse_fields
from server.routes import in_thread, turn

logger = logging.getLogger("resumes.server")

Brand = Mapping[str, Any] | None

WAIT_SHARE: Final = 0.75
"""The share of its time limit that a file may wait for its turn; the rest is usually sufficient."""

TIMED_OUT: Final = "{} generation timeout. Please try again later."
BUSY: Final = "Too many {}s are being generated. Please try again in a moment."
MEDIA_TYPES: Final = {
    FileType.PDF: b"application/pdf",
    FileType.WORD: b"application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}


class RenderingRoute:
    """Renders resumes one at a time in the renderer's process."""

    def __init__(self, store: Store, accepted: Format, renderer: Renderer, home: Path) -> None:
        self._store = store
        self._home = home
        self._format = accepted
        self._renderer = renderer
        self._turn = asyncio.Lock()
        # One thread renders; the other is for 304 answers, which do not wait for rendering.
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="pdf")

    async def __call__(self, request: Request, holder: KeyHolder) -> None:
        """Answer with the file. Raises InvalidArgument for an invalid query."""
        *_, resume_id, suffix = request.path.split("/")
        file_type = FileType(suffix)
        choice = parse_choice(request.query, file_type)
        ends_at = time.monotonic() + self._renderer.timeout_s  # includes the wait for its turn
        find = functools.partial(
            stored_resumes.get_resume_async, self._store, holder.account_id, resume_id
        )
        stored = await find()
        brand = await self._find_brand(holder) if choice.has_brand else None
        if known := find_tags(request.headers, b"if-none-match", with_weak=True):
            tag = await self._make_tag(stored, choice, brand, ends_at)
            if tag in known or b"*" in known:
                request.respond(304, b"", [(b"etag", tag), *_CACHED])
                return
        del stored  # frees memory during the wait; the resume is read again

        def draw() -> Rendered:
            if request.is_gone:
                raise ClientGone
            return self._renderer.render_resume(
                stored, choice, self._format, brand=brand, ends_at=ends_at
            )

        busy = functools.partial(HttpError, 503, BUSY.format(file_type.noun))
        async with turn(self._turn, WAIT_SHARE * self._renderer.timeout_s, busy):
            stored = await find()
            tag = await self._make_tag(stored, choice, brand, ends_at)
            try:
                rendered = await in_thread(self._threads, draw)
            except TooLong as error:
                raise HttpError(422, str(error)) from None
            except TemplateFailed:
                raise
            except RenderingFailed as error:
                logger.error("No %s for request %s: %s", file_type.noun, request.id, error)
                raise HttpError(504, TIMED_OUT.format(file_type.noun)) from None
        if rendered.missing is not None:
            # The text itself is not logged, since it is personal data.
            logger.warning(
                "No installed font has all the characters of resume %s: install %s (docs/pdf.md, Fonts)",
                stored.entry.id,
                font_packages(rendered.missing),
            )
        name = file_name(stored.entry.filename, stored.entry.id, choice)
        headers = [
            (b"content-type", MEDIA_TYPES[file_type]),
            (b"content-disposition", attachment(name).encode("ascii")),
        ]
        await request.respond_file(rendered.body, [*headers, (b"etag", tag), *_CACHED])

    async def _find_brand(self, holder: KeyHolder) -> Brand:
        """Return the account's house style, read in a thread."""

        def find() -> Brand:
            if not (self._home / FOLDER).is_dir():
                return None
            for account in accounts.find_open(self._store, [holder.account_id]):
                return load_branding(self._home, account.name).brand
            return None

        return await in_thread(self._threads, find)

    async def _make_tag(
        self, stored: StoredResume, choice: PageOptions, brand: Brand, ends_at: float
    ) -> bytes:
        """Return the entity tag, a digest of everything that determines the content of the file.

        The tag is computed in a thread, because this requires a scan of the font folders.
        """

        def digest() -> bytes:
            section_types = sorted(self._format.extra_section_types)
            whole = hashlib.sha256(repr((choice, section_types, brand)).encode())
            whole.update(version(self._renderer.font_folders))
            whole.update(stored.entry.id.encode())
            whole.update(stored.document.encode())
            return b'"%b"' % whole.hexdigest()[:32].encode()

        try:
            async with asyncio.timeout(ends_at - time.monotonic()):
                return await in_thread(self._threads, digest)
        except TimeoutError:
            noun = choice.file_type.noun
            logger.error("No %s: the folders of fonts were not read in time", noun)
            raise HttpError(504, TIMED_OUT.format(noun)) from None


_CACHED: Final[Headers] = [(b"cache-control", b"private, no-cache")]


def parse_choice(query: bytes, file_type: FileType) -> PageOptions:
    """Return the options in a query string. Raises InvalidArgument if any are unknown."""
    drawn = ("layout", "paper") if file_type is FileType.PDF else ()
    fields = parse_fields(query, (*drawn, "anonymous", "brand"))
    layout, paper = fields.get("layout"), fields.get("paper")
    anonymous = fields.get("anonymous", "false")
    if layout is not None and layout not in LAYOUTS:
        raise InvalidArgument(f"Unknown layout: {layout}. Layouts: {', '.join(LAYOUTS)}")
    if paper is not None and paper not in list(Paper):
        raise InvalidArgument(f"Unknown paper: {paper}. Use a4 or letter")
    brand = fields.get("brand", "true")
    for name, value in (("anonymous", anonymous), ("brand", brand)):
        if value not in ("true", "false"):
            raise InvalidArgument(f"Unknown value for {name}: {value}. Use true or false")
    chosen = Paper(paper) if paper else None
    return PageOptions(layout, chosen, anonymous == "true", file_type, has_brand=brand == "true")
