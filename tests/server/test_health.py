"""Whether the process lives, and whether it can serve."""

import asyncio
from pathlib import Path

import pytest

from resumes.store import Store
from server.health import Check, Health
from server.room import Room
from tests.importer.builders import a_full_disk, wait_until
from tests.resumes.store.builders import hold_lane, lose_table, sqlite_of
from tests.server.builders import Client, error_of

pytestmark = pytest.mark.engines

ALL_WELL = {"read": "ok", "write": "ok", "disk": "ok"}


class Seconds:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def ask(client: Client, path: str, method: str = "GET") -> tuple[int, object]:
    """The status and the body of an answer to somebody without a key."""
    answer = client.request(method, path, headers={})
    return answer.status_code, answer.json()


def test_a_process_that_answers_is_alive(client: Client) -> None:
    assert ask(client, "/healthz") == (200, {"status": "ok"})


def test_a_server_whose_store_works_is_ready(client: Client) -> None:
    assert ask(client, "/readyz") == (200, {"status": "ready", "checks": ALL_WELL})


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_another_method_is_405(client: Client, path: str) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        answer = client.request(method, path, headers={})

        assert answer.status_code == 405
        assert answer.headers["Allow"] == "GET"
        assert error_of(answer) == {"error": "Method Not Allowed", "status": 405}


def test_with_a_lane_that_has_ended_it_is_alive_and_not_ready(client: Client, store: Store) -> None:
    store.lane.close()

    answer = client.request("GET", "/readyz", headers={})

    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"
    assert answer.json() == {"status": "not ready", "checks": ALL_WELL | {"write": "failed"}}
    assert ask(client, "/healthz")[0] == 200


@pytest.mark.sqlite("its disk")
def test_on_a_disk_that_takes_no_more_it_is_not_ready(client: Client, store: Store) -> None:
    log = sqlite_of(store).path.with_name(sqlite_of(store).path.name + "-wal")

    with a_full_disk(log.stat().st_size if log.exists() else 0):
        status, body = ask(client, "/readyz")

    assert (status, body) == (
        503,
        {"status": "not ready", "checks": ALL_WELL | {"write": "failed"}},
    )


def test_a_store_that_cannot_be_read_is_not_ready(client: Client, store: Store) -> None:
    lose_table(store, "plans")

    status, body = ask(client, "/readyz")

    assert status == 503
    assert body == {"status": "not ready", "checks": ALL_WELL | {"read": "failed"}}


def test_one_look_serves_all_who_ask_within_a_second(store: Store, tmp_path: Path) -> None:
    clock = Seconds()
    batches: list[int] = []
    store.lane.observe = lambda writes, took_s: batches.append(writes)

    async def look() -> None:
        health = Health(store, Room(tmp_path, floor_bytes=0), clock=clock)
        first = await asyncio.gather(*[health.find_checks() for _ in range(20)])
        clock.now_s = 0.999
        assert await health.find_checks() == first[0] == dict.fromkeys(ALL_WELL, Check.OK)
        wait_until(lambda: len(batches) == 1)  # told behind the answer

        clock.now_s = 1.0
        await health.find_checks()
        await health.close()

    asyncio.run(look())
    store.lane.close()
    assert len(batches) == 2


def test_a_lane_that_is_held_is_not_waited_for(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.health.PROBE_S", 1.0)
    go_on, holder = hold_lane(store)

    async def look() -> None:
        health = Health(store, Room(tmp_path, floor_bytes=0))
        checks = await health.find_checks()
        assert checks == {"read": Check.OK, "write": Check.FAILED, "disk": Check.OK}
        await health.close()

    asyncio.run(look())
    go_on.set()
    holder.join()


def test_a_client_that_leaves_does_not_end_the_look_of_others(store: Store, tmp_path: Path) -> None:
    async def look() -> None:
        health = Health(store, Room(tmp_path, floor_bytes=0))
        leaving = asyncio.create_task(health.find_checks())
        staying = asyncio.create_task(health.find_checks())
        await asyncio.sleep(0)
        leaving.cancel()
        assert Check.FAILED not in (await staying).values()
        await health.close()

    asyncio.run(look())
