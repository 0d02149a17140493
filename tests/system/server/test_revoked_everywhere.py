"""A key that no longer counts: from the moment the command ends, in every worker."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple

import pytest

from resumes.store import keys
from tests.server.serving import wait_until
from tests.system import programs
from tests.system.server import load
from tests.system.server.load import Attempt, Client
from tests.system.server.scenes import Scene, Server

CONNECTIONS_EACH = 3
"""To each of two workers."""

INVALID = "Invalid API key"
LIFETIME_S = 1.5


class Place(NamedTuple):
    """A home and a server with two workers on it."""

    scene: Scene
    server: Server


class Ended(NamedTuple):
    """When a command that ends a key had returned, and what it printed."""

    at_s: float
    printed: str


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("revoked")
    scene = Scene(folder / "home", folder / "logs")
    with scene.served("--workers", "2") as server:
        yield Place(scene, server)


def _run(scene: Scene, *arguments: str) -> Ended:
    printed = programs.succeed(scene.home, *arguments)
    return Ended(time.monotonic(), printed)


def _key_id(scene: Scene, account: str) -> str:
    with scene.store() as store:
        return keys.list_keys(store, account=account)[0].id


def revoke(scene: Scene, account: str) -> Ended:
    return _run(scene, "keys", "revoke", _key_id(scene, account))


def rotate(scene: Scene, account: str) -> Ended:
    return _run(scene, "keys", "rotate", _key_id(scene, account), "--grace", "0h")


def close_account(scene: Scene, account: str) -> Ended:
    return _run(scene, "accounts", "delete", account, "--with-resumes", "--yes")


@contextmanager
def _sending(server: Server, key: str) -> Iterator[list[Client]]:
    """Clients that create and list in turn, with as many connections to each worker."""

    def make(number: int) -> tuple[str, bytes]:
        if number % 2:
            return "", load.a_request(key)
        return "", load.a_request(key, "POST", body=load.a_body(f"resume {number}"))

    wires = [wire for _ in range(CONNECTIONS_EACH) for wire in server.wires(load.a_request(key))]
    clients = [Client(server.url, make, wire) for wire in wires]
    with load.running(clients):
        wait_until(lambda: all(load.acknowledged([client]) > 3 for client in clients))
        yield clients


def _wait_for_requests_after(clients: list[Client], at_s: float) -> None:
    def sent_since(client: Client) -> int:
        return sum(one.began_s > at_s and one.answer is not None for one in client.attempts)

    wait_until(lambda: all(sent_since(client) > 5 for client in clients))


def _statuses(attempts: list[Attempt]) -> set[int]:
    return {attempt.answer.status for attempt in attempts if attempt.answer}


@pytest.mark.parametrize("end", [revoke, rotate, close_account])
def test_nothing_is_accepted_once_the_command_has_ended(
    place: Place, end: Callable[[Scene, str], Ended]
) -> None:
    scene, server = place
    account = end.__name__.replace("_", "-")
    _, key = scene.add_account(account)
    with _sending(server, key) as clients:
        ended = end(scene, account)
        _wait_for_requests_after(clients, ended.at_s)
    attempts = load.attempts_of(clients)
    before = [one for one in attempts if one.ended_s < ended.at_s]
    after = [one for one in attempts if one.began_s > ended.at_s]

    assert {200, 201} <= _statuses(before) <= {200, 201, 401}
    assert _statuses(after) == {401}
    assert {one.answer.json["error"] for one in after if one.answer} == {INVALID}
    assert not any(one.lost for one in attempts)
    if end is rotate:
        new = load.a_request(ended.printed.strip())
        assert load.call(server.url, new).status == 200


def test_a_key_expires_in_every_worker_at_its_time(place: Place) -> None:
    scene, server = place
    scene.add_account("expiring")
    with scene.store() as store:
        lifetime = timedelta(seconds=LIFETIME_S)
        key = keys.create_key(store, "expiring", lifetime=lifetime).secret
    expired_s = time.monotonic() + LIFETIME_S
    with _sending(server, key) as clients:
        _wait_for_requests_after(clients, expired_s)
    attempts = load.attempts_of(clients)

    assert 201 in _statuses([one for one in attempts if one.ended_s < expired_s])
    assert _statuses([one for one in attempts if one.began_s > expired_s]) == {401}


def test_a_new_key_counts_in_every_worker_at_once(place: Place) -> None:
    scene, server = place
    key = programs.succeed(scene.home, "keys", "create", "ada").strip()
    wires = server.wires(load.a_request(key))

    answers = [wire.call(load.a_request(key)) for wire in wires]

    assert [answer.status for answer in answers] == [200, 200]
    for wire in wires:
        wire.close()
