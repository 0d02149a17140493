"""Every failure is one line and an exit code."""

import stat
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from cli import failures
from cli.failures import Failed, ReaderGone
from resumes.errors import InvalidArgument, NotFound, OutcomeUnknown, StoreUnavailable


def run(error: BaseException, *, folder: Path | None = None) -> int:
    """The exit code after this error."""

    def call() -> None:
        raise error

    return failures.run(call, log_folder=lambda: folder)


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (NotFound("No such thing"), 1, "No such thing"),
        (InvalidArgument("Invalid x"), 2, "Invalid x"),
        (StoreUnavailable("Not now"), 3, "Not now"),
        (OutcomeUnknown(), 3, "Outcome unknown: it may have been done. Look before you try again"),
        (click.UsageError("No such option."), 2, "No such option."),
        (Failed("It was not to be"), 1, "It was not to be"),
        (PermissionError(13, "Permission denied", "/x"), 1, "Cannot use /x: Permission denied"),
        (
            OSError(28, "No space left on device"),
            1,
            "Cannot write the output: No space left on device",
        ),
        (NotFound("a\x1b[2J\nb"), 1, "a\\x1b[2J\\nb"),
    ],
)
def test_an_error_is_told_in_a_line(
    error: Exception, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(error) == code
    assert capsys.readouterr().err == f"Error: {line}\n"


@pytest.mark.parametrize(
    ("error", "code"), [(ReaderGone(), 141), (BrokenPipeError(), 141), (KeyboardInterrupt(), 130)]
)
def test_some_ends_need_no_words(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(error) == code
    assert capsys.readouterr().err == ""


def test_ctrl_c_at_a_question_is_130_and_no_answer_1(capsys: pytest.CaptureFixture[str]) -> None:
    interrupted = click.Abort()
    interrupted.__context__ = KeyboardInterrupt()

    assert run(interrupted) == 130
    assert run(click.Abort()) == 1
    assert capsys.readouterr().err == "Error: Nobody answered; nothing was done\n"


def test_the_unforeseen_goes_to_a_file_for_the_owner_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(RuntimeError("secret"), folder=tmp_path / "logs") == 1

    [report] = (tmp_path / "logs").iterdir()
    told = capsys.readouterr().err
    failure_id = report.stem.removeprefix("error-")
    assert told.startswith(f"Error: Internal error {failure_id}: the details are in {report}.")
    assert "secret" not in told
    assert "RuntimeError: secret" in report.read_text(encoding="utf-8")
    assert stat.S_IMODE(report.stat().st_mode) == 0o600


def test_without_a_place_for_it_the_unforeseen_names_the_way_to_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(RuntimeError("secret")) == 1
    assert "RESUMES_DEBUG=1 shows the details" in capsys.readouterr().err

    monkeypatch.setenv("RESUMES_DEBUG", "1")
    assert run(RuntimeError("secret")) == 1
    assert "RuntimeError: secret" in capsys.readouterr().err


@pytest.mark.parametrize(("call", "code"), [(lambda: None, 0), (lambda: 2, 2)])
def test_what_does_not_fail_ends_with_its_own_code(call: Callable[[], object], code: int) -> None:
    assert failures.run(call, log_folder=lambda: None) == code
