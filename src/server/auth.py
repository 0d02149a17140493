"""Authentication by the API key in the Authorization header (docs/api.md)."""

import asyncio
import logging
from typing import Final

from resumes.clock import timestamp
from resumes.errors import InvalidKey, StoreError
from resumes.store import Store, api_keys
from resumes.store.api_keys import USED_EVERY, KeyHolder
from server.connections import Connections
from server.request import Headers

logger = logging.getLogger("resumes.server")

CACHE_US: Final = 1_000_000
"""How long the holder of a key is cached: its last use must be recorded again after some time."""


class Authenticator:
    """Finds the holder of each key, and records when a key was last used.

    A key's holder is cached until any process commits anything. This is checked once for all
    requests that one poll of the event loop returned, so a request that is sent after a revocation
    was answered finds the key revoked (decision 0015).
    """

    def __init__(self, store: Store, connections: Connections) -> None:
        self._store = store
        self._connections = connections
        self._known: dict[str, KeyHolder] = {}
        """Holders by key. The header is not used, since it may contain any number of blanks."""
        self._version: int | None = None
        """The store's version when the cache was last emptied or checked."""
        self._since_us = 0
        self._is_current = False
        """Whether the version was checked since the event loop last polled for requests."""
        # References to the tasks, since the loop holds only weak ones. One pending record per key
        # is sufficient. After a failure, the next attempt waits as after a success: with a full
        # disk, every request would otherwise try.
        self._notes: dict[str, asyncio.Task[None]] = {}

    def authenticate(self, headers: Headers) -> KeyHolder:
        """Return the holder of the request's key, without waiting until its last use is recorded.

        Call this only on the event loop. Raises InvalidKey, with the same message for a missing,
        malformed, unknown, revoked or expired key.
        """
        secret = parse_secret(headers)
        if not self._is_current:
            self._forget_what_changed()
        if secret in self._known:
            return self._known[secret]
        return self._accept(secret, api_keys.authenticate(self._store, secret))

    async def authenticate_async(self, headers: Headers) -> KeyHolder:
        """Return the holder of the request's key from the store. Raises InvalidKey."""
        secret = parse_secret(headers)
        return self._accept(secret, await api_keys.authenticate_async(self._store, secret))

    def _accept(self, secret: str, holder: KeyHolder) -> KeyHolder:
        if holder.is_use_due:  # not cached, so that the next request asks the store again
            if holder.key_id not in self._notes:
                self._notes[holder.key_id] = asyncio.create_task(self._note_use(holder))
        elif self._version is not None and (
            holder.expires_at is None or holder.expires_at > timestamp(self._since_us + CACHE_US)
        ):
            self._known[secret] = holder
        return holder

    def _forget_what_changed(self) -> None:
        version, now_us = self._store.read_version(), self._store.clock()
        is_old = not 0 <= now_us - self._since_us < CACHE_US
        if version is None or version != self._version or is_old:
            self._known.clear()
            self._version, self._since_us = version, now_us
        if not self._connections.may_poll_twice:
            self._is_current = True
            asyncio.get_running_loop().call_soon(self.end_poll)

    def end_poll(self) -> None:
        """Note that the event loop may poll for requests before the next callback."""
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
        """Wait until every pending use is recorded or has been logged as failed."""
        await asyncio.gather(*self._notes.values())


def parse_secret(headers: Headers) -> str:
    """Return the key in `Authorization: Bearer KEY`. The scheme's case is ignored.

    Raises InvalidKey if the header is missing, repeated or in another form.
    """
    values = [value for name, value in headers if name == b"authorization"]
    if len(values) != 1:
        raise InvalidKey
    scheme, _, secret = values[0].partition(b" ")
    if scheme.lower() != b"bearer":
        raise InvalidKey
    # All bytes can be decoded; a key that is not UTF-8 is unknown to the store.
    return secret.strip(b" ").decode("utf-8", "surrogateescape")
