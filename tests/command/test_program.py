"""The command as a whole: what it lists, how early, and how whole programs end."""

import contextlib
import errno
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cli import errors
from cli.errors import Failed
from cli.main import SECTIONS, resumes
from cli.session import Session
from resumes.errors import InvalidArgument, NotFound, OutcomeUnknown, StoreUnavailable
from resumes.store.sqlite.driver import dbapi
from tests.command.conftest import (
    CommandLine,
    a_resume,
    finish,
    iter_commands,
    start,
    store_resumes,
)
from tests.support.waiting import is_reading_input, wait_until

HEAVY = ("sqlalchemy", "sqlmodel", "pydantic", "textual", "rich", "uvloop", "watchfiles")


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


@pytest.mark.parametrize("words", [["--help"], ["tui", "--help"]])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOW_IMPORTS, *words], capture_output=True, text=True, check=True
    )

    assert "Usage: resumes" in done.stdout
    assert not set(HEAVY) & set(done.stderr.split())


ELSEWHERE = """
import sys
sys.platform = sys.argv.pop(1)
for name in ("fcntl", "grp", "pwd", "resource", "termios", "pty", "uvloop", "cli.main"):
    sys.modules[name] = None  # cannot be imported
from cli.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("system", "words"),
    [("win32", []), ("cygwin", ["--help"]), ("freebsd14", ["list"]), ("win32", ["nonsense"])],
)
def test_on_other_systems_every_command_says_so_in_a_line(system: str, words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, system, *words],
        capture_output=True,
        text=True,
        check=False,
    )

    said = f"Error: resumes does not run on this system ({system}). Use Linux; on Windows, "
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{said}install it in WSL\n"


def test_a_store_that_is_missing_newer_or_damaged_is_exit_3(run: CommandLine) -> None:
    absent = run.fails(3, "accounts", "list")
    assert absent.startswith(f"No store yet: {run.home} does not exist.")
    assert not run.home.exists()

    run.succeeds("accounts", "create", "acme")
    path = run.home / "resumes.db"
    with contextlib.closing(dbapi.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    for words in (["list"], ["up", "--port", "0"]):
        newer = run.fails(3, *words)
        assert newer.startswith(f"The store {path} was created by a newer version (")

    path.write_bytes(b"SQLite? no. " * 100)
    assert run.fails(3, "list").startswith(f"The store {path} is damaged")


def test_a_full_disk_behind_standard_output_is_exit_1(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume())
    with Path("/dev/full").open("w", encoding="ascii") as full:
        code, _, stderr = finish(start("--home", str(acme.home), "list", stdout=full))

    assert code == 1
    assert stderr == "Error: Cannot write the output: No space left on device\n"


def test_ctrl_c_is_exit_130_without_a_traceback(acme: CommandLine) -> None:
    with start("--home", str(acme.home), "import", "-", stdin=subprocess.PIPE) as process:
        # A signal between CPython's last look and the call that waits is noticed after the call.
        wait_until(lambda: is_reading_input(process.pid))
        process.send_signal(signal.SIGINT)
        process.wait(60)
        code, _, stderr = finish(process)

    assert code == 130
    assert "Traceback" not in stderr
    assert "Error" not in stderr


def test_ctrl_c_before_the_program_is_loaded_is_exit_130_without_a_word(tmp_path: Path) -> None:
    # In place of the first package that is imported, one that Ctrl-C falls into.
    (tmp_path / "click.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nsignal.pause()\n"
    )

    code, stdout, stderr = finish(start("list", env={**os.environ, "PYTHONPATH": str(tmp_path)}))

    assert (code, stdout, stderr) == (130, "", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("serve --port many", "Invalid value for '--port': 'many' is not a valid integer range."),
        (
            "serve --port 70000",
            "Invalid value for '--port': 70000 is not in the range 0<=x<=65535.",
        ),
        (
            "imports list --outcome x",
            "Invalid value for '--outcome': 'x' is not one of 'held', 'failed', 'dup",
        ),
        ("watch nowhere", "Invalid value for '[ROOT]': Directory 'nowhere' does not exist. See"),
        ("validate nowhere", "Invalid value for 'PATH...': Path 'nowhere' does not exist. See"),
        (
            "imports retry 0 --wait nan",
            "Invalid value for '--wait': 'nan' is not a number of seconds. See",
        ),
        (
            "list --home ''",
            "Invalid value for '--home': The path is empty: use ./ for the current folder. See",
        ),
        ("db backup ''", "Invalid value for 'DEST': The path is empty: use ./ for"),
        ("validate", "Missing argument 'PATH...'. See `resumes validate --help`"),
        ("list --lmit 3", "No such option '--lmit'. Did you mean '--limit'? See `resumes"),
        (
            "keys import ana",
            "`keys import` was removed: create a key with `resumes keys create`, and",
        ),
        (
            "plans set pro --per-minute=600",
            "`--per-minute` was removed: use the setting rate_per_minute. See",
        ),
        (
            "plans set pro --per-hour 7",
            "`--per-hour` was removed: use the setting rate_per_hour. See",
        ),
        (
            "plans set pro --per-day unlimited",
            "`--per-day` was removed: use the setting rate_per_day. See",
        ),
        (
            "tui --web 0",
            "`--web` was removed: use ssh, or a web terminal of your own (docs/terminal.md). See",
        ),
        (
            "up --host 0.0.0.0",
            "No such option '--host'. This is a setting: use RESUMES_HOST in the environment, or "
            "`host` in config.toml. See `resumes up --help`",
        ),
        (
            "keys list --account acme",
            "No such option '--account'. Pass the account's name without an option. See",
        ),
        (
            "accounts set-plan --account acme pro",
            "No such option '--account'. Pass the account's name without an option. See",
        ),
        ("doctor --account acme", "No such option '--account'. See `resumes doctor --help`"),
        ("qqq", "No such command 'qqq'. See `resumes --help`"),
        ("accounts lsit", "No such command 'lsit'. Did you mean 'list'? See"),
    ],
)
def test_what_cannot_be_used_is_said_with_what_can(
    run: CommandLine, words: str, message: str
) -> None:
    assert run.fails(2, *shlex.split(words)).startswith(message)


LISTINGS = [("accounts", "show", "acme"), ("list",), ("imports", "list")]


@pytest.mark.parametrize("words", LISTINGS, ids=" ".join)
def test_json_may_stand_before_between_or_after(acme: CommandLine, words: tuple[str, ...]) -> None:
    store_resumes(acme.home, a_resume())

    after = acme.answers(*words, "--json")

    assert acme.answers("--json", *words) == after
    assert acme.answers(words[0], "--json", *words[1:]) == after


@pytest.mark.parametrize("flag", ["--home", "--database"])
def test_where_the_store_is_may_be_said_after_the_command_too(
    flag: str, acme: CommandLine, tmp_path: Path
) -> None:
    other = CommandLine(tmp_path / "other")
    other.succeeds("accounts", "create", "beta")
    value = str(other.home) if flag == "--home" else f"sqlite:///{other.home}/resumes.db"

    for words in (("accounts", "list", flag, value), ("accounts", flag, value, "list")):
        assert [one["name"] for one in acme.answers(*words, "--json")["accounts"]] == ["beta"]


def test_every_command_and_option_says_what_it_is_for() -> None:
    for words, command in iter_commands(resumes):
        assert command.help, words
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden:
                assert param.help, (words, param.name)
    summaries = {name: place[1] for part in SECTIONS.values() for name, place in part.items()}
    for name, summary in summaries.items():
        shown = resumes.get_command(click.Context(resumes), name)
        assert shown is not None
        assert " ".join((shown.help or "").split()).startswith(summary.removesuffix(".")), name


def run_failing(error: BaseException, *, home: Path | None = None) -> int:
    """The exit code after this error."""

    def call() -> None:
        raise error

    return errors.run(call, Session(home=home))


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (NotFound("No such thing"), 1, "No such thing"),
        (InvalidArgument("Invalid x"), 2, "Invalid x"),
        (StoreUnavailable("Not now"), 3, "Not now"),
        (OutcomeUnknown(), 3, "Outcome unknown: it may have succeeded. Check before you try again"),
        (click.UsageError("No such option."), 2, "No such option."),
        (Failed("It was not to be"), 1, "It was not to be"),
        (NotFound("a\x1b[2J\nb"), 1, "a\\x1b[2J\\nb"),
        (PermissionError(13, "Permission denied", "/x"), 1, "Cannot use /x: Permission denied"),
        *[
            (OSError(number, "why"), 1, "Cannot write the output: why")
            for number in (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EDQUOT)
        ],
        *[
            (OSError(number, "why"), 1, remedy.format("why"))
            for number, remedy in errors.REMEDIES.items()
        ],
        (
            OSError(errno.ENOSYS, "why"),
            1,
            "The system refused a request: why. Set RESUMES_DEBUG=1 to see which one",
        ),
        (BlockingIOError(11, "Would block", 7), 1, "Cannot write the output: Would block"),
        (
            FileNotFoundError(2, "No usable temporary directory found in ['/tmp']"),
            1,
            "No temporary folder: this needs a writable /tmp or TMPDIR",
        ),
        (MemoryError(), 1, errors.REMEDIES[errno.ENOMEM].format("Cannot allocate memory")),
        (
            RuntimeError("can't start new thread"),
            1,
            errors.REMEDIES[errno.EAGAIN].format("Resource temporarily unavailable"),
        ),
    ],
)
def test_every_error_is_told_in_a_line(
    error: Exception, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_failing(error) == code
    assert capsys.readouterr().err == f"Error: {line}\n"


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["list", "--help"]])
def test_help_that_nobody_reads_ends_as_other_output_does(
    words: list[str], closed_pipe: int
) -> None:
    code, _, stderr = finish(start(*words, stdout=closed_pipe))

    assert (code, stderr) == (141, "")


def test_ctrl_c_at_a_question_is_130_and_no_answer_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = click.Abort()
    interrupted.__context__ = KeyboardInterrupt()

    for error, code in ((interrupted, 130), (KeyboardInterrupt(), 130), (BrokenPipeError(), 141)):
        assert run_failing(error) == code
    assert capsys.readouterr().err == ""
    assert run_failing(click.Abort()) == 1
    assert capsys.readouterr().err == "Error: No answer; nothing was done\n"

    monkeypatch.setenv("RESUMES_DEBUG", "1")
    assert run_failing(OSError(errno.ENOSYS, "Function not implemented")) == 1
    assert "Traceback" in capsys.readouterr().err


def test_the_unforeseen_goes_to_a_file_for_the_owner_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_failing(RuntimeError("secret"), home=tmp_path) == 1

    [report] = (tmp_path / "logs").iterdir()
    told = capsys.readouterr().err
    failure_id = report.stem.removeprefix("error-")
    assert told.startswith(f"Error: Internal error {failure_id}: details are in {report}.")
    assert "secret" not in told
    assert "RuntimeError: secret" in report.read_text(encoding="utf-8")
    assert stat.S_IMODE(report.stat().st_mode) == 0o600


SIGNALLED = {
    "in the middle of waiting": """
