"""A user's command, which may do as it likes and has an end."""

import os
import signal
import threading
from pathlib import Path

import pytest

from importer import shell
from importer.shell import KEPT_BYTES, Ending
from tests.importer.builders import wait_until


def run(command: str, *, timeout_s: float = 10, cut_off: threading.Event | None = None) -> Ending:
    """How the command ended, in our own environment."""
    return shell.run(command, os.environ, timeout_s=timeout_s, cut_off=cut_off or threading.Event())


def is_alive(pid_file: Path) -> bool:
    """Whether the process with the number in the file runs, and is no mere entry of a dead one."""
    state = Path(f"/proc/{pid_file.read_text().strip()}/stat")
    try:
        return state.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_it_prints_and_its_exit_code_are_known() -> None:
    assert run("echo said; echo complained >&2; exit 3") == Ending(3, b"said\n", b"complained\n")


def test_it_gets_the_environment_it_is_given_and_nothing_to_read() -> None:
    ending = shell.run('cat; echo "$WHO"', {"WHO": "Ada"}, timeout_s=10, cut_off=threading.Event())
    assert ending == Ending(0, b"Ada\n", b"")


def test_it_has_a_session_of_its_own() -> None:
    session = int(run('cut -d" " -f6 /proc/$$/stat').output)
    assert session != os.getsid(0)


def test_only_the_beginning_of_what_it_prints_is_kept_and_it_never_blocks() -> None:
    ending = run("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; exit 7")
    assert ending.exit_status == 7
    assert (len(ending.output), len(ending.errors)) == (KEPT_BYTES, KEPT_BYTES)


def test_a_signal_is_told_from_an_exit_code() -> None:
    assert run("kill -9 $$").exit_status == -signal.SIGKILL


def test_one_that_does_not_end_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    pids = [tmp_path / "shell", tmp_path / "child"]
    ending = run(f"echo $$ > {pids[0]}; sleep 600 & echo $! > {pids[1]}; wait", timeout_s=0.3)

    assert ending.exit_status is None
    wait_until(lambda: not any(map(is_alive, pids)))


def test_one_that_does_not_listen_is_killed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "KILL_AFTER_S", 0.2)
    pid = tmp_path / "pid"
    command = f"trap 'echo no' TERM; echo $$ > {pid}; while :; do sleep 0.05; done"

    ending = run(command, timeout_s=0.3)

    assert (ending.exit_status, ending.output) == (None, b"no\n")
    assert not is_alive(pid)


def test_it_is_cut_off_when_we_have_to_end(tmp_path: Path) -> None:
    cut_off = threading.Event()
    endings: list[Ending] = []
    started = tmp_path / "started"
    thread = threading.Thread(
        target=lambda: endings.append(run(f"touch {started}; sleep 600", cut_off=cut_off))
    )
    thread.start()
    wait_until(started.exists)

    cut_off.set()

    thread.join(60)
    assert endings == [Ending(None, b"", b"")]


def test_what_it_leaves_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    ending = run(f"sleep 600 & echo $! > {pid}; echo done")

    assert (ending.exit_status, ending.output) == (0, b"done\n")
    assert is_alive(pid)
    os.kill(int(pid.read_text()), signal.SIGKILL)


def test_a_command_may_close_its_streams() -> None:
    assert run("exec >&- 2>&-; sleep 0.1; exit 4") == Ending(4, b"", b"")


def test_what_no_system_can_run_is_an_error() -> None:
    with pytest.raises(ValueError, match="null"):
        run("echo \0")
    with pytest.raises(OSError, match="too long"):
        run("x" * 10_000_000)


def test_none_of_our_files_is_open_in_it(tmp_path: Path) -> None:
    with (tmp_path / "lease").open("w") as lease:
        os.set_inheritable(lease.fileno(), True)
        listing = run("ls -l /proc/$$/fd").output
    assert b"lease" not in listing
