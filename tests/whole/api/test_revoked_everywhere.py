"""A key that no longer counts: from the moment that it has ended, by a command or by time, in every worker."""

import itertools
import math
import random
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from resumes.store import Store, accounts, api_keys, open_store
from resumes.store.api_keys import NewKey
from tests.support import programs
from tests.support.api import load
from tests.support.api.ended_keys import (
    Ended,
    close_account,
    revoke,
    rotate,
    sending,
    wait_for_requests_after,
)
from tests.support.api.load import Attempt, Client
from tests.support.api.scenes import Scene, Server
from tests.support.postgres import server, url
from tests.support.stores import make_account, make_store_file

pytestmark = pytest.mark.slow

INVALID = "Invalid API key"


class Place(NamedTuple):
    """A home and a server with two workers on it."""

    scene: Scene
    server: Server


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("revoked")
    scene = Scene(folder / "home", folder / "logs")
    with scene.served("--workers", "2") as server:
        yield Place(scene, server)


def _statuses(attempts: list[Attempt]) -> set[int]:
    return {attempt.answer.status for attempt in attempts if attempt.answer}


@pytest.mark.parametrize("end", [revoke, rotate, close_account])
def test_nothing_is_accepted_once_the_command_has_ended(
    place: Place, end: Callable[[Scene, str], Ended]
) -> None:
    scene, server = place
    account = end.__name__.replace("_", "-")
    _, key = scene.add_account(account)
    with sending(server, key) as clients:
        ended = end(scene, account)
        wait_for_requests_after(clients, ended.at_s)
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


def test_a_new_key_counts_in_every_worker_at_once(place: Place) -> None:
    scene, server = place
    key = programs.succeed(scene.home, "keys", "create", "ada").strip()
    wires = server.wires(load.a_request(key))

    answers = [wire.call(load.a_request(key)) for wire in wires]

    assert [answer.status for answer in answers] == [200, 200]
    for wire in wires:
        wire.close()


# Many keys that end one after the other under load, by the hand of another process or by time


__all__ = ["server", "url"]  # fixtures

CLIENTS = 4
AROUND = 4
"""Clients use keys that end soon, or have just ended: so many to either side."""
FIRST_S = 3.0
EVERY_S = 0.02
"""When the first key expires, and how long after it each further one."""


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of the store that the programs of `tmp_path` use."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("url"))
    return make_store_file(tmp_path / "resumes.db")


class Ending:
    """Keys that end in this order, and from when on each is known to have ended."""

    def __init__(self) -> None:
        self.made: list[NewKey] = []
        self.ended_s: list[float] = []
        self._random = random.Random(17)

    def choose(self) -> int:
        """One that ends about now."""
        now_s = time.monotonic()
        ended = sum(at_s <= now_s for at_s in self.ended_s)
        near = ended + self._random.randint(-AROUND, AROUND)
        return max(0, min(near, len(self.made) - 1))


def made_to_be_revoked(store: Store, count: int) -> Ending:
    """Keys that last."""
    ending = Ending()
    for _ in range(count):
        ending.made.append(api_keys.create_key(store, "ana"))
        ending.ended_s.append(math.inf)
    return ending


def made_to_expire(store: Store, count: int) -> Ending:
    """Keys that expire, one soon after the other."""
    ending = Ending()
    began_s = time.monotonic()
    for number in range(count):
        lifetime_s = began_s + FIRST_S + number * EVERY_S - time.monotonic()
        lifetime = timedelta(seconds=lifetime_s)
        ending.made.append(api_keys.create_key(store, "ana", lifetime=lifetime))
        ending.ended_s.append(time.monotonic() + lifetime_s)
    return ending


@pytest.mark.parametrize(
    ("revoked", "expired"), [(40, 20), pytest.param(1_000, 200, marks=pytest.mark.campaign)]
)
def test_no_request_that_begins_after_a_key_has_ended_is_let_in(
    address: str, tmp_path: Path, revoked: int, expired: int
) -> None:
    make_account(address, "ana")
    with open_store(address) as store, programs.serving(tmp_path, "--workers", "2") as api:
        by_hand = made_to_be_revoked(store, revoked)
        by_time = made_to_expire(store, expired)
        kinds = {"hand": by_hand, "time": by_time}

        def make(number: int) -> tuple[str, bytes]:
            name = "time" if number % 3 == 0 else "hand"
            at = kinds[name].choose()
            secret = kinds[name].made[at].secret
            if number % 2:
                return f"{name} {at}", load.a_request(secret)
            return f"{name} {at}", load.a_request(secret, "POST", body=load.a_body(str(number)))

        clients = [Client(api, make) for _ in range(CLIENTS)]
        with load.running(clients):
            for at, key in enumerate(by_hand.made):
                api_keys.revoke_key(store, key.id)
                by_hand.ended_s[at] = time.monotonic()
            while time.monotonic() < by_time.ended_s[-1] + 0.2:
                time.sleep(0.05)
        attempts = load.attempts_of(clients)
        swept = [
            load.call(api, load.a_request(key.secret))
            for key in itertools.chain(by_hand.made, by_time.made)
        ]

        resumes = accounts.get_account(store, "ana").resume_count
    let_in, refused = [], 0
    for one in attempts:
        name, number = one.title.split()
        at = int(number)
        assert one.answer is not None
        if one.began_s > kinds[name].ended_s[at]:
            let_in += [one] if one.answer.status != 401 else []
            refused += 1
        elif name == "hand" and one.answer.status == 401:
            before = kinds[name].ended_s[at - 1] if at else 0.0
            assert one.ended_s > before, "refused before it was revoked"
    assert let_in == []
    assert refused > revoked + expired
    assert {answer.status for answer in swept} == {401}
    assert resumes == load.acknowledged(clients) > 0
