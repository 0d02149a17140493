"""The routes /api/v1/resumes and /api/v1/resumes/{id}: create, list, get, delete (docs/api.md)."""

import asyncio
import functools
import hashlib
import logging
import re
import time
import weakref
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from resumes import analyzer
from resumes.analyzer import Format, public_json
from resumes.errors import (
    InvalidArgument,
    InvalidKey,
    NotFound,
    OutcomeUnknown,
    StoreError,
    TooLarge,
)
from resumes.store import Store, creation, stored_resumes
from resumes.store.api_keys import KeyHolder
from resumes.store.creation import Created, IdempotencyKey, NewResume
from resumes.store.idempotency import prune_async
from resumes.store.store import WRITE_DEADLINE_S
from resumes.store.stored_resumes import DEFAULT_LIMIT, MAX_LIMIT
from server.request import RETRY_AFTER, HttpError, Request, parse_fields

logger = logging.getLogger("resumes.server")

JSON_TYPE: Final = re.compile(
    rb"application/(?:[a-z0-9!#$&^_.+-]+\+)?json[ \t]*(?:;.*)?", re.IGNORECASE | re.DOTALL
)
LIMIT: Final = re.compile("-?[0-9]+")
KEY: Final = re.compile(rb"[\x21-\x7e]{1,255}")
"""The form of an Idempotency-Key."""

REPLAYED: Final = ((b"idempotent-replayed", b"true"),)
"""The header of a replayed answer."""

IN_FLIGHT: Final = (
    "An earlier request with this Idempotency-Key is still being processed; "
    "send this one again later"
)
KEYED_OUTCOME_UNKNOWN: Final = (
    "Outcome unknown: it may have succeeded. Send it again with the same Idempotency-Key"
)
KEY_DEADLINE_S: Final = WRITE_DEADLINE_S
"""How long a create with an Idempotency-Key may take in all."""

PRUNE_EVERY_S: Final = 600
"""How long a key that is too old may still be in the store. It is not found there any more."""

DELETED: Final = b'{"success":true}'
LOW_DISK: Final = "The server is low on disk space, so nothing was stored; try again later"

THREAD_BYTES: Final = 256 * 1024
"""Larger bodies are parsed in a thread: that takes milliseconds, for which others would have to wait."""

ASIDE: Final = ThreadPoolExecutor(max_workers=2, thread_name_prefix="aside")
"""Threads for work on large bodies. Few: they take turns with the event loop, which all wait for."""

Result = TypeVar("Result")


class Routes:
    """The operations on all resumes of an account, and on one.

    Unknown and foreign ids are NotFound. What ends in `_async` is for a store that is waited for.
    """

    def __init__(self, store: Store, accepted: Format, is_disk_low: Callable[[], bool]) -> None:
        self._store = store
        self._format = accepted
        self._parse = functools.partial(analyzer.parse, accepted=accepted)
        self._is_disk_low = is_disk_low
        # A key's lock is there as long as somebody has it or waits for it.
        self._locks: weakref.WeakValueDictionary[tuple[str, str], asyncio.Lock] = (
            weakref.WeakValueDictionary()
        )

    def list(self, request: Request, holder: KeyHolder) -> None:
        """Answer with the page that the request's query asks for. Raises InvalidArgument for that."""
        query = parse_query(request.query)
        page = stored_resumes.list_page(
            self._store, holder.account_id, cursor=query.cursor, limit=query.limit
        )
        request.respond(200, orjson.dumps(page.as_json(limit=query.limit)))

    async def list_async(self, request: Request, holder: KeyHolder) -> None:
        """Answer as `list` does."""
        query = parse_query(request.query)
        page = await stored_resumes.list_page_async(
            self._store, holder.account_id, cursor=query.cursor, limit=query.limit
        )
        request.respond(200, orjson.dumps(page.as_json(limit=query.limit)))

    def get(self, request: Request, holder: KeyHolder) -> None:
        """Answer with the resume. Raises NotFound."""
        stored = stored_resumes.get_resume(self._store, holder.account_id, _id(request))
        request.respond(200, public_json(stored.document, self._format))

    async def get_async(self, request: Request, holder: KeyHolder) -> None:
        """Answer as `get` does."""
        stored = await stored_resumes.get_resume_async(self._store, holder.account_id, _id(request))
        request.respond(200, public_json(stored.document, self._format))

    async def delete(self, request: Request, holder: KeyHolder) -> None:
        """Delete the resume for good, and tell the client. Any plan may. Raises NotFound."""
        await stored_resumes.delete_resume_async(self._store, holder.account_id, _id(request))
        request.respond(200, DELETED)

    def create(self, request: Request, holder: KeyHolder) -> Coroutine[Any, Any, None]:
        """Return what stores the resume and sends the client its id. Any plan may.

        A repeat of an Idempotency-Key makes no resume: the client has the first answer again.
        Raises what stands in the way, now if the head of the request says so.
        """
        if self._is_disk_low():
            raise HttpError(503, LOW_DISK, [(b"retry-after", b"10")])
        check_body_headers(request.headers, max_bytes=self._format.max_bytes)
        return self._create(request, holder)

    async def _create(self, request: Request, holder: KeyHolder) -> None:
        body = await request.read_body(self._format.max_bytes)
        key = find_key(request.headers)
        parsed = await _work_on(body, self._parse)
        if key is None:
            created = await self._store_new(holder, NewResume(parsed), WRITE_DEADLINE_S)
        else:
            digest = await _work_on(body, lambda body: hashlib.sha256(body).digest())
            created = await self._store_once(holder, parsed, IdempotencyKey(key, digest))
        answer = b'{"id":"%b"}' % created.id.encode()
        if parsed.warnings:
            answer = orjson.dumps({"id": created.id, "warnings": parsed.warnings})
        request.respond(201, answer, REPLAYED if created.replayed else ())

    async def _store_new(self, holder: KeyHolder, new: NewResume, deadline_s: float) -> Created:
        try:
            outcome = await creation.create_async(
                self._store, holder.account_id, new, deadline_s=deadline_s
            )
        except NotFound:
            raise InvalidKey from None  # the account was deleted since its key was looked up
        if isinstance(outcome, Exception):
            raise outcome
        assert isinstance(outcome, Created)  # without a digest it cannot be a duplicate
        return outcome

    async def _store_once(
        self, holder: KeyHolder, parsed: analyzer.Resume, used: IdempotencyKey
    ) -> Created:
        """Store the resume when no other create with its Idempotency-Key is under way here.

        What keeps a key to one resume is the transaction of the store, whichever processes are
        asked; but a repeat whose first is still being committed would get a 503 from it.
        """
        lock = self._locks.setdefault((holder.account_id, used.key), asyncio.Lock())
        ends_at = time.monotonic() + KEY_DEADLINE_S
        try:
            async with asyncio.timeout(KEY_DEADLINE_S):
                await lock.acquire()
        except TimeoutError:
            raise HttpError(409, IN_FLIGHT, [RETRY_AFTER]) from None
        try:
            left_s = ends_at - time.monotonic()
            return await self._store_new(holder, NewResume(parsed, idempotency=used), left_s)
        except OutcomeUnknown:
            raise OutcomeUnknown(KEYED_OUTCOME_UNKNOWN) from None
        finally:
            lock.release()


