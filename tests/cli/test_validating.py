"""`resumes validate`."""

import json
from pathlib import Path

from tests.cli.conftest import CommandLine, a_resume
from tests.importer.packing import gzipped, zipped


def test_the_verdict_on_each_file_is_data(run: CommandLine, repository: Path) -> None:
    good = repository / "sample_data" / "nurse-double-column-en.json"
    bad = repository / "sample_data" / "bad" / "several-faults-at-once.json"

    result = run("validate", str(good), str(bad))

    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == f"valid      {good}"
    assert lines[1] == f"failed     {bad}: Invalid field title: must be a string"
    assert len(lines) == 6
    assert result.stderr == "1 valid, 1 failed.\n"
    assert not run.home.exists()


def test_warnings_are_shown_and_are_no_failure(run: CommandLine) -> None:
    result = run("validate", "-", stdin=a_resume(hobby="x\x1b"))

    assert result.exit_code == 0
    assert "valid      standard input: 1 warning\n           hobby: " in result.stdout


def test_json_has_code_issues_and_warnings(run: CommandLine) -> None:
    result = run("validate", "-", "--json", stdin=b"[")

    assert result.exit_code == 1
    assert '"code": "invalid_json"' in result.stdout
    answer = run.answers("--json", "validate", str(_written(run, a_resume())))
    assert answer["files"][0]["valid"] is True
    assert answer["files"][0]["code"] is None


def _written(run: CommandLine, content: bytes) -> Path:
    path = run.home.with_name("a.json")
    path.write_bytes(content)
    return path


def test_every_good_sample_is_valid(run: CommandLine, repository: Path) -> None:
    for file in sorted((repository / "sample_data").glob("*.json")):
        run.succeeds("validate", str(file))


def test_a_missing_file_is_a_usage_error_before_anything_is_judged(run: CommandLine) -> None:
    message = run.fails(2, "validate", "no-such.json")

    assert "'no-such.json' does not exist" in message


def test_a_link_is_not_followed(run: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(_written(run, a_resume()))

    result = run("validate", str(tmp_path / "link.json"))

    assert result.exit_code == 1
    assert "Not a regular file" in result.stdout


def test_each_resume_of_a_file_has_its_verdict(run: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "people.zip"
    file.write_bytes(
        zipped({"a.ndjson": a_resume() + b"\n\n{}\n", "b\x1b.json": a_resume(hobby="x")})
    )

    result = run("validate", str(file))

    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == f"valid      {file}, member a.ndjson, line 1"
    assert lines[1].startswith(
        f"failed     {file}, member a.ndjson, line 3: Missing required field"
    )
    assert f"valid      {file}, member b\\x1b.json: 1 warning" in lines
    assert result.stderr == "2 valid, 1 failed.\n"


def test_as_data_a_resume_has_its_number_and_place(run: CommandLine, tmp_path: Path) -> None:
    plain = _written(run, a_resume())
    several = tmp_path / "b.json"
    several.write_bytes(b"[" + a_resume() + b"]")
    damaged = tmp_path / "c.json.gz"
    damaged.write_bytes(gzipped(a_resume())[:-1])

    result = run("validate", "--json", str(plain), str(several), str(damaged))

    files = json.loads(result.stdout)["files"]
    assert [(one["item"], one["place"], one["code"]) for one in files] == [
        (None, None, None),
        (1, "item 1", None),
        (None, None, "invalid_archive"),
    ]


def test_a_json_resume_is_valid(run: CommandLine) -> None:
    assert run.succeeds("validate", "-", stdin=b'{"basics":{"name":"Ada"}}').startswith("valid")


def test_files_of_other_names_are_counted_and_without_any_there_is_no_verdict(
    run: CommandLine, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "cv.pdf").touch()

    assert run.fails(1, "validate", str(folder)).startswith(f"Nothing to read in {folder}. 1 file")

    (folder / "a.json").write_bytes(a_resume())
    result = run("validate", str(folder))
    assert result.exit_code == 0
    assert result.stderr.startswith("1 valid, 0 failed.\n1 file was passed over: ")
