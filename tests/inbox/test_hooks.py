"""The command that runs after each batch of files, and what it is told."""

import json
import logging
import os
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from importer.hook import (
    KEPT_BYTES,
    MAX_ACCOUNTS,
    MAX_FILES,
    MAX_LIST_CHARS,
    MAX_LOGGED_LINES,
    Ending,
    Hook,
    HookBatch,
    HookTimes,
)
from importer.hook import run as run_command
from importer.notices import FileReport
from resumes.store.import_ledger import FileOutcome
from tests.support.waiting import is_running, wait_until

# Running it


def a_report(name: str = "ana/cv.json", **fields: Any) -> FileReport:
    """A file that is done, unless told otherwise."""
    values: dict[str, Any] = {
        "account": "ana",
        "outcome": FileOutcome.DONE,
        "reason": None,
        "message": None,
        "filed_as": "/drop/_done/2026-01-01/cv-0123abcd.json",
        "resume_id": "2" * 24,
        "warnings": 0,
    }
    return FileReport(name=name, **(values | fields))


MakeHook = Callable[..., Hook]


@pytest.fixture
def told() -> list[str]:
    """What a hook told."""
    return []


@pytest.fixture
def a_hook(root: Path, told: list[str]) -> Iterator[MakeHook]:
    """Makes hooks that do not wait long, for files or at the end: `a_hook("echo", timeout_s=1)`."""
    made = []

    def make(command: str, **options: Any) -> Hook:
        times = HookTimes(**({"quiet_s": 0.05, "stop_wait_s": 0.3} | options))
        hook = Hook(command, root, on_notice=told.append, times=times)
        made.append(hook)
        return hook

    yield make
    for hook in made:
        hook.finish(is_set())


def is_set() -> threading.Event:
    """An event that is set."""
    stop = threading.Event()
    stop.set()
    return stop


def lines(path: Path) -> list[str]:
    """The lines of a file, which may not be there yet."""
    return path.read_text().splitlines() if path.exists() else []


def test_it_runs_once_for_a_batch_with_its_counts(
    a_hook: MakeHook, root: Path, tmp_path: Path, told: list[str]
) -> None:
    out = tmp_path / "out"
    hook = a_hook(
        'echo "$RESUMES_IMPORT_DONE $RESUMES_IMPORT_FAILED $RESUMES_IMPORT_ROOT '
        f'$(wc -l < "$RESUMES_IMPORT_BATCH")" >> {out}'
    )
    hook.note(a_report())
    hook.note(a_report(outcome=FileOutcome.FAILED))

    wait_until(lambda: bool(lines(out)))
    hook.note(a_report())
    wait_until(lambda: len(lines(out)) == 2)
    hook.finish(threading.Event())

    assert lines(out) == [f"1 1 {root} 2", f"1 0 {root} 1"]
    assert told == []


def test_what_comes_during_a_run_is_in_the_next_and_no_two_run_at_once(
    a_hook: MakeHook, tmp_path: Path
) -> None:
    out, go = tmp_path / "out", tmp_path / "go"
    hook = a_hook(
        f'echo "begin $RESUMES_IMPORT_DONE" >> {out}; while [ ! -e {go} ]; do sleep 0.02; done; '
        f"echo end >> {out}"
    )
    hook.note(a_report())
    wait_until(lambda: lines(out) == ["begin 1"])
    for _ in range(3):
        hook.note(a_report())
    go.touch()
    wait_until(lambda: len(lines(out)) == 4)

    assert lines(out) == ["begin 1", "end", "begin 3", "end"]


