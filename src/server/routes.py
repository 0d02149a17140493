"""The routes /api/v1/resumes and /api/v1/resumes/{id}, which create, list, find, get, update and
delete resumes (docs/api.md)."""

import asyncio
import contextlib
import functools
import hashlib
import logging
import re
import time
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from resumes import analyzer
from resumes.analyzer import Format, public_json
from resumes.errors import (
    InvalidArgument,
    InvalidKey,
    Issue,
    NotFound,
    OutcomeUnknown,
    ResumeChanged,
    StoreError,
    StoreUnavailable,
    TooLarge,
)
from resumes.search.query import MAX_QUERY_CHARS, MAX_REPEATS, MAX_TERMS
from resumes.search.query import parse_query as parse_search
from resumes.store import Store, creation, stored_resumes
from resumes.store.api_keys import KeyHolder
from resumes.store.creation import Created, IdempotencyKey, NewResume
from resumes.store.idempotency import prune_async
from resumes.store.labels import check_label
from resumes.store.search import SearchResult, find_page
from resumes.store.store import WRITE_DEADLINE_S
from resumes.store.stored_resumes import DEFAULT_LIMIT, DEFAULT_SORT, MAX_LIMIT, Sort, StoredResume
from server.request import (
    RETRY_AFTER,
    ClientGone,
    Headers,
    HttpError,
    Request,
    find_tags,
    parse_fields,
)

logger = logging.getLogger("resumes.server")

JSON_TYPE: Final = re.compile(
    rb"application/(?:[a-z0-9!#$&^_.+-]+\+)?json[ \t]*(?:;.*)?", re.IGNORECASE | re.DOTALL
)
LIMIT: Final = re.compile("-?[0-9]+")
KEY: Final = re.compile(rb"[\x21-\x7e]{1,255}")
"""The format of an Idempotency-Key."""

REPLAYED: Final = ((b"idempotent-replayed", b"true"),)
"""The header that marks a replayed answer."""

IN_FLIGHT: Final = (
    "An earlier request with this Idempotency-Key is still being processed; "
    "send this one again later"
)
KEYED_OUTCOME_UNKNOWN: Final = (
    "Outcome unknown: it may have succeeded. Send it again with the same Idempotency-Key"
)
KEY_DEADLINE_S: Final = WRITE_DEADLINE_S
"""How long a create request with an Idempotency-Key may take in total."""

PRUNE_EVERY_S: Final = 600
"""How often expired Idempotency-Keys are removed; expired ones are not found even before that."""

SEARCHES_BUSY: Final = "Too many searches are running; try again later"
CHANGED: Final = (
    "The resume has changed: its ETag is none of those in If-Match, so nothing was changed. "
    "Get the resume again, and send its new ETag"
)
DELETED: Final = b'{"success":true}'
LOW_DISK: Final = "The server is low on disk space, so nothing was stored; try again later"

THREAD_BYTES: Final = 256 * 1024
"""Larger bodies are parsed in a thread, since this takes milliseconds and would block the loop."""

ASIDE: Final = ThreadPoolExecutor(max_workers=2, thread_name_prefix="aside")
"""Threads for work on large bodies; only two, since they compete with the loop for the GIL."""

SEARCH_THREADS: Final = 2
"""The number of searches that run at once. Each thread has its own connection to the store."""

SEARCH_TIMEOUT_S: Final = 10.0
"""How long a search may take, including waits for a thread and for an unreachable server."""

SEARCH_RETRY_S: Final = 0.2
"""The delay before a search is repeated while the store's server is unreachable."""

Result = TypeVar("Result")


