"""Deleting asks first."""

import sys

import click
import pytest

from cli import questions
from cli.failures import Failed
from resumes.errors import InvalidArgument


def test_where_nobody_sits_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)

    with pytest.raises(InvalidArgument, match="add --yes"):
        questions.confirm("Sure?")


@pytest.mark.parametrize("answer", [True, False])
def test_yes_goes_on_and_no_ends(monkeypatch: pytest.MonkeyPatch, answer: bool) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda *_, **__: answer)

    if answer:
        questions.confirm("Sure?")
    else:
        with pytest.raises(Failed, match="Nothing was deleted"):
            questions.confirm("Sure?")
