"""Servers that are killed, or asked to end, while clients write and read, and what is left afterwards."""

import itertools
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.api import load
from tests.support.api.ended_servers import (
    GRACE_S,
    KINDS,
    SHORT,
    check,
    check_stops,
    live_through,
    stop_under_load,
)
from tests.support.api.load import Answer, Wire
from tests.support.api.scenes import Scene

LONG = 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "kills",
    [SHORT, pytest.param(LONG, marks=pytest.mark.campaign(minutes=6))],
    ids=["short", "long"],
)
def test_what_was_acknowledged_is_there_once_and_whole(tmp_path: Path, kills: int) -> None:
    """Half of the servers have two workers."""
    check(live_through(tmp_path, itertools.islice(itertools.cycle(KINDS), kills), random.Random(1)))


# A server that is asked to end while clients send: what it had accepted is answered


STOPS = 50

ONE_AND_TWO_WORKERS = pytest.mark.parametrize(
    "workers", ["1", pytest.param("2", marks=pytest.mark.campaign)]
)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "home", tmp_path / "logs")


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, pytest.param(STOPS, marks=pytest.mark.campaign(minutes=3))])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_was_accepted_is_answered_and_stored(scene: Scene, workers: str, times: int) -> None:
    check_stops(scene, [stop_under_load(scene, workers) for _ in range(times)])


@pytest.mark.slow
@ONE_AND_TWO_WORKERS
def test_pipelined_requests_are_answered_up_to_the_one_that_says_close(
    scene: Scene, workers: str
) -> None:
    requests = [
        load.a_request(scene.key, "POST", body=load.a_body(f"resume {n}")) for n in range(200)
    ]
    with scene.served("--workers", workers) as server, Wire(server.url) as wire:
        wire.send(b"".join(requests))
        answers = [wire.read_answer()]
        server.process.send_signal(signal.SIGTERM)
        answers += _rest(wire)

        assert server.process.wait(GRACE_S) == 0

    assert {answer.status for answer in answers} == {201}
    assert len(answers) == len(requests) or answers[-1].headers["connection"] == "close"
    assert scene.rows() == len(answers)


def _rest(wire: Wire) -> Iterator[Answer]:
    """Answers until the server closes the connection in order; a reset would lose some."""
    while not wire.has_ended():
        yield wire.read_answer()


@pytest.mark.slow
@ONE_AND_TWO_WORKERS
def test_half_a_body_on_another_connection_delays_nobody(scene: Scene, workers: str) -> None:
    whole = load.a_request(scene.key, "POST", body=load.a_body("half"))
    with scene.served("--workers", workers) as server, Wire(server.url) as wire:
        wire.send(whole[:-10])
        assert load.call(server.url, load.a_request(scene.key)).status == 200

        assert server.stop(within_s=GRACE_S) == 0
    assert scene.rows() == 0
