"""A store that somebody else keeps from being written: creates end at their deadline, reads go on."""

import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

import pytest

from tests.support.api import load
from tests.support.api.load import Answer, Attempt, Client
from tests.support.api.scenes import Scene, Server, is_unavailable, stopped

pytestmark = pytest.mark.timing

DEADLINE_S = 10.0
"""How long a create waits for its turn."""

SLACK_S = 3.0
CREATES = 8
READ_MEDIAN_S = 0.05


class Hindrance(StrEnum):
    """What keeps a server from writing."""

    FILE_LOCK = "another process keeps the file lock"
    TRANSACTION = "another program has begun a transaction"
    STOPPED = "a process was stopped in the middle of a write"


HOLDER = """
    import fcntl, sys
    from resumes.store.sqlite.driver import dbapi

    what, path = sys.argv[1:]
    if what == "FILE_LOCK":
        file = open(path + ".writer")
        fcntl.flock(file, fcntl.LOCK_EX)
    if what == "TRANSACTION":
        connection = dbapi.connect(path, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
    if what == "STOPPED":
        from resumes.store import open_store

        def wait(connection):
            print("held", flush=True)
            sys.stdin.read()

        with open_store(f"sqlite:///{path}") as store:
            store.write(wait)
    else:
        print("held", flush=True)
        sys.stdin.read()
"""


@dataclass
class Outcome:
    """What clients met while a store could not be written, and what came of it."""

    creates: list[tuple[Answer, float]] = field(default_factory=list)
    """Each answer, and the seconds until it came."""
    reads: list[Attempt] = field(default_factory=list)
    rows_before: int = 0
    rows_when_free: int = 0
    """Once the store could be written again and a later create was acknowledged."""
    later: Answer | None = None


@contextmanager
def _held(scene: Scene, hindrance: Hindrance) -> Iterator[None]:
    """The store cannot be written during the block."""
    arguments = [hindrance.name, str(scene.home / "resumes.db")]
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        try:
            with stopped([holder.pid] if hindrance is Hindrance.STOPPED else []):
                yield
        finally:
            holder.stdin.close()


def _create(scene: Scene, server: Server, title: str) -> tuple[Answer, float]:
    began_s = time.monotonic()
    data = load.a_request(scene.key, "POST", body=load.a_body(title))
    return load.call(server.url, data), time.monotonic() - began_s


def _play(scene: Scene, hindrance: Hindrance) -> Outcome:
    outcome = Outcome()
    with scene.served() as server, ThreadPoolExecutor(CREATES) as pool:
        _create(scene, server, "before")
        outcome.rows_before = scene.rows()
        read = load.a_request(scene.key)
        reader = Client(server.url, lambda number: ("", read), pause_s=0.02)
        with load.running([reader]), _held(scene, hindrance):
            titles = [f"meanwhile {number}" for number in range(CREATES)]
            outcome.creates = list(pool.map(lambda title: _create(scene, server, title), titles))
        outcome.reads = reader.attempts
        outcome.later, _ = _create(scene, server, "later")
        # What was put off, not refused, would come now, before a create that comes later still.
        _create(scene, server, "last")
        outcome.rows_when_free = scene.rows()
    return outcome


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[Hindrance, Outcome]:
    """What came of each hindrance; all at the same time, since each takes the deadline's time."""
    folder = tmp_path_factory.mktemp("slow")
    scenes = {one: Scene(folder / one.name, folder / f"{one.name}-logs") for one in Hindrance}
    with ThreadPoolExecutor(len(scenes)) as pool:
        played = pool.map(lambda one: _play(scenes[one], one), scenes)
        return dict(zip(scenes, played, strict=True))


@pytest.fixture(params=Hindrance, ids=lambda one: one.name.lower())
def outcome(request: pytest.FixtureRequest, outcomes: dict[Hindrance, Outcome]) -> Outcome:
    return outcomes[request.param]


def test_creates_are_answered_503_by_their_deadline(outcome: Outcome) -> None:
    assert len(outcome.creates) == CREATES
    for answer, took_s in outcome.creates:
        assert is_unavailable(answer), answer
        assert took_s < DEADLINE_S + SLACK_S


def test_reads_go_on_meanwhile(outcome: Outcome) -> None:
    took_s = [one.ended_s - one.began_s for one in outcome.reads]

    assert {one.answer.status for one in outcome.reads if one.answer} == {200}
    assert len(took_s) > 20
    assert statistics.median(took_s) < READ_MEDIAN_S
    assert max(took_s) < SLACK_S


def test_what_was_answered_503_is_not_done_later(outcome: Outcome) -> None:
    assert outcome.later is not None
    assert outcome.later.status == 201
    assert outcome.rows_when_free == outcome.rows_before + 2
