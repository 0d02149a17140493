"""Dates in all the ways that JSON Resumes have them, and months that count from 0."""

from typing import Any

import pytest

from resumes.analyzer.jsonresume.dates import WRITTEN, find_moment, find_written, is_ongoing


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2020", (2020, None)),
        ("2020-01", (2020, 0)),
        ("2020-12-31", (2020, 11)),
        ("2020-1-5", (2020, 0)),
        ("2020/03", (2020, 2)),
        ("2020.03.01", (2020, 2)),
        ("2020-03-01T00:00:00.000Z", (2020, 2)),
        ("03/2020", (2020, 2)),
        ("March 2020", (2020, 2)),
        ("Sept. 2020", (2020, 8)),
        ("mar, 2020", (2020, 2)),
        (" 2020-01 ", (2020, 0)),
    ],
)
def test_a_year_and_a_month_are_read_and_a_day_is_not(text: str, moment: tuple[int, Any]) -> None:
    assert find_moment(text) == moment


@pytest.mark.parametrize(
    "text",
    ["", "soon", "Summer 2020", "2020-13", "2020-00", "20", "0999", "3000", "marzo 2020", "٢٠٢٠"],
)
def test_what_is_no_date_is_not_guessed(text: str) -> None:
    assert find_moment(text) is None


@pytest.mark.parametrize("end", ["Present", "current", " NOW ", "ongoing", "today"])
def test_an_end_that_is_still_to_come(end: str) -> None:
    assert is_ongoing(end)


@pytest.mark.parametrize("end", ["", "2020", "presently", None, 5])
def test_any_other_end_is_none_of_these(end: Any) -> None:
    assert not is_ongoing(end)


@pytest.mark.parametrize(
    ("year", "month", "written"),
    [
        (2020, 0, "2020-01"),
        (2020.0, 11.0, "2020-12"),
        (2020, None, "2020"),
        (2020, 12, "2020"),
        (2020, -1, "2020"),
        (2020, 0.5, "2020"),
        (None, 3, None),
        (2020.5, 3, None),
        (999, 3, None),
        (3000, 3, None),
    ],
)
def test_a_month_is_written_as_far_as_it_can_be(year: Any, month: Any, written: Any) -> None:
    assert find_written(year, month) == written
    assert written is None or WRITTEN.fullmatch(written)


@pytest.mark.parametrize(
    ("year", "written"), [(999, None), (1000, "1000"), (2999, "2999"), (3000, None)]
)
def test_years_that_are_written_have_four_digits(year: int, written: str | None) -> None:
    assert find_written(year, None) == written
