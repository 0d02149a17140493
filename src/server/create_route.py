"""POST /api/v1/resumes: create a resume (docs/api.md, Create)."""

import hashlib
from collections.abc import Coroutine
from typing import Any

import orjson

from resumes import analyzer
from resumes.analyzer import Format
from resumes.errors import InvalidKey, NotFound, OutcomeUnknown
from resumes.store import Store, creation
from resumes.store.api_keys import KeyHolder
from resumes.store.creation import Created, IdempotencyKey, NewResume, Outcome
from server.body import check_body_headers, run_aside
from server.idempotency import REPLAYED, InFlight, KeyedOutcomeUnknown, Turns, find_key
from server.request import LINE, RETRY_AFTER, Request
from server.room import Room

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
