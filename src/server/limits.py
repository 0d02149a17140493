"""What a request may bring: the type and the size of its body.

uvicorn limits nothing of this. The rules are in docs/api.md (Create, Errors).
"""

import asyncio
import functools
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from resumes.errors import TooLarge
from server.exchange import Exchange
from server.responses import CLOSE, error_body

JSON_TYPE = re.compile(
    rb"application/(?:[a-z0-9!#$&^_.+-]+\+)?json[ \t]*(?:;.*)?", re.IGNORECASE | re.DOTALL
)
DRAIN_BYTES = 16 * 1024 * 1024
"""How much more of a body that is too large is read and thrown away, so that the client, which
may read only after it has sent all, sees the answer and not a reset."""

DRAIN_S = 2.0
"""For how many seconds at most."""

ASIDE = ThreadPoolExecutor(max_workers=2, thread_name_prefix="aside")
"""Threads for work on large bodies. Few: they take turns with the event loop, which all wait for."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class BodyTooLarge(TooLarge):
    """A request body over the limit. `is_whole`: nothing of it is left to read."""

    def __init__(self, *, limit_bytes: int, is_whole: bool = False) -> None:
        super().__init__(limit_bytes=limit_bytes)
        self.is_whole = is_whole


def check_body_headers(headers: Iterable[tuple[bytes, bytes]], *, max_bytes: int) -> None:
    """What the headers say of the body is acceptable.

    Raises BodyTooLarge for its declared length, and HTTPException 415 for anything but JSON as
    it is, in this order.
    """
    content_type = encoding = length = b""
    for name, value in headers:
        if name == b"content-type":
            # Two content types make none that is JSON.
            content_type = value if not content_type else b"?"
        elif name == b"content-length":
            length = value
        elif name == b"content-encoding":
            encoding += value
    if length.isdigit() and (len(length) > 18 or int(length) > max_bytes):
        raise BodyTooLarge(limit_bytes=max_bytes)
    if content_type != b"application/json" and not JSON_TYPE.fullmatch(content_type):
        raise HTTPException(415, "Unsupported content type: send application/json")
    if encoding and encoding.lower() != b"identity":
        raise HTTPException(415, "Unsupported content encoding: send the JSON as it is")


async def read_body(receive: Receive, *, max_bytes: int) -> bytes:
    """The body, counted while it arrives, as its length need not be declared.

    Raises BodyTooLarge, and ClientDisconnect when the client goes before it has sent all.
    """
    chunks: list[bytes] = []
    size_bytes = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        more = message.get("more_body", False)
        chunks.append(message.get("body", b""))
        size_bytes += len(chunks[-1])
        if size_bytes > max_bytes:
            raise BodyTooLarge(limit_bytes=max_bytes, is_whole=not more)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def run_aside(
    work: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
) -> Result:
    """What the work returns or raises, done in a thread; beyond two at once it waits its turn."""
    # In no variable: with the error's traceback, it would keep the error, and all that is in it.
    return await _begin_aside(functools.partial(work, *arguments, **named))


def _begin_aside(work: Callable[[], Result]) -> asyncio.Future[Result]:
    try:
        return asyncio.get_running_loop().run_in_executor(ASIDE, work)
    except RuntimeError as error:  # there is no room for a thread
        raise MemoryError from error


async def refuse_too_large(exchange: Exchange, error: BodyTooLarge) -> None:
    """The client has its 413 at once; then the rest of its body is thrown away for a while."""
    body = error_body(413, error.message, request_id=exchange.request_id)
    await exchange.respond(413, body, [CLOSE], is_whole=False)
    if not error.is_whole:
        await _drain(exchange.receive)
    await exchange.end()


async def _drain(receive: Receive) -> None:
    left = DRAIN_BYTES
    try:
        async with asyncio.timeout(DRAIN_S):
            while left > 0:
                message = await receive()
                if not message.get("more_body"):
                    return
                left -= len(message["body"])
    except TimeoutError:
        return
