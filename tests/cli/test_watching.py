"""`resumes watch`."""

import json
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine, a_resume, finish, start


@pytest.fixture
def inbox(acme: CommandLine) -> Path:
    """The inbox of the account `acme`, with a good file and a bad one."""
    inbox = acme.home / "inbox" / "acme"
    inbox.mkdir(parents=True, exist_ok=True)
    (inbox / "good.json").write_bytes(a_resume("Ada"))
    (inbox / "bad.json").write_bytes(b"[]")
    return inbox


def test_once_drains_the_inbox_and_tells_each_outcome(acme: CommandLine, inbox: Path) -> None:
    result = acme("watch", "--once", "--settle", "0")

    assert (result.exit_code, result.stdout) == (1, "")
    *lines, summary = result.stderr.splitlines()
    assert sorted(lines) == [
        "done       acme/good.json",
        "failed     acme/bad.json: The resume must be a JSON object",
    ]
    assert summary == "1 done, 1 failed."
    assert list(inbox.iterdir()) == []


def test_held_and_duplicate_alone_are_done(acme: CommandLine, inbox: Path) -> None:
    (inbox / "bad.json").write_bytes(a_resume("Bo"))
    acme.succeeds("plans", "set", "free", "--max-resumes", "1")

    result = acme("watch", "--once")

    assert result.exit_code == 0
    assert "1 done, 0 failed, 1 held." in result.stderr


def test_json_is_a_line_for_each_file(acme: CommandLine, inbox: Path) -> None:
    result = acme("--json", "watch", str(inbox.parent), "--once", "--settle", "0")

    outcomes = {one["name"]: one for one in map(json.loads, result.stdout.splitlines())}
    assert outcomes["acme/good.json"]["resumeId"] is not None
    assert outcomes["acme/bad.json"]["reason"] == "invalid_resume"
    assert Path(outcomes["acme/bad.json"]["filedAs"]).exists()


def test_files_in_root_itself_belong_to_the_account_named(
    acme: CommandLine, tmp_path: Path
) -> None:
    root = tmp_path / "drop"
    root.mkdir()
    (root / "a.json").write_bytes(a_resume("Ada"))

    result = acme("watch", str(root), "--account", "acme", "--once")

    assert result.exit_code == 0
    assert "1 done, 0 failed." in result.stderr


def test_a_folder_that_is_not_there_is_a_usage_error(acme: CommandLine) -> None:
    assert "'nowhere' does not exist" in acme.fails(2, "watch", "nowhere")


def test_ctrl_c_ends_it_in_order(acme: CommandLine, inbox: Path) -> None:
    process = start("--home", str(acme.home), "watch", "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["outcome"] == "done"

    process.send_signal(signal.SIGINT)

    code, _, stderr = finish(process)
    assert code == 0
    assert stderr.startswith(f"Watching {inbox.parent}. Ctrl-C stops it.\n")
    assert "Traceback" not in stderr
