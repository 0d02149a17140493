"""Files of several resumes, and files with two names."""

import os
from pathlib import Path

import pytest

from resumes.store import stored_resumes
from tests.support.inbox.oracle import files_of
from tests.support.inbox.packing import gzipped, zipped
from tests.support.inbox.scenes import Scene
from tests.support.resumes import a_document


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


# The same content


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
