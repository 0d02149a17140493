"""Writing resumes to files."""

from pathlib import Path

import pytest

from resumes.analyzer import DEFAULT_FORMAT, parse
from resumes.errors import InvalidArgument
from resumes.export_kinds import Kind
from resumes.store.engine import Store
from resumes.store.search_filler import fill
from tests.tui.builders import a_document, a_section, stored
from tui.screens.resumes.exporting import Export, Wish, carry_out


def an_export(
    folder: Path,
    *,
    resume_id: str | None = None,
    text: str = "",
    kind: Kind = Kind.ANALYZER,
    is_cancelled: bool = False,
) -> Export:
    wish = Wish(str(folder), kind, resume_id is None)
    return Export("ana", resume_id, text, wish, DEFAULT_FORMAT, lambda: is_cancelled)


def names(folder: Path) -> list[str]:
    return sorted(parse(file.read_bytes()).name or "" for file in folder.iterdir())


def test_one_resume_is_one_file(store: Store, tmp_path: Path) -> None:
    first, _ = stored(store, a_document(name="Ada"), a_document(name="Bo"))

    said = carry_out(store, an_export(tmp_path / "out", resume_id=first))

    assert said == f"Exported 1 resume to {tmp_path / 'out'}."
    assert names(tmp_path / "out") == ["Ada"]


@pytest.mark.parametrize("is_indexed", [True, False])
def test_all_that_are_listed_are_all_that_fit_the_filter(
    store: Store, tmp_path: Path, is_indexed: bool
) -> None:
    stored(store, *(a_document(name=f"Ada {n}") for n in range(150)), a_document(name="Bo"))
    if is_indexed:
        fill(store)

    said = carry_out(store, an_export(tmp_path / "out", text="ada"))

    assert said.startswith("Exported 150 resumes")
    assert "Bo" not in names(tmp_path / "out")
    assert carry_out(store, an_export(tmp_path / "all")).startswith("Exported 151 resumes")


def test_what_json_resume_has_no_place_for_is_named(store: Store, tmp_path: Path) -> None:
    books = a_section("books", {"title": "One"})
    (resume_id,) = stored(store, a_document(sections=books))

    said = carry_out(store, an_export(tmp_path, resume_id=resume_id, kind=Kind.JSON_RESUME))

    assert said.endswith("JSON Resume has no place for: books.")


def test_a_folder_that_cannot_be_is_told(store: Store, tmp_path: Path) -> None:
    (resume_id,) = stored(store, a_document())
    (tmp_path / "file").write_text("")

    with pytest.raises(InvalidArgument, match="Cannot write to "):
        carry_out(store, an_export(tmp_path / "file", resume_id=resume_id))


def test_it_ends_soon_when_it_is_cancelled(store: Store, tmp_path: Path) -> None:
    stored(store, a_document())

    assert "Exported 0 resumes" in carry_out(store, an_export(tmp_path, is_cancelled=True))
