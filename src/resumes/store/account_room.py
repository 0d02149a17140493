"""Whether the disk of a store has room for an account that is to come in.

A store whose disk is full to the last byte cannot even let go of what filled it. So the room is
looked at before anything is stored, and again on the way: others fill the disk too.
"""

import shutil
from typing import Final

from resumes.errors import StoreUnavailable
from resumes.store.engine import Store

LOG_BYTES: Final = 64 * 1024 * 1024
"""What the log beside a store may come to while much is written,"""

LEAST_BYTES: Final = 256 * 1024
"""and what a store needs for its tables and indexes, however little comes in."""

SLICE_TIMES: Final = 3
"""A slice is written to the log and copied into the store; and what it takes to let go of it."""


def check_room(store: Store, size_bytes: int) -> None:
    """There is room for an account whose file has so many bytes. Raises StoreUnavailable.

    Of a server's disk nothing is known.
    """
    _check_room_for(store, size_bytes + min(size_bytes, LOG_BYTES))


def check_room_for_slice(store: Store, size_bytes: int) -> None:
    """There is room for rows of so many bytes, and to delete them again. Raises StoreUnavailable."""
    _check_room_for(store, SLICE_TIMES * size_bytes)


def _check_room_for(store: Store, needed_bytes: int) -> None:
    if store.path is None:
        return
    needed_bytes += LEAST_BYTES
    free_bytes = shutil.disk_usage(store.path.parent).free
    if free_bytes < needed_bytes:
        raise StoreUnavailable(
            f"{store.path.parent} has {free_bytes / 1e6:,.1f} MB of free space, and about "
            f"{needed_bytes / 1e6:,.1f} MB are needed. Make room, then import the file again"
        )
