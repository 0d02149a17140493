"""Commands that end a key, and clients that use it meanwhile."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from resumes.store import api_keys
from tests.support import programs
from tests.support.api import load
from tests.support.api.load import Client
from tests.support.api.scenes import Scene, Server
from tests.support.api.serving import wait_until

CONNECTIONS_EACH = 3
"""To each of two workers."""


class Ended(NamedTuple):
    """When a command that ends a key had returned, and what it printed."""

    at_s: float
    printed: str


def _run(scene: Scene, *arguments: str) -> Ended:
    printed = programs.succeed(scene.home, *arguments)
    return Ended(time.monotonic(), printed)


def _key_id(scene: Scene, account: str) -> str:
    with scene.store() as store:
        return api_keys.list_keys(store, account=account)[0].id


def revoke(scene: Scene, account: str) -> Ended:
    """The account\'s key is revoked."""
    return _run(scene, "keys", "revoke", _key_id(scene, account), "--yes")


def rotate(scene: Scene, account: str) -> Ended:
    """The account has another key, and the old one no grace."""
    return _run(scene, "keys", "rotate", _key_id(scene, account), "--grace", "0h")


def close_account(scene: Scene, account: str) -> Ended:
    """The account is deleted with all its resumes."""
    return _run(scene, "accounts", "delete", account, "--with-resumes", "--yes")


@contextmanager
def sending(server: Server, key: str) -> Iterator[list[Client]]:
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


def wait_for_requests_after(clients: list[Client], at_s: float) -> None:
    """Each client was answered some requests that it began after that time."""

    def sent_since(client: Client) -> int:
        return sum(one.began_s > at_s and one.answer is not None for one in client.attempts)

    wait_until(lambda: all(sent_since(client) > 5 for client in clients))
