"""Files that commands write: exports of resumes, and names that are somebody else's."""

import json
import os
import stat
from pathlib import Path

import pytest

from resumes.analyzer import DEFAULT_FORMAT, parse
from resumes.errors import Conflict, InvalidArgument
from resumes.export import SUFFIXES, Exported, Exporter, ExportFormat
from resumes.output_files import OutputFile, check_free, place
from resumes.store.entry import Entry
from resumes.store.stored_resumes import StoredResume
from tests.support.documents import public_view
from tests.support.inbox.builders import a_full_disk
from tests.support.resumes import a_document

AT = "2027-01-15T08:00:00.000Z"


def a_stored_resume(
    filename: str = "AdaResume.pdf", resume_id: str = "0" * 24, **top_level: object
) -> StoredResume:
    entry = Entry(resume_id, None, "Ada", filename, AT, AT)
    return StoredResume(entry, parse(a_document("Ada", **top_level)).document.decode())


def export(resume: StoredResume, kind: ExportFormat = ExportFormat.ANALYZER) -> Exported:
    with Exporter(kind, DEFAULT_FORMAT, home=Path("/nowhere")) as exporter:
        return exporter.export(resume)


def write(folder: Path, exported: Exported) -> bool:
    with Exporter(ExportFormat.ANALYZER, DEFAULT_FORMAT, home=Path("/nowhere")) as exporter:
        return exporter.write(folder, exported)


EXPORTED = export(a_stored_resume())


def test_an_export_can_be_created_again_or_names_what_is_left_out() -> None:
    assert EXPORTED.content is not None
    assert json.loads(EXPORTED.content) == json.loads(EXPORTED.body)
    assert json.loads(EXPORTED.content) == public_view(a_stored_resume().document)
    assert parse(EXPORTED.content).name == "Ada"
    assert EXPORTED.left_out == ()

    books = {"books": {"column": 0, "items": [{"title": "A book"}]}}
    exported = export(a_stored_resume(sections=books), ExportFormat.JSON_RESUME)
    assert json.loads(exported.body)["basics"]["name"] == "Ada"
    assert exported.left_out == ("books",)


@pytest.mark.slow
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
    assert replaced == [False] * len(ExportFormat) + [True] * len(ExportFormat)

    # What has its name is replaced unopened, by a file that the umask alone closes to others.
    victim, file = tmp_path / "victim", tmp_path / EXPORTED.name
    victim.write_text("mine")
    file.symlink_to(victim)
    umask = os.umask(0o027)
    try:
        assert write(tmp_path, EXPORTED)
    finally:
        os.umask(umask)
    assert victim.read_text() == "mine"
    assert stat.S_IMODE(file.lstat().st_mode) == 0o640
    with a_full_disk(16), pytest.raises(InvalidArgument, match=r"Cannot write to .*too large"):
        write(tmp_path / "out", EXPORTED)
    assert list((tmp_path / "out").iterdir()) == []


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
        exported = export(a_stored_resume(filename, resume_id))
        write(folder, exported)
        path = folder / exported.name
        assert list(folder.iterdir()) == [path]
        made = {path, folder, folder.parent, folder.parent.parent}
        assert set(root.rglob("*")) == made
    for stem in ("AdaResume", "Senior Engineer", "É" * 55 + "Resume", "李Resume"):
        assert export(a_stored_resume(f"{stem}.pdf")).name == f"{stem}.json"


# Names that are somebody else's


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
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(
        Conflict, match="is a symbolic link, which is not followed: choose another file"
    ):
        check_free(tmp_path / "link")
    check_free(tmp_path / "nowhere")


@pytest.mark.parametrize("earlier", [None, "earlier"], ids=["free", "to be replaced"])
@pytest.mark.parametrize("meanwhile", [None, "theirs"], ids=["removed", "changed"])
def test_what_somebody_writes_meanwhile_is_theirs(
    tmp_path: Path, earlier: str | None, meanwhile: str | None
) -> None:
    path, draft = tmp_path / "file", tmp_path / "draft"
    if earlier is not None:
        path.write_text(earlier)
    output = OutputFile(path, remedy="", may_replace=lambda file: file.read() == b"earlier")
    draft.write_text("ours")
    if meanwhile is None:
        path.unlink(missing_ok=True)
        output.put(draft)
    else:
        path.write_text(meanwhile)
        with pytest.raises(Conflict, match="already exists"):
            output.put(draft)
        draft.unlink()
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [
        ("file", meanwhile or "ours")
    ]


@pytest.mark.parametrize("name", ["-wal", ".lock", "other-wal", "base.wal", "base-wal.json", "bas"])
def test_only_a_name_made_of_that_of_a_file_belongs_to_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "base").touch()
    (tmp_path / "other").mkdir()
    check_free(tmp_path / name)
    with pytest.raises(Conflict, match="mistaken for part of the database base: choose another"):
        check_free(tmp_path / "base-wal")
