"""The routes /api/v1/resumes and /api/v1/resumes/{id}: create, list, find, get, update, delete
(docs/api.md)."""

import asyncio
import functools
import hashlib
import logging
import re
import time
import weakref
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
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
from resumes.store.stored_resumes import (
    DEFAULT_LIMIT,
    DEFAULT_SORT,
    MAX_LIMIT,
    Sort,
    StoredResume,
)
from server.request import RETRY_AFTER, ClientGone, HttpError, Request, find_tags, parse_fields

logger = logging.getLogger("resumes.server")

JSON_TYPE: Final = re.compile(
    rb"application/(?:[a-z0-9!#$&^_.+-]+\+)?json[ \t]*(?:;.*)?", re.IGNORECASE | re.DOTALL
)
LIMIT: Final = re.compile("-?[0-9]+")
KEY: Final = re.compile(rb"[\x21-\x7e]{1,255}")
"""The form of an Idempotency-Key."""

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
"""Larger bodies are parsed in a thread, because parsing takes milliseconds that block the loop."""

ASIDE: Final = ThreadPoolExecutor(max_workers=2, thread_name_prefix="aside")
"""Threads for work on large bodies; few, because they compete with the event loop for the GIL."""

SEARCH_THREADS: Final = 2
"""How many searches run at once; each thread has its own connection to the store."""

SEARCH_TIMEOUT_S: Final = 10.0
"""How long a search may take, including the wait for a thread and for a server that is away."""

SEARCH_RETRY_S: Final = 0.2
"""The delay before a search is repeated while the store's server is away."""

Result = TypeVar("Result")


