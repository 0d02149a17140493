"""Servers that are killed, or asked to end, while clients write and read, and what is left behind."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from server.connection import SETTLE_S
from tests.support.api import load
from tests.support.api.load import Attempt, Client
from tests.support.api.scenes import Scene, Server, page_of
from tests.support.api.serving import wait_until

Kill = Callable[[Server, list[Client]], None]

WRITERS = 4
SHORT = 6

REPEATED_ACKNOWLEDGED = 2
"""Of each round's acknowledged creates so many are sent again, as if the answer had been lost."""


@dataclass
class History:
    """What all rounds of one campaign left behind."""

    scene: Scene
    acknowledged: dict[str, Attempt] = field(default_factory=dict)
    """By the id that the client was told."""
    unknown: list[Attempt] = field(default_factory=list)
    repeats: list[tuple[Attempt, str, bool]] = field(default_factory=list)
    """What was sent again, the id that came, and whether the answer calls itself a replay."""
    seen: list[str] = field(default_factory=list)
    """What a reader saw who always goes on with the last id."""
    statuses: set[int] = field(default_factory=set)
    listed: list[tuple[str, str]] = field(default_factory=list)
    """Ids and titles of all pages in the end."""


def kill_all(server: Server, clients: list[Client]) -> None:
    """One process is all of the server."""
    server.kill()


def kill_supervisor(server: Server, clients: list[Client]) -> None:
    """Its workers are left behind, and end by themselves."""
    server.kill()  # returns when they are gone


def kill_worker(server: Server, clients: list[Client]) -> None:
    """One of two workers is killed; the clients go on while it is replaced."""
    killed = server.workers[0]
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: len({*server.workers} - {killed}) == 2, within_s=30)
    goal = load.acknowledged(clients) + 10 * WRITERS
    wait_until(lambda: load.acknowledged(clients) >= goal, within_s=30)
    server.kill()


def run_round(history: History, number: int, kill: Kill, chance: random.Random) -> None:
    """A server was killed while clients wrote and read; the history goes on with what they saw."""
    scene = history.scene
    flags = () if kill is kill_all else ("--workers", "2")
    with scene.served(*flags) as server:
        send_again(history, server)
        writers = [
            load.writer(server.url, scene.key, f"{number}-{n}", is_safe=True)
            for n in range(WRITERS)
        ]
        reader = a_reader(scene.key, server.url, history.seen)
        with load.running([*writers, reader]):
            enough = chance.randint(20, 200)
            wait_until(lambda: load.acknowledged(writers) >= enough, within_s=30)
            kill(server, writers)
    attempts = load.attempts_of(writers)
    history.statuses |= {one.answer.status for one in attempts if one.answer}
    history.acknowledged |= {one.id: one for one in attempts if one.id}
    history.unknown = [one for one in attempts if one.answer is None]


def a_reader(key: str, url: str, seen: list[str], *, pause_s: float = 0) -> Client:
    """Goes on with the last id that it saw, and keeps what it sees."""
    client: Client

    def make(number: int) -> tuple[str, bytes]:
        last = client.attempts[-1].answer if client.attempts else None
        if last is not None:
            seen.extend(entry["id"] for entry in last.json["resumes"])
        return "", load.a_request(key, path=page_of(seen[-1] if seen else ""))

    client = Client(url, make, pause_s=pause_s)
    return client


def send_again(history: History, server: Server) -> None:
    """What has no outcome yet is sent once more, as a client does; some that have one, too."""
    known = list(history.acknowledged.values())[-REPEATED_ACKNOWLEDGED:]
    for attempt in [*history.unknown, *known]:
        answer = load.call(server.url, attempt.data)
        assert answer.status == 201, answer
        is_replay = answer.headers.get("idempotent-replayed") == "true"
        history.repeats.append((attempt, answer.json["id"], is_replay))
    history.unknown = []


KINDS: Final[tuple[Kill, ...]] = (kill_all, kill_supervisor, kill_all, kill_worker)