class Routes:
    """The operations on an account's resumes.

    All of them raise NotFound for IDs that are unknown or belong to other accounts. Methods whose
    names end in `_async` are for a store across a network.
    """

    def __init__(self, store: Store, accepted: Format, is_disk_low: Callable[[], bool]) -> None:
        self._store = store
        self._format = accepted
        self._is_disk_low = is_disk_low
        self._searching = ThreadPoolExecutor(SEARCH_THREADS, thread_name_prefix="search")
        # A key's lock exists only while a request holds it or waits for it.
        self._locks: weakref.WeakValueDictionary[tuple[str, str], asyncio.Lock] = (
            weakref.WeakValueDictionary()
        )

    def list(self, request: Request, holder: KeyHolder) -> Coroutine[Any, Any, None] | None:
        """Answer with the requested page. For a search, return a coroutine that answers.

        Raises InvalidArgument for an invalid query.
        """
        query = parse_query(request.query)
        if query.q is not None:
            return self._search(request, holder, query)
        page = stored_resumes.list_page(self._store, holder.account_id, **query.page())
        request.respond(200, orjson.dumps(page.as_json(limit=query.limit)))
        return None

    async def list_async(self, request: Request, holder: KeyHolder) -> None:
        """Answer with the requested page."""
        query = parse_query(request.query)
        if query.q is not None:
            await self._search(request, holder, query)
            return
        page = await stored_resumes.list_page_async(self._store, holder.account_id, **query.page())
        request.respond(200, orjson.dumps(page.as_json(limit=query.limit)))

    async def _search(self, request: Request, holder: KeyHolder, query: "ListQuery") -> None:
        """Answer with a page of search results. The search runs in a thread.

        A search may compare a phrase with hundreds of documents, which would block the event loop.
        """

        def find() -> SearchResult:
            if request.is_gone:
                raise ClientGone
            return find_page(self._store, holder.account_id, query.q or "", **query.page())

        unavailable: StoreUnavailable | None = None
        try:
            async with asyncio.timeout(SEARCH_TIMEOUT_S):
                while True:
                    try:
                        found = await in_thread(self._searching, find)
                        break
                    except StoreUnavailable as error:
                        if self._store.path is not None:
                            raise
                        unavailable = error
                    await asyncio.sleep(SEARCH_RETRY_S)
        except TimeoutError:
            raise unavailable or HttpError(503, SEARCHES_BUSY) from None
        page = found.page.as_json(limit=query.limit)
        more = {"unsearched": found.unindexed} if found.unindexed else {}
        request.respond(200, orjson.dumps(page | more))

    def get(self, request: Request, holder: KeyHolder) -> None:
        """Answer with the resume. Raises NotFound."""
        self._show(request, stored_resumes.get_resume(self._store, holder.account_id, _id(request)))

    async def get_async(self, request: Request, holder: KeyHolder) -> None:
        """Answer with the resume. Raises NotFound."""
        self._show(
            request,
            await stored_resumes.get_resume_async(self._store, holder.account_id, _id(request)),
        )

    def _show(self, request: Request, stored: StoredResume) -> None:
        body = public_json(stored.document, self._format)
        tag = entity_tag(body, stored.entry.updated_at)
        known = find_tags(request.headers, b"if-none-match", with_weak=True)
        if known and not known.isdisjoint((tag, b"*")):
            request.respond(304, b"", [(b"etag", tag), (b"cache-control", b"no-store")])
        else:
            request.respond(200, body, [(b"etag", tag)])

    async def delete(self, request: Request, holder: KeyHolder) -> None:
        """Delete the resume permanently. This is allowed on any plan.

        Raises NotFound, and ResumeChanged if there is an If-Match without the resume's entity tag.
        """
        check = self._find_check(request)
        await stored_resumes.delete_resume_async(
            self._store, holder.account_id, _id(request), check=check
        )
        request.respond(200, DELETED)

    def create(self, request: Request, holder: KeyHolder) -> Coroutine[Any, Any, None]:
        """Return a coroutine that stores the resume and answers with its ID. Any plan allows this.

        A repeated Idempotency-Key does not store a second resume: the client gets the first answer
        again. Errors in the request's head are raised before the body arrives.
        """
        self._check_head(request)
        return self._create(request, holder, find_label(request))

    async def _create(self, request: Request, holder: KeyHolder, label: str | None) -> None:
        body = await request.read_body(self._format.max_bytes)
        key = find_key(request.headers)
        parsed = await self.parse(body, holder)
        new = NewResume(parsed, label=label)
        if key is not None:
            digest = await _work_on(body, lambda body: hashlib.sha256(body).digest())
            new = new._replace(idempotency=IdempotencyKey(key, digest))
        await self.store(request, holder, new)

    def update(self, request: Request, holder: KeyHolder) -> Coroutine[Any, Any, None]:
        """Return a coroutine that stores the resume's new content. Any plan allows this.

        Raises the same errors as `create`. The coroutine also raises NotFound, and ResumeChanged if
        there is an If-Match without the resume's entity tag.
        """
        self._check_head(request)
        return self._update(request, holder)

    async def _update(self, request: Request, holder: KeyHolder) -> None:
        body = await request.read_body(self._format.max_bytes)
        parsed = await self.parse(body, holder)
        resume_id = _id(request)
        updated_at, replaced = await stored_resumes.update_resume_async(
            self._store, holder.account_id, resume_id, parsed, check=self._find_check(request)
        )
        show = functools.partial(public_json, accepted=self._format)
        tag = entity_tag(await _work_on(parsed.document, show), updated_at)
        stored = Created(resume_id, replaced=tuple(replaced))
        answer_stored(request, 200, stored, parsed.warnings, [(b"etag", tag)])

    def check_disk(self) -> None:
        """Raise HttpError if the disk is too full to store anything."""
        if self._is_disk_low():
            raise HttpError(503, LOW_DISK, [(b"retry-after", b"10")])

    def _check_head(self, request: Request) -> None:
        self.check_disk()
        check_body_headers(request.headers, max_bytes=self._format.max_bytes)

    def parse(self, body: bytes, holder: KeyHolder) -> Coroutine[Any, Any, analyzer.Resume]:
        """Return a coroutine that parses the body, with the errors of `analyzer.parse`."""
        accepted = self._format.for_account(holder.first_month)
        return _work_on(body, analyzer.parse, accepted)

    async def store(
        self, request: Request, holder: KeyHolder, new: NewResume, *, status: int = 201
    ) -> None:
        """Store the resume and answer with its ID. With an Idempotency-Key, store it only once.

        Raises the errors of the create path.
        """
        if new.idempotency is None:
            created = await self._store_new(holder, new, WRITE_DEADLINE_S)
        else:
            # Across processes, the store's transaction limits each key to one resume. But until the
            # first request is committed, a repeated request would be answered with 503.
            key = holder.account_id, new.idempotency.key
            ends_at = time.monotonic() + KEY_DEADLINE_S
            lock = self._locks.setdefault(key, asyncio.Lock())
            async with turn(
                lock, KEY_DEADLINE_S, functools.partial(HttpError, 409, IN_FLIGHT, [RETRY_AFTER])
            ):
                try:
                    created = await self._store_new(holder, new, ends_at - time.monotonic())
                except OutcomeUnknown:
                    raise OutcomeUnknown(KEYED_OUTCOME_UNKNOWN) from None
        answer_stored(request, status, created, new.resume.warnings)

    def _find_check(self, request: Request) -> stored_resumes.Check | None:
        """Return a check for If-Match with the resume's entity tag, or None if any tag will do."""
        expected = find_tags(request.headers, b"if-match", with_weak=False)
        if expected is None or b"*" in expected:
            return None

        def check(stored: StoredResume) -> None:
            shown = public_json(stored.document, self._format)
            if entity_tag(shown, stored.entry.updated_at) not in expected:
                raise ResumeChanged(CHANGED)

        return check

    async def _store_new(self, holder: KeyHolder, new: NewResume, deadline_s: float) -> Created:
        try:
            outcome = await creation.create_async(
                self._store, holder.account_id, new, deadline_s=deadline_s
            )
        except NotFound:
            raise InvalidKey from None  # the account was deleted after the key was checked
        if isinstance(outcome, Exception):
            raise outcome
        assert isinstance(outcome, Created)  # without a digest there are no duplicates
        return outcome


