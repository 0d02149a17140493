"""`resumes completion`, and what shells are answered."""

import os
import shutil
import signal
import subprocess

import pytest
from click.testing import CliRunner

from cli.main import resumes
from resumes.store.import_ledger import FileOutcome
from tests.command.conftest import CommandLine, a_resume, finish, record_file, start, store_resumes

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
    ("shell", "expected"),
    [("bash", ["acme"]), ("zsh", ["plain", "acme", "free"]), ("fish", ["acme\tfree"])],
)
def test_accounts_are_completed_in_each_shell(
    acme: CommandLine, shell: str, expected: list[str]
) -> None:
    assert complete(f"resumes --home {acme.home} accounts show", "ac", shell) == expected


def test_each_kind_is_completed_with_what_fits(acme: CommandLine) -> None:
    [first, second] = store_resumes(acme.home, a_resume("Ada\x1b"), a_resume("Bo"))
    kept = acme.answers("keys", "create", "acme", "--name", "n", "--json")["id"]
    gone = acme.answers("keys", "create", "acme", "--json")["id"]
    acme.succeeds("keys", "revoke", gone, "--yes")
    record_file(acme, "c1")
    record_file(acme, "c2", FileOutcome.HELD)
    record_file(acme, "c3", FileOutcome.DONE, reason=None)
    record_file(acme, "c4", FileOutcome.DUPLICATE)
    start = f"resumes --home {acme.home}"

    assert complete(f"{start} accounts set-plan acme") == ["free", "pro", "business"]
    assert complete(f"{start} accounts set-plan acme", "p") == ["pro"]
    assert complete(f"{start} keys revoke", "key_") == [kept]
    assert complete(f"{start} show") == [first, second]
    assert complete(f"{start} show", second) == [second]
    assert complete(f"{start} show", first, "fish") == [f"{first}\tAda\\x1b Resume"]
    assert complete(f"{start} list --account") == ["acme"]
    assert complete(f"{start} imports show") == ["c4", "c3", "c2", "c1"]
    assert complete(f"{start} imports show", "c1", "fish") == ["c1\tacme/x\\x1b.json"]
    assert complete(f"{start} imports retry") == ["c1", "c2"]
    assert complete(f"{start} imports release") == ["c2"]
    assert complete(f"{start} imports list --reason", "too_l") == ["too_large"]
    assert complete(f"resumes accounts --home {acme.home} show") == ["acme"]
    for incomplete in ("zz", "\x1b", "x" * 500):
        assert complete(f"{start} show", incomplete) == []
    assert complete("resumes", "ac") == ["accounts"]
    assert complete("resumes keys", "ro") == ["rotate"]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_where_there_is_no_store_there_is_nothing_and_no_word(run: CommandLine) -> None:
    words = f"resumes --home {run.home} accounts show"
    assert complete(words) == []
    assert not run.home.exists()
    run.home.mkdir()
    (run.home / "resumes.db").write_bytes(b"broken" * 1_000)
    assert complete(words) == []


@pytest.mark.timing
def test_the_program_itself_answers(acme: CommandLine) -> None:
    environment = os.environ | asked("bash", f"resumes --home {acme.home} list --account", "")
    code, stdout, stderr = finish(start(env=environment))
    assert (code, stdout, stderr) == (0, "plain,acme\n", "")
