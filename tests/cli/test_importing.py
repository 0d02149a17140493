"""`resumes import`: in place, through the one create path."""

import io
import json
import sys
from pathlib import Path

import pytest
from click import unstyle

from cli import importing
from cli.sources import Origin, Source
from resumes.store import counters, ledger
from resumes.store.ledger import FileOutcome
from tests.cli.conftest import CommandLine, a_resume, open_home
from tests.importer.packing import gzipped, zipped


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two resumes and one that is none."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.json").write_bytes(a_resume("Ada"))
    (folder / "b.json").write_bytes(a_resume("Bo"))
    (folder / "c.json").write_bytes(b"{")
    return folder


def test_files_become_resumes_and_stay_where_they_are(acme: CommandLine, folder: Path) -> None:
    result = acme("import", str(folder), "--account", "acme")

    assert result.exit_code == 1
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[0] == f"done       {folder}/a.json"
    assert lines[2].startswith(f"failed     {folder}/c.json: Invalid JSON at byte 1")
    assert lines[-1] == "2 done, 1 failed."
    assert [file.name for file in sorted(folder.iterdir())] == ["a.json", "b.json", "c.json"]
    assert len(acme.answers("list", "--json")["resumes"]) == 2


def test_content_that_is_stored_is_a_duplicate_and_no_failure(
    acme: CommandLine, folder: Path
) -> None:
    (folder / "c.json").write_bytes(b"\n" + a_resume("Ada") + b" ")

    first = acme("import", str(folder))
    second = acme("import", str(folder))

    assert (first.exit_code, second.exit_code) == (0, 0)
    assert first.stderr.endswith("2 done, 0 failed, 1 duplicate.\n")
    assert second.stderr.endswith("0 done, 0 failed, 3 duplicate.\n")
    assert "The same content is stored as " in second.stderr


def test_what_the_quota_refuses_failed(acme: CommandLine, folder: Path) -> None:
    acme.succeeds("plans", "set", "free", "--max-resumes", "1")

    result = acme("import", str(folder / "a.json"), str(folder / "b.json"), "--json")

    assert result.exit_code == 1
    outcomes = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(one["outcome"], one["reason"]) for one in outcomes] == [
        ("done", None),
        ("failed", "quota_reached"),
    ]
    assert outcomes[0]["resumeId"] == acme.answers("list", "--json")["resumes"][0]["id"]


def test_a_dry_run_says_the_same_and_stores_nothing(acme: CommandLine, folder: Path) -> None:
    (folder / "d.json").write_bytes(a_resume("Ada"))
    (folder / "e.json").write_bytes(a_resume("Eve"))
    acme.succeeds("plans", "set", "free", "--max-resumes", "2")

    judged = acme("import", str(folder), "--dry-run")

    assert acme.answers("list", "--json")["resumes"] == []
    imported = acme("import", str(folder))
    assert judged.exit_code == imported.exit_code == 1
    words = [
        [line.split()[0] for line in one.stderr.splitlines()[:-1]] for one in (judged, imported)
    ]
    assert words[0] == words[1] == ["done", "done", "failed", "duplicate", "failed"]
    assert judged.stderr.endswith("2 done, 2 failed, 1 duplicate (nothing was stored).\n")
    assert acme("import", str(folder / "a.json"), "--dry-run").stderr.startswith("duplicate")


def test_standard_input_and_warnings(acme: CommandLine) -> None:
    result = acme("import", "-", stdin=a_resume(hobby="x"))

    assert result.exit_code == 0
    assert result.stderr.startswith("done       standard input: 1 warning (")


def test_more_than_a_batch_keeps_its_order(acme: CommandLine, tmp_path: Path) -> None:
    acme.succeeds("accounts", "set-plan", "acme", "business")
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(importing.BATCH + 5):
        (folder / f"{number:03}.json").write_bytes(a_resume(f"N{number:03}"))

    acme.succeeds("import", str(folder))

    names = [
        json.loads(line)["header"]["name"] for line in acme.succeeds("export", "--all").splitlines()
    ]
    assert names == sorted(names)
    assert len(names) == importing.BATCH + 5
    with open_home(acme.home) as store:
        assert not ledger.list_files(store)
        assert counters.list_wrong(store) == []


def test_each_resume_of_a_file_is_told_by_its_place(acme: CommandLine, tmp_path: Path) -> None:
    people = tmp_path / "people.ndjson"
    people.write_bytes(b"\n".join([a_resume("Ada"), b"", b"{", a_resume("Bo"), a_resume("Ada")]))

    result = acme("import", str(people))

    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0] == f"done       {people}, line 1"
    assert lines[1].startswith(f"failed     {people}, line 3: Invalid JSON at byte 1")
    assert lines[2] == f"done       {people}, line 4"
    assert lines[3].startswith(f"duplicate  {people}, line 5: The same content is stored as ")
    assert lines[4] == "2 done, 1 failed, 1 duplicate."
    assert len(acme.answers("list", "--json")["resumes"]) == 2


