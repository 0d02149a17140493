"""The routes /api/v1/resumes and /api/v1/resumes/{id}: create, list, get, delete (docs/api.md)."""

import hashlib
import re
from collections.abc import Coroutine
from typing import Any
from urllib.parse import parse_qsl

import orjson

from resumes import analyzer
from resumes.analyzer import Format, public_view
from resumes.errors import (
    BusinessPlanRequired,
    InvalidArgument,
    InvalidKey,
    NotFound,
    OutcomeUnknown,
)
from resumes.store import Store, creation, stored_resumes
from resumes.store.api_keys import KeyHolder
from resumes.store.creation import Created, IdempotencyKey, NewResume, Outcome
from resumes.store.stored_resumes import DEFAULT_LIMIT, MAX_LIMIT
from server.body import check_body_headers, run_aside
from server.health import Room
from server.idempotency import REPLAYED, InFlight, KeyedOutcomeUnknown, Turns, find_key
from server.request import LINE, RETRY_AFTER, Request

THREAD_BYTES = 256 * 1024
"""Larger bodies are parsed in a thread: that takes milliseconds, in which others want answers."""


class CreateRoute:
    """Creates resumes. Any plan may."""

    def __init__(
        self,
        store: Store,
        format: Format,  # noqa: A002  (as in the analyzer)
        room: Room,
    ) -> None:
        self._store = store
        self._format = format
        self._room = room
        self._turns = Turns()

    def __call__(self, request: Request, holder: KeyHolder) -> Coroutine[Any, Any, None]:
        """Return what stores the resume for good and tells the client its id.

        A repeat of an Idempotency-Key makes no resume: the client has the first answer again.
        Raises what stands in the way, now if the head of the request says so.
        """
        self._room.check(request.began_s)
        check_body_headers(request.headers, max_bytes=self._format.max_bytes)
        return self._answer(request, holder)

    async def _answer(self, request: Request, holder: KeyHolder) -> None:
        body = await request.read_body(self._format.max_bytes)
        key = find_key(request.headers)
        parsed = await self._parse(body)
        if key is None:
            created = await self._create(holder, NewResume(parsed))
        else:
            used = IdempotencyKey(key, await _sha256(body))
            created = await self._create_once(request, holder, used, parsed)
        extra = REPLAYED if created.replayed else ()
        request.respond(201, _body(created.id, parsed), extra)

    async def _parse(self, body: bytes) -> analyzer.Resume:
        if len(body) > THREAD_BYTES:
            return await run_aside(analyzer.parse, body, self._format)
        return analyzer.parse(body, self._format)

    async def _create(self, holder: KeyHolder, new: NewResume, **options: float) -> Created:
        try:
            outcome = await creation.create_async(self._store, holder.account_id, new, **options)
        except NotFound:
            raise InvalidKey from None  # the account was deleted since its key was looked up
        return _created(outcome)

    async def _create_once(
        self, request: Request, holder: KeyHolder, used: IdempotencyKey, parsed: analyzer.Resume
    ) -> Created:
        new = NewResume(parsed, idempotency=used)
        try:
            async with self._turns.turn(holder.account_id, used.key) as left_s:
                return await self._create(holder, new, deadline_s=left_s)
        except InFlight:
            request.lines.append(LINE % RETRY_AFTER)
            raise
        except OutcomeUnknown:
            raise KeyedOutcomeUnknown from None


async def _sha256(body: bytes) -> bytes:
    if len(body) > THREAD_BYTES:
        return await run_aside(_digest, body)
    return _digest(body)


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


def _created(outcome: Outcome) -> Created:
    if isinstance(outcome, Created):
        return outcome
    if isinstance(outcome, Exception):
        raise outcome
    raise AssertionError("a resume without a digest cannot be a duplicate")


def _body(resume_id: str, parsed: analyzer.Resume) -> bytes:
    if parsed.warnings:
        return orjson.dumps({"id": resume_id, "warnings": parsed.warnings})
    return b'{"id":"%b"}' % resume_id.encode()


LIMIT = re.compile("-?[0-9]+")


class ListRoute:
    """Lists resumes, for accounts whose plan includes that."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self, request: Request, holder: KeyHolder) -> bytes:
        """Return the page that the request's query asks for, as JSON.

        Raises BusinessPlanRequired, and InvalidArgument for the query, in this order.
        """
        cursor, limit = _asked(request, holder)
        page = stored_resumes.list_page(self._store, holder.account_id, cursor=cursor, limit=limit)
        return orjson.dumps(page.as_json(limit=limit))

    async def read_async(self, request: Request, holder: KeyHolder) -> bytes:
        """`read`, from a store that is waited for."""
        cursor, limit = _asked(request, holder)
        page = await stored_resumes.list_page_async(
            self._store, holder.account_id, cursor=cursor, limit=limit
        )
        return orjson.dumps(page.as_json(limit=limit))


def _asked(request: Request, holder: KeyHolder) -> tuple[str, int]:
    if not holder.api_listing:
        raise BusinessPlanRequired
    return parse_query(request.query)


def parse_query(query: bytes) -> tuple[str, int]:
    """Return the cursor, empty for the first page, and the page size of a query string.

    Raises InvalidArgument for a limit that is no integer, and for either given twice; what else
    the query holds is ignored. The cursor's form is left to the store.
    """
    if not query:
        return "", DEFAULT_LIMIT
    fields: dict[str, list[str]] = {}
    for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        fields.setdefault(name, []).append(value)
    limits = fields.get("limit", [str(DEFAULT_LIMIT)])
    cursors = fields.get("cursor", [""])
    if len(limits) > 1 or not LIMIT.fullmatch(limits[0]):
        raise InvalidArgument(f"Invalid limit: must be an integer from 1 to {MAX_LIMIT}")
    if len(cursors) > 1:
        raise InvalidArgument("Invalid cursor")
    return cursors[0], _clamp(limits[0])


def _clamp(digits: str) -> int:
    """Bring an integer of any length into 1 to 100, without making it a number first."""
    if digits.startswith("-"):
        return 1
    significant = digits.lstrip("0") or "0"
    if len(significant) > len(str(MAX_LIMIT)):
        return MAX_LIMIT
    return max(1, min(int(significant), MAX_LIMIT))


DELETED = b'{"success":true}'


class ResumeRoute:
    """The operations on one resume. Unknown and foreign ids are NotFound."""

    def __init__(self, store: Store, format: Format) -> None:  # noqa: A002  (as in the analyzer)
        self._store = store
        self._format = format

    def read(self, request: Request, holder: KeyHolder) -> bytes:
        """Return the resume as JSON. Raises BusinessPlanRequired and NotFound, in this order."""
        check_plan(holder)
        stored = stored_resumes.get_resume(self._store, holder.account_id, _id(request))
        return orjson.dumps(public_view(stored.document, self._format))

    async def read_async(self, request: Request, holder: KeyHolder) -> bytes:
        """`read`, from a store that is waited for."""
        check_plan(holder)
        stored = await stored_resumes.get_resume_async(self._store, holder.account_id, _id(request))
        return orjson.dumps(public_view(stored.document, self._format))

    async def delete(self, request: Request, holder: KeyHolder) -> None:
        """Delete the resume for good, and tell the client. Raises NotFound."""
        await stored_resumes.delete_resume_async(self._store, holder.account_id, _id(request))
        request.respond(200, DELETED)


def check_plan(holder: KeyHolder) -> None:
    """Raises BusinessPlanRequired unless the account may read over the API."""
    if not holder.api_listing:
        raise BusinessPlanRequired


def _id(request: Request) -> str:
    return request.path.rpartition("/")[2]
