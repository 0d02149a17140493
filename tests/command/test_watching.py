"""`resumes watch`."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from cli.progress import MAX_LINES
from resumes.store import accounts, search
from tests.command.conftest import CommandLine, a_resume, finish, on_terminal, screen, start
from tests.support.inbox.builders import bound_by_permissions
from tests.support.stores import open_home
from tests.support.waiting import wait_until


@pytest.fixture
def inbox(acme: CommandLine) -> Path:
    """The inbox of the account `acme`, with a good file and a bad one."""
    inbox = acme.home / "inbox" / "acme"
    (inbox / "good.json").write_bytes(a_resume("Ada"))
    (inbox / "bad.json").write_bytes(b"7")
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


def test_held_duplicate_and_nobody_s_files_are_no_failure_nor_is_a_command_that_fails(
    acme: CommandLine, inbox: Path
) -> None:
    (inbox / "bad.json").write_bytes(a_resume("Bo"))
    (inbox.parent / "nobody").mkdir()
    (inbox.parent / "nobody" / "cv.json").write_bytes(a_resume())
    acme.succeeds("plans", "set", "free", "--max-resumes", "1")

    result = acme("watch", "--once", "--on-import", "echo no mail >&2; exit 3")

    assert result.exit_code == 0
    assert 'The --on-import command failed with exit code 3: "no mail". ' in result.stderr
    assert result.stderr.endswith("1 done, 0 failed, 1 held, 1 waiting.\n")


def test_files_in_root_itself_belong_to_the_account_named_and_json_is_a_line_for_each(
    acme: CommandLine, inbox: Path
) -> None:
    words = ("watch", str(inbox), "--account", "acme", "--once", "--settle", "0")

    result = acme("--json", *words)

    outcomes = {one["name"]: one for one in map(json.loads, result.stdout.splitlines())}
    assert outcomes["good.json"]["resumeId"] is not None
    assert outcomes["bad.json"]["reason"] == "invalid_resume"
    assert Path(outcomes["bad.json"]["filedAs"]).exists()


TIMED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (.*)\n")


def test_a_service_says_when_a_file_came_and_whether_it_was_retried(
    acme: CommandLine, inbox: Path
) -> None:
    process = start("--home", str(acme.home), "watch", "--settle", "0")
    assert process.stderr is not None
    said = [process.stderr.readline() for _ in range(3)]
    acme.succeeds("imports", "retry", "--all")
    said.append(process.stderr.readline())
    with open_home(acme.home) as store:
        account = accounts.get_account(store, "acme")
        wait_until(lambda: search.find_page(store, account.id, "ada", timeout_s=0).page.entries)
    process.send_signal(signal.SIGINT)
    code, _, stderr = finish(process)

    assert (code, "Traceback" in stderr) == (0, False)
    assert said[0] == f"Watching {inbox.parent}. Press Ctrl-C to stop.\n"
    found = [TIMED.fullmatch(line) for line in said[1:]]
    first, second, retried = (one[1] if one else "" for one in found)
    assert {first, second} == {
        "done       acme/good.json",
        "failed     acme/bad.json: The resume must be a JSON object",
    }
    assert retried == "failed     acme/bad.json (retry): The resume must be a JSON object"


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder, and what the files hold."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def test_a_dry_run_gives_the_verdicts_and_changes_nothing(acme: CommandLine, inbox: Path) -> None:
    (inbox / "cv.pdf").touch()
    (inbox / ".hidden.json").touch()
    (inbox / "link.json").symlink_to("cv.pdf")
    before = tree(inbox.parent)

    result = acme("watch", "--dry-run", "--settle", "0", "--on-import", f"touch {inbox}/ran")

    assert (result.exit_code, result.stdout) == (1, "")
    *lines, summary = result.stderr.splitlines()
    assert sorted(lines) == [
        "done       acme/good.json",
        "failed     acme/bad.json: The resume must be a JSON object",
        "ignored    acme/.hidden.json: Hidden or temporary name",
        "ignored    acme/cv.pdf: Not .json, .ndjson, .jsonl, .gz or .zip",
        "ignored    acme/link.json: Symbolic link",
    ]
    assert summary == "1 done, 1 failed, 3 ignored (nothing was changed)."
    told = [json.loads(one) for one in acme("watch", "--dry-run", "--json").stdout.splitlines()]
    assert {one["reason"] for one in told} >= {"hidden", "ending", "link"}
    assert tree(inbox.parent) == before
    assert acme.answers("list", "--json")["resumes"] == []
    assert acme.answers("imports", "list", "--json")["files"] == []
    nowhere = CommandLine(acme.home / "nowhere")
    assert "No store yet" in nowhere.fails(3, "watch", "--dry-run")
    assert not nowhere.home.exists()


def test_files_that_could_not_be_taken_are_a_failure_of_the_drain(
    acme: CommandLine, inbox: Path
) -> None:
    (inbox / "bad.json").unlink()
    acme("watch", "--once")  # which makes the importer's own folders
    (inbox / "good.json").write_bytes(a_resume("Bo"))
    inbox.chmod(0o555)

    with bound_by_permissions():
        result = acme("watch", "--once")

    inbox.chmod(0o755)
    assert result.exit_code == 1
    assert "acme/good.json" in result.stderr or "inbox" in result.stderr
    assert result.stderr.endswith("0 done, 0 failed, 1 waiting.\n")
    assert "1 done, 0 failed" in acme("watch", "--once").stderr


@pytest.fixture
def backlog(acme: CommandLine) -> list[str]:
    """An inbox with many files, and the command line that drains it."""
    acme.succeeds("accounts", "set-plan", "acme", "business")
    inbox = acme.home / "inbox" / "acme"
    (inbox / "good\u202e\x1b[2J.json").write_bytes(a_resume("First"))
    (inbox / "bad\x1b[2J\n.json").write_bytes(b"7")
    for path in inbox.iterdir():
        os.utime(path, (0, 0))  # the oldest come first
    for number in range(98):
        (inbox / f"{number}.json").write_bytes(a_resume(f"Ada {number}"))
    return ["--home", str(acme.home), "watch", "--once", "--settle", "0"]


DRAWING = {"\x1b[?25l", "\x1b[?25h", "\x1b[2K", "\x1b[1A"}
"""What a status is drawn with: the cursor hidden and shown, a line erased, one line up (ECMA-48)."""


def escapes(written: str) -> set[str]:
    """The control sequences in what was written."""
    return set(re.findall(r"\x1b[^A-Za-z]*[A-Za-z]?", written))


def test_on_a_terminal_the_files_of_a_backlog_are_counted_and_their_names_harmless(
    backlog: list[str],
) -> None:
    code, stdout, written = on_terminal(*backlog, NO_COLOR="1")

    assert (code, stdout) == (1, "")
    lines = screen(written)
    counted = [int(text.split()[1]) for text in lines if text.endswith(" more files")]
    assert sum(counted) > MAX_LINES
    assert sum(text.startswith("done ") for text in lines) - len(counted) + sum(counted) == 99
    assert lines[-2:] == ["99 done, 1 failed.", ""]
    assert not any("waiting" in text for text in lines)
    assert escapes(written) <= DRAWING
    assert "done       acme/good\\u202e\\x1b[2J.json" in lines
    assert "failed     acme/bad\\x1b[2J\\x0a.json: The resume must be a JSON object" in lines


@pytest.mark.parametrize(
    ("flags", "term"), [([], "dumb"), (["--until-stdin-ends"], "xterm")], ids=["dumb", "below up"]
)
def test_where_no_line_can_be_kept_each_file_has_its_own(
    backlog: list[str], flags: list[str], term: str
) -> None:
    # Below up the API writes to the same terminal and knows of no line to keep.
    _, _, written = on_terminal(*backlog, *flags, TERM=term, NO_COLOR="1")
    assert escapes(written) == set()
    assert written.count("done       ") == 99


def test_done_files_are_pruned_as_the_settings_say(acme: CommandLine, inbox: Path) -> None:
    old = inbox.parent / "_done" / "2020-02-02" / "cv-0123abcd.json"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"{}")
    (acme.home / "config.toml").write_text("done_keep_days = 36500\n")
    acme("watch", "--once", "--settle", "0")
    assert old.exists()

    process = start("--home", str(acme.home), "watch", "--done-keep", "1", "--poll", "--json")
    (inbox / "next.json").write_bytes(a_resume("Bo"))
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["outcome"] == "done"
    process.send_signal(signal.SIGTERM)
    finish(process)

    assert not old.parent.exists()
    assert len(list((inbox.parent / "_done").rglob("*-*.json"))) == 2
