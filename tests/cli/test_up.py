"""`resumes up`: two processes, one end; and a first key that reaches its owner (pitfalls S16)."""

import http.client
import json
import os
import pty
import signal
import stat
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from resumes.store import keys
from tests.cli.conftest import CommandLine, a_resume, finish, open_home, start
from tests.cli.processes import is_alive, wait_until


def started(run: CommandLine) -> "tuple[subprocess.Popen[str], dict[str, Any]]":
    """`up` in a process of its own, and what it says when all is running."""
    process = start("--home", str(run.home), "up", "--port", "0", "--json")
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise AssertionError(finish(process))
    return process, json.loads(line)


def children_of(process_id: int) -> list[int]:
    """The ids of its children."""
    path = Path(f"/proc/{process_id}/task/{process_id}/children")
    return [int(word) for word in path.read_text(encoding="ascii").split()]


def ask(url: str, secret: str) -> tuple[int, Any]:
    """The API's answer to a request for the list."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    connection.request("GET", "/api/v1/resumes", headers={"Authorization": f"Bearer {secret}"})
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return answer.status, body


def test_the_first_start_makes_all_and_a_dropped_file_is_listed(run: CommandLine) -> None:
    process, running = started(run)

    key_file = Path(running["keyFile"])
    assert key_file == run.home / "first-key"
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    secret = key_file.read_text(encoding="ascii").strip()
    (Path(running["inbox"]) / "a.json").write_bytes(a_resume("Ada"))
    wait_until(lambda: len(ask(running["url"], secret)[1]["resumes"]) == 1)

    family = children_of(process.pid)
    assert len(family) == 2
    process.send_signal(signal.SIGTERM)
    code, stdout, stderr = finish(process, within_s=40)
    assert (code, stdout) == (0, "")
    assert secret not in stderr
    assert not any(map(is_alive, family))
    with open_home(run.home) as store:
        [key] = keys.list_keys(store)
    assert key.shown_at is not None
    assert run.answers("accounts", "show", "default", "--json")["plan"] == "business"


@pytest.mark.slow
def test_a_second_start_changes_nothing_and_a_killed_parent_takes_its_children_along(
    run: CommandLine,
) -> None:
    first, _ = started(run)
    first.terminate()
    finish(first, within_s=40)
    before = run.answers("keys", "list", "--json")

    second, running = started(run)

    assert running["keyFile"] == str(run.home / "first-key")
    assert run.answers("keys", "list", "--json") == before
    family = children_of(second.pid)
    second.kill()
    finish(second)
    wait_until(lambda: not any(map(is_alive, family)), within_s=40)


@pytest.mark.slow
def test_a_key_that_was_taken_from_its_file_is_not_spoken_of_again(run: CommandLine) -> None:
    run.succeeds("accounts", "create", "default")
    run.succeeds("keys", "create", "default")

    process, running = started(run)
    process.terminate()
    finish(process, within_s=40)

    assert running["keyFile"] is None


@pytest.mark.slow
def test_a_child_that_dies_is_replaced(run: CommandLine) -> None:
    process, running = started(run)
    [api, _] = children_of(process.pid)

    os.kill(api, signal.SIGKILL)

    wait_until(lambda: len(set(children_of(process.pid)) - {api}) == 2)

    def answers() -> bool:
        try:
            return ask(running["url"], "x")[0] == 401
        except OSError:
            return False

    wait_until(answers)
    process.send_signal(signal.SIGINT)
    code, _, stderr = finish(process, within_s=40)
    assert code == 0
    assert "The API ended (killed by signal 9); starting it again in 0.5 s." in stderr


@pytest.mark.slow
def test_a_terminal_gets_the_key_once(run: CommandLine) -> None:
    leader, terminal = pty.openpty()
    process = start("--home", str(run.home), "up", "--port", "0", stdout=terminal)
    os.close(terminal)

    secret = os.read(leader, 1_000).decode("ascii").strip()

    process.terminate()
    _, _, stderr = finish(process, within_s=40)
    os.close(leader)
    assert keys.FORM.fullmatch(secret)
    assert "shown only this once" in stderr
    assert not (run.home / "first-key").exists()


@pytest.mark.slow
def test_a_key_that_cannot_be_written_is_revoked_and_replaced_next_time(run: CommandLine) -> None:
    (run.home / "first-key").mkdir(parents=True)
    (run.home / "first-key" / "in the way").write_text("", encoding="ascii")

    message = run.fails(1, "up", "--port", "0")

    assert message.startswith("The new key could not be shown (")
    [key] = run.answers("keys", "list", "--json")["keys"]
    assert (key["state"], key["shownAt"]) == ("revoked", None)
    (run.home / "first-key" / "in the way").unlink()
    (run.home / "first-key").rmdir()
    process, running = started(run)
    process.terminate()
    finish(process, within_s=40)
    assert running["keyFile"] is not None
    states = [key["state"] for key in run.answers("keys", "list", "--json")["keys"]]
    assert sorted(states) == ["active", "revoked"]


def test_a_port_in_use_ends_it_before_anything_is_made(run: CommandLine) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        code, _, stderr = finish(start("--home", str(run.home), "up", "--port", port), within_s=40)

    assert code == 3
    assert f"Error: Port {port} on 127.0.0.1 is in use" in stderr
    assert "Traceback" not in stderr
    assert not run.home.exists()


def test_a_home_that_cannot_be_written_is_refused_like_one_that_cannot_be_made(
    run: CommandLine,
) -> None:
    run.home.mkdir()
    (run.home / "up.lock").mkdir()  # as whoever tests run, it cannot be opened as a file

    message = run.fails(3, "up", "--port", "0")

    assert message == (
        f"Cannot write in the home {run.home}: Is a directory. Name another with --home"
    )


@pytest.mark.slow
def test_a_second_up_on_the_same_home_is_refused_by_name(run: CommandLine) -> None:
    process, _ = started(run)
    second = start("--home", str(run.home), "up", "--port", "0", "--json")
    code, stdout, stderr = finish(second)
    assert (code, stdout) == (1, "")
    assert f"already (process {process.pid})" in stderr
    process.send_signal(signal.SIGTERM)
    assert finish(process, within_s=40)[0] == 0


def test_a_first_key_that_cannot_be_written_is_left_nowhere(run: CommandLine) -> None:
    (run.home / "first-key").mkdir(parents=True)
    code, _, errors = finish(start("--home", str(run.home), "up", "--port", "0"))
    assert code == 1
    assert "The new key could not be shown (Is a directory), so it was revoked" in errors
    assert [path.name for path in run.home.iterdir() if path.name.startswith(".")] == []
    with open_home(run.home) as store:
        assert [key.state for key in keys.list_keys(store)] == ["revoked"]
