import io

import pytest

from cli.status_line import StatusLine
from cli.steps import LINE_S, Steps, describe
from resumes.store.moving.copying import Progress, Stage


class Time:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def a_progress(done: int, *, stage: Stage = Stage.COPYING, what: str = "documents") -> Progress:
    return Progress(stage, what, done, 1_000_000)


def test_rows_are_told_with_their_pace_and_what_is_left() -> None:
    assert describe(a_progress(120_000), None) == ("Copying documents: 120,000 of 1,000,000 rows")
    assert describe(a_progress(120_000), 12_000.4) == (
        "Copying documents: 120,000 of 1,000,000 rows, 12,000/s, about 1 min left"
    )
    assert describe(a_progress(1_000_000, stage=Stage.PROVING), 12_000.4) == (
        "Proving documents: 1,000,000 of 1,000,000 rows"
    )


def test_a_backup_of_a_file_is_told_in_megabytes() -> None:
    progress = Progress(Stage.BACKING_UP, "resumes.db", 120_400_000, 352_000_000)
    assert describe(progress, 5.0) == "Backing up: 120 of about 352 MB"


def test_a_terminal_has_one_line_that_is_rewritten() -> None:
    time, stream = Time(), io.StringIO()
    steps = Steps(StatusLine(stream), monotonic=time)
    for done in (1, 2, 3):
        steps(a_progress(done))
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
        steps(a_progress(done))
    time.now_s += LINE_S
    steps(a_progress(3))
    steps(a_progress(0, stage=Stage.PROVING))
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" of")[0] for line in lines] == [
        "Copying documents: 0",
        "Copying documents: 3",
        "Proving documents: 0",
    ]
