"""What every request of the API goes through: its key, the operation's being known, the rate limits.

In this order, so that without a key nobody learns which paths exist (docs/api.md, Errors). A store in
a file is read here and now. One across a network is read by a thread, which does all of a request that
reads in one visit, so that only one is paid for.
"""

import re
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from resumes.store.keys import KeyHolder
from server.auth import Authenticator
from server.rate_limits import RateLimits, refuse_too_many
from server.readers import Readers, read_until
from server.request import HttpError, Request

ROOT: Final = "/api/v1"
RESUMES: Final = f"{ROOT}/resumes"
ONE: Final = re.compile(f"{RESUMES}/[^/]+")

Read = Callable[[Request, KeyHolder], bytes]
"""Returns the body of a 200, read from the store in this thread, or raises what stood in the way."""

Run = Callable[[Request, KeyHolder], Coroutine[Any, Any, None]]
"""Returns what answers the request. Raises what stood in the way, then or now."""


class Operation(NamedTuple):
    """What can be asked for: its name in logs and metrics, and what reads it or does it."""

    name: str
    read: Read | None = None
    run: Run | None = None


class Api:
    """The operations on all resumes and those on one, by method.

    Reads the store in the event loop's own thread, for one that is as near as the memory.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        rate_limits: RateLimits | None,
        *,
        of_all: Mapping[str, Operation],
        of_one: Mapping[str, Operation],
    ) -> None:
        self._authenticator = authenticator
        self._rate_limits = rate_limits
        self._of_all = of_all
        self._of_one = of_one

    def begin(self, request: Request) -> Coroutine[Any, Any, None] | None:
        """Answer the request, or return what is to be awaited for that.

        Raises what stood in the way, then or now.
        """
        request.holder = holder = self._authenticator.authenticate(request.headers)
        operation = self._find(request)
        if self._rate_limits is not None:
            if isinstance(operation, HttpError):
                self._rate_limits.tell(holder, request.lines)
            elif wait_s := self._rate_limits.admit(holder, request.lines):
                request.operation = operation.name
                refuse_too_many(request, wait_s)
                return None
        if isinstance(operation, HttpError):
            raise operation
        request.operation = operation.name
        if operation.read is not None:
            request.respond(200, operation.read(request, holder))
            return None
        assert operation.run is not None
        return operation.run(request, holder)

    def _find(self, request: Request) -> Operation | HttpError:
        """The operation, or what is said instead to those who have a key."""
        if request.path == RESUMES:
            operations = self._of_all
        elif ONE.fullmatch(request.path):
            operations = self._of_one
        else:
            return HttpError(404)
        operation = operations.get(request.method)
        if operation is None:
            return HttpError(405, headers=[(b"allow", ", ".join(operations).encode())])
        return operation

    def close(self) -> None:
        """Read nothing any more."""


@dataclass(slots=True)
class _Visit:
    """What a thread has found out about a request, as far as it came."""

    holder: KeyHolder | None = None
    is_due: bool = False
    lines: list[bytes] = field(default_factory=list)
    wait_s: int = 0
    body: bytes | None = None


class RemoteApi(Api):
    """Reads the store in threads."""

    def __init__(
        self,
        authenticator: Authenticator,
        rate_limits: RateLimits | None,
        *,
        of_all: Mapping[str, Operation],
        of_one: Mapping[str, Operation],
        readers: Readers | None = None,
    ) -> None:
        super().__init__(authenticator, rate_limits, of_all=of_all, of_one=of_one)
        self._readers = readers or Readers()
        # The lock of the table that requests are counted in is one for all threads of a process.
        self._counting = threading.Lock()

    def begin(self, request: Request) -> Coroutine[Any, Any, None]:
        """Return what is to be awaited for an answer."""
        return self._run(request)

    async def _run(self, request: Request) -> None:
        visit = _Visit()
        operation = self._find(request)
        try:
            await self._readers.run(lambda ends_at: self._visit(request, operation, visit, ends_at))
        finally:
            self._take_over(request, operation, visit)
        if isinstance(operation, HttpError):
            raise operation
        if visit.wait_s:
            refuse_too_many(request, visit.wait_s)
        elif visit.body is not None:
            request.respond(200, visit.body)
        else:
            assert visit.holder is not None
            assert operation.run is not None
            await operation.run(request, visit.holder)

    def _visit(
        self, request: Request, operation: Operation | HttpError, visit: _Visit, ends_at: float
    ) -> None:
        """In a thread, which touches nothing of the request: that may have had its answer before."""
        headers = request.headers
        holder, visit.is_due, _ = read_until(ends_at, lambda: self._authenticator.look_up(headers))
        visit.holder = holder
        if self._rate_limits is not None:
            with self._counting:
                if isinstance(operation, HttpError):
                    self._rate_limits.tell(holder, visit.lines)
                else:
                    visit.wait_s = self._rate_limits.admit(holder, visit.lines)
        read = operation.read if isinstance(operation, Operation) else None
        if read is not None and not visit.wait_s:
            visit.body = read_until(ends_at, lambda: read(request, holder))

    def _take_over(self, request: Request, operation: Operation | HttpError, visit: _Visit) -> None:
        if visit.holder is None:
            return
        request.holder = visit.holder
        request.lines += visit.lines
        if isinstance(operation, Operation):
            request.operation = operation.name
        if visit.is_due:
            self._authenticator.note_use(visit.holder)

    def close(self) -> None:
        """Read nothing any more."""
        self._readers.close()
