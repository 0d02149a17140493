"""How long ago."""

import pytest

from resumes.health.ages import span


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (1, "1 second"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (7_199, "119 minutes"),
        (86_400, "24 hours"),
    ],
)
def test_how_long_ago(seconds: float, said: str) -> None:
    assert span(seconds) == said