class Routes:
    """The operations on an account's resumes.

    IDs that are unknown or belong to other accounts raise NotFound. Methods ending in `_async` are for
    a store across a network.
    """

    def __init__(self, store: Store, accepted: Format, is_disk_low: Callable[[], bool]) -> None:
        self._store = store
        self._format = accepted
        self._is_disk_low = is_disk_low
        self._searching = ThreadPoolExecutor(SEARCH_THREADS, thread_name_prefix="search")
        # A key's lock exists while a request holds it or waits for it.
        self._locks: weakref.WeakValueDictionary[tuple[str, str], asyncio.Lock] = (
            weakref.WeakValueDictionary()
        )

    def list(self, request: Request, holder: KeyHolder) -> Coroutine[Any, Any, None] | None:
        """Answer with the requested page; for a search, return a coroutine that does.

        Raises InvalidArgument for an invalid query.
        """
        query = parse_query(request.query)
        if query.q is not None:
            return self._search(request, holder, query)
        page = stored_resumes.list_page(self._store, holder.account_id, **query.page())
        request.respond(200, orjson.dumps(page.as_json(limit=query.limit)))
        return None

    async def list_async(self, request: Request, holder: KeyHolder) -> None:
        """Answer as `list` does."""
        query = parse_query(request.query)
        if query.q is not None:
            await self._search(request, holder, query)
            return
        page = await stored_resumes.list_page_async(self._store, holder.account_id, **query.page())
        request.respond(200, orjson.dumps(page.as_json(limit=query.limit)))

    async def _search(self, request: Request, holder: KeyHolder, query: "ListQuery") -> None:
        """Answer with the page of a search, which runs in a thread.

        A search may compare hundreds of documents with a phrase, which would block the event loop.
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
            raise unavailable or HttpError(503, SEARCHES_BUSY, [RETRY_AFTER]) from None
        page = found.page.as_json(limit=query.limit)
        more = {"unsearched": found.unindexed} if found.unindexed else {}
        request.respond(200, orjson.dumps(page | more))

    def close(self) -> None:
        """End the threads once they are idle."""
        self._searching.shutdown(wait=False, cancel_futures=True)

    def get(self, request: Request, holder: KeyHolder) -> None:
        """Answer with the resume. Raises NotFound."""
        self._show(request, stored_resumes.get_resume(self._store, holder.account_id, _id(request)))

    async def get_async(self, request: Request, holder: KeyHolder) -> None:
        """Answer as `get` does."""
        self._show(
            request,
            await stored_resumes.get_resume_async(self._store, holder.account_id, _id(request)),
        )

    def _show(self, request: Request, stored: StoredResume) -> None:
        body = public_json(stored.document, self._format)
        tag = entity_tag(body, stored.entry.updated_at)
        known = find_tags(request.headers, b"if-none-match", with_weak=True)
        if known and not known.isdisjoint((tag, b"*")):
            request.respond(304, b"", [(b"etag", tag)])
        else:
            request.respond(200, body, [(b"etag", tag)])

    async def delete(self, request: Request, holder: KeyHolder) -> None:
        """Delete the resume permanently. Allowed on any plan.

        Raises NotFound, and ResumeChanged for an If-Match without the resume's entity tag.
        """
        check = self._find_check(request)
        await stored_resumes.delete_resume_async(
            self._store, holder.account_id, _id(request), check=check
        )
        request.respond(200, DELETED)

    def create(self, request: Request, holder: KeyHolder) -> Coroutine[Any, Any, None]:
        """Return a coroutine that stores the resume and answers with its ID. Allowed on any plan.

        A repeated Idempotency-Key stores no second resume: the client gets the first answer again.
        Raises errors about the request's head immediately, others from the coroutine.
        """
        self._check_head(request)
        return self._create(request, holder, find_label(request))

    def update(self, request: Request, holder: KeyHolder) -> Coroutine[Any, Any, None]:
        """Return a coroutine that stores the resume's new content. Allowed on any plan.

        Raises errors as `create`; the coroutine also raises NotFound, and ResumeChanged for an If-Match
        without the resume's entity tag.
        """
        self._check_head(request)
        return self._update(request, holder)

    def check_disk(self) -> None:
        """Raise HttpError if the disk is too full to store anything."""
        if self._is_disk_low():
            raise HttpError(503, LOW_DISK, [(b"retry-after", b"10")])

    def _check_head(self, request: Request) -> None:
        self.check_disk()
        check_body_headers(request.headers, max_bytes=self._format.max_bytes)

    def parse(self, body: bytes, holder: KeyHolder) -> Coroutine[Any, Any, analyzer.Resume]:
        """Return a coroutine that returns the resume in the body. It raises as `analyzer.parse`."""
        accepted = self._format.for_account(holder.first_month)
        return _work_on(body, analyzer.parse, accepted)

    async def _create(self, request: Request, holder: KeyHolder, label: str | None) -> None:
        body = await request.read_body(self._format.max_bytes)
        key = find_key(request.headers)
        parsed = await self.parse(body, holder)
        new = NewResume(parsed, label=label)
        if key is not None:
            digest = await _work_on(body, lambda body: hashlib.sha256(body).digest())
            new = new._replace(idempotency=IdempotencyKey(key, digest))
        await self.store(request, holder, new)

    async def store(
        self, request: Request, holder: KeyHolder, new: NewResume, *, status: int = 201
    ) -> None:
        """Store the resume, only once if it has an Idempotency-Key, and answer with its ID.

        Raises what the create path raises.
        """
        if new.idempotency is None:
            created = await self._store_new(holder, new, WRITE_DEADLINE_S)
        else:
            created = await self._store_once(holder, new, new.idempotency.key)
        self.answer_stored(request, created, new.resume.warnings, status=status)

    def answer_stored(
        self,
        request: Request,
        created: Created,
        warnings: Sequence[Issue] = (),
        *,
        status: int = 201,
    ) -> None:
        """Answer a create request."""
        _log_replaced(request, created.id, () if created.replayed else created.replaced)
        answer = _stored_answer(created.id, warnings, created.replaced)
        request.respond(status, answer, REPLAYED if created.replayed else ())

    async def _update(self, request: Request, holder: KeyHolder) -> None:
        body = await request.read_body(self._format.max_bytes)
        parsed = await self.parse(body, holder)
        resume_id = _id(request)
        updated_at, replaced = await stored_resumes.update_resume_async(
            self._store, holder.account_id, resume_id, parsed, check=self._find_check(request)
        )
        show = functools.partial(public_json, accepted=self._format)
        tag = entity_tag(await _work_on(parsed.document, show), updated_at)
        _log_replaced(request, resume_id, replaced)
        request.respond(200, _stored_answer(resume_id, parsed.warnings, replaced), [(b"etag", tag)])

    def _find_check(self, request: Request) -> stored_resumes.Check | None:
        """Return the check that If-Match has the resume's entity tag; None if it is not limited to some."""
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

    async def _store_once(self, holder: KeyHolder, new: NewResume, key: str) -> Created:
        """Store the resume once no other create request with its Idempotency-Key is running here.

        Across processes, the store's transaction limits a key to one resume; but a repeat would get a
        503 from it while the first request is still being committed.
        """
        lock = self._locks.setdefault((holder.account_id, key), asyncio.Lock())
        ends_at = time.monotonic() + KEY_DEADLINE_S
        try:
            async with asyncio.timeout(KEY_DEADLINE_S):
                await lock.acquire()
        except TimeoutError:
            raise HttpError(409, IN_FLIGHT, [RETRY_AFTER]) from None
        try:
            left_s = ends_at - time.monotonic()
            return await self._store_new(holder, new, left_s)
        except OutcomeUnknown:
            raise OutcomeUnknown(KEYED_OUTCOME_UNKNOWN) from None
        finally:
            lock.release()


