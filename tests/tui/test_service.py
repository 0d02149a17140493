"""Starting the terminal UI: what is refused before anything is drawn."""

import subprocess
import sys

import pytest

from resumes.errors import InvalidArgument
from tui.service import check_screen, run
from tui.session import Session


def never() -> Session:
    raise AssertionError("nothing is opened")


def test_without_a_terminal_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidArgument, match="needs a terminal"):
        run(never)
    assert capsys.readouterr() == ("", "")


def test_an_unknown_screen_is_told_with_those_there_are() -> None:
    with pytest.raises(InvalidArgument, match="resumes, imports, accounts, plans, keys, health"):
        check_screen("bills")


def test_what_comes_before_the_first_frame_does_not_need_the_store() -> None:
    program = "import sys, tui.service; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    heavy = {"resumes.store", "resumes.settings", "sqlalchemy", "sqlmodel", "pydantic"}
    assert heavy.isdisjoint(done.stdout.decode().split())
