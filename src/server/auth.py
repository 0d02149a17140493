"""Who a request comes from: the API key in its Authorization header (docs/api.md)."""

import asyncio
import logging
from typing import Final

from resumes.clock import timestamp
from resumes.errors import InvalidKey, StoreError
from resumes.store import Store, api_keys
from resumes.store.api_keys import KeyHolder
from server.connections import Connections
from server.request import Headers

logger = logging.getLogger("resumes.server")

KEEP_US: Final = 1_000_000
"""How long the store's answer is kept if nobody writes: the note of a key's last use is due by time."""


class Authenticator:
    """Knows the holder of each key, and notes when a key was last used.

    The store's answer about a key is cached until somebody, in whichever process, has committed
    anything. That is asked before the first key of all requests that the event loop saw together: a
    request that is sent after a revocation was answered finds the key revoked (decision 0015).
    """

    def __init__(self, store: Store, connections: Connections) -> None:
        self._store = store
        self._connections = connections
        self._known: dict[str, tuple[KeyHolder, int, int]] = {}
        """Holders, each with when the store said so and until when that counts.

        By the key alone: around it, a header may have any number of blanks.
        """
        self._version: int | None = None
        """Of the store, when they became known."""
        self._is_current = False
        """Whether that was asked for since the event loop last looked for requests."""
        # The loop holds tasks weakly; one note at a time for a key is enough.
        self._notes: dict[str, asyncio.Task[None]] = {}

    def authenticate(self, headers: Headers) -> KeyHolder:
        """Return who holds the request's key. Never waits for its last use to be written.

        Only for the event loop. Raises InvalidKey, the same for a missing, malformed, unknown,
        revoked or expired key.
        """
        secret = parse_secret(headers)
        if not self._is_current:
            self._forget_what_changed()
        now_us = self._store.clock()
        if secret in self._known:
            holder, since_us, until_us = self._known[secret]
            if since_us <= now_us < until_us:
                return holder
        holder, is_due, expires_at = api_keys.authenticate(self._store, secret)
        if is_due:
            self._schedule_note_use(holder)
        until_us = now_us + KEEP_US
        is_kept = expires_at is None or expires_at > timestamp(until_us)
        if self._version is not None and is_kept and not is_due:  # whose use is due is asked again
            self._known[secret] = (holder, now_us, until_us)
        return holder

    def _forget_what_changed(self) -> None:
        version = self._store.read_version()
        if version is None or version != self._version:
            self._known.clear()
            self._version = version
        if not self._connections.are_seen_twice:
            self._is_current = True
            asyncio.get_running_loop().call_soon(self.end_look)

    def end_look(self) -> None:
        """Take note that the event loop may look for requests before what is done next."""
        self._is_current = False

    async def authenticate_async(self, headers: Headers) -> KeyHolder:
        """Return who holds the request's key, as the store has it now. Raises as `authenticate`."""
        secret = parse_secret(headers)
        holder, is_due, _ = await api_keys.authenticate_async(self._store, secret)
        if is_due:
            self._schedule_note_use(holder)
        return holder

    def _schedule_note_use(self, holder: KeyHolder) -> None:
        if holder.key_id not in self._notes:
            self._notes[holder.key_id] = asyncio.create_task(self._note_use(holder))

    async def _note_use(self, holder: KeyHolder) -> None:
        try:
            await api_keys.mark_used_async(self._store, holder)
        except StoreError as error:
            logger.warning("Could not record the last use of %s: %s", holder.key_id, error.message)
        finally:
            del self._notes[holder.key_id]

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
