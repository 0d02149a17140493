"""The whole service at work for minutes: what it holds stays as it is."""

import os
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.campaign import Figures
from tests.chaos.checker import iter_windows, let_pass, p99_ms
from tests.support import programs
from tests.support.api import load
from tests.support.api.load import RESUMES, Attempt, Client
from tests.support.api.scenes import Scene
from tests.support.api.serving import wait_until
from tests.support.resumes import a_document

SOAK_S: Final = 180.0
WARM_S: Final = 60.0
"""Until then caches fill; slopes are of what comes later."""

LOOK_S: Final = 2.0
WINDOW_S: Final = 10.0
"""A 99th percentile is of requests of so long a time."""

PAUSE_S: Final = 0.02
DROP_S: Final = 0.2
MIN_S: Final = 60.0
MOST_MEMORY_KB: Final = 2_048
"""Memory may grow by less than this in a minute: Python's own use of it comes and goes by more."""

MOST_LOG_BYTES: Final = 48 * 1024 * 1024
"""The write-ahead log is begun anew above 32 MiB."""

MOST_P99_MS: Final = 5.0
"""A 99th percentile may rise by less than this in a minute."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the processes held at a moment of the monotonic clock."""

    at_s: float
    memory_kb: float
    descriptors: int
    log_bytes: int


def memory_kb(pid: int) -> float:
    """What the process has in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1_000


def look(home: Path, pids: Sequence[int]) -> Look:
    """What the processes hold now."""
    log = home / "resumes.db-wal"
    return Look(
        time.monotonic(),
        sum(map(memory_kb, pids)),
        sum(len([*Path(f"/proc/{pid}/fd").iterdir()]) for pid in pids),
        log.stat().st_size if log.exists() else 0,
    )


def per_minute(moments: Sequence[tuple[float, float]]) -> float:
    """By how much a value, seen at these seconds, rises in a minute, on the whole."""
    at_s, values = zip(*moments, strict=True)
    return statistics.linear_regression(at_s, values).slope * MIN_S


class Users:
    """Clients that create, delete what was created before, and list; and somebody who drops files."""

    def __init__(self, scene: Scene, url: str) -> None:
        self._scene = scene
        self._created: list[str] = []
        works = (self._create, self._delete, self._list)
        self.clients = [Client(url, work, pause_s=PAUSE_S) for work in works]
        self._stops = threading.Event()
        self.dropped = 0

    @property
    def attempts(self) -> list[Attempt]:
        """All that the clients sent."""
        return load.attempts_of(self.clients)

    def _create(self, number: int) -> tuple[str, bytes]:
        if self.clients[0].attempts:
            self._created.append(self.clients[0].attempts[-1].id)
        body = load.a_body(f"resume {number}")
        return "", load.a_request(self._scene.key, "POST", body=body)

    def _delete(self, number: int) -> tuple[str, bytes]:
        if len(self._created) <= number:
            return self._list(number)
        path = f"{RESUMES}/{self._created[number]}"
        return "", load.a_request(self._scene.key, "DELETE", path)

    def _list(self, number: int) -> tuple[str, bytes]:
        return "", load.a_request(self._scene.key)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """They use the service during the block."""
        dropper = threading.Thread(target=self._drop)
        dropper.start()
        try:
            with load.running(self.clients):
                yield
        finally:
            self._stops.set()
            dropper.join()

    def _drop(self) -> None:
        inbox = self._scene.home / "inbox" / "ada"
        while not self._stops.wait(DROP_S):
            name = f"{self.dropped}.json"
            (inbox / name).write_bytes(a_document(name))
            self.dropped += 1


@pytest.mark.chaos(
    36,
    fault="the service runs under load for three minutes",
    promise="memory use, response times, the number of open files and the size of the log barely increase",
)
def test_nothing_grows_while_the_service_works(tmp_path: Path, figures: Figures) -> None:
    """For three minutes, clients create, delete and list resumes, and files arrive in the watched
    folder."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    (scene.home / "inbox" / "ada").mkdir(parents=True)
    with scene.served() as server, programs.running(scene.home, "watch") as importer:
        users, looks = Users(scene, server.url), list[Look]()
        with users.at_work():
            ends_at_s = time.monotonic() + SOAK_S
            while time.monotonic() < ends_at_s:
                looks.append(look(scene.home, [*server.serving_pids, importer.pid]))
                let_pass(LOOK_S)
        done = scene.home / "inbox" / "_done"
        wait_until(lambda: len(programs.files_in(done)) == users.dropped, within_s=30)
    warm_s = looks[0].at_s + WARM_S
    warm = [one for one in looks if one.at_s >= warm_s]
    attempts = [one for one in users.attempts if one.began_s >= warm_s]
    # The first window and the last are not whole.
    windows = [*iter_windows(attempts, WINDOW_S)][1:-1]
    p99s = [(window[0].began_s, p99_ms(window)) for window in windows]
    statuses = [one.answer and one.answer.status for one in users.attempts]
    figures["requests"] = len(statuses)
    figures["failed"] = sum(status not in (200, 201) for status in statuses)
    figures["files"] = users.dropped
    figures["memory_growth_kb/min"] = per_minute([(one.at_s, one.memory_kb) for one in warm])
    figures["memory_use_at_the_end_mb"] = looks[-1].memory_kb / 1_000
    figures["change_in_open_file_descriptors_/min"] = per_minute(
        [(one.at_s, one.descriptors) for one in warm]
    )
    most_log_bytes = max(one.log_bytes for one in looks)
    figures["largest_log_mb"] = most_log_bytes / 1_000_000
    figures["p99_ms"] = statistics.median(p99 for _, p99 in p99s)
    figures["change_in_p99_ms/min"] = per_minute(p99s)
    assert figures["failed"] == 0
    assert figures["memory_growth_kb/min"] < MOST_MEMORY_KB
    assert abs(figures["change_in_open_file_descriptors_/min"]) < 1
    assert most_log_bytes < MOST_LOG_BYTES
    assert figures["change_in_p99_ms/min"] < MOST_P99_MS
