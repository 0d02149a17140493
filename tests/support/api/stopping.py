"""Servers that are asked to end while clients send: what they had accepted is answered."""

import time
from typing import NamedTuple

from tests.support.api import load
from tests.support.api.load import Attempt, Client
from tests.support.api.scenes import Scene
from tests.support.api.serving import wait_until

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


class Stop(NamedTuple):
    """A server that ended in order, and what clients had sent to it."""

    took_s: float
    attempts: list[Attempt]


def stop_under_load(scene: Scene, workers: str) -> Stop:
    """SIGTERM, as soon as the clients are at work; the server ends in time, with 0."""
    with scene.served("--workers", workers) as server:
        clients = make_clients(scene, server.url)
        with load.running(clients):
            wait_until(lambda: load.acknowledged(clients) >= 100, within_s=30)
            began_s = time.monotonic()
            assert server.stop(within_s=GRACE_S) == 0
            took_s = time.monotonic() - began_s
        return Stop(took_s, load.attempts_of(clients))


def check_stops(scene: Scene, stops: list[Stop]) -> None:
    """Who sent on a kept connection was answered; what was acknowledged is stored, and no more than
    was sent."""
    attempts = [one for stop in stops for one in stop.attempts]
    stored = sum(bool(one.id) for one in attempts)
    unknown = sum(one.answer is None for one in attempts)
    lost = [f"{one.lost}" for one in attempts if one.was_known and one.lost]
    assert {one.answer.status for one in attempts if one.answer} == {200, 201}
    assert not lost, f"{len(lost)} of {len(attempts)}: {lost[:5]}"
    # A connection made in the very moment of the closing may be lost: it was never accepted.
    assert sum(one.lost is not None for one in attempts) <= len(stops) * (WRITERS + READERS) / 2
    assert stored <= scene.rows() <= stored + unknown
