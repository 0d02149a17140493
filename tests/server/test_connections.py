import asyncio
import subprocess
import sys

import pytest

from resumes.settings import Settings
from server.connections import MIB, REFUSED_AT_ONCE, Connections, find_room


class Noted:
    """A connection that notes when it was looked at."""

    def __init__(self) -> None:
        self.looks: list[float] = []

    def look(self, now_s: float) -> None:
        self.looks.append(now_s)


def changed(settings: Settings, **changes: object) -> Settings:
    return settings.model_copy(update=changes)


def test_every_connection_is_looked_at_again_and_again(settings: Settings) -> None:
    open_one, refused_one, gone = Noted(), Noted(), Noted()

    async def run() -> None:
        connections = Connections(changed(settings, client_timeout_s=0.02))
        connections.add(open_one)
        connections.add(refused_one, is_refused=True)
        connections.add(gone)
        connections.discard(gone)
        async with asyncio.timeout(10):
            while min(len(open_one.looks), len(refused_one.looks)) < 3:
                await asyncio.sleep(0)

    asyncio.run(run())

    assert open_one.looks == sorted(open_one.looks)
    assert gone.looks == []


def test_nothing_is_looked_at_without_connections(settings: Settings) -> None:
    async def run() -> bool:
        connections = Connections(changed(settings, client_timeout_s=0.001))
        connections.add(one := Noted())
        connections.discard(one)
        async with asyncio.timeout(10):
            while connections._timer is not None:
                await asyncio.sleep(0)
        connections.add(one)
        return connections._timer is not None

    assert asyncio.run(run())


def test_a_process_that_was_held_up_judges_nobody_before_it_has_caught_up(
    settings: Settings,
) -> None:
    async def run() -> tuple[int, int]:
        loop = asyncio.get_running_loop()
        connections = Connections(changed(settings, client_timeout_s=1))
        connections.add(one := Noted())
        connections._due_s = loop.time() - 10
        connections._look(loop)
        late = len(one.looks)
        connections._look(loop)
        connections.discard(one)
        return late, len(one.looks)

    assert asyncio.run(run()) == (0, 1)


def test_there_are_as_many_as_is_set(settings: Settings) -> None:
    async def run() -> list[tuple[int, bool]]:
        connections = Connections(changed(settings, max_connections=2))
        first, second = Noted(), Noted()
        seen = []
        for change, one in [
            (connections.add, first),
            (connections.add, second),
            (connections.discard, first),
        ]:
            change(one)
            seen.append((len(connections), connections.is_full))
        return seen

    assert asyncio.run(run()) == [(1, False), (2, True), (1, False)]


def test_refused_ones_take_no_place_and_are_not_without_number(settings: Settings) -> None:
    async def run() -> None:
        connections = Connections(settings)
        for _ in range(REFUSED_AT_ONCE):
            assert not connections.is_overrun
            connections.add(Noted(), is_refused=True)
        assert connections.is_overrun
        assert len(connections) == 0

    asyncio.run(run())


@pytest.mark.parametrize(
    ("memory_bytes", "body_bytes", "expected"),
    [(64 * MIB, 2 * MIB, 64 * MIB), (MIB, 2 * MIB, 3 * MIB)],
)
def test_the_largest_body_always_fits(
    settings: Settings, memory_bytes: int, body_bytes: int, expected: int
) -> None:
    given = changed(settings, body_memory_bytes=memory_bytes, max_body_bytes=body_bytes)

    assert Connections(given).max_body_bytes == expected


ROOM = """
import resource, sys
from server.connections import find_room
soft, hard = int(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(find_room(1_000), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("soft", "hard", "room"),
    [(2_000, 3_000, "1000 2000"), (200, 2_000, "1000 1228"), (200, 500, "272 500"),
     (100, 100, "1 100")],
)  # fmt: skip
def test_the_files_of_a_process_limit_its_connections(soft: int, hard: int, room: str) -> None:
    arguments = [sys.executable, "-c", ROOM, str(soft), str(hard)]

    done = subprocess.run(arguments, capture_output=True, text=True, check=True)

    assert done.stdout.split() == room.split()


def test_what_is_wanted_is_had_where_there_is_room() -> None:
    assert find_room(10) == 10