@contextlib.asynccontextmanager
async def turn(
    lock: asyncio.Lock | asyncio.Semaphore, timeout_s: float, refusal: Callable[[], HttpError]
) -> AsyncIterator[None]:
    """Hold the lock during the block. Raises the error of `refusal` if it is not free in time."""
    try:
        async with asyncio.timeout(timeout_s):
            await lock.acquire()
    except TimeoutError:
        # Made here: an error that a frame refers to would keep all frames, and the request's body.
        raise refusal() from None
    try:
        yield
    finally:
        lock.release()


def _id(request: Request) -> str:
    return request.path.rpartition("/")[2]


def answer_stored(
    request: Request, status: int, stored: Created, warnings: Sequence[Issue], headers: Headers = ()
) -> None:
    """Answer that the resume is stored, and log the older resumes that it has replaced."""
    answer: dict[str, Any] = {"id": stored.id}
    if stored.replaced:
        answer["replaced"] = stored.replaced
    if stored.replaced and not stored.replayed:
        old_ids = ", ".join(stored.replaced)
        logger.info("Request %s: the resume %s replaced %s", request.id, stored.id, old_ids)
    if warnings:
        answer["warnings"] = warnings
    request.respond(status, orjson.dumps(answer), REPLAYED if stored.replayed else headers)


def entity_tag(shown: bytes, updated_at: str) -> bytes:
    """Return the entity tag of a resume with this public JSON. Every update changes the tag."""
    digest = hashlib.blake2b(shown, key=updated_at.encode(), digest_size=16)
    return b'"%b"' % digest.hexdigest().encode()


def find_label(request: Request) -> str | None:
    """Return the label for a new resume if the query has a label. Raises InvalidArgument."""
    if not request.query:
        return None
    # Other parameters are ignored, as in 1.0, which ignored all parameters.
    return _label(parse_fields(request.query, ("label",), ignores_others=True))


