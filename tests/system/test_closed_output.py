"""Programs whose standard streams are closed, as some supervisors start them."""

import shlex
import subprocess
from pathlib import Path

import pytest

from resumes.store import keys, open_store
from tests.system import programs


@pytest.mark.parametrize("words", [["accounts", "list"], ["keys", "create", "ana"]])
def test_a_closed_standard_output_is_refused_before_anything_is_done(
    tmp_path: Path, words: list[str]
) -> None:
    programs.succeed(tmp_path, "accounts", "create", "ana")
    line = shlex.join(programs.command(tmp_path, *words))
    done = subprocess.run(
        ["sh", "-c", f"{line} >&-"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "Error: Standard output is closed. Send it to /dev/null if it is not wanted\n"
    )
    with open_store(f"sqlite:///{tmp_path}/resumes.db") as store:
        assert keys.list_keys(store) == []


def test_all_streams_closed_harm_nothing(tmp_path: Path) -> None:
    programs.succeed(tmp_path, "accounts", "create", "ana")
    line = shlex.join(programs.command(tmp_path, "accounts", "list"))
    done = subprocess.run(["sh", "-c", f"{line} <&- >&- 2>&-"], timeout=60, check=False)
    assert done.returncode == 1
    assert "ana" in programs.succeed(tmp_path, "accounts", "list")
