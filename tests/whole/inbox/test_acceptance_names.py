"""Names that break programs, and names of what is no file to import."""

import os
import threading
from pathlib import Path

import pytest

from tests.support.inbox.oracle import Tally, files_of, reports_of
from tests.support.inbox.scenes import Scene
from tests.support.inbox.strangers import NAMES, drop_strangers
from tests.support.resumes import a_document


def escaped(name: bytes) -> str:
    """The name as reports write it, by the rules of the documentation alone."""
    shown = ""
    for char in os.fsdecode(name):
        code = ord(char)
        if char == "\\":
            shown += "\\\\"
        elif 0xDC80 <= code <= 0xDCFF:
            shown += f"\\x{code - 0xDC00:02x}"
        elif code < 0x20:
            shown += f"\\x{code:02x}"
        elif char == "\N{RIGHT-TO-LEFT OVERRIDE}":
            shown += f"\\u{code:04x}"
        else:
            shown += char
    return shown


@pytest.mark.slow
def test_no_name_decides_over_a_file_or_stops_the_next(scene: Scene) -> None:
    scene.account("ana")
    with scene.watched() as importer:
        for number, name in enumerate(NAMES):
            scene.drop(b"ana/" + name, a_document(f"owner {number}"))
        scene.wait_for(ended=len(NAMES))
        scene.drop("ana/afterwards.json", a_document("afterwards"))
        scene.wait_for(ended=len(NAMES) + 1)
        assert importer.is_running
    names = [f"owner {number}" for number in range(len(NAMES))]
    found = scene.check(files=len(NAMES) + 1, resumes={"ana": [*names, "afterwards"]})
    assert found.done == len(NAMES) + 1
    assert not list(scene.home.rglob("evil"))


def test_a_report_holds_the_exact_bytes_of_a_name(scene: Scene) -> None:
    scene.account("ana")
    for name in NAMES:
        scene.drop(b"ana/" + name, b"[")
    scene.drain()
    assert scene.check(files=len(NAMES), resumes={"ana": []}).failed == len(NAMES)
    expected = {f"ana/{escaped(name)}" for name in NAMES}
    assert reports_of(scene.root, "failed").keys() == expected
    for path in files_of(scene.root, "failed"):
        assert len(os.fsencode(path.name)) < 200
        assert path.name.isprintable()


@pytest.mark.slow
def test_what_is_no_file_or_not_for_us_is_left_and_never_opened(
    scene: Scene, tmp_path: Path
) -> None:
    scene.account("ana")
    left = drop_strangers(scene.root / "ana", tmp_path)
    reader = threading.Thread(
        target=_wait_for_reader, args=[scene.root / "ana" / "pipe.json"], daemon=True
    )
    reader.start()
    with scene.watched() as importer:
        scene.drop("ana/good.json", a_document("good"))
        scene.wait_for(ended=1)
        scene.drop("ana/more.json", a_document("more"))
        scene.wait_for(ended=2)
        assert importer.is_running
    assert reader.is_alive()  # nobody opened the pipe
    # Folders that are not looked into, such as that of a system, count as one name each.
    assert scene.drain().ignored == len(left) + len(["posing.json"])
    os.close(os.open(scene.root / "ana" / "pipe.json", os.O_RDONLY | os.O_NONBLOCK))
    reader.join()
    scene.check(files=2 + len(left), left=left, resumes={"ana": ["good", "more"]})


def _wait_for_reader(pipe: Path) -> None:
    os.close(os.open(pipe, os.O_WRONLY))


def test_links_that_turn_in_a_circle_and_names_of_ours_in_an_inbox_are_no_trouble(
    scene: Scene,
) -> None:
    scene.account("ana")
    (scene.root / "ana" / "loop").symlink_to(scene.root / "ana")
    scene.drop("ana/_done/deep/cv.json", a_document("deep"))
    scene.drain()
    assert scene.check(files=2, left=["ana/loop"], resumes={"ana": ["deep"]}) == Tally(
        1, 0, 0, 0, frozenset({"ana/loop"})
    )
