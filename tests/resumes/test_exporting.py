"""Resumes as they leave the store."""

import json
from pathlib import Path

import pytest

from resumes.analyzer import DEFAULT_FORMAT, parse, public_view
from resumes.export_kinds import Kind
from resumes.exporting import export_view, file_name, iter_resumes, write
from resumes.store import Store, accounts, creating, listing
from resumes.store.creating import Created, NewResume
from resumes.store.listing import StoredResume
from tests.importer.builders import a_full_disk
from tests.resumes.builders import a_document
from tests.stores import open_home


@pytest.fixture
def resume(tmp_path: Path) -> StoredResume:
    with open_home(tmp_path) as store:
        return stored(store, a_document("Ada"))[0]


def stored(store: Store, *bodies: bytes) -> list[StoredResume]:
    account = accounts.create_account(store, "ana")
    outcomes = creating.create(store, account.id, [NewResume(parse(body)) for body in bodies])
    return [
        listing.get_resume(store, account.id, outcome.id)
        for outcome in outcomes
        if isinstance(outcome, Created)
    ]


def test_as_the_analyzer_wrote_it_it_can_be_created_again(resume: StoredResume) -> None:
    exported = export_view(resume, Kind.ANALYZER, DEFAULT_FORMAT)

    assert exported.content == public_view(resume.document)
    assert parse(json.dumps(exported.content).encode()).name == "Ada"
    assert exported.left_out == ()


def test_json_resume_names_what_it_has_no_place_for(resume: StoredResume) -> None:
    document = json.loads(resume.document)
    document["sections"] = {"books": {"column": 0, "items": [{"title": "A book"}]}}
    other = resume._replace(document=parse(json.dumps(document).encode()).document.decode())

    exported = export_view(other, Kind.JSON_RESUME, DEFAULT_FORMAT)

    assert exported.content["basics"]["name"] == "Ada"
    assert exported.left_out == ("books",)


def test_each_kind_has_a_file_of_its_own_and_again_replaces_it(
    resume: StoredResume, tmp_path: Path
) -> None:
    folder = tmp_path / "new" / "folder"
    for _ in range(2):
        for kind in Kind:
            written = write(folder, resume.entry, export_view(resume, kind, DEFAULT_FORMAT))
            assert written.path.name == file_name(resume.entry, kind)

    assert len(list(folder.iterdir())) == len(Kind)


def test_all_resumes_of_an_account_are_walked_through(tmp_path: Path) -> None:
    with open_home(tmp_path) as store:
        accounts.create_account(store, "zoe")
        made = stored(store, *(a_document(f"P {number}") for number in range(3)))
        account = accounts.get_account(store, "ana")

        assert [one.entry.id for one in iter_resumes(store, account.id)] == [
            one.entry.id for one in made
        ]


def test_what_had_its_name_is_replaced_unopened(resume: StoredResume, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    exported = export_view(resume, Kind.ANALYZER, DEFAULT_FORMAT)
    (tmp_path / file_name(resume.entry, Kind.ANALYZER)).symlink_to(victim)

    written = write(tmp_path, resume.entry, exported)

    assert victim.read_text() == "mine"
    assert not written.path.is_symlink()
    assert written.is_replacing


def test_what_is_replaced_is_told_and_nothing_else(resume: StoredResume, tmp_path: Path) -> None:
    exported = export_view(resume, Kind.ANALYZER, DEFAULT_FORMAT)
    assert [write(tmp_path, resume.entry, exported).is_replacing for _ in range(2)] == [False, True]


@pytest.mark.parametrize(
    "filename",
    [
        "../../escaped/x.pdf",
        "/etc/x.pdf",
        "..",
        "",
        ".pdf",
        "a\nb.pdf",
        "\u202e.pdf",
        "x" * 300,
        "a/../b",
    ],
)
@pytest.mark.parametrize("resume_id", ["0" * 24, "../../x", "/x", ".."])
def test_whatever_the_store_holds_an_export_stays_in_its_folder(
    resume: StoredResume, tmp_path: Path, filename: str, resume_id: str
) -> None:
    folder = tmp_path / "one" / "two" / "three"
    entry = resume.entry._replace(filename=filename, id=resume_id)
    before = set(tmp_path.rglob("*"))

    written = write(folder, entry, export_view(resume, Kind.ANALYZER, DEFAULT_FORMAT))

    assert list(folder.iterdir()) == [written.path]
    made = set(tmp_path.rglob("*")) - before
    assert made == {written.path, folder, folder.parent, folder.parent.parent}


def test_the_names_that_the_service_made_are_kept(resume: StoredResume) -> None:
    for filename in (
        "AdaResume.pdf",
        "Senior Engineer.pdf",
        "É" * 55 + "Resume.pdf",
        "李Resume.pdf",
    ):
        entry = resume.entry._replace(filename=filename)
        stem = filename.removesuffix(".pdf")
        assert file_name(entry, Kind.ANALYZER) == f"{stem}-{entry.id}.json"


def test_a_file_that_cannot_be_written_whole_is_not_there(
    resume: StoredResume, tmp_path: Path
) -> None:
    exported = export_view(resume, Kind.ANALYZER, DEFAULT_FORMAT)
    with a_full_disk(16), pytest.raises(OSError, match="too large"):
        write(tmp_path / "out", resume.entry, exported)

    assert list((tmp_path / "out").iterdir()) == []
