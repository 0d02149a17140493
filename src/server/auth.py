"""Who a request comes from: the API key in its Authorization header (docs/api.md)."""

import asyncio
import logging
from collections.abc import Iterable

from resumes.errors import InvalidKey, StoreError
from resumes.store import Store, keys
from resumes.store.keys import KeyHolder

logger = logging.getLogger("resumes.server")


class Authenticator:
    """Knows the holder of each key, and notes when a key was last used."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # The loop holds tasks weakly; one note at a time for a key is enough.
        self._notes: dict[str, asyncio.Task[None]] = {}

    def authenticate(self, headers: Iterable[tuple[bytes, bytes]]) -> KeyHolder:
        """Who holds the request's key. Never waits for its last use to be written.

        Raises InvalidKey, the same for a missing, malformed, unknown, revoked or expired key.
        """
        holder, is_due = self.look_up(headers)
        if is_due:
            self.note_use(holder)
        return holder

    def look_up(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[KeyHolder, bool]:
        """Who holds the request's key, and whether `note_use` is due. Any thread may ask.

        Raises what `authenticate` raises.
        """
        return keys.authenticate(self._store, find_secret(headers))

    def note_use(self, holder: KeyHolder) -> None:
        """The key's use will be written soon."""
        if holder.key_id not in self._notes:
            self._notes[holder.key_id] = asyncio.create_task(self._note_use(holder))

    async def _note_use(self, holder: KeyHolder) -> None:
        try:
            await keys.mark_used_soon(self._store, holder)
        except StoreError as error:
            logger.warning("The last use of %s was not written: %s", holder.key_id, error.message)
        finally:
            del self._notes[holder.key_id]

    async def finish(self) -> None:
        """Every use that was to be written is written, or logged as not."""
        await asyncio.gather(*self._notes.values())


def find_secret(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The key that a request's headers carry: `Authorization: Bearer KEY`, the scheme in any case.

    Raises InvalidKey without such a header, and with two: which of them would count?
    """
    values = [value for name, value in headers if name == b"authorization"]
    if len(values) != 1:
        raise InvalidKey
    scheme, _, secret = values[0].partition(b" ")
    if scheme.lower() != b"bearer":
        raise InvalidKey
    # Any bytes survive this way, and are unknown to the store.
    return secret.strip(b" ").decode("utf-8", "surrogateescape")
