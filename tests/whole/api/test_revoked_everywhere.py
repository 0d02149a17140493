"""A key that no longer counts: from the moment the command ends, in every worker."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

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
from tests.support.api.load import Attempt
from tests.support.api.scenes import Scene, Server

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
