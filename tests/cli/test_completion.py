"""`resumes completion`, and what shells are answered."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine, a_resume, store_resumes

SHELLS = ["bash", "zsh", "fish"]


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_its_script(run: CommandLine, shell: str) -> None:
    script = run.succeeds("completion", shell)

    assert f"_RESUMES_COMPLETE={shell}_complete" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n", "-c", script], check=True)


def test_another_shell_is_a_usage_error(run: CommandLine) -> None:
    told = run.fails(2, "completion", "tcsh")
    assert told.startswith('Invalid SHELL "tcsh": use bash, zsh or fish.')


def complete(shell: str, words: str, incomplete: str = "") -> tuple[list[str], str]:
    """What the shell is offered after these words, and anything said on standard error."""
    line = f"{words} {incomplete}"
    environment = {
        **os.environ,
        "_RESUMES_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": incomplete if shell == "fish" else str(len(words.split())),
    }
    done = subprocess.run(
        [sys.executable, "-P", "-m", "cli"], env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return done.stdout.splitlines(), done.stderr


@pytest.mark.timing
@pytest.mark.parametrize("shell", SHELLS)
def test_accounts_are_completed_in_each_shell(acme: CommandLine, shell: str) -> None:
    offered, stderr = complete(shell, f"resumes --home {acme.home} accounts show", "ac")

    expected = {
        "bash": ["plain,acme"],
        "zsh": ["plain", "acme", "free"],
        "fish": ["plain,acme\tfree"],
    }
    assert (offered, stderr) == (expected[shell], "")


@pytest.mark.timing
def test_plans_keys_resumes_and_commands_are_completed(acme: CommandLine) -> None:
    [resume_id] = store_resumes(acme.home, a_resume())
    key = acme.answers("keys", "create", "acme", "--json")
    start = f"resumes --home {acme.home}"

    def offered(words: str, incomplete: str = "") -> list[str]:
        return [line.removeprefix("plain,") for line in complete("bash", words, incomplete)[0]]

    assert offered(f"{start} accounts set-plan acme") == ["free", "pro", "business"]
    assert offered(f"{start} keys revoke", "key_") == [key["id"]]
    assert offered(f"{start} show", resume_id[:6]) == [resume_id]
    assert offered(f"{start} list --account") == ["acme"]
    assert offered("resumes", "ac") == ["accounts"]
    assert offered("resumes keys", "ro") == ["rotate"]


@pytest.mark.timing
def test_where_there_is_no_store_there_is_nothing_and_no_word(tmp_path: Path) -> None:
    assert complete("bash", f"resumes --home {tmp_path}/no accounts show") == ([""], "")
    (tmp_path / "resumes.db").write_bytes(b"broken" * 1_000)
    assert complete("bash", f"resumes --home {tmp_path} accounts show") == ([""], "")