def _id(request: Request) -> str:
    return request.path.rpartition("/")[2]


def check_body_headers(headers: Iterable[tuple[bytes, bytes]], *, max_bytes: int) -> None:
    """Accept what the headers say of the body.

    Raises TooLarge for its declared length, and HttpError 415 for anything but JSON as it is,
    in this order.
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
    # Not `int`, which refuses thousands of digits.
    if length.isdigit() and float(length) > max_bytes:
        raise TooLarge(limit_bytes=max_bytes)
    if len(content_types) != 1 or not JSON_TYPE.fullmatch(content_types[0]):
        raise HttpError(415, "Unsupported content type: send application/json")
    if encoding and encoding.lower() != b"identity":
        raise HttpError(415, "Unsupported content encoding: send the JSON as it is")


async def _work_on(body: bytes, work: Callable[[bytes], Result]) -> Result:
    """Return or raise what the work makes of the body; of a large one in a thread, two at once."""
    if len(body) <= THREAD_BYTES:
        return work(body)
    # In no variable: with the error's traceback, it would keep the error, and all that is in it.
    return await _begin_aside(body, work)


def _begin_aside(body: bytes, work: Callable[[bytes], Result]) -> asyncio.Future[Result]:
    try:
        return asyncio.get_running_loop().run_in_executor(ASIDE, work, body)
    except RuntimeError as error:  # there is no room for a thread
        raise MemoryError from error


def find_key(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the Idempotency-Key that a request came with, if any.

    Raises InvalidArgument for one that is not 1 to 255 visible ASCII characters, and for several.
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
    """Remove Idempotency-Keys that are too old from the store, now and again."""
    while True:
        try:
            await prune_async(store)
        except StoreError as error:
            logger.warning("Old Idempotency-Keys were not removed: %s", error.message)
        await asyncio.sleep(every_s)


class ListQuery(NamedTuple):
    """What a client asks of the list; the fields are the names of the query's parameters."""

    cursor: str = ""
    """Empty for the first page."""

    limit: int = DEFAULT_LIMIT
    """The page size, from 1 to MAX_LIMIT."""


def parse_query(query: bytes) -> ListQuery:
    """Return what the query string of a list asks for.

    Raises InvalidArgument for a limit that is not an integer, for a parameter given twice, and for an
    unknown one. The cursor's form is left to the store.
    """
    if not query:
        return ListQuery()
    fields = parse_fields(query, ListQuery._fields)
    limit = fields.get("limit", str(DEFAULT_LIMIT))
    if not LIMIT.fullmatch(limit):
        raise InvalidArgument(f"Invalid limit: must be an integer from 1 to {MAX_LIMIT}")
    # Not `int`, which refuses thousands of digits.
    return ListQuery(fields.get("cursor", ""), int(max(1, min(float(limit), MAX_LIMIT))))
