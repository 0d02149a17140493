"""`resumes import` and `resumes validate`: files, folders and standard input."""

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from cli.commands import import_
from tests.command.conftest import CommandLine, a_resume
from tests.support.api.serving import serve_here
from tests.support.inbox.builders import bound_by_permissions
from tests.support.inbox.packing import gzipped, zipped, zipped_as


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

    (folder / "c.json").write_bytes(b"\n" + a_resume("Ada") + b" ")
    again = acme("import", str(folder))
    assert again.exit_code == 0
    assert again.stderr.endswith("0 done, 0 failed, 3 duplicate.\n")
    assert "The same content is already stored as " in again.stderr


def test_imported_resumes_have_the_label_that_is_given_or_that_of_a_folder_in_a_zip(
    acme: CommandLine, tmp_path: Path
) -> None:
    names = ("class/a.json", "b.json")
    (tmp_path / "zip.zip").write_bytes(zipped({name: a_resume(name) for name in names}))
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "c.json").write_bytes(a_resume("c"))
    (tmp_path / "d.zip").write_bytes(zipped({"class/d.json": a_resume("d")}))

    acme.succeeds("import", str(tmp_path / "zip.zip"), str(tmp_path / "class"))
    acme.succeeds("import", str(tmp_path / "d.zip"), "--label", " class 2026 ")

    listed = acme.answers("list", "--json")["resumes"]
    found = {one["title"].removesuffix(" Resume"): one.get("label") for one in listed}
    assert found == {"class/a.json": "class", "b.json": None, "c": None, "d": "class 2026"}
    of_label = acme("list", "--label", "class", "--filter", "json")
    assert [line.split()[-1] for line in of_label.stdout.splitlines()] == ["label", "class"]
    assert "label" not in acme.succeeds("list", "--filter", "title:b.json")
    nothing = acme("list", "--label", "x")
    assert nothing.stderr == 'No resumes in account "acme" with the label "x".\n'
    assert "Invalid label '\\n'" in acme.fails(2, "import", str(tmp_path), "--label", "\n")


