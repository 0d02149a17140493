"""Files of several resumes, the same content twice, rehearsals, drains and commands after an import."""

import json
import os
import time
from pathlib import Path

import pytest

from resumes.store import stored_resumes
from tests.support import programs
from tests.support.inbox import oracle
from tests.support.inbox.oracle import files_of, reports_of
from tests.support.inbox.packing import gzipped, zipped
from tests.support.inbox.scenes import Scene
from tests.support.resumes import a_document

LINES = 1_000
BAD = {7: b"no JSON", 500: b"{}", 1_000: b'{"header": {"name": 7}}'}
"""By the number of the line."""


def line(number: int) -> bytes:
    return a_document(f"line {number}")


GOOD = [f"line {number}" for number in range(1, LINES + 1) if number not in BAD]


def test_lines_are_imported_but_for_the_bad_ones_whose_numbers_the_report_tells(
    scene: Scene,
) -> None:
    scene.account("ana")
    # Windows line ends, and none after the last line.
    body = b"\r\n".join(BAD.get(number) or line(number) for number in range(1, LINES + 1))
    scene.drop("ana/many.ndjson", body)
    scene.drain()
    scene.check(files=1, resumes={"ana": GOOD})
    report = reports_of(scene.root, "failed")["ana/many.ndjson"]
    failed = [item for item in report["items"] if item["outcome"] == "failed"]
    assert [item["place"] for item in failed] == [f"line {number}" for number in BAD]
    assert len(report["items"]) == LINES
    fixed = b"\n".join(line(number) for number in range(1, LINES + 1))
    scene.drop("ana/fixed.ndjson", fixed)
    scene.drain()
    names = [*GOOD, *(f"line {number}" for number in BAD)]
    scene.check(files=2, resumes={"ana": names})


def packed(names: list[str]) -> dict[str, bytes]:
    """The same resumes in each format; by the names of files."""
    bodies = [a_document(name) for name in names]
    return {
        "array.json": b"[" + b",\n".join(bodies) + b"]",
        "lines.json": b"\n".join(bodies) + b"\n",
        "lines.jsonl": b"\n".join(bodies),
        "lines.ndjson.gz": gzipped(b"\n".join(bodies)),
        "array.json.gz": gzipped(b"[" + b",".join(bodies) + b"]"),
        "files.zip": zipped({f"in/{number}.json": body for number, body in enumerate(bodies)}),
        "lines.zip": zipped({"all.ndjson": b"\n".join(bodies)}),
    }


@pytest.mark.parametrize("name", packed([]))
def test_each_format_gives_the_same_resumes_and_again_they_are_duplicates(
    scene: Scene, name: str
) -> None:
    scene.account("ana")
    names = [f"number {number}" for number in range(250)]
    scene.drop(f"ana/{name}", packed(names)[name])
    scene.drain()
    assert scene.check(files=1, resumes={"ana": names}).done == 1
    for other, content in packed(names).items():
        scene.drop(f"ana/{other}", content)
    scene.drain()
    assert scene.check(files=1 + len(packed([])), resumes={"ana": names}).duplicate == 7


@pytest.mark.timing
def test_an_importer_that_is_killed_in_the_middle_of_a_file_goes_on_there(scene: Scene) -> None:
    scene.account("ana")
    names = [f"number {number}" for number in range(4_000)]
    scene.drop("ana/many.zip", packed(names)["files.zip"])
    for _ in range(3):
        stored = len(scene.names("ana"))
        importer = scene.start(settle_s=0.1)
        try:
            scene.wait_until(lambda before=stored: len(scene.names("ana")) > before)  # type: ignore[misc]
        finally:
            importer.kill()
    assert len(scene.names("ana")) > 0
    scene.drain()
    assert scene.check(files=1, resumes={"ana": names}).done == 1


def everything(scene: Scene) -> list[str]:
    """Files of all kinds; the names on the resumes that come of them."""
    scene.account("ana")
    scene.account("bo", most=1)
    scene.drop("ana/before.json", a_document("before"))
    scene.drain()
    scene.drop("ana/good.json", a_document("good"))
    scene.drop("ana/again.json", a_document("before"))
    scene.drop("ana/bad.json", b"no JSON")
    scene.drop("ana/lines.ndjson", b"\n".join(a_document(f"line {n}") for n in range(3)))
    scene.drop("ana/some.zip", zipped({"a.json": a_document("zipped"), "b.json": b"[]"}))
    scene.drop("ana/cut.json.gz", gzipped(a_document("cut"))[:-9])
    scene.drop("bo/1.json", a_document("first"))
    scene.drop("bo/2.json", a_document("second"))
    return ["before", "good", "line 0", "line 1", "line 2", "zipped"]


def told(output: str) -> dict[str, tuple[str, str | None, str | None]]:
    """What was printed of each file: its outcome, and why it is not done."""
    rows = [json.loads(row) for row in output.splitlines()]
    return {
        row["name"]: (row["outcome"], row["reason"], row["reason"] and row["message"])
        for row in rows
    }


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """The content and time of change of each file."""
    paths = [folder / name for name in oracle.names_in(folder)]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


