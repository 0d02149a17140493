"""Many at once: writers, a reader that takes long, clients for the last place, first starts."""

import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from resumes.store import open_store
from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.engines import Engine
from tests.server.serving import wait_until
from tests.system import last_place, programs
from tests.system.server import full_disks, load
from tests.system.server.load import Attempt, Client
from tests.system.server.scenes import Scene

MIB = 1024 * 1024
SERVERS = 3
WRITERS = 8
WRITING_S = 12
"""How long the many write."""
READING_S = 12
"""How long one reading lasts."""
BOUNDED_BYTES = 64 * MIB
"""What the log may be when nobody holds it back: beyond half of it is cut."""
LAST_PLACES = 15
STARTS = 6
FIRST_STARTS = 5
"""How often as many programs as STARTS begin with nothing."""


def took_ms(attempts: Sequence[Attempt]) -> list[float]:
    """How long each answer took, the slowest last."""
    return sorted((one.ended_s - one.began_s) * 1_000 for one in attempts)


def p99_ms(attempts: Sequence[Attempt]) -> float:
    """What 99 of 100 answers took at most."""
    return statistics.quantiles(took_ms(attempts), n=100)[98]


def between(attempts: Sequence[Attempt], since_s: float, until_s: float) -> list[Attempt]:
    """Those that began in that time."""
    return [one for one in attempts if since_s <= one.began_s < until_s]


def check(scene: Scene, writers: list[Client]) -> int:
    """Every create was acknowledged, and is there; how many."""
    attempts = load.attempts_of(writers)
    assert {one.answer.status for one in attempts if one.answer} == {201}
    assert not any(one.lost for one in attempts)
    told = {one.id: one.title for one in attempts}
    return checker.check(scene.home / "resumes.db", told)


@pytest.mark.chaos(
    10,
    fault="eight writers in three processes",
    promise="no client sees a locked store, and each waits a bounded time",
)
def test_many_writers_in_many_processes_wait_and_never_fail(
    tmp_path: Path, figures: Figures
) -> None:
    """Three servers on one SQLite file, and eight clients that create without a pause."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with ExitStack() as stack:
        urls = [stack.enter_context(scene.served()).url for _ in range(SERVERS)]
        writers = [
            full_disks.a_writer(scene, urls[number % SERVERS], number) for number in range(WRITERS)
        ]
        with load.running(writers):
            ends_s = time.monotonic() + WRITING_S
            wait_until(lambda: time.monotonic() > ends_s, within_s=WRITING_S + 30)
    attempts = load.attempts_of(writers)
    figures["acknowledged"] = check(scene, writers)
    figures["errors"] = 0
    figures["p99_ms"] = p99_ms(attempts)
    figures["most_ms"] = took_ms(attempts)[-1]
    counts = [len(client.attempts) for client in writers]
    figures["least_of_a_writer"], figures["most_of_a_writer"] = min(counts), max(counts)


@pytest.mark.chaos(
    11,
    fault="somebody reads in one transaction for long",
    promise="writers are not held up, and the log is short again afterwards",
)
def test_a_long_reading_holds_nobody_up_and_the_log_is_cut_afterwards(
    tmp_path: Path, figures: Figures
) -> None:
    """Another program has a read transaction of the SQLite file open for 12 s, while four clients
    create with short pauses, before, meanwhile and after."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    log = scene.home / "resumes.db-wal"
    with scene.served() as server:
        writers = [
            Client(server.url, full_disks.a_writer(scene, server.url, n).make, pause_s=0.005)
            for n in range(4)
        ]
        with load.running(writers):
            began_s = time.monotonic()
            wait_until(lambda: time.monotonic() > began_s + 3)
            with Popen(
                [sys.executable, "-c", READING, str(scene.home / "resumes.db")],
                stdin=PIPE,
                stdout=PIPE,
            ) as reader:
                assert reader.stdin is not None
                assert reader.stdout is not None
                reader.stdout.readline()
                reads_s = time.monotonic()
                wait_until(lambda: time.monotonic() > reads_s + READING_S, within_s=READING_S + 5)
                most_bytes = log.stat().st_size
                ended_s = time.monotonic()
                reader.stdin.close()
            wait_until(lambda: log.stat().st_size <= BOUNDED_BYTES // 2, within_s=30)
            cut_s = time.monotonic() - ended_s
    attempts = load.attempts_of(writers)
    figures["acknowledged"] = check(scene, writers)
    figures["errors"] = 0
    figures["p99_before_ms"] = p99_ms(between(attempts, began_s, reads_s))
    figures["p99_meanwhile_ms"] = p99_ms(between(attempts, reads_s, ended_s))
    figures["log_at_most_mb"] = most_bytes / MIB
    figures["log_cut_after_s"] = cut_s


READING = """
import sys
from resumes.store.sqlite.driver import dbapi
connection = dbapi.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM resumes").fetchall()
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.chaos(
    21,
    fault="a hundred clients want the last place",
    promise="exactly one gets it",
)
def test_the_last_place_goes_to_one(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Figures
) -> None:
    """In each round a place of a full account is freed, and 100 clients of two servers ask for it
    at the same moment, on SQLite, PostgreSQL 16 and 18."""
    monkeypatch.setenv("RESUMES_DATABASE", url)
    last_place.last_place_goes_to_one(tmp_path, rounds=LAST_PLACES)
    with open_store(url) as store:
        checker.check_soundness(store)
    figures["rounds"] = LAST_PLACES
    figures["clients"] = last_place.CLIENTS
    figures["over_the_limit"] = 0


@pytest.mark.chaos(
    19,
    fault="six programs start at once with nothing",
    promise="one makes the store, and all are up",
)
def test_of_programs_that_start_at_once_one_makes_the_store(
    engine: Engine, tmp_path: Path, figures: Figures
) -> None:
    """`resumes watch --once` six times at the same moment on a place without a store; five rounds on
    SQLite, PostgreSQL 16 and 18."""
    for number in range(FIRST_STARTS):
        folder = tmp_path / f"{number}"
        (folder / "inbox").mkdir(parents=True)
        with engine.a_place(folder) as url:
            start_at_once(folder, url)
            with open_store(url, upgrade=False) as store:
                checker.check_soundness(store)
    figures["starts"] = STARTS * FIRST_STARTS
    figures["failed"] = 0


def start_at_once(folder: Path, url: str) -> None:
    """All of them have ended well."""
    command = programs.command(folder, "--database", url, "watch", "--once")
    with ExitStack() as stack:
        started = [
            stack.enter_context(Popen(command, stdout=PIPE, stderr=PIPE, text=True))
            for _ in range(STARTS)
        ]
        for program in started:
            said = program.communicate(timeout=60)
            assert program.returncode == 0, said
