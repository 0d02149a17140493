"""`resumes completion`, and what shells are answered."""

import os
import shutil
import subprocess

import pytest
from click.testing import CliRunner

from cli.main import resumes
from tests.command.conftest import CommandLine, finish, start

SHELLS = ["bash", "zsh", "fish"]


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_its_script(run: CommandLine, shell: str) -> None:
    script = run.succeeds("completion", shell)

    assert f"_RESUMES_COMPLETE={shell}_complete" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: what it would read is not checked")
    subprocess.run([shell, "-n", "-c", script], check=True)


def test_another_shell_is_a_usage_error(run: CommandLine) -> None:
    told = run.fails(2, "completion", "tcsh")
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'. See `resumes completion --help`" in told


def asked(shell: str, words: str, incomplete: str) -> dict[str, str]:
    """What a shell sets when it asks for what may follow these words."""
    return {
        "_RESUMES_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": f"{words} {incomplete}",
        "COMP_CWORD": incomplete if shell == "fish" else str(len(words.split())),
    }


def complete(words: str, incomplete: str = "", shell: str = "bash") -> list[str]:
    """What the shell is offered; nothing is said on standard error."""
    environment = asked(shell, words, incomplete)
    result = CliRunner().invoke(resumes, [], prog_name="resumes", env=environment)
    assert result.stderr == ""
    return [line.removeprefix("plain,") for line in result.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("shell", "words", "incomplete", "expected"),
    [
        ("bash", "resumes", "ac", ["accounts"]),
        ("zsh", "resumes", "ac", ["plain", "accounts", "Create and manage accounts."]),
        ("fish", "resumes", "ac", ["accounts\tCreate and manage accounts."]),
        ("bash", "resumes keys", "ro", ["rotate"]),
        ("bash", "resumes --home none keys", "ro", ["rotate"]),
        ("bash", "resumes list", "--acc", ["--account"]),
        ("bash", "resumes imports list --outcome", "d", ["duplicate", "done"]),
        ("bash", "resumes imports list --reason", "too_l", ["too_large"]),
        ("bash", "resumes accounts show", "a", []),
    ],
)
def test_subcommands_options_and_their_choices_are_completed(
    shell: str, words: str, incomplete: str, expected: list[str]
) -> None:
    assert complete(words, incomplete, shell) == expected


def test_the_program_itself_answers() -> None:
    code, stdout, stderr = finish(start(env=os.environ | asked("bash", "resumes keys", "ro")))
    assert (code, stdout, stderr) == (0, "plain,rotate\n", "")
