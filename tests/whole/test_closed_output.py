"""Programs whose standard streams are closed or stuck, as some supervisors have them."""

import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from resumes.store import accounts, api_keys, open_store
from tests.support import programs
from tests.support.inbox.builders import filed, wait_until
from tests.support.outputs import full_pipe
from tests.support.resumes import a_document
from tests.support.stores import open_home


@pytest.mark.parametrize("words", [["accounts", "list"], ["keys", "create", "ana"]])
def test_a_closed_standard_output_is_refused_before_anything_is_done(
    tmp_path: Path, words: list[str]
) -> None:
    with open_home(tmp_path) as store:
        accounts.create_account(store, "ana")
    line = shlex.join(programs.command(tmp_path, *words))
    done = subprocess.run(
        ["sh", "-c", f"{line} >&-"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "Error: Standard output is closed. Redirect it to /dev/null if it is not needed\n"
    )
    with open_store(f"sqlite:///{tmp_path}/resumes.db") as store:
        assert api_keys.list_keys(store) == []


def test_all_streams_closed_harm_nothing(tmp_path: Path) -> None:
    with open_home(tmp_path) as store:
        accounts.create_account(store, "ana")
    line = shlex.join(programs.command(tmp_path, "accounts", "list"))
    done = subprocess.run(["sh", "-c", f"{line} <&- >&- 2>&-"], timeout=60, check=False)
    assert done.returncode == 1
    assert "ana" in programs.succeed(tmp_path, "accounts", "list")


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["--log-format", "json"]])
def test_an_importer_whose_log_nobody_reads_goes_on_and_ends_when_told(
    tmp_path: Path, flags: list[str]
) -> None:
    with open_home(tmp_path) as store:
        accounts.create_account(store, "ana")
    inbox = tmp_path / "inbox" / "ana"
    inbox.mkdir(parents=True, exist_ok=True)
    errors = full_pipe()
    watching = subprocess.Popen(
        programs.command(tmp_path, "watch", *flags),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
    )  # fmt: skip
    try:
        (inbox / "1.json").write_bytes(a_document())
        wait_until(lambda: len(filed(tmp_path / "inbox", "_done")) == 1)
        watching.send_signal(signal.SIGTERM)
        assert watching.wait(60) == 0
    finally:
        watching.kill()
        watching.wait()
        os.close(errors)