import os, signal
from cli.signals import stop_event
with stop_event() as stop:
    with vars(stop)["_cond"]:  # as wait() does for a moment
        os.kill(os.getpid(), signal.SIGTERM)
    assert stop.wait(60)
""",
    "in a callback whose exceptions Python drops": """
import signal, weakref
from cli.main import keep_interrupts
keep_interrupts()
class Thing: pass
thing = Thing()
gone = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
try:
    del thing
    print("went on")
except KeyboardInterrupt:
    pass
""",
}


@pytest.mark.parametrize("script", SIGNALLED.values(), ids=SIGNALLED)
def test_a_signal_is_heard_whenever_it_comes(script: str) -> None:
    # In a process of its own: one that blocks may block signals too, and only a kill ends it.
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, timeout=60, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("", "")


ENDED_AS_IT_WRITES = """
import os, sys
from cli.main import main
doing, ending, number, *sys.argv[1:] = sys.argv[1:]
def end(event, arguments):
    if event == doing and str(arguments[0]).endswith(ending):
        os.kill(os.getpid(), int(number))
sys.addaudithook(end)
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("words", "doing"),
    [
        ("export --all --to", ["os.rename", ".part"]),
        ("db restore", ["open", ".scratch/resumes.db"]),
        ("db backup", ["os.link", ".scratch/resumes.db"]),
        ("db copy", ["os.link", ".scratch/resumes.db"]),  # whose source is closed by then
        ("accounts export acme", ["os.link", ".scratch/account.db"]),
    ],
)
def test_what_is_ended_as_it_writes_a_file_leaves_no_part_of_it(
    acme: CommandLine, tmp_path: Path, words: str, doing: list[str], number: signal.Signals
) -> None:
    store_resumes(acme.home, a_resume())
    folder, backup = tmp_path / "exports", tmp_path / "backup.db"
    folder.mkdir()
    acme.succeeds("db", "backup", str(backup))
    before = sorted(acme.home.rglob("*"))
    copy = f"sqlite:///{acme.home}/resumes.db sqlite:///{folder}/copy.db"
    places = {"db restore": backup, "db copy": copy, "accounts export acme": folder / "x.account"}
    line = f"{words} {places.get(words, folder)}".split()

    command = [sys.executable, "-c", ENDED_AS_IT_WRITES, *doing, str(number.value)]
    done = subprocess.run([*command, "--home", str(acme.home), *line], timeout=60, check=False)

    assert done.returncode == (-number if number is signal.SIGTERM else 130)
    assert [path.name for path in folder.iterdir()] == ["copy.db.lock"] * (words == "db copy")
    assert sorted(acme.home.rglob("*")) == before
    acme.succeeds("accounts", "create", "late")


# What shells are answered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(run: CommandLine, shell: str) -> None:
    script = run.succeeds("completion", shell)

    assert f"_RESUMES_COMPLETE={shell}_complete" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: what it would read is not checked")
    subprocess.run([shell, "-n", "-c", script], check=True)


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [
        ("resumes", "ac", ["accounts"]),
        ("resumes --home none keys", "ro", ["rotate"]),
        ("resumes imports list --reason", "too_l", ["too_large"]),
        ("resumes accounts show", "a", []),
    ],
)
def test_subcommands_options_and_their_choices_are_completed(
    words: str, incomplete: str, expected: list[str]
) -> None:
    asked = {"COMP_WORDS": f"{words} {incomplete}", "COMP_CWORD": str(len(words.split()))}
    environment = asked | {"_RESUMES_COMPLETE": "bash_complete"}

    result = CliRunner().invoke(resumes, [], prog_name="resumes", env=environment)

    found = [line.removeprefix("plain,") for line in result.stdout.splitlines() if line]
    assert (found, result.stderr) == (expected, "")
