"""Idempotency-Keys: their form, one create at a time for each (docs/api.md, Retrying a create).

What keeps a key to one resume is the transaction of the store, whichever processes are asked.
"""

import asyncio
import contextlib
import logging
import re
import time
import weakref
from collections.abc import AsyncIterator, Iterable

from resumes.errors import Conflict, InvalidArgument, OutcomeUnknown, StoreError
from resumes.store import Store
from resumes.store.idempotency import prune_async
from resumes.store.store import WRITE_DEADLINE_S

logger = logging.getLogger("resumes.server")

FORM = re.compile(rb"[\x21-\x7e]{1,255}")
REPLAYED = ((b"idempotent-replayed", b"true"),)
"""The header of a replayed answer."""

PRUNE_EVERY_S = 600
"""How long a key that is too old may still be in the store. It is not found there any more."""


class InFlight(Conflict):
    """An earlier request with the key has no outcome yet."""

    default = (
        "An earlier request with this Idempotency-Key is still being processed; "
        "send this one again later"
    )


class KeyedOutcomeUnknown(OutcomeUnknown):
    """Whether it was done is not known, but the key makes it safe to ask."""

    default = "Outcome unknown: it may have succeeded. Send it again with the same Idempotency-Key"


def find_key(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the Idempotency-Key that a request came with, if any.

    Raises InvalidArgument for one that is not 1 to 255 visible ASCII characters, and for several.
    """
    values = [value for name, value in headers if name == b"idempotency-key"]
    if not values:
        return None
    if len(values) > 1:
        raise InvalidArgument("Invalid Idempotency-Key: send the header once")
    value = values[0].strip(b" \t")  # no part of a header's value (RFC 9110, 5.5)
    if not FORM.fullmatch(value):
        raise InvalidArgument("Invalid Idempotency-Key: must be 1 to 255 visible ASCII characters")
    return value.decode("ascii")


class Turns:
    """Lets the creates of one key follow one another in this process.

    Without it a repeat whose first is still being committed would get a 503 because the store is busy.
    """

    def __init__(self, deadline_s: float = WRITE_DEADLINE_S) -> None:
        self._deadline_s = deadline_s
        # A key's lock is there as long as somebody has it or waits for it.
        self._locks: weakref.WeakValueDictionary[tuple[str, str], asyncio.Lock] = (
            weakref.WeakValueDictionary()
        )

    @contextlib.asynccontextmanager
    async def turn(self, account_id: str, key: str) -> AsyncIterator[float]:
        """Give the block the key to itself, and the seconds left of the request's deadline.

        Raises InFlight if the key is not free by then.
        """
        lock = self._locks.setdefault((account_id, key), asyncio.Lock())
        began_s = time.monotonic()
        try:
            async with asyncio.timeout(self._deadline_s):
                await lock.acquire()
        except TimeoutError:
            raise InFlight from None
        try:
            yield max(0.0, self._deadline_s - (time.monotonic() - began_s))
        finally:
            lock.release()


async def prune_forever(store: Store, *, every_s: float = PRUNE_EVERY_S) -> None:
    """Remove keys that are too old from the store, now and again."""
    while True:
        try:
            await prune_async(store)
        except StoreError as error:
            logger.warning("Old Idempotency-Keys were not removed: %s", error.message)
        await asyncio.sleep(every_s)
