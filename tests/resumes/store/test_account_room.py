"""Whether the disk of a store has room for an account."""

import shutil
from typing import NamedTuple

import pytest

from resumes.errors import StoreUnavailable
from resumes.store import Store
from resumes.store.account_room import LEAST_BYTES, LOG_BYTES, check_room, check_room_for_slice


class Disk(NamedTuple):
    free: int


def has_room(store: Store, free: int, monkeypatch: pytest.MonkeyPatch, size_bytes: int) -> bool:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(free))
    try:
        check_room(store, size_bytes)
    except StoreUnavailable:
        return False
    return True


@pytest.mark.sqlite("a server's disk is not known")
@pytest.mark.parametrize(
    ("size_bytes", "needed_bytes"),
    [
        (0, LEAST_BYTES),
        (1_000, 2_000 + LEAST_BYTES),
        (LOG_BYTES, 2 * LOG_BYTES + LEAST_BYTES),
        (10 * LOG_BYTES, 11 * LOG_BYTES + LEAST_BYTES),
    ],
)
def test_there_has_to_be_room_for_the_rows_and_the_log(
    store: Store, monkeypatch: pytest.MonkeyPatch, size_bytes: int, needed_bytes: int
) -> None:
    assert has_room(store, needed_bytes, monkeypatch, size_bytes)
    assert not has_room(store, needed_bytes - 1, monkeypatch, size_bytes)


@pytest.mark.sqlite("a server's disk is not known")
def test_a_slice_needs_room_to_be_deleted_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(LEAST_BYTES + 2_999))
    check_room_for_slice(store, 999)
    with pytest.raises(StoreUnavailable, match=r"0\.3 MB of free space"):
        check_room_for_slice(store, 1_000)
