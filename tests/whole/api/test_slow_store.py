"""A store that somebody else keeps from being written: creates end at their deadline, reads go on."""

import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.api import load
from tests.support.api.load import Answer, Client
from tests.support.api.scenes import Scene, is_unavailable, stopped

DEADLINE_S = 10.0
"""How long a create waits for its turn."""

SLACK_S = 3.0
CREATES = 8
READ_MEDIAN_S = 0.05

HOLDER = """
    import fcntl, sys
    from resumes.store import open_store
    from resumes.store.sqlite.driver import dbapi

    def hold(*_):
        print("held", flush=True)
        sys.stdin.read()

    what, path = sys.argv[1:]
    if what == "file lock":
        file = open(path + ".writer")
        fcntl.flock(file, fcntl.LOCK_EX)
        hold()
    if what == "transaction":
        connection = dbapi.connect(path, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        hold()
    if what == "stopped in a write":
        with open_store(f"sqlite:///{path}") as store:
            store.write(hold)
"""


@contextmanager
def held(scene: Scene, hindrance: str) -> Iterator[None]:
    """The store cannot be written during the block."""
    command = [sys.executable, "-c", textwrap.dedent(HOLDER), hindrance]
    with subprocess.Popen(
        [*command, str(scene.home / "resumes.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        try:
            with stopped([holder.pid] if hindrance == "stopped in a write" else []):
                yield
        finally:
            holder.stdin.close()


@pytest.mark.timing
@pytest.mark.parametrize("hindrance", ["file lock", "transaction", "stopped in a write"])
def test_creates_are_503_by_their_deadline_for_good_and_reads_go_on(
    tmp_path: Path, hindrance: str
) -> None:
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with scene.served() as server, ThreadPoolExecutor(CREATES) as pool:

        def create(title: str) -> tuple[Answer, float]:
            began_s = time.monotonic()
            data = load.a_request(scene.key, "POST", body=load.a_body(title))
            return load.call(server.url, data), time.monotonic() - began_s

        read = load.a_request(scene.key)
        reader = Client(server.url, lambda number: ("", read), pause_s=0.02)
        with load.running([reader]), held(scene, hindrance):
            creates = list(pool.map(create, ["meanwhile"] * CREATES))
        # What was put off, not refused, would come now, before a create that comes later still.
        later = [create("later")[0].status, create("last")[0].status]

    for answer, took_s in creates:
        assert is_unavailable(answer), answer
        assert took_s < DEADLINE_S + SLACK_S
    assert later == [201, 201]
    assert scene.rows() == 2
    reads_s = [one.ended_s - one.began_s for one in reader.attempts]
    assert {one.answer.status for one in reader.attempts if one.answer} == {200}
    assert len(reads_s) > 20
    assert statistics.median(reads_s) < READ_MEDIAN_S
    assert max(reads_s) < SLACK_S
