import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from importer import running
from importer.rounds import Importer
from importer.running import Runner
from importer.telling import Remarks
from resumes.store.accounts import AccountInfo
from tests.importer.builders import MakeImporter, Told, drop, filed, wait_until

MakeAccount = Callable[..., AccountInfo]


def a_runner(importer: Importer, told: Told) -> Runner:
    return Runner(importer, Remarks(told.notices.append), scan_s=0.1, random=lambda: 0.0)


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
    root: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    monkeypatch.setattr("importer.rhythm.FIRST_BACK_OFF_S", 0.001)
    an_account()
    (root / "_done").touch()
    drop(root, "ana/1.json")
    importer = an_importer()
    a_runner(importer, told).drain(threading.Event())
    assert importer.summary().waiting == 1


def test_a_folder_that_vanishes_is_trouble_until_it_is_back(
    root: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    monkeypatch.setattr("importer.rhythm.FIRST_BACK_OFF_S", 0.01)
    monkeypatch.setattr("importer.rhythm.LONGEST_BACK_OFF_S", 0.05)
    monkeypatch.setattr(running, "WAIT_STEP_S", 0.01)
    an_account()
    importer = an_importer()
    root.rename(root.with_name("away"))
    stop = threading.Event()
    thread = threading.Thread(target=a_runner(importer, told).run, args=(root, stop))
    thread.start()
    try:
        wait_until(lambda: any("Nothing new is taken" in notice for notice in told.notices))
        assert not root.exists()
        root.mkdir()
        drop(root, "ana/1.json")
        wait_until(lambda: len(filed(root, "_done")) == 1)
        wait_until(lambda: "Importing goes on" in told.notices)
    finally:
        stop.set()
        thread.join(5)
    assert not thread.is_alive()
