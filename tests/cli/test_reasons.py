"""Reasons on the command line."""

import click
import pytest

from cli.main import resumes
from cli.reasons import Reason


def test_a_reason_is_taken_and_another_word_is_not() -> None:
    assert Reason().convert("too_large", None, None) == "too_large"
    with pytest.raises(click.BadParameter, match=r'"large" is no reason: .*too_large'):
        Reason().convert("large", None, None)


def test_reasons_are_completed() -> None:
    context = click.Context(resumes)
    items = Reason().shell_complete(context, click.Option(["--reason"]), "too_l")
    assert [item.value for item in items] == ["too_large"]
