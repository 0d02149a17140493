"""What programs make of a store that is not of their own version."""

import os
import pty
import select
import subprocess
import time
from pathlib import Path

import pytest

from resumes.store import accounts, open_store
from tests.support import programs
from tests.support.stores import a_newer_store, an_empty_store


def on_a_terminal(home: Path, *arguments: str, until: bytes) -> int:
    """The exit code of a program on a terminal that is sent `q` when it has shown `until`."""
    ours, theirs = pty.openpty()
    program = subprocess.Popen(
        programs.command(home, *arguments),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    shown, deadline = b"", time.monotonic() + 30
    try:
        while program.poll() is None and time.monotonic() < deadline:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    shown += os.read(ours, 65_536)
                except OSError:  # the program has closed its side
                    break
                if until in shown:
                    os.write(ours, b"q")
                    until = b"\0never"
        return program.wait(60)
    finally:
        program.kill()
        program.wait()
        os.close(ours)


@pytest.mark.slow
def test_serve_makes_an_empty_store_current(tmp_path: Path) -> None:
    an_empty_store(tmp_path)
    with programs.serving(tmp_path) as url:
        assert programs.call(f"{url}/api/v1/resumes", None)[0] == 401
    assert programs.succeed(tmp_path, "accounts", "list", "--json")


@pytest.mark.slow
def test_watch_makes_an_empty_store_current(tmp_path: Path) -> None:
    an_empty_store(tmp_path)
    programs.succeed(tmp_path, "watch", "--once")
    assert programs.succeed(tmp_path, "accounts", "list", "--json")


@pytest.mark.slow
def test_the_terminal_ui_makes_an_empty_store_current(tmp_path: Path) -> None:
    path = an_empty_store(tmp_path)
    assert on_a_terminal(tmp_path, "tui", until=b"No accounts yet") == 0
    with open_store(f"sqlite:///{path}", upgrade=False) as store:
        assert accounts.list_accounts(store) == []


@pytest.mark.slow
def test_the_terminal_ui_refuses_a_newer_store(tmp_path: Path) -> None:
    a_newer_store(tmp_path)
    assert on_a_terminal(tmp_path, "tui", until=b"newer version") == 3