def test_it_runs_while_files_keep_coming_and_for_the_last_before_the_end(
    a_hook: MakeHook, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    hook = a_hook(f"sleep 0.1; echo run >> {out}", quiet_s=3_600, longest_s=0.1)
    hook.note(a_report())
    wait_until(lambda: lines(out) == ["run"])
    last = a_hook(f"sleep 0.2; echo last >> {out}", quiet_s=3_600)
    last.note(a_report())
    last.finish(threading.Event())
    a_hook(f"echo none >> {out}").finish(threading.Event())
    assert lines(out) == ["run", "last"]


@pytest.mark.timing
def test_when_stopped_it_has_a_moment_and_is_then_ended(
    a_hook: MakeHook, tmp_path: Path, told: list[str]
) -> None:
    hook = a_hook(f"touch {tmp_path}/began; trap '' TERM; sleep 60; touch {tmp_path}/ended")
    hook.note(a_report())
    wait_until((tmp_path / "began").exists)
    began = time.monotonic()
    for _ in range(1_000):
        hook.note(a_report())

    hook.finish(is_set())

    assert time.monotonic() - began < 3
    assert not (tmp_path / "ended").exists()
    wait_until(lambda: bool(told))
    assert told == [
        "The --on-import command was stopped with the importer before it finished. "
        "Imports are not affected"
    ]
    assert not [one for one in threading.enumerate() if one.name == "on-import"]


def test_a_failure_is_told_once_and_again_when_it_changes(
    a_hook: MakeHook, tmp_path: Path, told: list[str]
) -> None:
    status, runs = tmp_path / "status", tmp_path / "runs"
    hook = a_hook(
        f"code=$(cat {status}); echo run >> {runs}; echo >&2; "
        "printf 'no \\033[31mway\\n' >&2; exit $code"
    )
    for count, code in enumerate(["3", "3", "4", "0", "0", "4"], start=1):
        status.write_text(code)
        hook.note(a_report())
        wait_until(lambda: len(lines(runs)) == count)  # noqa: B023  (asked for at once)
    hook.finish(threading.Event())

    third, fourth = (
        f'The --on-import command failed with exit code {code}: "no \\x1b[31mway". '
        "Imports are not affected. Fix the command; the log has its output"
        for code in (3, 4)
    )
    assert told == [third, fourth, "The --on-import command works again", fourth]


def test_one_that_hangs_is_killed_and_the_next_batch_has_its_run(
    a_hook: MakeHook, tmp_path: Path, told: list[str]
) -> None:
    hook = a_hook(f"[ -e {tmp_path}/fixed ] && exit 0; sleep 60", timeout_s=0.2)
    hook.note(a_report())
    wait_until(lambda: len(told) == 1)
    (tmp_path / "fixed").touch()
    hook.note(a_report())
    wait_until(lambda: len(told) == 2)

    assert told == [
        "The --on-import command did not finish within 0.2 s and was killed. Imports are not "
        "affected. Run long tasks in the background",
        "The --on-import command works again",
    ]


def test_a_signal_and_a_command_that_cannot_start_are_told(
    a_hook: MakeHook, told: list[str]
) -> None:
    for command in ("kill -9 $$", "x" * 10_000_000, "echo \0"):
        hook = a_hook(command)
        hook.note(a_report())
        hook.finish(threading.Event())

    begin = "The --on-import command"
    assert told[0].startswith(f"{begin} was killed by signal 9. ")
    assert told[1].startswith(f"{begin} could not be run: Argument list too long. ")
    assert told[2].startswith(f"{begin} could not be run: embedded null byte. ")


# What it is told


def test_what_it_prints_is_logged_within_bounds(
    a_hook: MakeHook, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "resumes.importer")
    hook = a_hook(
        "echo complaint >&2; i=0; while [ $i -lt 150 ]; do echo line $i; i=$((i+1)); done"
    )
    hook.note(a_report())
    hook.finish(threading.Event())

    logged = [record.getMessage() for record in caplog.records]
    assert logged[0] == "on-import: line 0"
    assert len(logged) == MAX_LOGGED_LINES + 1
    assert logged[-1] == "on-import: … and more lines: 51"


def a_batch(*reports: FileReport) -> HookBatch:
    """A batch of files that came at the same moment."""
    batch = HookBatch()
    for report in reports:
        batch.add(report, 100.0)
    return batch


def test_counts_accounts_and_places_are_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESUMES_HOME", "/srv/resumes")
    batch = a_batch(
        a_report(account="bo"),
        a_report(),
        a_report(outcome=FileOutcome.FAILED),
        a_report(outcome=FileOutcome.HELD),
    )

    environment = batch.environment(Path("/drop"), "/tmp/list")

    assert {name: value for name, value in environment.items() if "_IMPORT_" in name} == {
        "RESUMES_IMPORT_DONE": "2",
        "RESUMES_IMPORT_FAILED": "1",
        "RESUMES_IMPORT_DUPLICATE": "0",
        "RESUMES_IMPORT_HELD": "1",
        "RESUMES_IMPORT_ROOT": "/drop",
        "RESUMES_IMPORT_ACCOUNTS": "ana,bo",
        "RESUMES_IMPORT_BATCH": "/tmp/list",
    }
    assert environment["RESUMES_HOME"] == "/srv/resumes"
    assert environment["PATH"] == os.environ["PATH"]

    # A note or a report may have been edited to name anything.
    edited = a_batch(*(a_report(account=name) for name in ("$(id)", "", "a,b")))
    assert edited.environment(Path("/"), "")["RESUMES_IMPORT_ACCOUNTS"] == ""
    many = a_batch(*(a_report(account=f"a{number}") for number in range(MAX_ACCOUNTS + 2)))
    names = many.environment(Path("/"), "")["RESUMES_IMPORT_ACCOUNTS"].split(",")
    assert len(names) == MAX_ACCOUNTS


def test_the_list_has_a_line_for_each_file_and_its_owner_alone_may_read_it() -> None:
    failed = a_report(
        "ana/\\x1b\u202e.json",
        outcome=FileOutcome.FAILED,
        reason="invalid_json",
        message='Invalid "JSON"\n',
        filed_as=os.fsdecode(b"/drop/\xff/x.json"),
        resume_id=None,
        warnings=2,
    )
    with a_batch(a_report(), failed).listed() as path:
        content = Path(path).read_text(encoding="ascii")
        assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    assert not Path(path).exists()

    first, second = map(json.loads, content.splitlines())
    assert first == {
        "account": "ana",
        "name": "ana/cv.json",
        "outcome": "done",
        "reason": None,
        "message": None,
        "filedAs": "/drop/_done/2026-01-01/cv-0123abcd.json",
        "resumeId": "2" * 24,
        "warnings": 0,
    }
    assert second["message"] == 'Invalid "JSON"\n'
    assert os.fsencode(second["filedAs"]) == b"/drop/\xff/x.json"


def test_a_list_that_would_be_too_long_ends_with_how_many_more_there_were() -> None:
    for reports, kept in (
        ([a_report()] * (MAX_FILES + 2), MAX_FILES),
        ([a_report("n" * (MAX_LIST_CHARS // 2))] * 5, 2),
    ):
        batch = a_batch(*reports)
        with batch.listed() as path:
            listed_lines = Path(path).read_text(encoding="ascii").splitlines()
        assert len(listed_lines) == kept + 1
        assert json.loads(listed_lines[-1]) == {"omitted": len(reports) - kept}
        environment = batch.environment(Path("/"), "")
        assert environment["RESUMES_IMPORT_DONE"] == str(len(reports))


# As a process


def run(command: str, cut_off: threading.Event | None = None) -> Ending:
    """How the command ended, in our own environment."""
    return run_command(command, os.environ, timeout_s=600, cut_off=cut_off or threading.Event())


def run_until(ready: Path, command: str) -> Ending:
    """How the command ended that is to end as soon as this file is there."""
    cut_off = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        ending = threads.submit(run, command, cut_off)
        wait_until(ready.exists)
        cut_off.set()
        return ending.result()


def test_it_gets_its_environment_a_session_of_its_own_and_none_of_our_files(tmp_path: Path) -> None:
    with (tmp_path / "lease").open("w") as lease:
        os.set_inheritable(lease.fileno(), True)
        ending = run_command(
            'cat; echo "$WHO"; cut -d" " -f6 /proc/$$/stat; ls -l /proc/$$/fd',
            {"WHO": "Ada", "PATH": os.environ["PATH"]},
            timeout_s=10,
            cut_off=threading.Event(),
        )
    who, session, *files = ending.output.splitlines()
    assert (ending.exit_status, who) == (0, b"Ada")
    assert int(session) != os.getsid(0)
    assert not [line for line in files if b"lease" in line]


def test_only_the_beginning_of_what_it_prints_is_kept_and_it_never_blocks() -> None:
    ending = run("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; exit 7")
    assert ending.exit_status == 7
    assert (len(ending.output), len(ending.errors)) == (KEPT_BYTES, KEPT_BYTES)
    assert run("exec >&- 2>&-; sleep 0.1; exit 4") == Ending(4, b"", b"")


@pytest.mark.parametrize("trap", ["", "trap 'echo no' TERM"])
def test_one_that_does_not_end_is_killed_with_all_that_it_started(
    tmp_path: Path, trap: str
) -> None:
    pids = [tmp_path / "shell", tmp_path / "child"]
    ready = tmp_path / "ready"
    ending = run_until(
        ready,
        f"{trap}\n echo $$ > {pids[0]}; sleep 600 & echo $! > {pids[1]}; touch {ready}; "
        "while :; do sleep 0.05; done",
    )
    assert (ending.exit_status, ending.output) == (None, b"no\n" if trap else b"")
    wait_until(lambda: not any(is_running(int(pid.read_text())) for pid in pids))


def test_what_it_leaves_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    ending = run(f"sleep 600 & echo $! > {pid}; echo done")

    assert (ending.exit_status, ending.output) == (0, b"done\n")
    assert is_running(int(pid.read_text()))
    os.kill(int(pid.read_text()), signal.SIGKILL)
