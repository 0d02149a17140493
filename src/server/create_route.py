"""POST /api/v1/resumes: create a resume (docs/api.md, Create)."""

import asyncio

import orjson

from resumes import analyzer
from resumes.analyzer import Format
from resumes.errors import InvalidKey, NotFound
from resumes.store import Store, creating
from resumes.store.creating import Created, NewResume, Outcome
from resumes.store.keys import KeyHolder
from server.exchange import Exchange
from server.limits import check_body_headers, read_body

THREAD_BYTES = 256 * 1024
"""Larger bodies are parsed in a thread: that takes milliseconds, in which others want answers."""


class CreateRoute:
    """Creates resumes. Any plan may."""

    def __init__(self, store: Store, format: Format) -> None:  # noqa: A002  (as in the analyzer)
        self._store = store
        self._format = format

    async def __call__(self, exchange: Exchange, holder: KeyHolder) -> None:
        """The resume is stored for good and the client has its id; else raises what stood in the way."""
        max_bytes = self._format.max_bytes
        check_body_headers(exchange.scope["headers"], max_bytes=max_bytes)
        parsed = await self._parse(await read_body(exchange.receive, max_bytes=max_bytes))
        created = await self._create(holder, parsed)
        await exchange.respond(201, _body(created.id, parsed))

    async def _parse(self, body: bytes) -> analyzer.Resume:
        if len(body) > THREAD_BYTES:
            return await asyncio.to_thread(analyzer.parse, body, self._format)
        return analyzer.parse(body, self._format)

    async def _create(self, holder: KeyHolder, parsed: analyzer.Resume) -> Created:
        try:
            outcome = await creating.create_soon(self._store, holder.account_id, NewResume(parsed))
        except NotFound:
            raise InvalidKey from None  # the account was deleted since its key was looked up
        return _created(outcome)


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