def check_body_headers(headers: Iterable[tuple[bytes, bytes]], *, max_bytes: int) -> None:
    """Check the headers that describe the body.

    Raises TooLarge for the declared length, then HttpError 415 for all but uncompressed JSON.
    """
    content_types: list[bytes] = []
    encoding = length = b""
    for name, value in headers:
        if name == b"content-type":
            content_types.append(value)
        elif name == b"content-length":
            length = value
        elif name == b"content-encoding":
            encoding += value
    # `int` rejects thousands of digits.
    if length.isdigit() and float(length) > max_bytes:
        raise TooLarge(limit_bytes=max_bytes)
    if len(content_types) != 1 or not JSON_TYPE.fullmatch(content_types[0]):
        raise HttpError(415, "Unsupported content type: send application/json")
    if encoding and encoding.lower() != b"identity":
        raise HttpError(415, "Unsupported content encoding: send the JSON as it is")


async def _work_on(body: bytes, work: Callable[..., Result], *arguments: Any) -> Result:
    """Run the work on the body. For a large body, run it in one of two threads."""
    if len(body) <= THREAD_BYTES:
        return work(body, *arguments)
    # No variable: with the traceback, it would form a cycle that keeps the error alive.
    return await in_thread(ASIDE, functools.partial(work, body, *arguments))


def in_thread(threads: ThreadPoolExecutor, work: Callable[[], Result]) -> asyncio.Future[Result]:
    """Run the work in one of the threads. Raises MemoryError if no thread can be started."""
    try:
        return asyncio.get_running_loop().run_in_executor(threads, work)
    except RuntimeError as error:  # no thread could be started
        raise MemoryError from error


def find_key(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the request's Idempotency-Key, or None if it has no such header.

    Raises InvalidArgument unless it is 1 to 255 visible ASCII characters and given only once.
    """
    values = [value for name, value in headers if name == b"idempotency-key"]
    if not values:
        return None
    if len(values) > 1:
        raise InvalidArgument("Invalid Idempotency-Key: send the header once")
    if not KEY.fullmatch(values[0]):
        raise InvalidArgument("Invalid Idempotency-Key: must be 1 to 255 visible ASCII characters")
    return values[0].decode()


async def prune_forever(store: Store, *, every_s: float = PRUNE_EVERY_S) -> None:
    """Remove expired Idempotency-Keys from the store every `every_s` seconds."""
    while True:
        try:
            await prune_async(store)
        except StoreError as error:
            logger.warning("Old Idempotency-Keys were not removed: %s", error.message)
        await asyncio.sleep(every_s)


ORDERS: Final = (Sort.OLDEST, Sort.NEWEST)


class ListQuery(NamedTuple):
    """The parameters of a list request, with the same names as in the query."""

    cursor: str = ""
    """The cursor of the page; empty for the first page."""

    limit: int = DEFAULT_LIMIT
    """The page size, from 1 to MAX_LIMIT."""

    q: str | None = None
    """The search query, or None to list all resumes."""

    sort: Sort = DEFAULT_SORT
    """The order: OLDEST or NEWEST."""

    label: str | None = None
    """The label of the listed resumes, or None for all resumes."""

    latest: bool = False
    """Whether only each person's newest resume is listed."""

    def page(self) -> dict[str, Any]:
        """Return the arguments for the store's functions that find a page."""
        return {
            "cursor": self.cursor,
            "limit": self.limit,
            "is_newest_first": self.sort is Sort.NEWEST,
            "label": self.label,
            "is_latest": self.latest,
        }


def parse_query(query: bytes) -> ListQuery:
    """Parse the query string of a list request.

    Raises InvalidArgument for a limit that is not an integer, an unknown order, a blank or overlong
    search, an invalid label or `latest`, and for a repeated or unknown parameter. The store checks
    the format of the cursor.
    """
    if not query:
        return ListQuery()
    fields = parse_fields(query, ListQuery._fields)
    limit = fields.get("limit", str(DEFAULT_LIMIT))
    if not LIMIT.fullmatch(limit):
        raise InvalidArgument(f"Invalid limit: must be an integer from 1 to {MAX_LIMIT}")
    sort = fields.get("sort", DEFAULT_SORT)
    if sort not in ORDERS:
        raise InvalidArgument(f"Invalid sort: must be {' or '.join(ORDERS)}")
    q = fields.get("q")
    search = None if q is None else parse_search(q)
    if search is not None and (search.is_cut or not search.terms):
        raise InvalidArgument(
            f"Invalid q: must have 1 to {MAX_TERMS} words or phrases in {MAX_QUERY_CHARS} characters, "
            f"with the same two words in a row at most {MAX_REPEATS} times"
        )
    # `int` rejects thousands of digits.
    pages = int(max(1, min(float(limit), MAX_LIMIT)))
    latest = fields.get("latest", "false")
    if latest not in ("true", "false"):
        raise InvalidArgument("Invalid latest: must be true or false")
    cursor = fields.get("cursor", "")
    return ListQuery(cursor, pages, q, Sort(sort), _label(fields), latest == "true")


def _label(fields: Mapping[str, str]) -> str | None:
    return check_label(fields["label"]) if "label" in fields else None
