"""The whole service at work for minutes: what it holds stays as it is."""

import os
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.campaign import Figures
from tests.chaos.spans import iter_windows, let_pass, p99_ms
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


@dataclass(slots=True)
class Watch:
    """Looks at processes, again and again."""

    home: Path
    pids: Sequence[int]
    looks: list[Look] = field(default_factory=list)

    def look(self) -> None:
        """There is one look more."""
        log = self.home / "resumes.db-wal"
        self.looks.append(
            Look(
                time.monotonic(),
                sum(map(memory_kb, self.pids)),
                sum(map(descriptors, self.pids)),
                log.stat().st_size if log.exists() else 0,
            )
        )

    def look_for(self, duration_s: float) -> None:
        """Looks were taken for so long."""
        ends_at_s = time.monotonic() + duration_s
        while time.monotonic() < ends_at_s:
            self.look()
            let_pass(LOOK_S)


def memory_kb(pid: int) -> float:
    """What the process has in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1_000


def descriptors(pid: int) -> int:
    """How many files and connections the process has open."""
    return len([*Path(f"/proc/{pid}/fd").iterdir()])


def per_minute(moments: Sequence[tuple[float, float]]) -> float:
    """By how much a value, seen at these seconds, rises in a minute, on the whole."""
    at_s, values = zip(*moments, strict=True)
    return statistics.linear_regression(at_s, values).slope * MIN_S


class Users:
    """Clients that create, delete what was created before, and list; and somebody who drops files."""

    def __init__(self, scene: Scene, url: str) -> None:
        self._scene = scene
        self._created: list[str] = []
        self._creator = Client(url, self._create, pause_s=PAUSE_S)
        self.clients = [
            self._creator,
            Client(url, self._delete, pause_s=PAUSE_S),
            Client(url, self._list, pause_s=PAUSE_S),
        ]
        self._stops = threading.Event()
        self.dropped = 0

    @property
    def attempts(self) -> list[Attempt]:
        """All that the clients sent."""
        return load.attempts_of(self.clients)

    def _create(self, number: int) -> tuple[str, bytes]:
        if self._creator.attempts:
            self._created.append(self._creator.attempts[-1].id)
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
    promise="memory use, the number of open files, the size of the log and response times barely increase",
)
def test_nothing_grows_while_the_service_works(tmp_path: Path, figures: Figures) -> None:
    """For 3 minutes, clients create, delete and list resumes, and files are dropped into the
    watched folder."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    (scene.home / "inbox" / "ada").mkdir(parents=True)
    with (
        scene.served() as server,
        programs.running(scene.home, "watch") as importer,
    ):
        users = Users(scene, server.url)
        watch = Watch(scene.home, [*server.serving_pids, importer.pid])
        with users.at_work():
            watch.look_for(SOAK_S)
        done = scene.home / "inbox" / "_done"
        wait_until(lambda: len(programs.files_in(done)) == users.dropped, within_s=30)
    note_work(figures, users)
    warm_s = watch.looks[0].at_s + WARM_S
    note_holdings(figures, watch, [look for look in watch.looks if look.at_s >= warm_s])
    note_latencies(figures, [one for one in users.attempts if one.began_s >= warm_s])


def note_work(figures: Figures, users: Users) -> None:
    """What was done, all of it well."""
    figures["requests"] = len(users.attempts)
    figures["files"] = users.dropped
    figures["failed"] = sum(
        one.answer is None or one.answer.status not in (200, 201) for one in users.attempts
    )
    assert figures["failed"] == 0


def note_holdings(figures: Figures, watch: Watch, looks: Sequence[Look]) -> None:
    """What the processes held hardly grew from the first of these looks to the last."""
    figures["memory_growth_per_minute_kb"] = per_minute(
        [(one.at_s, one.memory_kb) for one in looks]
    )
    figures["memory_mb"] = looks[-1].memory_kb / 1_000
    figures["file_descriptors_gained_per_minute"] = per_minute(
        [(one.at_s, one.descriptors) for one in looks]
    )
    figures["largest_log_mb"] = max(one.log_bytes for one in watch.looks) / 1_000_000
    assert figures["memory_growth_per_minute_kb"] < MOST_MEMORY_KB
    assert abs(figures["file_descriptors_gained_per_minute"]) < 1
    assert max(one.log_bytes for one in watch.looks) < MOST_LOG_BYTES


def note_latencies(figures: Figures, attempts: Sequence[Attempt]) -> None:
    """Answers came as soon in the end as in the beginning; the first and last window are not whole."""
    windows = [*iter_windows(attempts, WINDOW_S)][1:-1]
    p99s = [(window[0].began_s, p99_ms(window)) for window in windows]
    figures["p99_ms"] = statistics.median(p99 for _, p99 in p99s)
    figures["p99_growth_per_minute_ms"] = per_minute(p99s)
    assert figures["p99_growth_per_minute_ms"] < MOST_P99_MS
