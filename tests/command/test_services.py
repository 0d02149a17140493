"""`resumes serve`, `up` and `demo`: programs that go on until they are asked to end."""

import json
import os
import pty
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli import supervisor
from cli.commands.demo import find_samples
from cli.commands.keys import make_first_key
from resumes.store import accounts, api_keys
from server import workers
from tests.command.conftest import CommandLine, a_resume, finish, start
from tests.support.programs import call
from tests.support.stores import open_home
from tests.support.waiting import children_of, command_of, is_running, wait_until

REFUSED = (
    "The new key could not be written, so it was revoked: {} exists and is neither an earlier key "
    "nor an empty file. Move it elsewhere, then try again"
)


def test_it_ends_with_the_process_that_started_it(acme: CommandLine) -> None:
    process = start(
        "--home", str(acme.home), "serve", "--port", "0", "--until-stdin-ends", "--json",
        stdin=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline()

    assert finish(process)[0] == 0  # which closes its standard input


def stop(process: "subprocess.Popen[str]", number: signal.Signals = signal.SIGTERM) -> str:
    """What a service that is asked to stop says on standard error; it ends with 0."""
    process.send_signal(number)
    code, _, stderr = finish(process, within_s=40)
    assert (code, "Traceback" in stderr) == (0, False), stderr
    return stderr


def started(run: CommandLine) -> "tuple[subprocess.Popen[str], dict[str, Any]]":
    """`up` in a process of its own, and what it says when all is running."""
    process = start("--home", str(run.home), "up", "--port", "0", "--json")
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise AssertionError(finish(process))
    return process, json.loads(line)


@pytest.mark.slow
def test_the_first_start_makes_all_and_a_dropped_file_is_listed(run: CommandLine) -> None:
    process, running = started(run)

    key_file = Path(running["keyFile"])
    assert key_file == run.home / "first-key"
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    secret = key_file.read_text(encoding="ascii").strip()
    (Path(running["inbox"]) / "a.json").write_bytes(a_resume("Ada"))
    wait_until(lambda: len(call(f"{running['url']}/api/v1/resumes", secret)[1]["resumes"]) == 1)

    assert f"(process {process.pid})" in run.fails(1, "up", "--port", "0")
    family = children_of(process.pid)
    assert len(family) == 2
    # What supervises them has none of their libraries.
    mapped = Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8")
    assert "/python" in mapped
    assert not re.findall("pydantic|sqlalchemy|sqlite|uvloop|watchfiles", mapped)
    said = stop(process)
    assert (secret in said, "Stopping." in said) == (False, True)
    assert not any(map(is_running, family))
    with open_home(run.home) as store:
        [key] = api_keys.list_keys(store)
    assert key.shown_at is not None
    assert run.answers("accounts", "show", "default", "--json")["plan"] == "business"


@pytest.mark.slow
def test_a_second_start_changes_nothing_and_a_killed_parent_takes_its_children_along(
    run: CommandLine,
) -> None:
    first, _ = started(run)
    run.succeeds("accounts", "rename", "default", "acme")
    stop(first)
    before = run.answers("keys", "list", "--json")

    second, running = started(run)

    assert running["keyFile"] == str(run.home / "first-key")
    assert running["inbox"] == str(run.home / "inbox" / "acme")
    assert run.answers("keys", "list", "--json") == before
    family = children_of(second.pid)
    second.kill()
    finish(second)
    wait_until(lambda: not any(map(is_running, family)), within_s=40)

    # A key that was revoked is not said to be there to copy.
    run.succeeds("keys", "revoke", before["keys"][0]["id"], "--yes")
    third, running = started(run)
    stop(third)
    assert running["keyFile"] is None
    assert (run.home / "first-key").is_file()


@pytest.mark.slow
def test_s16_a_first_key_that_nobody_was_shown_is_replaced(run: CommandLine) -> None:
    with open_home(run.home) as store:  # as `up` leaves it that is killed before it shows the key
        accounts.create_account(store, "default")
        unseen = make_first_key(store, "default")
    process, running = started(run)
    stop(process)
    assert unseen is not None
    assert Path(running["keyFile"]).read_text().strip() != unseen.secret
    keys = run.answers("keys", "list", "--json")["keys"]
    assert [key["state"] for key in keys] == ["revoked", "active"]


@pytest.mark.slow
def test_a_child_that_dies_is_replaced_on_the_same_store_though_the_configuration_changed(
    run: CommandLine, tmp_path: Path
) -> None:
    process, running = started(run)
    secret = Path(running["keyFile"]).read_text(encoding="ascii").strip()
    other = tmp_path / "other.db"
    (run.home / "config.toml").write_text(f'database = "sqlite:///{other}"', encoding="utf-8")
    [api, importer] = children_of(process.pid)

    soft, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (4, hard))
    os.kill(api, signal.SIGKILL)
    assert process.stderr is not None
    said = iter(process.stderr.readline, "")
    assert any("The API ended (killed by signal 9); restarting in 0.5 s." in line for line in said)
    assert any("The API cannot be restarted yet (Too many open files)" in line for line in said)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (soft, hard))
    wait_until(lambda: len(set(children_of(process.pid)) - {api}) == 2)

    def answer() -> int:
        try:
            return call(f"{running['url']}/api/v1/resumes", secret)[0]
        except httpx.TransportError:
            return 0

    wait_until(lambda: answer() != 0)
    assert answer() == 200
    assert not other.exists()
    assert importer in children_of(process.pid)
    stop(process, signal.SIGINT)


