"""What every request of the API goes through: its key, the operation's being known, the rate limits.

In this order, so that without a key nobody learns which paths exist (docs/api.md, Errors). A store in
a file is read here and now. One across a network is read by a thread, which does all of a request that
reads in one visit, so that only one is paid for.
"""

import threading
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException

from resumes.store.keys import KeyHolder
from server.auth import Authenticator
from server.exchange import Exchange
from server.operations import Operation, Operations
from server.rate_limits import RateLimits, refuse_too_many
from server.readers import Readers, read_until
from server.responses import Headers


class Reception:
    """Reads the store in the event loop's own thread: for one that is as near as the memory."""

    def __init__(
        self,
        authenticator: Authenticator,
        operations: Operations,
        rate_limits: RateLimits | None,
    ) -> None:
        self._authenticator = authenticator
        self._operations = operations
        self._rate_limits = rate_limits

    async def receive(self, exchange: Exchange) -> None:
        """The request is answered. Raises what stood in the way."""
        scope = exchange.scope
        holder = self._authenticator.authenticate(scope["headers"])
        exchange.holder = holder
        try:
            operation = self._operations.get(scope["path"], scope["method"])
        except HTTPException:
            if self._rate_limits is not None:
                self._rate_limits.tell(holder, exchange.headers)
            raise
        exchange.operation = operation.name
        if self._rate_limits is not None:
            wait_s = self._rate_limits.admit(holder, exchange.headers)
            if wait_s:
                await refuse_too_many(exchange, wait_s)
                return
        await operation.run(exchange, holder)

    def close(self) -> None:
        """Nothing is read any more."""


@dataclass(slots=True)
class _Visit:
    """What a thread has found out about a request, as far as it came."""

    holder: KeyHolder | None = None
    is_due: bool = False
    headers: Headers = field(default_factory=list)
    wait_s: int = 0
    body: bytes | None = None


class RemoteReception(Reception):
    """Reads the store in threads."""

    def __init__(
        self,
        authenticator: Authenticator,
        operations: Operations,
        rate_limits: RateLimits | None,
        *,
        readers: Readers | None = None,
    ) -> None:
        super().__init__(authenticator, operations, rate_limits)
        self._readers = readers or Readers()
        # The lock of the table that requests are counted in is one for all threads of a process.
        self._counting = threading.Lock()

    async def receive(self, exchange: Exchange) -> None:
        """The request is answered. Raises what stood in the way."""
        visit = _Visit()
        operation = self._find(exchange)
        try:
            await self._readers.run(
                lambda ends_at: self._visit(exchange, operation, visit, ends_at)
            )
        finally:
            self._take_over(exchange, operation, visit)
        if isinstance(operation, HTTPException):
            raise operation
        if visit.wait_s:
            await refuse_too_many(exchange, visit.wait_s)
        elif visit.body is not None:
            await exchange.respond(200, visit.body)
        else:
            assert visit.holder is not None
            await operation.run(exchange, visit.holder)

    def _find(self, exchange: Exchange) -> Operation | HTTPException:
        """The operation, or what is said instead to those who have a key."""
        try:
            return self._operations.get(exchange.scope["path"], exchange.scope["method"])
        except HTTPException as error:
            return error

    def _visit(
        self,
        exchange: Exchange,
        operation: Operation | HTTPException,
        visit: _Visit,
        ends_at: float,
    ) -> None:
        """In a thread, which touches nothing of the request: that may have had its answer before."""
        headers = exchange.scope["headers"]
        holder, visit.is_due = read_until(ends_at, lambda: self._authenticator.look_up(headers))
        visit.holder = holder
        if self._rate_limits is not None:
            with self._counting:
                if isinstance(operation, HTTPException):
                    self._rate_limits.tell(holder, visit.headers)
                else:
                    visit.wait_s = self._rate_limits.admit(holder, visit.headers)
        read = operation.read if isinstance(operation, Operation) else None
        if read is not None and not visit.wait_s:
            visit.body = read_until(ends_at, lambda: read(exchange, holder))

    def _take_over(
        self, exchange: Exchange, operation: Operation | HTTPException, visit: _Visit
    ) -> None:
        if visit.holder is None:
            return
        exchange.holder = visit.holder
        exchange.headers += visit.headers
        if isinstance(operation, Operation):
            exchange.operation = operation.name
        if visit.is_due:
            self._authenticator.note_use(visit.holder)

    def close(self) -> None:
        """Nothing is read any more."""
        self._readers.close()
