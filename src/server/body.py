"""What a request may bring: the type and the size of its body (docs/api.md, Create)."""

import asyncio
import functools
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from server.request import BodyTooLarge, HttpError

JSON_TYPE: Final = re.compile(
    rb"application/(?:[a-z0-9!#$&^_.+-]+\+)?json[ \t]*(?:;.*)?", re.IGNORECASE | re.DOTALL
)

ASIDE: Final = ThreadPoolExecutor(max_workers=2, thread_name_prefix="aside")
"""Threads for work on large bodies. Few: they take turns with the event loop, which all wait for."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def check_body_headers(headers: Iterable[tuple[bytes, bytes]], *, max_bytes: int) -> None:
    """Accept what the headers say of the body.

    Raises BodyTooLarge for its declared length, and HttpError 415 for anything but JSON as it is,
    in this order.
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
        raise HttpError(415, "Unsupported content type: send application/json")
    if encoding and encoding.lower() != b"identity":
        raise HttpError(415, "Unsupported content encoding: send the JSON as it is")


async def run_aside(
    work: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
) -> Result:
    """Return or raise what the work does, in a thread; beyond two at once it waits its turn."""
    # In no variable: with the error's traceback, it would keep the error, and all that is in it.
    return await _begin_aside(functools.partial(work, *arguments, **named))


def _begin_aside(work: Callable[[], Result]) -> asyncio.Future[Result]:
    try:
        return asyncio.get_running_loop().run_in_executor(ASIDE, work)
    except RuntimeError as error:  # there is no room for a thread
        raise MemoryError from error
