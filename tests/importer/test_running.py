import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from importer import running
from importer.changes import Changes
from importer.options import Options
from importer.rounds import Importer
from importer.running import Runner
from importer.telling import Progress, Remarks
from resumes.store import Store
from resumes.store.accounts import AccountInfo
from tests.importer.builders import FakeMonotonic, MakeImporter, Told, drop, filed, wait_until
from tests.resumes.store.builders import Busy

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importer.rhythm.FIRST_BACK_OFF_S", 0.001)
    monkeypatch.setattr("importer.rhythm.LONGEST_BACK_OFF_S", 0.05)
    monkeypatch.setattr("importer.rounds.ROUND_S", 0.05)
    monkeypatch.setattr(running, "WAIT_STEP_S", 0.01)
    monkeypatch.setattr(running, "CALM_S", 0.3)


def a_runner(importer: Importer, told: Told) -> Runner:
    return Runner(importer, Changes(), Remarks(told.notices.append), random=lambda: 0.0)


@contextmanager
def run(runner: Runner) -> Iterator[None]:
    """The runner runs during the block, and has ended after it."""
    stop = threading.Event()
    thread = threading.Thread(target=runner.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()


def test_a_stopped_drain_ends(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    drop(root, "ana/1.json")
    stop = threading.Event()
    stop.set()
    a_runner(an_importer(), told).drain(stop)
    assert told.files == []


def test_a_drain_gives_up_on_what_cannot_be_filed(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    (root / "_done").touch()
    drop(root, "ana/1.json")
    importer = an_importer()
    assert not a_runner(importer, told).drain(threading.Event())
    assert (importer.summary().waiting, importer.summary().stuck) == (1, 1)


def test_a_drain_does_not_wait_for_files_that_cannot_be_taken(
    root: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    def refuse(source: object, target: object, **_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("importer.taking.os.rename", refuse)
    an_account()
    path = drop(root, "ana/1.json")
    importer = an_importer()
    assert a_runner(importer, told).drain(threading.Event())
    assert path.exists()
    assert len(told.notices) == 1
    assert importer.summary().stuck == 1


def test_a_folder_that_cannot_be_looked_into_is_stuck_if_somebody_owns_it(
    root: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    an_account()
    for name in ("ana", "nobody"):
        drop(root, f"{name}/1.json").unlink()
    really = os.scandir

    def refuse(path: str | Path) -> object:
        if str(path) in (f"{root}/ana", f"{root}/nobody"):
            raise PermissionError(13, "Permission denied", path)
        return really(path)

    monkeypatch.setattr("importer.scanning.os.scandir", refuse)
    importer = an_importer()
    assert a_runner(importer, told).drain(threading.Event())
    assert importer.summary().stuck == 1


def test_a_drain_that_waits_for_long_says_for_what(
    store: Store,
    root: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
) -> None:
    def refuse(path: object, **_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("importer.reading.open_file", refuse)
    monkeypatch.setattr(running, "SILENT_S", 0.08)
    an_account()
    drop(root, "ana/\x1b.json")
    remarks = Remarks(told.notices.append)
    options = Options(settle_s=0.05, workers=0)
    importer = Importer(store, root, options, on_file=told.files.append, remarks=remarks)
    Runner(importer, Changes(), remarks).drain(threading.Event())
    importer.close()
    assert told.outcomes() == {"ana/\\x1b.json": "failed"}
    assert told.notices == [
        "Waiting for ana/\\x1b.json: not whole yet, not readable, or still open for writing"
    ]


def test_a_drain_waits_for_what_settles(
    store: Store, root: Path, told: Told, an_account: MakeAccount
) -> None:
    an_account()
    drop(root, "ana/cut.json", b"{")
    remarks = Remarks(told.notices.append)
    options = Options(settle_s=0.05, workers=0)
    importer = Importer(store, root, options, on_file=told.files.append, remarks=remarks)
    assert Runner(importer, Changes(), remarks).drain(threading.Event())
    importer.close()
    assert told.outcomes() == {"ana/cut.json": "failed"}
    assert told.notices == []


def test_a_folder_that_vanishes_is_trouble_until_it_is_back(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    importer = an_importer()
    root.rename(root.with_name("away"))
    with run(a_runner(importer, told)):
        wait_until(lambda: any("Nothing new is taken" in notice for notice in told.notices))
        assert not root.exists()
        root.mkdir()
        drop(root, "ana/1.json")
        wait_until(lambda: len(filed(root, "_done")) == 1)
        wait_until(lambda: "Importing goes on" in told.notices)


def test_a_store_out_of_reach_is_told_once_and_again_when_it_is_over(
    root: Path, told: Told, busy: Busy, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    drop(root, "ana/1.json")
    beats: list[int] = []
    runner = Runner(
        an_importer(),
        Changes(),
        Remarks(told.notices.append),
        beats=(lambda: beats.append(len(told.notices)),),
    )
    busy.acquire()  # before the first turn, which would import the file
    with run(runner):
        wait_until(lambda: beats.count(1) > 3)
        busy.release()
        wait_until(lambda: len(told.notices) == 2)
    assert told.notices == [
        "The store is busy; nothing was done, try again. Nothing new is taken until that is over",
        "Importing goes on",
    ]
    assert told.outcomes() == {"ana/1.json": "done"}


def test_turns_between_that_try_nothing_do_not_end_trouble(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    importer = an_importer(scan_s=0.05)
    really, fails = importer.turn, threading.Event()
    turns: list[int] = []

    def turn(*, takes_new: bool = True) -> None:
        really(takes_new=takes_new)
        turns.append(1)
        if fails.is_set() and len(turns) % 3 == 0:
            raise OSError(28, "No space left on device")

    importer.turn = turn  # type: ignore[method-assign]
    fails.set()
    with run(a_runner(importer, told)):
        wait_until(lambda: len(turns) > 12)
        assert told.notices == ["No space left on device. Nothing new is taken until that is over"]
        fails.clear()
        wait_until(lambda: told.notices[1:] == ["Importing goes on"])


def test_marks_make_the_next_turn_come_at_once(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    (root / "ana").mkdir()
    importer = an_importer(scan_s=600)
    changes = Changes()
    beats: list[int] = []
    runner = Runner(
        importer,
        changes,
        Remarks(told.notices.append),
        beats=(lambda: beats.append(importer.looks),),
    )
    with run(runner):
        wait_until(lambda: len(beats) > 0)
        drop(root, "ana/1.json")
        changes.mark("ana")
        wait_until(lambda: len(told.files) == 1)
    assert beats[-1] == 1


def test_progress_is_told_now_and_then_when_it_changed(
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    an_account()
    drop(root, "ana/1.json")
    seen: list[Progress] = []
    importer = an_importer()
    remarks = Remarks(told.notices.append)
    runner = Runner(importer, Changes(), remarks, on_progress=seen.append, monotonic=monotonic)
    runner.drain(threading.Event())
    assert [progress.done for progress in seen] == [1]
    runner.drain(threading.Event())
    monotonic.advance(1)
    runner.drain(threading.Event())
    assert len(seen) == 1
    drop(root, "ana/2.json")
    monotonic.advance(1)
    runner.drain(threading.Event())
    assert [progress.done for progress in seen] == [1, 2]
