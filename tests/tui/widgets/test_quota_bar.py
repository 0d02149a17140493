"""How full, in text."""

import pytest

from tui.widgets.quota_bar import quota_bar


@pytest.mark.parametrize(
    ("used", "maximum", "expected"),
    [
        (0, 50, "░░░░░░░░ 0/50 0 %"),
        (812, 1000, "██████░░ 812/1,000 81 % !"),
        (790, 1000, "██████░░ 790/1,000 79 %"),
        (999, 1000, "███████░ 999/1,000 99 % !"),
        (5, 5, "████████ 5/5 100 % !!"),
        (7, 5, "████████ 7/5 140 % !!"),
        (0, 0, "████████ 0/0 100 % !!"),
        (3118, None, "········ 3,118, unlimited"),
    ],
)
def test_the_bar_says_it_in_text_too(used: int, maximum: int | None, expected: str) -> None:
    assert quota_bar(used, maximum).plain == expected