def test_what_came_over_http_is_not_known(
    run: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ada.json"
    file.write_bytes(a_resume())
    run.home.mkdir()
    with serve_here(run.home) as place:
        clients = [place.client(), place.client()]
        for client in clients:
            assert client.create(a_resume()).status_code == 201
        inbox = run.home / "inbox" / clients[1].account
        inbox.mkdir(parents=True)
        shutil.copy(file, inbox)

        monkeypatch.setenv("RESUMES_RATE_LIMIT", "true")  # of the API alone
        monkeypatch.setenv("RESUMES_RATE_PER_DAY", "1")
        imported = run("import", str(file), "--account", clients[0].account)
        watched = run("watch", "--once", "--settle", "0")

        for said in (imported, watched):
            assert said.stderr.splitlines()[-1].startswith("1 done, 0 failed"), said.output
        for client in clients:
            assert len(client.ids()) == 2
            client.close()


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
    room = "The account is full. Delete resumes, or move it to a larger plan: "
    assert room in result.stderr
    command = shlex.split(result.stderr.partition(room)[2])
    acme.succeeds(*command[command.index("accounts") :])
    assert room not in acme.succeeds("import", str(folder / "b.json"), "--json")


def test_a_dry_run_says_the_same_and_stores_nothing(acme: CommandLine, folder: Path) -> None:
    (folder / "d.json").write_bytes(a_resume("Ada"))
    lines = (a_resume(name) for name in ("Eve", "Bo", "Eve", "Flo"))
    (folder / "e.jsonl").write_bytes(b"\n".join(lines))
    acme.succeeds("plans", "set", "free", "--max-resumes", "3")

    judged = acme("import", str(folder), "--dry-run")

    assert acme.answers("list", "--json")["resumes"] == []
    imported = acme("import", str(folder))
    assert judged.exit_code == imported.exit_code == 1
    words = [re.findall(r"^[a-z]+(?= )", said.stderr, re.MULTILINE) for said in (judged, imported)]
    of_lines = ["done", "duplicate", "duplicate", "failed"]
    assert words[0] == words[1] == ["done", "done", "failed", "duplicate", *of_lines]
    assert "\n3 done, 2 failed, 3 duplicate (nothing was stored).\n" in judged.stderr
    assert "The account is full. Delete resumes, or move it to a larger plan: " in judged.stderr
    assert re.search(r"accounts set-plan acme (?!free)", judged.stderr)
    assert acme("import", str(folder / "a.json"), "--dry-run").stderr.startswith("duplicate")


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


def test_more_than_a_batch_in_a_file_keeps_its_order(acme: CommandLine, tmp_path: Path) -> None:
    acme.succeeds("accounts", "set-plan", "acme", "business")
    names = [f"N{number:03}" for number in range(2 * import_.BATCH + 5)]
    file = tmp_path / "many.ndjson.gz"
    file.write_bytes(gzipped(b"\n".join(map(a_resume, names))))

    acme.succeeds("import", str(file))

    stored = [
        json.loads(line)["header"]["name"] for line in acme.succeeds("export", "--all").splitlines()
    ]
    assert stored == names


def test_a_folder_in_a_folder_that_cannot_be_read_is_one_failure_among_the_files(
    acme: CommandLine, folder: Path
) -> None:
    (folder / "c.json").unlink()
    closed = folder / "closed"
    closed.mkdir(mode=0)

    with bound_by_permissions():
        validated = acme("validate", str(folder))
        imported = acme("import", str(folder))
        as_data = acme("import", str(folder), "--json").stdout.splitlines()

    closed.chmod(0o700)
    failed = f"failed     {closed}: Cannot read {closed}: Permission denied"
    assert (validated.exit_code, imported.exit_code) == (1, 1)
    assert failed in validated.stdout.splitlines()
    assert validated.stderr == "2 valid, 1 failed.\n"
    assert imported.stderr.splitlines()[2:] == [failed, "2 done, 1 failed."]
    assert json.loads(as_data[-1])["reason"] == "unreadable"


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
    as_data = json.loads(run("validate", "--json", str(good), str(bad)).stdout)["files"]
    assert [one.get("code") for one in as_data] == [None, "invalid_resume"]
    assert not run.home.exists()


def test_what_is_good_is_valid_and_warnings_are_no_failure(
    run: CommandLine, repository: Path
) -> None:
    said = run.succeeds("validate", "-", stdin=a_resume(hobby="x\x1b"))
    assert "valid      standard input: 1 warning\n           hobby: " in said
    assert "valid      standard input\n" in run.succeeds("validate", "-", stdin='{"basics": {}}')
    run.succeeds("validate", *map(str, sorted((repository / "sample_data").glob("*.json"))))


def test_members_and_resumes_of_a_file_are_named_and_what_is_skipped_is_no_failure(
    acme: CommandLine, folder: Path
) -> None:
    file = folder / "people.zip"
    members = {"本田圭.json": a_resume(), "memo.txt": b"", "資料/.a\x1b.json": a_resume("Bo")}
    file.write_bytes(zipped_as("cp932", members))
    shown = "Äæù┐/.a\\x1b.json"
    note = (
        f"skipped    {file}: 2 members: memo.txt (not .json, .ndjson or .jsonl), "
        f"{shown} (hidden or temporary)"
    )

    for words in (["validate"], ["validate", "--json"], ["import", "--dry-run"], ["import"]):
        result = acme(*words, str(file))
        assert result.exit_code == 0
        assert result.stderr.splitlines()[0] == note

    (told,) = json.loads(acme("validate", "--json", str(file)).stdout)["skipped"]
    assert (told["name"], told["count"]) == (str(file), 2)
    assert [one["member"] for one in told["members"]] == ["memo.txt", shown]
    assert len(acme.answers("list", "--json")["resumes"]) == 1

    (folder / "c.json").write_bytes(b"[" + a_resume("Cy") + b",7]")
    file.write_bytes(zipped({"x/e.json": a_resume("Eve")}))
    result = acme("import", str(folder), "--json")
    outcomes = [json.loads(line) for line in result.stdout.splitlines()]
    assert [
        (Path(one["name"]).name, one["item"], one["place"], one["reason"]) for one in outcomes
    ] == [
        ("a.json", None, None, None),
        ("b.json", None, None, None),
        ("c.json", 1, "item 1", None),
        ("c.json", 2, "item 2", "invalid_resume"),
        ("people.zip", 1, "member x/e.json", None),
    ]


@pytest.mark.parametrize("command", ["validate", "import"])
def test_files_in_system_folders_are_left_alone_and_counted(
    acme: CommandLine, folder: Path, command: str
) -> None:
    (folder / "c.json").unlink()
    for name in ("#recycle/a.json", "#recycle/b.json", "x/@EADIR/c.json", "@tmp/notes.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(a_resume(name))

    result = acme(command, str(folder))

    assert result.exit_code == 0
    assert result.stderr.splitlines()[-1] == (
        f"Left alone: 2 files in {folder}/#recycle and 1 file in {folder}/x/@EADIR "
        "(recycle bins, snapshots and other system folders)."
    )
    assert acme(command, str(folder / "#recycle")).exit_code == 0  # which somebody asked for
    (folder / "a.json").unlink()
    (folder / "b.json").unlink()
    message = acme.fails(1, command, str(folder))
    assert message.startswith(f"No resume files in {folder}. Left alone: 2 files in")


def test_of_a_folder_files_are_read_by_their_names_and_of_others_by_their_content(
    acme: CommandLine, tmp_path: Path
) -> None:
    folder, empty = tmp_path / "mixed", tmp_path / "empty"
    for name in ("b.json", "a.JSON", "notes.txt", ".hidden.json", "sub/c.json", "_done/d.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(a_resume())
    (folder / "e.json.gz").write_bytes(gzipped(a_resume()))
    (folder / "f.zip").write_bytes(zipped({"g.ndjson": a_resume() + b"\n" + a_resume()}))
    (folder / "link.json").symlink_to(folder / "b.json")
    os.mkfifo(folder / "pipe.json")  # which nobody waits for

    result = acme("validate", str(folder), str(folder / "notes.txt"))

    names = [
        str(Path(line.split()[1].rstrip(",")).relative_to(folder))
        for line in result.stdout.splitlines()
    ]
    assert names == [
        "a.JSON", "b.json", "e.json.gz", "f.zip", "f.zip", "sub/c.json", "notes.txt",
    ]  # fmt: skip
    assert "Skipped 4 files: " in result.stderr
    for name in ("link.json", "pipe.json"):
        assert "Not a regular file" in acme("validate", str(folder / name)).stdout

    # A folder without a resume is a failure where there is nothing else.
    empty.mkdir()
    (empty / "cv.pdf").touch()
    for command in ("validate", "import"):
        message = acme.fails(1, command, str(empty))
        assert message.startswith(f"No resume files in {empty}. Skipped 1 file: 1 is not .json, ")
    assert acme("import", str(empty), str(folder)).exit_code == 0
