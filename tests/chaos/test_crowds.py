"""Many at once: writers, a reader that takes long, first starts."""

import contextlib
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Final

import pytest

from resumes.store import open_store
from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.chaos.checker import between, let_pass, p99_ms, took_ms
from tests.support import programs
from tests.support.api import load
from tests.support.api.load import Attempt
from tests.support.api.scenes import Scene
from tests.support.api.serving import wait_until
from tests.support.engines import Engine

MIB: Final = 1024 * 1024
SERVERS: Final = 3
WRITERS: Final = 8
WRITING_S: Final = 12.0
"""How long the many write."""

MOST_MS: Final = 5_000.0
"""No create waits longer, among many: half of what the store lets one wait for the others."""

CALM_S: Final = 4.0
"""How long clients create before somebody begins to read,"""

READING_S: Final = 12.0
"""and at least meanwhile."""

SLOWER: Final = 3.0
SLACK_MS: Final = 50.0
"""While somebody reads, a 99th percentile may be so many times longer, and this."""

LONG_BYTES: Final = 34 * MIB
"""A log that is so long is cut when nobody holds it back,"""

SHORT_BYTES: Final = 8 * MIB
"""and is no longer than this then: it is begun anew each 4 MiB."""

STARTS: Final = 6
FIRST_STARTS: Final = 5
"""How often as many programs as STARTS begin with nothing."""


@pytest.mark.chaos(
    10,
    fault="eight clients write to one store through three servers",
    promise="no client gets an error about a locked store or waits for more than 5 s",
)
def test_many_writers_in_many_processes_wait_and_never_fail(
    tmp_path: Path, figures: Figures
) -> None:
    """Three servers share one SQLite file, and eight clients create resumes for 12 s without
    pausing."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with ExitStack() as stack:
        urls = [stack.enter_context(scene.served()).url for _ in range(SERVERS)]
        writers = [
            load.writer(urls[number % SERVERS], scene.key, f"{number}") for number in range(WRITERS)
        ]
        with load.running(writers):
            let_pass(WRITING_S)
    attempts = load.attempts_of(writers)
    counts = [load.acknowledged([client]) for client in writers]
    note(figures, scene, attempts)
    figures["p99_ms"], figures["slowest_response_ms"] = p99_ms(attempts), max(took_ms(attempts))
    figures["resumes_from_the_slowest_client"], figures["resumes_from_the_fastest_client"] = (
        min(counts),
        max(counts),
    )
    assert figures["slowest_response_ms"] < MOST_MS
    assert min(counts) > max(counts) // 4


def note(figures: Figures, scene: Scene, attempts: list[Attempt]) -> None:
    """Every create was acknowledged and is there; their number is told."""
    errors = sum(one.answer is None or one.answer.status != 201 for one in attempts)
    figures["resumes_acknowledged"] = len(attempts) - errors
    figures["errors"] = errors
    figures["lost"] = checker.check_attempts(scene.home / "resumes.db", attempts).lost
    assert errors == 0


@dataclass(slots=True)
class Reading:
    """When somebody began to read in one transaction, and when it was over."""

    began_s: float
    ended_s: float = 0.0


@contextlib.contextmanager
def reading(database: Path) -> Iterator[Reading]:
    """Another program has a read transaction open during the block."""
    command = [sys.executable, "-c", READING, str(database)]
    with Popen(command, stdin=PIPE, stdout=PIPE) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline()
        span = Reading(time.monotonic())
        yield span
        span.ended_s = time.monotonic()
        reader.stdin.close()


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
    11,
    fault="another program keeps a long read transaction open",
    promise="writers are barely delayed, and the log is truncated once the transaction has ended",
)
def test_a_long_read_delays_no_writer_and_the_log_is_truncated_afterwards(
    tmp_path: Path, figures: Figures
) -> None:
    """Another program keeps a read transaction on the SQLite file open until at least 12 s have
    passed and the log has grown to 34 MiB. Before, during and after this transaction, four clients
    create resumes, with short pauses between requests."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    log = scene.home / "resumes.db-wal"
    with scene.served() as server:
        writers = [load.writer(server.url, scene.key, f"{n}", pause_s=0.005) for n in range(4)]
        with load.running(writers):
            let_pass(CALM_S)
            with reading(scene.home / "resumes.db") as span:
                let_pass(READING_S)
                wait_until(lambda: log.stat().st_size > LONG_BYTES, within_s=60)
                most_bytes = log.stat().st_size
            wait_until(lambda: log.stat().st_size < SHORT_BYTES, within_s=30)
            cut_s = time.monotonic() - span.ended_s
    attempts = load.attempts_of(writers)
    note(figures, scene, attempts)
    before_ms = p99_ms(between(attempts, span.began_s - CALM_S, span.began_s))
    meanwhile_ms = p99_ms(between(attempts, span.began_s, span.ended_s))
    figures["normal_p99_ms"], figures["p99_during_the_fault_ms"] = before_ms, meanwhile_ms
    figures["log_size_at_the_end_of_the_transaction_mb"] = most_bytes / 1_000_000
    figures["log_truncated_after_s"] = cut_s
    assert meanwhile_ms < SLOWER * before_ms + SLACK_MS


@pytest.mark.chaos(
    19,
    fault="six programs start at the same moment, before a store exists",
    promise="one program creates the store, and all six start successfully",
)
def test_programs_that_start_together_create_one_store(
    engine: Engine, tmp_path: Path, figures: Figures
) -> None:
    """In each of five rounds, six `resumes watch --once` processes start at the same moment, in a
    home that has no store. The test runs on SQLite and on PostgreSQL 16 and 18."""
    codes: list[int] = []
    for number in range(FIRST_STARTS):
        folder = tmp_path / f"{number}"
        (folder / "inbox").mkdir(parents=True)
        with engine.a_place(folder) as url:
            codes += start_at_once(folder, url)
            with open_store(url, upgrade=False) as store:
                checker.check_soundness(store)
    figures["starts"] = len(codes)
    figures["failed"] = sum(code != 0 for code in codes)
    assert codes == [0] * STARTS * FIRST_STARTS


def start_at_once(folder: Path, url: str) -> list[int]:
    """The exit codes of all."""
    command = programs.command(folder, "--database", url, "watch", "--once")
    with ExitStack() as stack:
        started = [
            stack.enter_context(Popen(command, stdout=PIPE, stderr=PIPE, text=True))
            for _ in range(STARTS)
        ]
        for program in started:
            program.communicate(timeout=60)
        return [program.returncode for program in started]
