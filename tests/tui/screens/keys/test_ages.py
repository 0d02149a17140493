"""How long ago, in a few cells."""

from datetime import timedelta

import pytest

from resumes.clock import later
from tui.screens.keys.ages import ago

NOW_US = 1_800_000_000_000_000


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=4, seconds=59), "4 min ago"),
        (timedelta(minutes=59), "59 min ago"),
        (timedelta(hours=23, minutes=59), "23 h ago"),
        (timedelta(days=1), "1 d ago"),
        (timedelta(days=9_999), "9999 d ago"),
    ],
)
def test_the_largest_unit_that_has_passed_is_told(passed: timedelta, words: str) -> None:
    told = ago(later(NOW_US, -passed), NOW_US)

    assert told == words
    assert len(told) <= 10


def test_what_never_was_is_never() -> None:
    assert ago(None, NOW_US) == "never"
