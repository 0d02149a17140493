"""`resumes export`: what can be created again."""

import json
from pathlib import Path

from resumes.analyzer import parse, parse_imported, public_view
from tests.cli.conftest import CommandLine, a_resume, store_resumes


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