def test_as_data_a_resume_has_its_number_and_place(acme: CommandLine, folder: Path) -> None:
    (folder / "c.json").write_bytes(b"[" + a_resume("Cy") + b",7]")
    (folder / "d.zip").write_bytes(zipped({"x/e.json": a_resume("Eve")}))

    result = acme("import", str(folder), "--json")

    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(Path(one["name"]).name, one["item"], one["place"]) for one in told] == [
        ("a.json", None, None),
        ("b.json", None, None),
        ("c.json", 1, "item 1"),
        ("c.json", 2, "item 2"),
        ("d.zip", 1, "member x/e.json"),
    ]
    assert [one["reason"] for one in told] == [None, None, None, "invalid_resume", None]


def test_the_same_resume_is_a_duplicate_however_it_is_packed(
    acme: CommandLine, folder: Path
) -> None:
    acme.succeeds("import", str(folder / "a.json"))
    packed = {"a.json.gz": gzipped(a_resume("Ada")), "a.zip": zipped({"a.json": a_resume("Ada")})}
    for name, content in packed.items():
        (folder / name).write_bytes(content)

    result = acme("import", *(str(folder / name) for name in packed))

    assert result.exit_code == 0
    assert result.stderr.endswith("0 done, 0 failed, 2 duplicate.\n")


@pytest.mark.parametrize(
    "content",
    [
        b"[" + a_resume("Ada") + b"," + a_resume("Bo") + b"]",
        a_resume("Ada") + b"\n" + a_resume("Bo"),
        gzipped(a_resume("Ada") + b"\n" + a_resume("Bo")),
        zipped({"a.json": a_resume("Ada"), "b.json": a_resume("Bo")}),
    ],
    ids=["array", "lines", "gzip", "zip"],
)
def test_standard_input_may_be_of_any_kind(acme: CommandLine, content: bytes) -> None:
    result = acme("import", "-", stdin=content)

    assert result.exit_code == 0
    assert result.stderr.startswith("done       standard input, ")
    assert len(acme.answers("list", "--json")["resumes"]) == 2


def test_nothing_of_an_array_that_is_cut_short_is_imported(
    acme: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_bytes(b"[" + a_resume("Ada") + b",")

    result = acme("import", str(tmp_path / "a.json"))

    assert result.exit_code == 1
    assert "a.json: Invalid JSON at byte" in result.stderr
    assert acme.answers("list", "--json")["resumes"] == []


def test_a_json_resume_is_converted(acme: CommandLine) -> None:
    result = acme("import", "-", stdin=b'{"basics":{"name":"Ada","summary":"Wrote programs."}}')

    assert result.exit_code == 0
    (resume,) = acme.answers("list", "--json")["resumes"]
    assert json.loads(acme.succeeds("show", resume["id"], "--json"))["header"]["name"] == "Ada"


def test_a_dry_run_of_a_file_of_several_says_what_an_import_says(
    acme: CommandLine, tmp_path: Path
) -> None:
    acme.succeeds("plans", "set", "free", "--max-resumes", "2")
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"\n".join(a_resume(name) for name in ("Ada", "Bo", "Ada", "Cy")))

    judged = acme("import", str(file), "--dry-run")
    imported = acme("import", str(file))

    words = [
        [line.split()[0] for line in one.stderr.splitlines()[:-1]] for one in (judged, imported)
    ]
    assert words[0] == words[1] == ["done", "done", "duplicate", "failed"]


def test_more_than_a_batch_in_a_file_keeps_its_order(acme: CommandLine, tmp_path: Path) -> None:
    acme.succeeds("accounts", "set-plan", "acme", "business")
    names = [f"N{number:03}" for number in range(2 * importing.BATCH + 5)]
    file = tmp_path / "many.ndjson.gz"
    file.write_bytes(gzipped(b"\n".join(map(a_resume, names))))

    acme.succeeds("import", str(file))

    stored = [
        json.loads(line)["header"]["name"] for line in acme.succeeds("export", "--all").splitlines()
    ]
    assert stored == names


def test_a_terminal_gets_a_bar_and_the_failures_below_it(
    acme: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", stream)
    several = Source("b.json")
    results = [
        importing.Result(Origin(Source("a.json")), FileOutcome.DONE),
        importing.Result(Origin(several, 1, "item 1"), FileOutcome.DONE),
        importing.Result(Origin(several, 2, "item 2"), FileOutcome.FAILED, "invalid_json", "no"),
    ]

    told = list(importing._told_by_bar(iter(results), total=2))

    assert told == results
    shown = unstyle(stream.getvalue())
    assert "2/2" in shown
    assert shown.endswith("failed     b.json, item 2: no\n")


def test_files_of_other_names_are_counted_and_without_any_the_import_failed(
    acme: CommandLine, folder: Path
) -> None:
    (folder / "c.json").rename(folder / "c.pdf")

    result = acme("import", str(folder))

    assert result.exit_code == 0
    assert result.stderr.splitlines()[-2:] == [
        "2 done, 0 failed.",
        "1 file was passed over: 1 ends in none of .json, .ndjson, .jsonl, .gz, .zip.",
    ]
    for name in ("a.json", "b.json"):
        (folder / name).unlink()
    message = acme.fails(1, "import", str(folder))
    assert message.startswith(f"Nothing to read in {folder}. 1 file was passed over: ")


def test_what_is_missing_is_a_usage_error(acme: CommandLine) -> None:
    assert "does not exist" in acme.fails(2, "import", "nowhere")
    assert "Missing argument 'PATH...'" in acme.fails(2, "import")
