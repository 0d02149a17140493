"""City, region and country on one line and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resumes.analyzer.jsonresume.places import line_of, parse_line


@pytest.mark.parametrize(
    ("city", "region", "country", "line"),
    [
        ("Antibes", None, "US", "Antibes, US"),
        ("Austin", "TX", "US", "Austin, TX, US"),
        ("Austin", "TX", None, "Austin, TX"),
        ("San Francisco", "CA", None, "San Francisco, CA"),
        ("Toronto", None, "CA", "Toronto, Canada"),
        ("Berlin", "Berlin", "DE", "Berlin, Berlin, DE"),
        ("Paris", None, None, "Paris"),
        ("Washington, D.C.", None, None, "Washington, D.C."),
        (None, None, "US", "US"),
        (None, None, "DE", "Germany"),
        (None, None, None, ""),
    ],
)
def test_what_is_known_is_on_the_line(
    city: str | None, region: str | None, country: str | None, line: str
) -> None:
    assert line_of(city, region, country) == line


@pytest.mark.parametrize("region", ["", "TX", "CA", "Bavaria"])
@pytest.mark.parametrize("country", ["", "US", "DE", "CA", "NL"])
def test_a_city_with_whatever_else_comes_back(region: str, country: str) -> None:
    place = {"city": "Exampleton", "region": region, "countryCode": country}

    back = parse_line(line_of(*place.values()))

    assert back == {name: word for name, word in place.items() if word}


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("Washington, D.C.", {"city": "Washington", "region": "D.C."}),
        (
            "Quarter, City, Region, FR",
            {"city": "Quarter, City", "region": "Region", "countryCode": "FR"},
        ),
        ("Remote", {"city": "Remote"}),
        ("FR", {"countryCode": "FR"}),
        ("Berlin, Germany", {"city": "Berlin", "countryCode": "DE"}),
        ("Atlanta, Georgia", {"city": "Atlanta", "region": "Georgia"}),
        ("Paris, , , FR", {"city": "Paris", "countryCode": "FR"}),
        ("Berlin, , DE", {"city": "Berlin", "countryCode": "DE"}),
        (", Ontario, CA", {"city": "Ontario", "countryCode": "CA"}),
        (", , CA", {"countryCode": "CA"}),
        ("Sacramento, CA, ", {"city": "Sacramento", "region": "CA"}),
        (", , ", {}),
        ("", {}),
    ],
)
def test_a_line_that_somebody_wrote_is_taken_apart_by_position(
    line: str, place: dict[str, str]
) -> None:
    assert parse_line(line) == place


WORDS = st.sampled_from(["Paris", "CA", "FR", "DE", "Canada", "Germany", ",", " ", "", " ,", "a,"])


@given(st.lists(WORDS, max_size=5), st.sampled_from([", ", ",", " "]))
def test_whatever_was_read_of_a_line_is_read_again(words: list[str], between: str) -> None:
    place = parse_line(between.join(words))

    known = [place.get(name) for name in ("city", "region", "countryCode")]
    assert parse_line(line_of(*known)) == place
