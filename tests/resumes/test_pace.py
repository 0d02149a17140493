"""How fast, and how long."""

import pytest

from resumes.pace import WINDOW_S, Pace, rate, time_left


def test_the_pace_is_known_after_a_second() -> None:
    pace = Pace()
    assert pace.per_s(100.0) is None
    pace.note(100.0, 0)
    pace.note(100.5, 200)
    assert pace.per_s(100.5) is None
    pace.note(101.0, 400)
    assert pace.per_s(101.0) == 400


def test_it_is_the_pace_of_the_last_seconds() -> None:
    pace = Pace()
    for second in range(60):
        pace.note(float(second), 1_000 * second)
    for second in range(60, 80):
        pace.note(float(second), 60_000 + 10 * second)
    assert pace.per_s(79.0) == pytest.approx(10)


def test_while_nothing_happens_it_falls_and_is_then_unknown() -> None:
    pace = Pace()
    pace.note(100.0, 0)
    pace.note(101.0, 100)
    assert pace.per_s(104.0) == 25
    assert pace.per_s(101.0 + WINDOW_S + 0.1) is None


def test_counts_that_come_seldom_need_a_longer_window() -> None:
    pace = Pace(window_s=30.0)
    for second in (0, 15, 30):
        pace.note(float(second), 10 * second)
    assert pace.per_s(30.0) == 10


def test_the_time_of_a_pause_does_not_count() -> None:
    pace = Pace()
    pace.note(0.0, 500)
    pace.note(3_600.0, 500)
    pace.note(3_602.0, 700)
    assert pace.per_s(3_602.0) == 100


def test_a_count_that_stands_still_or_falls_is_no_pace() -> None:
    # Held files that are released are counted as held no more, and as done a moment later.
    pace = Pace()
    pace.note(0.0, 10)
    pace.note(2.0, 10)
    assert pace.per_s(2.0) is None
    pace.note(3.0, 8)
    assert pace.per_s(3.0) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "a few seconds left"),
        (9.9, "a few seconds left"),
        (10, "about 10 s left"),
        (54, "about 50 s left"),
        (55, "about 1 min left"),
        (119, "about 2 min left"),
        (89 * 60, "about 89 min left"),
        (90 * 60, "about 2 h left"),
        (5_000 * 3_600, "about 5,000 h left"),
    ],
)
def test_time_left_is_as_exact_as_a_guess_can_be(seconds: float, text: str) -> None:
    assert time_left(seconds) == text


def test_a_rate_has_a_decimal_only_where_it_tells_something() -> None:
    assert [rate(3_456.7), rate(10), rate(0.44)] == ["3,457 files/s", "10 files/s", "0.4 files/s"]
