"""Files and folders that come in by every way there is, and some that go again."""

import subprocess
import threading
from pathlib import Path

import pytest

from resumes.store import accounts
from tests.support.inbox.scenes import Scene
from tests.support.resumes import a_document

IN_A_FOLDER = 100


@pytest.mark.parametrize(
    "how",
    [
        pytest.param([], id="events"),
        pytest.param(["--poll"], id="scans alone", marks=pytest.mark.slow),
    ],
)
def test_what_is_moved_in_and_folders_that_are_moved_in_are_found(
    scene: Scene, tmp_path: Path, how: list[str]
) -> None:
    scene.account("ana")
    outside = Scene(tmp_path / "outside")
    single = outside.drop("x.json", a_document("single"))
    copied = outside.drop("y.json", a_document("copied"))
    for number in range(IN_A_FOLDER):
        outside.drop(f"full/{number}.json", a_document(f"moved {number}"))
    inbox = scene.root / "ana"
    with scene.watched(*how):
        single.rename(inbox / "x.json")
        (outside.root / "full").rename(inbox / "full")
        made = f'mkdir -p "{inbox}/a/b" && cp "{copied}" "{inbox}/a/b/y.json"'
        subprocess.run(["/bin/sh", "-c", made], check=True)
        scene.wait_for(ended=IN_A_FOLDER + 2)
        (inbox / "a" / "b" / "c").mkdir()
        scene.drop("ana/a/b/c/later.json", a_document("later"))
        scene.wait_for(ended=IN_A_FOLDER + 3)
    names = ["single", "copied", "later", *(f"moved {n}" for n in range(IN_A_FOLDER))]
    assert scene.check(files=len(names), resumes={"ana": names}).done == len(names)


@pytest.mark.slow
def test_an_account_that_is_made_later_gets_what_waited_for_it(scene: Scene) -> None:
    scene.account("ana")
    scene.drop("bo/cv.json", a_document("early"))
    with scene.watched():
        scene.drop("ana/cv.json", a_document("Ada"))
        scene.wait_for(ended=1)
        assert scene.tally().left == {"bo/cv.json"}
        scene.account("bo")
        scene.wait_for(ended=2)
    assert scene.check(files=2, resumes={"ana": ["Ada"], "bo": ["early"]}).done == 2


@pytest.mark.slow
def test_what_is_dropped_for_an_account_that_was_just_made_anew_is_its_own(scene: Scene) -> None:
    scene.account("ana")
    with scene.watched():
        for number in range(5):
            scene.drop(f"ana/{number}.json", a_document(f"of {number}"))
            scene.wait_for(ended=number + 1)
            with scene.store() as store:
                accounts.delete_account(store, "ana", with_resumes=True)
                accounts.create_account(store, "ana")
        scene.drop("ana/last.json", a_document("last"))
        scene.wait_for(ended=6)
    assert scene.tally().done == 6
    scene.check_resumes({"ana": ["last"]})


@pytest.mark.slow
def test_what_is_dropped_for_an_account_that_was_just_deleted_stays(scene: Scene) -> None:
    scene.account("ana")
    scene.account("bo")
    with scene.watched():
        scene.drop("ana/cv.json", a_document("Ada"))
        scene.wait_for(ended=1)
        with scene.store() as store:
            accounts.delete_account(store, "ana", with_resumes=True)
        scene.drop("ana/late.json", a_document("late"))
        scene.drop("bo/cv.json", a_document("Bo"))
        scene.wait_for(ended=2)
        scene.account("ana")
        scene.wait_for(ended=3)
    assert scene.tally().done == 3
    scene.check_resumes({"ana": ["late"], "bo": ["Bo"]})


@pytest.mark.slow
def test_files_that_come_and_go_all_the_time_disturb_nothing(scene: Scene) -> None:
    scene.account("ana")
    over = threading.Event()
    outside = scene.home / "took back"
    outside.mkdir()

    def come_and_go() -> None:
        number = 0
        while not over.is_set():
            content = b'{"header": ' if number % 2 else a_document(f"shy {number}")
            path = scene.drop(f"ana/shy {number}.json", content)
            over.wait(0.0005 * (number % 5))
            try:
                path.rename(outside / path.name)
            except FileNotFoundError:
                taken.append(number)
            number += 1

    taken: list[int] = []
    other = threading.Thread(target=come_and_go)
    with scene.watched(settle_s=0.2) as importer:
        other.start()
        for number in range(100):
            scene.drop(f"ana/{number}.json", a_document(f"stays {number}"))
        scene.wait_until(lambda: scene.tally().done >= 100)
        over.set()
        other.join()
        scene.wait_for(ended=100 + len(taken))
        assert importer.is_running
        assert "Traceback" not in importer.log
    imported = [f"stays {number}" for number in range(100)]
    imported += [f"shy {number}" for number in taken if number % 2 == 0]
    stored = scene.names("ana")
    assert len(stored) == len(set(stored))
    assert set(imported) <= set(stored)
    # What was taken back in the moment between its reading and its move was imported too.
    back = {f"shy {path.stem.removeprefix('shy ')}" for path in outside.iterdir()}
    assert set(stored) - set(imported) <= back