def live_through(folder: Path, kills: Iterable[Kill], chance: random.Random) -> History:
    """What is left of a store whose server was killed in each of these ways, one after the other."""
    history = History(Scene(folder / "home", folder / "logs"))
    for number, kill in enumerate(kills):
        run_round(history, number, kill, chance)
    with history.scene.served() as server:
        send_again(history, server)
        history.listed = history.scene.walk(server.url)
    return history


def check(history: History) -> None:
    """What was acknowledged is there, whole and once, and no client was told of an error."""
    scene, told = history.scene, history.acknowledged
    assert len(told) > SHORT * WRITERS
    assert history.statuses == {201}
    with scene.store() as store:
        for resume_id, attempt in told.items():
            assert scene.is_whole(store, resume_id, attempt.title)

    # The counter is the rows, and all pages show each once and in order.
    listed = [resume_id for resume_id, _ in history.listed]
    assert len(listed) == scene.rows()
    assert listed == sorted(set(listed))
    assert set(told) <= set(listed)

    # A reader that goes on with its last id has missed nothing.
    assert len(history.seen) > WRITERS
    assert [*history.seen, *(one for one in listed if one > history.seen[-1])] == listed

    # What was sent again was done once.
    ids = {attempt.title: attempt.id for attempt in told.values()}
    titles = [title for _, title in history.listed]
    assert len(titles) == len(set(titles))
    for attempt, resume_id, is_replay in history.repeats:
        if attempt.title in ids:
            assert (resume_id, is_replay) == (ids[attempt.title], True)
    assert any(is_replay for _, _, is_replay in history.repeats)


# Servers that are asked to end


READERS = 2
GRACE_S = 6
"""A stop takes no longer than this while every client goes on; half a body is given 2 s."""


def make_clients(scene: Scene, url: str) -> list[Client]:
    """Some create and some list, as fast as they can."""
    data = load.a_request(scene.key)
    return [
        *(load.writer(url, scene.key, "") for _ in range(WRITERS)),
        *(Client(url, lambda number: ("", data)) for _ in range(READERS)),
    ]


class Stop(NamedTuple):
    """A server that ended in order, and what clients had sent to it."""

    asked_s: float
    took_s: float
    attempts: list[Attempt]

    @property
    def lost(self) -> list[str]:
        """What was sent on a kept connection while one may, and was not answered.

        A client that has said nothing for a while may send into the closing of its connection.
        """
        return [
            str(one.lost)
            for one in self.attempts
            if one.was_known and one.lost and one.began_s < self.asked_s + SETTLE_S
        ]


def stop_under_load(scene: Scene, workers: str) -> Stop:
    """SIGTERM, as soon as the clients are at work; the server ends in time, with 0."""
    with scene.served("--workers", workers) as server:
        clients = make_clients(scene, server.url)
        with load.running(clients):
            wait_until(lambda: load.acknowledged(clients) >= 100, within_s=30)
            began_s = time.monotonic()
            assert server.stop(within_s=GRACE_S) == 0
            took_s = time.monotonic() - began_s
        return Stop(began_s, took_s, load.attempts_of(clients))


def check_stops(scene: Scene, stops: list[Stop]) -> None:
    """Who sent on a kept connection was answered; what was acknowledged is stored, and no more than
    was sent."""
    attempts = [one for stop in stops for one in stop.attempts]
    stored = sum(bool(one.id) for one in attempts)
    unknown = sum(one.answer is None for one in attempts)
    lost = [why for stop in stops for why in stop.lost]
    assert {one.answer.status for one in attempts if one.answer} == {200, 201}
    assert not lost, f"{len(lost)} of {len(attempts)}: {lost[:5]}"
    # A connection made in the very moment of the closing may be lost: it was never accepted.
    assert sum(one.lost is not None for one in attempts) <= len(stops) * (WRITERS + READERS) / 2
    assert stored <= scene.rows() <= stored + unknown
