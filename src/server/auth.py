"""Who a request comes from: the API key in its Authorization header (docs/api.md)."""

import asyncio
import logging
from typing import Final

from resumes.clock import timestamp
from resumes.errors import InvalidKey, StoreError
from resumes.store import Store, api_keys
from resumes.store.api_keys import USED_EVERY, Authenticated, KeyHolder
from server.connections import Connections
from server.request import Headers

logger = logging.getLogger("resumes.server")

KEEP_US: Final = 1_000_000
"""How long the store's answers are kept if nobody writes: the note of a key's last use is due by time."""


class Authenticator:
    """Knows the holder of each key, and notes when a key was last used.

    The store's answer about a key is cached until somebody, in whichever process, has committed
    anything. That is asked before the first key of all requests that the event loop saw together: a
    request that is sent after a revocation was answered finds the key revoked (decision 0015).
    """

    def __init__(self, store: Store, connections: Connections) -> None:
        self._store = store
        self._connections = connections
        self._known: dict[str, KeyHolder] = {}
        """By the key alone: around it, a header may have any number of blanks."""
        self._version: int | None = None
        """Of the store, since they are known."""
        self._since_us = 0
        self._is_current = False
        """Whether that was asked for since the event loop last looked for requests."""
        # The loop holds tasks weakly; one note at a time for a key is enough, and after one that could
        # not be written none for as long as after one that was: with a full disk each request would try.
        self._notes: dict[str, asyncio.Task[None]] = {}

    def authenticate(self, headers: Headers) -> KeyHolder:
        """Return who holds the request's key. Never waits for its last use to be written.

        Only for the event loop. Raises InvalidKey, the same for a missing, malformed, unknown,
        revoked or expired key.
        """
        secret = parse_secret(headers)
        if not self._is_current:
            self._forget_what_changed()
        if secret in self._known:
            return self._known[secret]
        return self._accept(secret, api_keys.authenticate(self._store, secret))

    async def authenticate_async(self, headers: Headers) -> KeyHolder:
        """Return who holds the request's key, as the store has it now. Raises as `authenticate`."""
        secret = parse_secret(headers)
        return self._accept(secret, await api_keys.authenticate_async(self._store, secret))

    def _accept(self, secret: str, found: Authenticated) -> KeyHolder:
        holder, is_due, expires_at = found
        if is_due:  # the next request asks again
            if holder.key_id not in self._notes:
                self._notes[holder.key_id] = asyncio.create_task(self._note_use(holder))
        elif self._version is not None and (
            expires_at is None or expires_at > timestamp(self._since_us + KEEP_US)
        ):
            self._known[secret] = holder
        return holder

    def _forget_what_changed(self) -> None:
        version, now_us = self._store.read_version(), self._store.clock()
        is_old = not 0 <= now_us - self._since_us < KEEP_US
        if version is None or version != self._version or is_old:
            self._known.clear()
            self._version, self._since_us = version, now_us
        if not self._connections.are_seen_twice:
            self._is_current = True
            asyncio.get_running_loop().call_soon(self.end_look)

    def end_look(self) -> None:
        """Take note that the event loop may look for requests before what is done next."""
        self._is_current = False

    async def _note_use(self, holder: KeyHolder) -> None:
        again_s = 0.0
        try:
            await api_keys.mark_used_async(self._store, holder)
        except StoreError as error:
            logger.warning("Could not record the last use of %s: %s", holder.key_id, error.message)
            again_s = USED_EVERY.total_seconds()
        finally:
            asyncio.get_running_loop().call_later(again_s, self._notes.pop, holder.key_id)

    async def finish(self) -> None:
        """Wait until every use that was to be written is written, or logged as not."""
        await asyncio.gather(*self._notes.values())


def parse_secret(headers: Headers) -> str:
    """Return the key of `Authorization: Bearer KEY`, the scheme in any case.

    Raises InvalidKey without that header, for other forms, and for two: which of them would count?
    """
    values = [value for name, value in headers if name == b"authorization"]
    if len(values) != 1:
        raise InvalidKey
    scheme, _, secret = values[0].partition(b" ")
    if scheme.lower() != b"bearer":
        raise InvalidKey
    # Any bytes survive this way, and are unknown to the store.
    return secret.strip(b" ").decode("utf-8", "surrogateescape")
