"""Files that commands write: exports of resumes, and names that are somebody else's."""

import json
import os
from pathlib import Path

import pytest

from resumes.analyzer import DEFAULT_FORMAT, parse
from resumes.errors import Conflict, InvalidArgument
from resumes.export import SUFFIXES, Exported, Exporter, ExportFormat, iter_resumes
from resumes.output_files import OutputFile, check_free, place
from resumes.store import accounts, creation, stored_resumes
from resumes.store.creation import Created, NewResume
from resumes.store.entry import Entry
from resumes.store.stored_resumes import StoredResume
from tests.support.documents import public_view
from tests.support.inbox.builders import a_full_disk
from tests.support.resumes import a_document
from tests.support.stores import open_home

AT = "2027-01-15T08:00:00.000Z"


def an_entry(filename: str = "AdaResume.pdf", resume_id: str = "0" * 24) -> Entry:
    return Entry(resume_id, None, "Ada", filename, AT, AT)


def a_stored_resume(**top_level: object) -> StoredResume:
    return StoredResume(an_entry(), parse(a_document("Ada", **top_level)).document.decode())


def export(resume: StoredResume, kind: ExportFormat = ExportFormat.ANALYZER) -> Exported:
    with Exporter(kind, DEFAULT_FORMAT, home=Path("/nowhere")) as exporter:
        return exporter.export(resume)


def write(folder: Path, exported: Exported) -> bool:
    with Exporter(ExportFormat.ANALYZER, DEFAULT_FORMAT, home=Path("/nowhere")) as exporter:
        return exporter.write(folder, exported)


EXPORTED = export(a_stored_resume())


def test_as_the_analyzer_wrote_it_it_can_be_created_again() -> None:
    assert EXPORTED.content is not None
    assert json.loads(EXPORTED.content) == json.loads(EXPORTED.body)
    assert json.loads(EXPORTED.content) == public_view(a_stored_resume().document)
    assert parse(EXPORTED.content).name == "Ada"
    assert EXPORTED.left_out == ()


def test_json_resume_names_what_it_has_no_place_for() -> None:
    books = {"books": {"column": 0, "items": [{"title": "A book"}]}}
    exported = export(a_stored_resume(sections=books), ExportFormat.JSON_RESUME)
    assert json.loads(exported.body)["basics"]["name"] == "Ada"
    assert exported.left_out == ("books",)


def test_all_resumes_of_an_account_are_walked_through(tmp_path: Path) -> None:
    with open_home(tmp_path) as store:
        accounts.create_account(store, "zoe")
        account = accounts.create_account(store, "ana")
        new = [NewResume(parse(a_document(f"P {number}"))) for number in range(3)]
        made = [
            one.id for one in creation.create(store, account.id, new) if isinstance(one, Created)
        ]
        assert [one.entry.id for one in iter_resumes(store, account.id)] == made
        assert stored_resumes.get_resume(store, account.id, made[0]) in [
            *iter_resumes(store, account.id)
        ]


def test_each_kind_has_a_file_of_its_own_and_again_replaces_it(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    replaced = []
    for _ in range(2):
        for kind in ExportFormat:
            exported = export(a_stored_resume(), kind)
            replaced.append(write(folder, exported))
            assert exported.name == f"AdaResume{SUFFIXES[kind]}"
            assert (folder / exported.name).read_bytes() == exported.body
    assert len(list(folder.iterdir())) == len(ExportFormat)
    umask = os.umask(0o027)
    try:
        write(tmp_path, EXPORTED)
    finally:
        os.umask(umask)
    assert (tmp_path / EXPORTED.name).stat().st_mode & 0o777 == 0o640
    assert replaced == [False] * len(ExportFormat) + [True] * len(ExportFormat)


def test_what_had_its_name_is_replaced_unopened(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / EXPORTED.name).symlink_to(victim)

    assert write(tmp_path, EXPORTED)

    assert victim.read_text() == "mine"
    assert not (tmp_path / EXPORTED.name).is_symlink()


@pytest.mark.parametrize("resume_id", ["0" * 24, "../../x", "/x", ".."])
def test_whatever_the_store_holds_an_export_stays_in_its_folder(
    tmp_path: Path, resume_id: str
) -> None:
    for number, filename in enumerate(
        ["../../escaped/x.pdf", "/etc/x.pdf", "..", "", ".pdf", "a\nb.pdf", "\u202e.pdf", "x" * 300,
         "a/../b"]
    ):  # fmt: skip
        root = tmp_path / str(number)
        folder = root / "one" / "two" / "three"
        stored = StoredResume(an_entry(filename, resume_id), a_stored_resume().document)
        exported = export(stored)
        write(folder, exported)
        path = folder / exported.name
        assert list(folder.iterdir()) == [path]
        made = {path, folder, folder.parent, folder.parent.parent}
        assert set(root.rglob("*")) == made


def test_the_names_that_the_service_made_are_kept() -> None:
    for stem in ("AdaResume", "Senior Engineer", "É" * 55 + "Resume", "李Resume"):
        entry = an_entry(f"{stem}.pdf")
        exported = export(StoredResume(entry, a_stored_resume().document))
        assert exported.name == f"{stem}.json"


def test_a_file_that_cannot_be_written_whole_is_not_there(tmp_path: Path) -> None:
    with a_full_disk(16), pytest.raises(InvalidArgument, match=r"Cannot write to .*too large"):
        write(tmp_path / "out", EXPORTED)
    assert list((tmp_path / "out").iterdir()) == []


# Names that are somebody else's


def write_while_somebody_does(output: OutputFile, path: Path) -> None:
    draft = path.with_name("draft")
    draft.write_bytes(b"ours")
    path.write_text("theirs")
    try:
        output.put(draft)
    finally:
        draft.unlink()


def test_a_name_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    new, taken = tmp_path / "new", tmp_path / "taken"
    new.write_text("new")
    taken.write_text("taken")
    with pytest.raises(Conflict, match="already exists"):
        place(new, taken)
    assert taken.read_text() == "taken"
    place(new, tmp_path / "free")
    assert (tmp_path / "free").read_text() == "new"
    assert (tmp_path / "free").stat().st_nlink == 1  # a store with two names is not opened


def test_a_link_is_not_followed_even_where_it_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(
        Conflict, match="is a symbolic link, which is not followed: choose another file"
    ):
        check_free(tmp_path / "link")
    check_free(tmp_path / "nowhere")


def test_a_name_that_somebody_takes_meanwhile_is_theirs(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(Conflict, match="already exists"):
        write_while_somebody_does(OutputFile(path, remedy=""), path)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "theirs")]


def test_what_somebody_changes_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("earlier")
    output = OutputFile(path, remedy="", may_replace=lambda file: file.read() == b"earlier")
    with pytest.raises(Conflict, match="already exists"):
        write_while_somebody_does(output, path)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "theirs")]


def test_what_somebody_removes_meanwhile_is_written_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("earlier")
    output = OutputFile(path, remedy="", may_replace=lambda _: True)
    draft = tmp_path / "draft"
    draft.write_bytes(b"ours")
    path.unlink()
    output.put(draft)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "ours")]


@pytest.mark.parametrize("name", ["-wal", ".lock", "other-wal", "base.wal", "base-wal.json", "bas"])
def test_only_a_name_made_of_that_of_a_file_belongs_to_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "base").touch()
    (tmp_path / "other").mkdir()
    check_free(tmp_path / name)
    with pytest.raises(Conflict, match="mistaken for part of the database base: choose another"):
        check_free(tmp_path / "base-wal")