def _id(request: Request) -> str:
    return request.path.rpartition("/")[2]


def _log_replaced(request: Request, resume_id: str, replaced: Sequence[str]) -> None:
    if replaced:
        old_ids = ", ".join(replaced)
        logger.info("Request %s: the resume %s replaced %s", request.id, resume_id, old_ids)


def _stored_answer(resume_id: str, warnings: Sequence[Issue], replaced: Sequence[str]) -> bytes:
    if warnings or replaced:
        more = {"replaced": replaced, "warnings": warnings}
        shown = {name: value for name, value in more.items() if value}
        return orjson.dumps({"id": resume_id, **shown})
    return b'{"id":"%b"}' % resume_id.encode()


def entity_tag(shown: bytes, updated_at: str) -> bytes:
    """Return the entity tag of a resume that is shown as these bytes. Every update changes it."""
    digest = hashlib.blake2b(shown, key=updated_at.encode(), digest_size=16)
    return b'"%b"' % digest.hexdigest().encode()


def find_label(request: Request) -> str | None:
    """Return the label for a new resume, if the query has one. Raises InvalidArgument."""
    if not request.query:
        return None
    # As in 1.0, which knew none, other parameters have no effect.
    return _label(parse_fields(request.query, ("label",), ignores_others=True))


def check_body_headers(headers: Iterable[tuple[bytes, bytes]], *, max_bytes: int) -> None:
    """Check the headers of the body.

    Raises TooLarge for the declared length, then HttpError 415 for anything but uncompressed JSON.
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
    # `int` refuses thousands of digits.
    if length.isdigit() and float(length) > max_bytes:
        raise TooLarge(limit_bytes=max_bytes)
    if len(content_types) != 1 or not JSON_TYPE.fullmatch(content_types[0]):
        raise HttpError(415, "Unsupported content type: send application/json")
    if encoding and encoding.lower() != b"identity":
        raise HttpError(415, "Unsupported content encoding: send the JSON as it is")


async def _work_on(body: bytes, work: Callable[..., Result], *arguments: Any) -> Result:
    """Run the work on the body; for a large one in a thread, at most two at a time."""
    if len(body) <= THREAD_BYTES:
        return work(body, *arguments)
    # No variable: with the traceback it would form a cycle that keeps the error and its data.
    return await in_thread(ASIDE, functools.partial(work, body, *arguments))


def in_thread(threads: ThreadPoolExecutor, work: Callable[[], Result]) -> asyncio.Future[Result]:
    """Run the work in one of the threads. Raises MemoryError if none can be started."""
    try:
        return asyncio.get_running_loop().run_in_executor(threads, work)
    except RuntimeError as error:  # no thread could be started
        raise MemoryError from error


def find_key(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the Idempotency-Key of the request; None if it has none.

    Raises InvalidArgument if it is not 1 to 255 visible ASCII characters, or given more than once.
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
    """The parameters of a list request, by their names in the query."""

    cursor: str = ""
    """The cursor of the page; empty for the first."""

    limit: int = DEFAULT_LIMIT
    """The page size, from 1 to MAX_LIMIT."""

    q: str | None = None
    """What to search for; None for a list of all resumes."""

    sort: Sort = DEFAULT_SORT
    """The order: OLDEST or NEWEST."""

    label: str | None = None
    """The label that the resumes have; None for all resumes."""

    latest: bool = False
    """Whether only each person's newest resume is listed."""

    def page(self) -> dict[str, Any]:
        """Return the arguments of the store's functions that find a page."""
        return {
            "cursor": self.cursor,
            "limit": self.limit,
            "is_newest_first": self.sort is Sort.NEWEST,
            "label": self.label,
            "is_latest": self.latest,
        }


def parse_query(query: bytes) -> ListQuery:
    """Parse the query string of a list request.

    Raises InvalidArgument for a limit that is not an integer, an unknown order, a blank or too long
    search, an invalid label or `latest`, and for a repeated or unknown parameter. The store checks the
    cursor's form.
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
    # `int` refuses thousands of digits.
    pages = int(max(1, min(float(limit), MAX_LIMIT)))
    latest = fields.get("latest", "false")
    if latest not in ("true", "false"):
        raise InvalidArgument("Invalid latest: must be true or false")
    cursor = fields.get("cursor", "")
    return ListQuery(cursor, pages, q, Sort(sort), _label(fields), latest == "true")


def _label(fields: Mapping[str, str]) -> str | None:
    return check_label(fields["label"]) if "label" in fields else None
