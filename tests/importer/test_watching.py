import os
import threading
from collections.abc import Iterator
from pathlib import Path

from importer.telling import Remarks
from importer.watching import watched
from tests.importer.builders import Told, drop, wait_until


def test_a_dropped_file_asks_for_a_look(root: Path, told: Told) -> None:
    (root / "ana").mkdir()
    look = threading.Event()
    with watched(root, look, Remarks(told.notices.append)):
        wait_until(lambda: _drop_until(root, look))
    assert told.notices == []


def _drop_until(root: Path, look: threading.Event) -> bool:
    # The watcher says nowhere that it has begun, so the file is touched until it is heard.
    os.utime(drop(root, "ana/a.json"))
    return look.is_set()


def test_a_watcher_that_fails_is_told_of_once_and_made_again(root: Path, told: Told) -> None:
    made: list[threading.Event] = []
    look = threading.Event()

    def failing(path: Path, stop: threading.Event) -> Iterator[object]:
        made.append(stop)
        if len(made) == 1:
            raise OSError("file watch limit reached")
        while not stop.wait(0.01):
            yield {"a change"}

    with watched(root, look, Remarks(told.notices.append), source=failing):
        wait_until(lambda: len(made) == 2)
    assert look.is_set()
    (notice,) = told.notices
    assert "found by scans" in notice