def test_who_stops_the_api_waits_longer_than_it_does_for_accepted_requests() -> None:
    unit = (Path(__file__).parents[2] / "deploy" / "resumes.service").read_text()
    found = re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert found is not None
    waits_s = [workers.SHUTDOWN_S, workers.END_WITHIN_S, supervisor.END_WITHIN_S, int(found[1])]
    assert waits_s == sorted(waits_s)
    # So that the API, and not `up`, says which worker did not start.
    assert workers.STARTING_CHECKS / workers.CHECKS_PER_S < supervisor.READY_WITHIN_S


def descendants_of(process_id: int) -> list[int]:
    """What all its threads have started, and so on."""
    listed = Path(f"/proc/{process_id}/task").glob("*/children")
    children = [int(word) for one in listed for word in one.read_text(encoding="ascii").split()]
    return [*children, *(one for child in children for one in descendants_of(child))]


def ignores_hangup(process_id: int) -> bool:
    status = Path(f"/proc/{process_id}/status").read_text(encoding="ascii")
    [mask] = re.findall(r"^SigIgn:\s+(\w+)$", status, re.MULTILINE)
    return bool(int(mask, 16) & 1 << (signal.SIGHUP - 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "processes"),
    [
        (["up", "--port", "0", "--json"], 3),
        (["serve", "--port", "0", "--workers", "2", "--json"], 4),  # one of multiprocessing's own
        (["watch", "--on-import", "echo; exec tail -f /dev/null"], 2),
    ],
    ids=["up", "serve", "watch"],
)
def test_without_a_terminal_a_hangup_ends_no_service_nor_what_it_started(
    acme: CommandLine, words: list[str], processes: int
) -> None:
    process = start(
        "--home", str(acme.home), *words, start_new_session=True, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    if words[0] == "watch":
        (acme.home / "inbox/acme/cv.json").write_bytes(a_resume())
    else:
        assert process.stdout.readline()
    wait_until(lambda: len(descendants_of(process.pid)) >= processes - 1)
    family = [process.pid, *descendants_of(process.pid)]

    assert all(map(ignores_hangup, family))
    for one in family:
        os.kill(one, signal.SIGHUP)
    process.terminate()
    assert process.wait(60) == 0
    process.stdout.close()


IN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-P", "-m", "cli", *sys.argv[1:]])
"""


@pytest.mark.slow
@pytest.mark.parametrize("words", [["up", "--json"], ["serve", "--json"], ["watch"]])
def test_the_end_of_its_terminal_ends_a_service(acme: CommandLine, words: list[str]) -> None:
    controller, terminal = pty.openpty()
    port = [] if words == ["watch"] else ["--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-c", IN_TERMINAL, "--home", str(acme.home), *words, *port],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    os.close(terminal)
    assert process.stdout is not None
    while (line := process.stdout.readline()) and not re.search(b'Press Ctrl-C|"url"', line):
        pass

    os.close(controller)

    assert process.wait(60) == 0
    process.stdout.close()


INTO_BACKGROUND = "(sh -c 'read -r line < \"$0\"' {} < /dev/null > /dev/null 2>&1 &)"


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a namespace of processes")
@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare of util-linux")
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_as_process_1_it_reaps_what_has_lost_its_parent_and_ends_when_it_is_asked_to(
    acme: CommandLine, tmp_path: Path, stop: signal.Signals
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    command = [sys.executable, "-P", "-m", "cli", "--home", str(acme.home), "watch"]
    hook = ["--on-import", INTO_BACKGROUND.format(fifo)]
    container = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *command, *hook],
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: children_of(container.pid))
    [first] = children_of(container.pid)
    (acme.home / "inbox/acme/cv.json").write_bytes(a_resume())
    wait_until(lambda: any(str(fifo) in command_of(one) for one in children_of(first)))

    fifo.write_text("end\n", encoding="ascii")

    wait_until(lambda: all("cli" in command_of(one) for one in children_of(first)))

    os.kill(first, stop)

    assert container.wait(60) == 0


@pytest.mark.slow
def test_a_terminal_gets_the_key_once(run: CommandLine) -> None:
    leader, terminal = pty.openpty()
    process = start("--home", str(run.home), "up", "--port", "0", stdout=terminal)
    os.close(terminal)

    secret = os.read(leader, 1_000).decode("ascii").strip()

    process.terminate()
    _, _, stderr = finish(process, within_s=40)
    os.close(leader)
    assert api_keys.FORM.fullmatch(secret)
    assert "shown only once" in stderr
    assert not (run.home / "first-key").exists()


def write_notes(path: Path) -> None:
    path.write_text(f"{api_keys.new_secret()}\nand my own notes\n", encoding="ascii")


def link(path: Path) -> None:
    path.with_name("another").write_bytes(b"")
    path.symlink_to("another")


@pytest.mark.parametrize("make", [write_notes, Path.mkdir, os.mkfifo, link])
def test_what_has_the_name_of_the_first_key_stays_and_the_key_is_revoked(
    run: CommandLine, make: Callable[[Path], None]
) -> None:
    path = run.home / "first-key"
    run.home.mkdir()
    make(path)
    before = path.lstat()

    assert run.fails(1, "up", "--port", "0") == REFUSED.format(path)

    assert (path.lstat().st_ino, path.lstat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [path.name for path in run.home.iterdir() if path.name.startswith(".")] == []
    [key] = run.answers("keys", "list", "--json")["keys"]
    assert (key["state"], key["shownAt"]) == ("revoked", None)


def test_a_port_in_use_ends_it_before_anything_is_made(run: CommandLine) -> None:
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
        f"Cannot write to the home {run.home}: Is a directory. Choose another with --home"
    )


def test_once_imports_the_good_ones_and_says_why_the_bad_ones_failed(run: CommandLine) -> None:
    good, bad = find_samples((".json", ".pdf"))

    told = run.succeeds("demo", "--once", "--home", str(run.home))

    assert f"{len(good)} resumes, as the API lists them:" in told
    assert run.answers("accounts", "show", "demo", "--json")["plan"] == "business"
    assert f"{len(bad)} files could not be imported" in told
    assert "header-missing.json\n    Missing required field: header (must be an object)\n" in told
    assert len(run.answers("list", "--limit", "100", "--json")["resumes"]) == len(good)
    assert len(list((run.home / "inbox" / "_failed").rglob("*.report.json"))) == len(bad)


def begun(process: "subprocess.Popen[str]", last: str) -> str:
    """What a demo prints up to the line with this end."""
    assert process.stdout is not None
    told = ""
    while not told.endswith(last):
        line = process.stdout.readline()
        assert line, finish(process)
        told += line
    return told


@pytest.mark.slow
def test_it_serves_until_ctrl_c_and_shows_how_to_ask(run: CommandLine) -> None:
    good, _ = find_samples((".json", ".pdf"))
    with socket.create_server(("127.0.0.1", 0)) as other:  # which keeps nobody from another port
        taken = str(other.getsockname()[1])
        environment = {**os.environ, "RESUMES_PORT": taken}
        process = start("--home", str(run.home), "demo", env=environment)
        told = begun(process, "Press Ctrl-C to stop.\n")

    stop(process, signal.SIGINT)
    found = re.search(rf"{len(good)} resumes, as GET http://\S+:(\d+)/api/v1/resumes lists", told)
    assert found is not None
    assert found[1] != taken
    assert 'curl -H "Authorization: Bearer $KEY" $API' in told
    key = re.search(r"KEY=(enh_live_\w{64})\n", told)
    assert key is not None
    assert (run.home / "demo-key").read_text(encoding="ascii").strip() == key[1]


@pytest.mark.slow
def test_a_home_of_nobody_s_is_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("RESUMES_DATABASE", f"sqlite:///{tmp_path / 'precious.db'}")
    code, stdout, stderr = finish(start("demo", "--once"))
    assert code == 0
    assert not (tmp_path / "precious.db").exists()
    home = re.search(r"The demo's home is (\S+)\.\n", stdout)
    assert home is not None
    assert "What to try next" not in stdout
    assert stderr.endswith("Removed the demo's home. To keep it, use `resumes demo --home DIR`.\n")
    assert not Path(home[1]).exists()

    process = start("demo", "--port", "0", "--json")
    told = json.loads(begun(process, "\n}\n"))
    assert "Removed the demo's home" in stop(process)
    assert not Path(told["home"]).exists()


def test_a_demo_that_cannot_be_given_says_so_and_leaves_all_as_it_was(
    run: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_file = run.home / "demo-key"
    key_file.mkdir(parents=True)
    assert run.fails(1, "demo", "--once") == (
        f"{key_file} exists and is neither an earlier key nor an empty file. Move it elsewhere, then "
        "try again"
    )
    assert list(run.home.iterdir()) == [key_file]  # before the store is made
    key_file.rmdir()
    run.succeeds("accounts", "create", "acme")
    assert run.fails(1, "demo", "--once") == (
        f"{run.home} already has a store: run it with `resumes --home {run.home} up`, or choose a "
        "new folder with --home"
    )
    assert [one["name"] for one in run.answers("accounts", "list", "--json")["accounts"]] == [
        "acme"
    ]

    small = CommandLine(tmp_path / "small")
    small.home.mkdir(mode=0o700)
    (small.home / "config.toml").write_text("max_body_bytes = 1024\n")
    assert small("demo", "--once").exit_code == 1  # its good samples fail

    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("RESUMES_WORKERS", "many")
    code, _, stderr = finish(start("demo", "--once"))
    assert (code, 'Invalid workers "many" in RESUMES_WORKERS' in stderr) == (2, True)
    assert list(temporary.iterdir()) == []
