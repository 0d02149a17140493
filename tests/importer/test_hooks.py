"""The command that runs after each batch of files."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from importer import hooks
from importer.hooks import Hook
from resumes.store.ledger import FileOutcome
from tests.importer.builders import wait_until
from tests.importer.hook_reports import a_report

MakeHook = Callable[..., Hook]


@pytest.fixture
def told() -> list[str]:
    """What a hook told."""
    return []


@pytest.fixture
def a_hook(root: Path, told: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeHook]:
    """Makes hooks that do not wait long, for files or at the end: `a_hook("echo", timeout_s=1)`."""
    monkeypatch.setattr(hooks, "STOP_WAIT_S", 0.3)
    made = []

    def make(command: str, **options: Any) -> Hook:
        hook = Hook(command, root, tell=told.append, **({"quiet_s": 0.05} | options))
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


def test_it_runs_while_files_keep_coming(a_hook: MakeHook, tmp_path: Path) -> None:
    out = tmp_path / "out"
    hook = a_hook(f"echo run >> {out}", quiet_s=3_600, longest_s=0.1)
    hook.note(a_report())
    wait_until(lambda: bool(lines(out)))


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


def test_without_files_it_never_runs(a_hook: MakeHook, tmp_path: Path) -> None:
    a_hook(f"touch {tmp_path}/ran").finish(threading.Event())
    assert not (tmp_path / "ran").exists()


def test_the_last_batch_is_run_before_the_end(a_hook: MakeHook, tmp_path: Path) -> None:
    hook = a_hook(f"sleep 0.2; touch {tmp_path}/ran", quiet_s=3_600)
    hook.note(a_report())
    hook.finish(threading.Event())
    assert (tmp_path / "ran").exists()


@pytest.mark.timing
def test_when_stopped_it_has_a_moment_and_is_then_ended(
    a_hook: MakeHook, tmp_path: Path, told: list[str]
) -> None:
    hook = a_hook(f"touch {tmp_path}/began; trap '' TERM; sleep 60; touch {tmp_path}/ended")
    hook.note(a_report())
    wait_until((tmp_path / "began").exists)
    hook.note(a_report())
    began = time.monotonic()

    hook.finish(is_set())

    assert time.monotonic() - began < 3
    assert not (tmp_path / "ended").exists()
    wait_until(lambda: bool(told))
    assert told == [
        "The command of --on-import was ended with the importer, before it was done. "
        "Imports are not affected"
    ]
    assert not hook._thread.is_alive()


def test_a_stop_during_the_last_run_ends_that_too(a_hook: MakeHook, tmp_path: Path) -> None:
    hook = a_hook(f"touch {tmp_path}/began; sleep 60")
    hook.note(a_report())
    wait_until((tmp_path / "began").exists)
    stop = threading.Event()
    finishing = threading.Thread(target=hook.finish, args=[stop])
    finishing.start()
    assert finishing.is_alive()

    stop.set()

    finishing.join(60)
    assert not finishing.is_alive()


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

    assert told == [
        'The command of --on-import failed with exit code 3: "no \\x1b[31mway". '
        "Imports are not affected. Mend the command; the log has what it printed",
        'The command of --on-import failed with exit code 4: "no \\x1b[31mway". '
        "Imports are not affected. Mend the command; the log has what it printed",
        "The command of --on-import works again",
        'The command of --on-import failed with exit code 4: "no \\x1b[31mway". '
        "Imports are not affected. Mend the command; the log has what it printed",
    ]


def test_one_that_hangs_is_killed_and_the_next_batch_has_its_run(
    a_hook: MakeHook, tmp_path: Path, told: list[str]
) -> None:
    hook = a_hook(
        f"[ -e {tmp_path}/began ] && exit 0; touch {tmp_path}/began; sleep 60", timeout_s=0.2
    )
    hook.note(a_report())
    wait_until(lambda: len(told) == 1)
    hook.note(a_report())
    wait_until(lambda: len(told) == 2)

    assert told == [
        "The command of --on-import did not end within 0.2 s and was killed. Imports are not "
        "affected. Let it start in the background what takes long",
        "The command of --on-import works again",
    ]


def test_a_signal_and_a_command_that_cannot_start_are_told(
    a_hook: MakeHook, told: list[str]
) -> None:
    for command in ("kill -9 $$", "x" * 10_000_000, "echo \0"):
        hook = a_hook(command)
        hook.note(a_report())
        hook.finish(threading.Event())

    begin = "The command of --on-import"
    assert told[0].startswith(f"{begin} was killed by signal 9. ")
    assert told[1].startswith(f"{begin} could not be run: Argument list too long. ")
    assert told[2].startswith(f"{begin} could not be run: embedded null byte. ")


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
    assert len(logged) == hooks.MAX_LOGGED_LINES + 1
    assert logged[-1] == "on-import: … and 51 more lines"


@pytest.mark.timing
def test_noting_never_waits_for_the_command(a_hook: MakeHook, tmp_path: Path) -> None:
    hook = a_hook(f"touch {tmp_path}/began; sleep 60")
    hook.note(a_report())
    wait_until((tmp_path / "began").exists)

    began = time.monotonic()
    for _ in range(1_000):
        hook.note(a_report())

    assert time.monotonic() - began < 5
