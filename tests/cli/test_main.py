"""The command as a whole: what it lists, how early, and how whole programs end."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import resumes
from resumes.store.sqlite.driver import dbapi
from tests.cli.commands import iter_commands
from tests.cli.conftest import CommandLine, a_resume, finish, start, store_resumes

HEAVY = (
    "sqlalchemy",
    "sqlmodel",
    "pydantic",
    "textual",
    "rich",
    "uvicorn",
    "starlette",
    "watchfiles",
)
SHOW_IMPORTS = """
import sys
from cli.main import resumes
try:
    resumes(sys.argv[1:], prog_name="resumes")
finally:
    print(*sys.modules, file=sys.stderr)
"""


ALL = [words for words, _ in iter_commands(resumes)]


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_has_help_that_needs_no_store(
    words: tuple[str, ...], run: CommandLine
) -> None:
    shown = run.succeeds(*words, "--help")

    assert f"Usage: resumes{''.join(f' {word}' for word in words)} " in shown
    assert "--json" in shown
    assert not run.home.exists()


@pytest.mark.parametrize("words", [["--help"], ["accounts", "--help"], ["up", "--help"]])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOW_IMPORTS, *words], capture_output=True, text=True, check=True
    )

    assert "Usage: resumes" in done.stdout
    assert not set(HEAVY) & set(done.stderr.split())


def test_version_is_the_distribution_s(run: CommandLine) -> None:
    assert run.succeeds("--version").startswith("resumes 0.")


def test_an_unknown_command_names_a_near_one(run: CommandLine) -> None:
    assert run.fails(2, "acounts") == (
        "No such command 'acounts'. Did you mean 'accounts'? See `resumes --help`"
    )


def test_nothing_at_all_shows_help_and_is_a_usage_error() -> None:
    result = CliRunner().invoke(resumes, [], prog_name="resumes")

    assert result.exit_code == 2
    assert "Begin:" in result.stderr


def test_a_wrong_flag_is_one_line_and_exit_2() -> None:
    code, stdout, stderr = finish(start("list", "--lmit", "3"))

    assert (code, stdout) == (2, "")
    assert (
        stderr
        == "Error: No such option '--lmit'. Did you mean '--limit'? See `resumes list --help`\n"
    )


def test_a_home_that_is_not_there_is_exit_3(home: Path) -> None:
    code, _, stderr = finish(start("--home", str(home), "accounts", "list"))

    assert code == 3
    assert stderr.startswith(f"Error: No store yet: {home} does not exist.")
    assert not home.exists()


def test_a_corrupt_database_is_exit_3(tmp_path: Path) -> None:
    (tmp_path / "resumes.db").write_bytes(b"SQLite? no. " * 100)

    code, _, stderr = finish(start("--home", str(tmp_path), "list"))

    assert code == 3
    assert stderr.startswith(f"Error: The store {tmp_path / 'resumes.db'} is damaged")
    assert stderr.count("\n") == 1


def test_a_database_of_another_program_is_exit_3(tmp_path: Path) -> None:
    connection = dbapi.connect(tmp_path / "resumes.db")
    connection.execute("CREATE TABLE bookmarks (url)")
    connection.close()

    code, _, stderr = finish(start("--home", str(tmp_path), "accounts", "list"))

    assert code == 3
    assert "is a database of another program" in stderr


def test_a_newer_store_is_exit_3(acme: CommandLine) -> None:
    connection = dbapi.connect(acme.home / "resumes.db")
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()

    code, _, stderr = finish(start("--home", str(acme.home), "accounts", "list"))

    assert code == 3
    assert "made by a newer version" in stderr


@pytest.mark.slow
def test_a_locked_database_is_exit_3(acme: CommandLine) -> None:
    connection = dbapi.connect(acme.home / "resumes.db", isolation_level=None)
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    try:
        code, _, stderr = finish(
            start("--home", str(acme.home), "accounts", "create", "b"), within_s=40
        )
    finally:
        connection.close()

    assert code == 3
    assert stderr.startswith("Error: ")
    assert stderr.count("\n") == 1
    assert "Traceback" not in stderr


def test_a_port_in_use_is_exit_3(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        code, _, stderr = finish(start("--home", str(home), "serve", "--port", port))

    assert code == 3
    assert f"Error: Port {port} on 127.0.0.1 is in use" in stderr


def test_an_unreadable_configuration_is_exit_2(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("port = [", encoding="utf-8")

    code, _, stderr = finish(start("--home", str(tmp_path), "accounts", "list"))

    assert code == 2
    assert stderr.startswith(f"Error: Invalid configuration {tmp_path / 'config.toml'}")


def test_a_reader_that_left_is_told_nothing(acme: CommandLine, closed_pipe: int) -> None:
    process = start("--home", str(acme.home), "accounts", "list", stdout=closed_pipe)

    code, _, stderr = finish(process)

    assert (code, stderr) == (141, "")


def test_a_full_disk_behind_standard_output_is_exit_1(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume())
    with Path("/dev/full").open("w", encoding="ascii") as full:
        code, _, stderr = finish(start("--home", str(acme.home), "list", stdout=full))

    assert code == 1
    assert stderr == "Error: Cannot write the output: No space left on device\n"


def test_ctrl_c_is_exit_130_without_a_traceback(acme: CommandLine) -> None:
    with start("--home", str(acme.home), "import", "-", stdin=subprocess.PIPE) as process:
        wait_until_open(acme.home, process)  # the next that it does is wait for its input
        process.send_signal(signal.SIGINT)
        process.wait(60)
        code, _, stderr = finish(process)

    # A shell shows both as 130: CPython ends itself by the signal when that met an exec of its
    # own, such as a dataclass being made during an import, however it was handled afterwards.
    assert code in (130, -signal.SIGINT)
    assert "Traceback" not in stderr
    assert "Error" not in stderr


def test_ctrl_c_before_the_program_is_loaded_is_exit_130_without_a_word(tmp_path: Path) -> None:
    # In place of the first package that is imported, one that Ctrl-C falls into.
    (tmp_path / "click.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nsignal.pause()\n"
    )

    code, stdout, stderr = finish(start("list", env={**os.environ, "PYTHONPATH": str(tmp_path)}))

    assert (code, stdout, stderr) == (130, "", "")


def wait_until_open(home: Path, process: "subprocess.Popen[str]") -> None:
    """The process has the store open."""
    lock = str(home / "resumes.db.lane")
    for _ in range(2_000):
        if lock in open_files(process.pid):
            return
        assert process.poll() is None
        time.sleep(0.005)
    pytest.fail("the store was not opened")


def open_files(process_id: int) -> set[str]:
    """What the process has open; a file that it closes meanwhile is left out."""
    files = set()
    for file in Path(f"/proc/{process_id}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            files.add(str(file.readlink()))
    return files
