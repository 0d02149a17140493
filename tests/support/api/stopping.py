"""Clients of a server that is about to be asked to end, and how long it may take."""

from tests.support.api import load
from tests.support.api.load import Client
from tests.support.api.scenes import Scene

WRITERS = 4
READERS = 2
GRACE_S = 6
"""A stop takes no longer than this while every client goes on; half a body is given 2 s."""


def make_clients(scene: Scene, url: str) -> list[Client]:
    """Some create and some list, as fast as they can."""

    def write(number: int) -> tuple[str, bytes]:
        title = f"resume {number}"
        return title, load.a_request(scene.key, "POST", body=load.a_body(title))

    def read(number: int) -> tuple[str, bytes]:
        return "", load.a_request(scene.key)

    return [Client(url, write) for _ in range(WRITERS)] + [
        Client(url, read) for _ in range(READERS)
    ]
