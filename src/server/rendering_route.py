"""GET /api/v1/resumes/{id}/pdf and /docx: the resume as a file for people (docs/api.md, PDF)."""

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

logger = logging.getLogger("resumes.server")

Brand = Mapping[str, Any] | None

WAIT_SHARE: Final = 0.75
"""The share of its time that a PDF may wait for its turn; the rest is enough to render most."""

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
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pdf")
        # A separate thread, so that 304 answers do not wait for rendering.
        self._tagging = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pdf-tag")

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
        del stored  # frees memory while waiting; it is read again
        try:
            async with asyncio.timeout(WAIT_SHARE * self._renderer.timeout_s):
                await self._turn.acquire()
        except TimeoutError:
            raise HttpError(503, BUSY.format(file_type.noun)) from None
        try:
            stored = await find()
            tag = await self._make_tag(stored, choice, brand, ends_at)
            rendered = await asyncio.get_running_loop().run_in_executor(
                self._executor, self._draw, request, stored, choice, brand, ends_at
            )
        except TooLong as error:
            raise HttpError(422, str(error)) from None
        except TemplateFailed:
            raise
        except RenderingFailed as error:
            logger.error("No %s for request %s: %s", file_type.noun, request.id, error)
            raise HttpError(504, TIMED_OUT.format(file_type.noun)) from None
        finally:
            self._turn.release()
        if rendered.missing is not None:
            # The text itself is not logged: it is personal.
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

    def _draw(
        self,
        request: Request,
        stored: StoredResume,
        choice: PageOptions,
        brand: Brand,
        ends_at: float,
    ) -> Rendered:
        if request.is_gone:
            raise ClientGone
        return self._renderer.render_resume(
            stored, choice, self._format, brand=brand, ends_at=ends_at
        )

    async def _find_brand(self, holder: KeyHolder) -> Brand:
        """Return the account's house style, read in a thread."""

        def find() -> Brand:
            if not (self._home / FOLDER).is_dir():
                return None
            for account in accounts.find_open(self._store, [holder.account_id]):
                return load_branding(self._home, account.name).brand
            return None

        return await asyncio.get_running_loop().run_in_executor(self._tagging, find)

    async def _make_tag(
        self, stored: StoredResume, choice: PageOptions, brand: Brand, ends_at: float
    ) -> bytes:
        """Return the entity tag, computed in a thread because it scans the font folders."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(ends_at - time.monotonic()):
                return await loop.run_in_executor(self._tagging, self._tag, stored, choice, brand)
        except TimeoutError:
            noun = choice.file_type.noun
            logger.error("No %s: the folders of fonts were not read in time", noun)
            raise HttpError(504, TIMED_OUT.format(noun)) from None

    def _tag(self, stored: StoredResume, choice: PageOptions, brand: Brand) -> bytes:
        """Return the entity tag, a digest of everything that the file depends on."""
        section_types = sorted(self._format.extra_section_types)
        whole = hashlib.sha256(repr((choice, section_types, brand)).encode())
        whole.update(version(self._renderer.font_folders))
        whole.update(stored.entry.id.encode())
        whole.update(stored.document.encode())
        return b'"%b"' % whole.hexdigest()[:32].encode()

    def close(self) -> None:
        """End the renderer."""
        for executor in (self._executor, self._tagging):
            executor.shutdown(wait=False, cancel_futures=True)
        self._renderer.close()


_CACHED: Final[Headers] = [(b"cache-control", b"private, no-cache")]


def parse_choice(query: bytes, file_type: FileType) -> PageOptions:
    """Return the options in a query string. Raises InvalidArgument for unknown ones."""
    names: tuple[str, ...] = ("anonymous", "brand")
    if file_type is FileType.PDF:
        names = ("layout", "paper", *names)
    fields = parse_fields(query, names)
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
    chosen_paper = None if paper is None else Paper(paper)
    return PageOptions(
        layout, chosen_paper, anonymous == "true", file_type, has_brand=brand == "true"
    )