@pytest.mark.slow
def test_a_rehearsal_says_what_a_drain_then_does_and_changes_nothing(scene: Scene) -> None:
    names = everything(scene)
    root = str(scene.root)
    before = snapshot(scene.root)
    rehearsal = programs.run(scene.home, "--json", "watch", root, "--dry-run")
    assert snapshot(scene.root) == before
    assert not (scene.root / "_failed").exists()
    assert (scene.names("ana"), scene.names("bo")) == (["before"], [])
    drain = programs.run(scene.home, "--json", "watch", root, "--once", "--settle", "0.1")
    assert told(rehearsal.stdout) == told(drain.stdout)
    assert rehearsal.returncode == drain.returncode == 1
    found = scene.check(files=9, resumes={"ana": names, "bo": ["first"]})
    assert (found.done, found.failed, found.duplicate, found.held) == (4, 3, 1, 1)


@pytest.mark.slow
def test_a_drain_ends_with_0_unless_something_failed(scene: Scene) -> None:
    scene.account("ana", most=1)
    scene.drop("ana/1.json", a_document("first"))
    scene.drop("ana/2.json", a_document("first"))
    scene.drop("ana/3.json", a_document("held"))
    drain = ["watch", str(scene.root), "--once", "--settle", "0.1"]
    assert programs.run(scene.home, *drain).returncode == 0
    assert programs.run(scene.home, *drain).returncode == 0
    scene.drop("ana/4.json", b"no JSON")
    assert programs.run(scene.home, *drain).returncode == 1
    found = scene.check(files=4, resumes={"ana": ["first"]})
    assert (found.done, found.failed, found.duplicate, found.held) == (1, 1, 1, 1)


@pytest.mark.timing
@pytest.mark.parametrize(
    "hook", ['rm -rf "$RESUMES_IMPORT_BATCH"; no-such-command; kill -9 $$', "sleep 60"]
)
def test_a_command_after_imports_that_fails_or_hangs_blocks_and_reverses_nothing(
    scene: Scene, hook: str
) -> None:
    scene.account("ana")
    marker = scene.home / "ran"
    with scene.watched("--on-import", f'touch "{marker}"; {hook}'):
        scene.drop("ana/1.json", a_document("first"))
        scene.wait_for(ended=1)
        scene.wait_until(marker.exists)
        began = time.monotonic()
        for number in range(50):
            scene.drop(f"ana/more {number}.json", a_document(f"more {number}"))
        scene.wait_for(ended=51)
        assert time.monotonic() - began < 10
    names = ["first", *(f"more {number}" for number in range(50))]
    assert scene.check(files=51, resumes={"ana": names}).done == 51


# The same content


def test_the_same_content_under_two_names_is_one_resume_and_one_duplicate(scene: Scene) -> None:
    ana = scene.account("ana")
    scene.drop("ana/1.json", a_document("Ada"))
    scene.drain()
    scene.drop("ana/2.json", a_document("Ada"))
    scene.drain()
    found = scene.check(files=2, resumes={"ana": ["Ada"]})
    assert (found.done, found.duplicate) == (1, 1)
    report = reports_of(scene.root, "duplicate")["ana/2.json"]
    with scene.store() as store:
        (entry,) = stored_resumes.list_page(store, ana.id).entries
    assert report["duplicate_of"] == entry.id


def test_the_same_content_in_one_batch_is_one_resume(scene: Scene) -> None:
    scene.account("ana")
    for number in range(20):
        scene.drop(f"ana/{number}.json", a_document("Ada"))
    scene.drain()
    found = scene.check(files=20, resumes={"ana": ["Ada"]})
    assert (found.done, found.duplicate) == (1, 19)


def test_the_same_content_in_another_account_is_a_resume_of_its_own(scene: Scene) -> None:
    scene.account("ana")
    scene.account("bo")
    for account in ("ana", "bo"):
        scene.drop(f"{account}/1.json", a_document("Ada"))
    scene.drain()
    assert scene.check(files=2, resumes={"ana": ["Ada"], "bo": ["Ada"]}).done == 2


def test_other_content_under_the_same_name_is_imported_and_overwrites_nothing(
    scene: Scene,
) -> None:
    scene.account("ana")
    for version in ("first", "second"):
        scene.drop("ana/cv.json", a_document(version))
        scene.drain()
    scene.check(files=2, resumes={"ana": ["first", "second"]})
    contents = {path.read_bytes() for path in files_of(scene.root, "done")}
    assert contents == {a_document("first"), a_document("second")}


def test_two_links_of_one_file_are_a_resume_and_a_duplicate(scene: Scene) -> None:
    scene.account("ana")
    path = scene.drop("ana/a.json", a_document("Ada"))
    os.link(path, scene.root / "ana" / "b.json")
    scene.drain()
    found = scene.check(files=2, resumes={"ana": ["Ada"]})
    assert (found.done, found.duplicate) == (1, 1)
    (done,), (duplicate,) = files_of(scene.root, "done"), files_of(scene.root, "duplicate")
    assert done.samefile(duplicate)


def test_what_is_written_through_a_link_elsewhere_does_not_change_what_was_stored(
    scene: Scene, tmp_path: Path
) -> None:
    ana = scene.account("ana")
    twin = tmp_path / "elsewhere.json"
    twin.write_bytes(a_document("as it was"))
    os.link(twin, scene.root / "ana" / "cv.json")
    scene.drain()
    twin.write_bytes(a_document("as it is now"))
    scene.drain()
    scene.check(files=1, resumes={"ana": ["as it was"]})
    with scene.store() as store:
        (entry,) = stored_resumes.list_page(store, ana.id).entries
        stored = stored_resumes.get_resume(store, ana.id, entry.id)
    assert "as it is now" not in stored.document
