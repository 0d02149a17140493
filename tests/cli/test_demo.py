"""`resumes demo`: everything once."""

import json
import os
import re
import signal
import socket
from pathlib import Path

import pytest

from cli import demo as demo_command
from cli.samples import find_samples
from tests.cli.conftest import CommandLine, finish, start


@pytest.fixture
def done(run: CommandLine) -> CommandLine:
    """The command line on the home of a demo that was there."""
    run.succeeds("demo", "--once")
    return run


def test_once_imports_the_good_ones_and_says_why_the_bad_ones_failed(run: CommandLine) -> None:
    good, bad = find_samples()

    told = run.succeeds("demo", "--once", "--home", str(run.home))

    assert f"{len(good)} resumes, as the API lists them:" in told
    assert f"{len(bad)} files could not be imported" in told
    assert "header-missing.json\n    Missing required field: header (must be an object)\n" in told
    assert len(run.answers("list", "--limit", "100", "--json")["resumes"]) == len(good)
    assert len(list((run.home / "inbox" / "_failed").rglob("*.report.json"))) == len(bad)


def test_a_second_demo_in_the_same_home_changes_nothing(done: CommandLine) -> None:
    def everything() -> list[object]:
        questions = (
            ["list", "--limit", "100"],
            ["keys", "list"],
            ["accounts", "list"],
            ["imports", "list"],
        )
        return [done.answers(*words, "--json") for words in questions]

    before = everything()

    told = done.succeeds("demo", "--once")

    assert "nothing that is there was changed" in told
    assert everything() == before


def test_samples_that_were_deleted_do_not_come_back(done: CommandLine) -> None:
    for resume in done.answers("list", "--limit", "100", "--json")["resumes"]:
        done.succeeds("delete", resume["id"])

    done.succeeds("demo", "--once")

    assert done.answers("list", "--json")["resumes"] == []


def test_a_good_sample_that_fails_is_exit_1(
    run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = find_samples()
    monkeypatch.setattr(demo_command, "find_samples", lambda: ([good[0], bad[0]], []))

    assert run("demo", "--once").exit_code == 1


def test_a_bad_sample_that_does_not_fail_is_exit_1(
    run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, _ = find_samples()
    monkeypatch.setattr(demo_command, "find_samples", lambda: ([], good[:1]))

    assert run("demo", "--once").exit_code == 1


def test_it_serves_until_ctrl_c_and_shows_how_to_ask(run: CommandLine) -> None:
    good, _ = find_samples()
    process = start("--home", str(run.home), "demo", "--port", "0")
    assert process.stdout is not None
    told = ""
    while "Ctrl-C ends the demo." not in told:
        line = process.stdout.readline()
        assert line, finish(process)
        told += line

    process.send_signal(signal.SIGINT)
    code, _, stderr = finish(process, within_s=40)

    assert code == 0
    assert "Traceback" not in stderr
    assert re.search(rf"{len(good)} resumes, as GET http://\S+/api/v1/resumes lists them", told)
    assert 'curl -H "Authorization: Bearer $KEY" $API' in told
    key = re.search(r"KEY=(enh_live_\w{64})\n", told)
    assert key is not None
    assert (run.home / "demo-key").read_text(encoding="ascii").strip() == key[1]


@pytest.mark.slow
def test_a_taken_port_that_nobody_asked_for_is_no_obstacle(done: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = str(other.getsockname()[1])
        process = start(
            "--home", str(done.home), "demo", "--json", env={**os.environ, "RESUMES_PORT": taken}
        )
        assert process.stdout is not None
        begun = ""
        while not begun.endswith("\n}\n"):
            begun += process.stdout.readline()
        process.terminate()
        assert finish(process, within_s=40)[0] == 0

    assert not json.loads(begun)["url"].endswith(taken)


def test_json_is_one_answer(done: CommandLine) -> None:
    answer = json.loads(done.succeeds("demo", "--once", "--json"))

    assert answer["home"] == str(done.home)
    assert answer["files"] == []
    assert answer["key"].startswith("enh_live_")
    assert answer["resumes"]


@pytest.mark.slow
def test_a_home_of_nobody_s_is_temporary_and_kept_only_after_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("RESUMES_DATABASE", f"sqlite:///{tmp_path / 'precious.db'}")
    code, stdout, stderr = finish(start("demo", "--once"))
    assert code == 0
    assert not (tmp_path / "precious.db").exists()
    home = re.search(r"The demo's home is (\S+)\.\n", stdout)
    assert home is not None
    assert stderr.endswith(f"The demo's home {home[1]} is kept: remove it when you are done.\n")
    assert (Path(home[1]) / "resumes.db").exists()

    process = start("demo", "--port", "0", "--json")
    assert process.stdout is not None
    begun = ""
    while not begun.endswith("\n}\n"):
        begun += process.stdout.readline()
    process.terminate()
    code, _, stderr = finish(process, within_s=40)
    assert code == 0
    assert "The demo's home is removed" in stderr
    assert not Path(json.loads(begun)["home"]).exists()


def test_without_its_key_a_demo_lists_from_the_store(done: CommandLine) -> None:
    (done.home / "demo-key").unlink()

    assert json.loads(done.succeeds("demo", "--once", "--json"))["key"] is None


def test_a_home_with_accounts_of_others_is_refused_and_nothing_is_added(acme: CommandLine) -> None:
    before = acme.answers("accounts", "list", "--json")

    message = acme.fails(1, "demo", "--once")

    assert message == (
        f"{acme.home} is not a demo's home: it has the accounts acme. Name a new folder with "
        "--home, or none"
    )
    assert acme.answers("accounts", "list", "--json") == before


def test_a_port_that_was_asked_for_and_is_taken_ends_it_before_anything_is_made(
    run: CommandLine,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        message = run.fails(3, "demo", "--port", port)

    assert message.startswith(f"Port {port} on 127.0.0.1 is in use")
    assert not run.home.exists()
