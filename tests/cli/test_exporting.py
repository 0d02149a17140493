"""`resumes export`: what can be created again."""

import json
from pathlib import Path
from typing import Any

import pytest

from resumes.analyzer import parse, parse_imported, public_view
from tests.cli.conftest import CommandLine, a_resume, store_resumes
from tests.resumes.analyzer.jsonresume import characters


def test_all_is_one_resume_on_each_line(acme: CommandLine) -> None:
    store_resumes(acme.home, *[a_resume(f"Ada {number}") for number in range(5)])

    exported = acme("export", "--all")

    names = [json.loads(line)["header"]["name"] for line in exported.stdout.splitlines()]
    assert names == [f"Ada {number}" for number in range(5)]
    assert exported.stderr == "Exported 5 resumes.\n"


def test_content_is_what_the_api_gives_by_id(acme: CommandLine) -> None:
    body = a_resume("Ada", title="", unknown=1)
    [resume_id] = store_resumes(acme.home, body)

    exported = json.loads(acme.succeeds("export", resume_id))

    assert exported == public_view(parse(body).document)
    assert "isImported" not in exported


def test_files_are_named_after_the_download_and_the_id(acme: CommandLine, tmp_path: Path) -> None:
    [ada, _] = store_resumes(acme.home, a_resume("Ada"), a_resume("Bo"))
    folder = tmp_path / "new" / "folder"

    first, second = (acme("export", ada, "--to", str(folder)) for _ in range(2))

    assert first.stderr == f"Exported 1 resume to {folder}.\n"
    assert second.stderr == f"Exported 1 resume to {folder}, in place of 1 earlier file.\n"
    assert [file.name for file in folder.iterdir()] == [f"AdaResume-{ada}.json"]
    again = parse((folder / f"AdaResume-{ada}.json").read_bytes())
    assert again.name == "Ada"


def test_a_stream_of_json_resumes_can_be_imported(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume("Ada"), a_resume("Bo"))

    exported = acme("export", "--all", "--format", "jsonresume")

    resumes = [json.loads(line) for line in exported.stdout.splitlines()]
    assert [resume["basics"]["name"] for resume in resumes] == ["Ada", "Bo"]
    assert resumes[0]["basics"]["summary"] == "Analyst and metaphysician."
    assert exported.stderr == "Exported 2 resumes.\n"
    assert parse_imported(exported.stdout.splitlines()[0].encode()).name == "Ada"


def test_json_resumes_lie_beside_an_export_of_the_other_format(
    acme: CommandLine, tmp_path: Path
) -> None:
    [ada] = store_resumes(acme.home, a_resume("Ada"))

    acme.succeeds("export", ada, "--to", str(tmp_path))
    acme.succeeds("export", ada, "--to", str(tmp_path), "--format", "jsonresume")

    file = tmp_path / f"AdaResume-{ada}.jsonresume.json"
    assert json.loads(file.read_bytes())["basics"]["name"] == "Ada"
    assert json.loads((tmp_path / f"AdaResume-{ada}.json").read_bytes())["header"]["name"] == "Ada"


def test_what_json_resume_has_no_place_for_is_said(acme: CommandLine) -> None:
    books = {"books": {"column": 0, "items": [{"title": "Notes"}]}}
    store_resumes(acme.home, a_resume(), a_resume("Bo", sections=books))

    exported = acme("export", "--all", "--format", "jsonresume")

    assert exported.stderr.splitlines() == [
        "Exported 2 resumes.",
        "Left out, as JSON Resume has no place for it: books.",
    ]


def test_a_wrong_id_is_told_before_anything_is_written(acme: CommandLine) -> None:
    [ada] = store_resumes(acme.home, a_resume("Ada"))

    exported = acme("export", ada, "wrong")

    assert (exported.exit_code, exported.stdout) == (1, "")


def test_either_ids_or_all(acme: CommandLine) -> None:
    assert "Name the resumes to export, or say --all" in acme.fails(2, "export")
    assert "or say --all" in acme.fails(2, "export", "x", "--all")
    assert "use analyzer or jsonresume" in acme.fails(2, "export", "--all", "--format", "pdf")


def test_a_folder_that_cannot_be_made_is_told(acme: CommandLine, tmp_path: Path) -> None:
    store_resumes(acme.home, a_resume("Ada"))
    (tmp_path / "file").write_text("", encoding="ascii")

    message = acme.fails(2, "export", "--all", "--to", str(tmp_path / "file" / "folder"))

    assert message == f"Cannot write to {tmp_path / 'file' / 'folder'}: Not a directory"


def a_section(*items: Any, name: str = "") -> dict[str, Any]:
    return {"column": 0, "name": name, "items": list(items)}


@pytest.mark.parametrize(
    "sections",
    [
        {"summaries": a_section({"text": "a" * 15_000}, {"text": "b" * 15_000})},
        {"educations": a_section({"gpa": "3" * 15_000, "maxGpa": "4" * 15_000})},
        {"interests": a_section(*[{"description": "a, " * 6_600}] * 60)},
        {
            "experiences": a_section(*[{"workplace": "a", "bullets": ["b"]}] * 400),
            "additionalExperiences": a_section(*[{"workplace": "c", "position": "d"}] * 400),
        },
        {
            "publications": a_section(*[{"title": "a", "edition": "b"}] * 400),
            "additionalPublications": a_section(*[{"title": "c"}] * 400),
        },
        {
            "skills": a_section(*[{"title": "a", "description": "b"}] * 400),
            "additionalTechnologies": a_section(*[{"title": "c", "tags": ["d"]}] * 400),
        },
        {
            "quotes": a_section(*[{"author": "a"}, {"quote": "b"}] * 200, name="References"),
            "references": a_section(*[{"name": "c"}] * 400),
        },
        {
            "skills": a_section(*[{"tags": ["aa"] * 200}] * 500),
            "projects": a_section(*[{"bullets": ["bb"] * 200}] * 90),
        },
    ],
    ids=lambda sections: ",".join(sections),
)
@pytest.mark.parametrize("kind", ["analyzer", "jsonresume"])
def test_what_was_exported_can_be_imported_whatever_was_joined(
    acme: CommandLine, tmp_path: Path, sections: dict[str, Any], kind: str
) -> None:
    [resume_id] = store_resumes(acme.home, a_resume(sections=sections))
    acme.succeeds("export", resume_id, "--to", str(tmp_path / "first"), "--format", kind)

    acme.succeeds("import", str(tmp_path / "first"))

    resumes = acme.answers("list", "--json")["resumes"]
    [imported] = [resume["id"] for resume in resumes if resume["id"] != resume_id]
    acme.succeeds("export", imported, "--to", str(tmp_path / "second"), "--format", kind)
    [first], [second] = ((tmp_path / name).iterdir() for name in ("first", "second"))
    assert characters(json.loads(second.read_bytes())) == characters(json.loads(first.read_bytes()))


def test_a_location_whose_country_is_written_out_is_not_too_long(acme: CommandLine) -> None:
    header = {"name": "Ada", "location": f"{'a' * 19_994}, , CA"}
    store_resumes(acme.home, a_resume(header=header))

    exported = acme.succeeds("export", "--all", "--format", "jsonresume")

    acme.succeeds("import", "-", stdin=exported)
    [first, second] = acme.succeeds("export", "--all").splitlines()
    assert json.loads(first)["header"] == json.loads(second)["header"] == header
