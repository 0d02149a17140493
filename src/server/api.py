"""What every request of the API goes through: its key, the operation's being known, the rate limits.

In this order, so that without a key nobody learns which paths exist (docs/api.md, Errors). A store in
a file is read here and now; one across a network is waited for.
"""

import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, NamedTuple

from resumes.store.api_keys import KeyHolder
from server.auth import Authenticator
from server.rate_limits import RateLimits, refuse_too_many
from server.request import HttpError, Request

ROOT: Final = "/api/v1"
RESUMES: Final = f"{ROOT}/resumes"
# `upload` is not offered, and never taken for an id.
ONE: Final = re.compile(rf"{RESUMES}/(?!upload\Z)[^/]+")
PDF: Final = re.compile(f"{RESUMES}/(?!upload/)[^/]+/pdf")

Read = Callable[[Request, KeyHolder], bytes]
"""Returns the body of a 200, or raises what stood in the way."""

ReadAsync = Callable[[Request, KeyHolder], Coroutine[Any, Any, bytes]]
"""The same, for a store that is waited for."""

Run = Callable[[Request, KeyHolder], Coroutine[Any, Any, None]]
"""Returns what answers the request. Raises what stood in the way, then or now."""


class Operation(NamedTuple):
    """What can be asked for: its name in logs and metrics, and what reads it or does it."""

    name: str
    read: Read | None = None
    read_async: ReadAsync | None = None
    run: Run | None = None


class Api:
    """The operations on all resumes, on one and on its PDF, by method."""

    def __init__(
        self,
        authenticator: Authenticator,
        rate_limits: RateLimits | None,
        *,
        of_all: Mapping[str, Operation],
        of_one: Mapping[str, Operation],
        of_pdf: Mapping[str, Operation],
        waits_for_store: bool = False,
    ) -> None:
        self._authenticator = authenticator
        self._rate_limits = rate_limits
        self._of_all = of_all
        self._of_one = of_one
        self._of_pdf = of_pdf
        self._waits_for_store = waits_for_store

    def begin(self, request: Request) -> Coroutine[Any, Any, None] | None:
        """Answer the request, or return what is to be awaited for that.

        Raises what stood in the way, then or now.
        """
        if self._waits_for_store:
            return self._answer_async(request)
        holder = self._authenticator.authenticate(request.headers)
        operation = self._admit(request, holder)
        if operation is None:
            return None
        if operation.read is not None:
            request.respond(200, operation.read(request, holder))
            return None
        assert operation.run is not None
        return operation.run(request, holder)

    async def _answer_async(self, request: Request) -> None:
        holder = await self._authenticator.authenticate_async(request.headers)
        operation = self._admit(request, holder)
        if operation is None:
            return
        if operation.read_async is not None:
            request.respond(200, await operation.read_async(request, holder))
        elif operation.run is not None:
            await operation.run(request, holder)

    def _admit(self, request: Request, holder: KeyHolder) -> Operation | None:
        """Return the operation, counted; None if the key has asked too often, and was told so.

        Raises HttpError.
        """
        request.holder = holder
        operation = self._find(request)
        if isinstance(operation, HttpError):
            if self._rate_limits is not None:
                self._rate_limits.tell(holder, request.lines)
            raise operation
        request.operation = operation.name
        if self._rate_limits is not None:
            wait_s = self._rate_limits.admit(holder, request.lines)
            if wait_s:
                refuse_too_many(request, wait_s)
                return None
        return operation

    def _find(self, request: Request) -> Operation | HttpError:
        """Return the operation, or what is said instead to those who have a key."""
        if request.path == RESUMES:
            operations = self._of_all
        elif ONE.fullmatch(request.path):
            operations = self._of_one
        elif self._of_pdf and PDF.fullmatch(request.path):
            operations = self._of_pdf
        else:
            return HttpError(404)
        operation = operations.get(request.method)
        if operation is None and request.method == "HEAD":
            operation = operations.get("GET")
        if operation is None:
            return HttpError(405, headers=[(b"allow", ", ".join(operations).encode())])
        return operation
