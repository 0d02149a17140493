"""The same content again, under other names, and other content under the same name."""

import os
from pathlib import Path

from resumes.store import stored_resumes
from tests.support.inbox.oracle import files_of, reports_of
from tests.support.inbox.scenes import Scene
from tests.support.resumes import a_document


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
