"""How far something long is."""

import io
import sys

import pytest

from cli.status_line import StatusLine
from cli.steps import LINE_S, Steps, counting, describe_count, describe_move, told_steps
from resumes.store.moving.transferring import Progress, Stage


class Time:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def a_progress(done: int, *, stage: Stage = Stage.COPYING, what: str = "documents") -> Progress:
    return Progress(stage, what, done, 1_000_000)


def tell(steps: Steps, done: int, stage: str = "Copying") -> None:
    steps.tell(stage, done, lambda per_s: f"{stage}: {done} of 1,000,000")


def test_rows_are_told_with_their_pace_and_what_is_left() -> None:
    assert describe_move(a_progress(120_000), None) == ("Copying: 120,000 of 1,000,000 rows")
    assert describe_move(a_progress(120_000), 12_000.4) == (
        "Copying: 120,000 of 1,000,000 rows, 12,000/s, about 1 min left"
    )
    assert describe_move(a_progress(1_000_000, stage=Stage.PROVING), 12_000.4) == (
        "Comparing both: 1,000,000 of 1,000,000 rows"
    )


def test_a_backup_of_a_file_is_told_in_megabytes() -> None:
    progress = Progress(Stage.BACKING_UP, "resumes.db", 120_400_000, 352_000_000)
    assert describe_move(progress, 5.0) == "Backing up: 120 of about 352 MB"


def test_a_terminal_has_one_line_that_is_rewritten() -> None:
    time, stream = Time(), io.StringIO()
    steps = Steps(StatusLine(stream), monotonic=time)
    for done in (1, 2, 3):
        tell(steps, done)
        time.now_s += 0.06
    assert "1 of 1,000,000" in stream.getvalue()
    assert "2 of 1,000,000" not in stream.getvalue(), "drawn more often than is seen"
    assert "3 of 1,000,000" in stream.getvalue()
    assert "\n" not in stream.getvalue()


def test_elsewhere_there_is_a_line_for_each_stage_and_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    time = Time()
    steps = Steps(monotonic=time)
    for done in (0, 1, 2):
        tell(steps, done)
    time.now_s += LINE_S
    tell(steps, 3)
    tell(steps, 0, "Proving")
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" of")[0] for line in lines] == [
        "Copying: 0",
        "Copying: 3",
        "Proving: 0",
    ]


def test_a_copy_is_told_in_the_words_of_its_stage(capsys: pytest.CaptureFixture[str]) -> None:
    with told_steps() as steps:
        steps(a_progress(0))
    assert capsys.readouterr().err == "Copying: 0 of 1,000,000 rows\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_known_of_a_count_is_said() -> None:
    assert describe_count("wrote", 1_234, None, "rows", None) == "wrote 1,234 rows"
    assert describe_count("wrote", 10, 100, "rows", None) == "wrote 10 of 100 rows"
    assert (
        describe_count("wrote", 10, 610, "rows", 10.0) == "wrote 10 of 610 rows, about 1 min left"
    )


def test_more_than_were_expected_is_no_riddle() -> None:
    assert describe_count("wrote", 12, 10, "rows", 1.0) == "wrote 12 of 12 rows"


def test_a_terminal_has_the_count_on_its_last_line_and_none_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    times = iter([0.0, 0.05, 0.2])
    with counting("rows", 9, monotonic=lambda: next(times)) as count:
        for done in (1, 2, 3):
            count("wrote", done)
    lines = terminal.getvalue().split("\r\x1b[K")
    assert lines == ["", "wrote 1 of 9 rows", "wrote 3 of 9 rows", ""]


def test_where_there_is_no_terminal_nothing_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with counting("rows") as count:
        count("wrote", 1)
    assert capsys.readouterr().err == ""
