"""Date ranges, with months that count from 0."""

from typing import Any

import pytest

from resumes.analyzer.reading import TO, date_range, plain_number


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"fromYear": 2015, "fromMonth": 0, "isOngoing": True}, f"Jan 2015{TO}present"),
        (
            {"fromYear": 2013, "fromMonth": 3, "toYear": 2018, "toMonth": 11, "isOngoing": False},
            f"Apr 2013{TO}Dec 2018",
        ),
        ({"fromYear": 1961, "toYear": 1968}, f"1961{TO}1968"),
        ({"fromYear": 1969, "toYear": 1969}, "1969"),
        ({"fromYear": 2015}, "2015"),
        ({"fromYear": 2015.0, "fromMonth": 1.0}, "Feb 2015"),
        ({"toYear": 2019, "toMonth": 5}, "until Jun 2019"),
        ({"isOngoing": True}, "present"),
        ({"fromMonth": 12, "fromYear": 2015}, "month 12 2015"),
        ({"fromMonth": 0.5, "fromYear": 2015}, "month 0.5 2015"),
        ({"fromMonth": None, "fromYear": 2015}, "2015"),
        ({"fromMonth": 3}, "Apr"),
        ({"fromYear": 2015.0, "fromMonth": 1.0, "isOngoing": True}, f"Feb 2015{TO}present"),
        ({"isOngoing": False}, ""),
        ({}, ""),
    ],
)
def test_a_date_range_reads_as_people_write_it(fields: dict[str, Any], expected: str) -> None:
    assert date_range(fields) == expected


@pytest.mark.parametrize(
    ("number", "expected"), [(2015, "2015"), (2015.0, "2015"), (4.5, "4.5"), (-0.0, "0")]
)
def test_a_number_has_no_fraction_that_is_nought(number: float, expected: str) -> None:
    assert plain_number(number) == expected
