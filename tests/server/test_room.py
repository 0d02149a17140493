"""Creates stop above the disk's end, and begin again by themselves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.room import LOW, Room, free_bytes
from tests.server.builders import Client, a_resume, error_of

FLOOR_BYTES = 1_000_000


class Disk:
    """What is free, and how often that was asked."""

    def __init__(self) -> None:
        self.free_bytes = FLOOR_BYTES
        self.looks = 0

    def __call__(self, _: Path) -> int:
        self.looks += 1
        if self.free_bytes < 0:
            raise OSError
        return self.free_bytes


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def room(disk: Disk, tmp_path: Path) -> Room:
    return Room(tmp_path, floor_bytes=FLOOR_BYTES, find_free_bytes=disk)


def test_the_disk_is_looked_at_once_a_second(room: Room, disk: Disk) -> None:
    assert [room.is_low(100.0 + at / 10) for at in range(10)] == [False] * 10
    assert disk.looks == 1

    room.is_low(101.0)

    assert disk.looks == 2


def test_below_the_floor_it_is_low_until_there_is_room_again(
    room: Room, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    disk.free_bytes -= 1
    assert [room.is_low(at) for at in (1.0, 2.0, 3.0)] == [True, True, True]

    disk.free_bytes += 1
    assert [room.is_low(at) for at in (4.0, 5.0)] == [False, False]

    assert len(caplog.messages) == 2  # told once each
    assert "creates are refused" in caplog.messages[0]
    assert "creates are accepted" in caplog.messages[1]


def test_a_disk_that_does_not_say_has_room(room: Room, disk: Disk) -> None:
    disk.free_bytes = -1

    assert not room.is_low(1.0)


def test_a_floor_of_nothing_is_none(tmp_path: Path) -> None:
    room = Room(tmp_path, floor_bytes=0, find_free_bytes=lambda folder: 0)

    assert not room.is_low()


def test_what_is_free_is_what_the_system_says(tmp_path: Path) -> None:
    assert free_bytes(tmp_path) > 0


@pytest.mark.sqlite("its disk")
def test_creates_are_refused_before_anything_is_read_and_all_else_goes_on(
    a_client: Callable[..., Client], a_key: Callable[..., str]
) -> None:
    key = a_key("ada")
    resume_id = a_client(key).create(a_resume()).json()["id"]
    client = a_client(key, disk_floor_bytes=2**62)

    answer: Any = client.post(b"no json", Content_Type="text/plain")

    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "10"
    assert error_of(answer) == {"error": LOW, "status": 503}
    assert client.page().json()["resumes"][0]["id"] == resume_id
    assert client.get(resume_id).status_code == 200
    assert client.delete(resume_id).status_code == 200
    assert client.request("GET", "/readyz", headers={}).json()["checks"]["disk"] == "failed"


def test_without_a_key_nobody_learns_of_the_disk(a_client: Callable[..., Client]) -> None:
    client = a_client("wrong", disk_floor_bytes=2**62)

    assert client.create(a_resume()).status_code == 401
