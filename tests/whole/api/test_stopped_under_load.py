"""A server that is asked to end while clients send: what it had accepted is answered."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.api import load
from tests.support.api.load import Answer, Attempt, Wire
from tests.support.api.scenes import Scene
from tests.support.api.serving import wait_until
from tests.support.api.stopping import GRACE_S, READERS, WRITERS, make_clients

pytestmark = pytest.mark.slow

LONG = 50

ONE_AND_TWO_WORKERS = pytest.mark.parametrize(
    "workers", ["1", pytest.param("2", marks=pytest.mark.campaign)]
)


class Stops(NamedTuple):
    """Servers that were stopped under load, one after the other."""

    attempts: list[Attempt]
    """All that was sent to them."""
    rows: int
    """Resumes in their store in the end."""
    times: int
    workers: str


@pytest.fixture(
    scope="module",
    params=[
        ("1", 1),
        ("2", 1),
        pytest.param(("1", LONG), marks=pytest.mark.campaign(minutes=3)),
        pytest.param(("2", LONG), marks=pytest.mark.campaign(minutes=3)),
    ],
    ids=lambda param: f"{param[0]} workers, {param[1]} stops",
)
def stops(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stops:
    workers, times = request.param
    folder = tmp_path_factory.mktemp("stopped")
    scene = Scene(folder / "home", folder / "logs")
    runs = [_stop_under_load(scene, "--workers", workers) for _ in range(times)]
    return Stops([attempt for run in runs for attempt in run], scene.rows(), times, workers)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "home", tmp_path / "logs")


def _stop_under_load(scene: Scene, *flags: str) -> list[Attempt]:
    """What the clients sent to a server that ended in order, in time, with 0."""
    with scene.served(*flags) as server:
        clients = make_clients(scene, server.url)
        with load.running(clients):
            wait_until(lambda: load.acknowledged(clients) >= 100, within_s=30)
            assert server.stop(within_s=GRACE_S) == 0
        return load.attempts_of(clients)


def test_who_sends_on_a_kept_connection_is_answered(stops: Stops) -> None:
    statuses = {one.answer.status for one in stops.attempts if one.answer}
    lost = [f"{one.lost}" for one in stops.attempts if one.was_known and one.lost]

    assert statuses == {200, 201}
    assert not lost, f"{len(lost)} of {len(stops.attempts)}: {lost[:5]}"


def test_who_connects_meanwhile_is_refused_and_not_reset(stops: Stops) -> None:
    # A connection made in the very moment of the closing may be lost: it was never accepted.
    lost = [one for one in stops.attempts if one.lost and not one.was_known]

    assert len(lost) <= stops.times * (WRITERS + READERS) / 2


def test_what_was_acknowledged_is_stored_and_no_more_than_was_sent(stops: Stops) -> None:
    stored = sum(bool(one.id) for one in stops.attempts)
    unknown = sum(one.answer is None for one in stops.attempts)

    assert stored <= stops.rows <= stored + unknown


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


@ONE_AND_TWO_WORKERS
def test_half_a_body_on_another_connection_delays_nobody(scene: Scene, workers: str) -> None:
    whole = load.a_request(scene.key, "POST", body=load.a_body("half"))
    with scene.served("--workers", workers) as server, Wire(server.url) as wire:
        wire.send(whole[:-10])
        assert load.call(server.url, load.a_request(scene.key)).status == 200

        assert server.stop(within_s=GRACE_S) == 0
    assert scene.rows() == 0
