"""POST /api/v1/resumes: create a resume (docs/api.md, Create)."""

import hashlib

import orjson

from resumes import analyzer
from resumes.analyzer import Format
from resumes.errors import InvalidKey, NotFound, OutcomeUnknown
from resumes.store import Store, creating
from resumes.store.creating import Created, IdempotencyKey, NewResume, Outcome
from resumes.store.keys import KeyHolder
from server.exchange import Exchange
from server.idempotency import REPLAYED, InFlight, KeyedOutcomeUnknown, Turns, find_key
from server.limits import check_body_headers, read_body, run_aside
from server.responses import RETRY_AFTER

THREAD_BYTES = 256 * 1024
"""Larger bodies are parsed in a thread: that takes milliseconds, in which others want answers."""


class CreateRoute:
    """Creates resumes. Any plan may."""

    def __init__(self, store: Store, format: Format) -> None:  # noqa: A002  (as in the analyzer)
        self._store = store
        self._format = format
        self._turns = Turns()

    async def __call__(self, exchange: Exchange, holder: KeyHolder) -> None:
        """The resume is stored for good and the client has its id; else raises what stood in the way.

        A repeat of an Idempotency-Key makes no resume: the client has the first answer again.
        """
        headers = exchange.scope["headers"]
        max_bytes = self._format.max_bytes
        check_body_headers(headers, max_bytes=max_bytes)
        body = await read_body(exchange.receive, max_bytes=max_bytes)
        key = find_key(headers)
        parsed = await self._parse(body)
        if key is None:
            created = await self._create(holder, NewResume(parsed))
        else:
            used = IdempotencyKey(key, await _sha256(body))
            created = await self._create_once(exchange, holder, used, parsed)
        extra = REPLAYED if created.replayed else ()
        await exchange.respond(201, _body(created.id, parsed), extra)

    async def _parse(self, body: bytes) -> analyzer.Resume:
        if len(body) > THREAD_BYTES:
            return await run_aside(analyzer.parse, body, self._format)
        return analyzer.parse(body, self._format)

    async def _create(self, holder: KeyHolder, new: NewResume, **options: float) -> Created:
        try:
            outcome = await creating.create_soon(self._store, holder.account_id, new, **options)
        except NotFound:
            raise InvalidKey from None  # the account was deleted since its key was looked up
        return _created(outcome)

    async def _create_once(
        self, exchange: Exchange, holder: KeyHolder, used: IdempotencyKey, parsed: analyzer.Resume
    ) -> Created:
        new = NewResume(parsed, idempotency=used)
        try:
            async with self._turns.turn(holder.account_id, used.key) as left_s:
                return await self._create(holder, new, deadline_s=left_s)
        except InFlight:
            exchange.headers.append(RETRY_AFTER)
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
