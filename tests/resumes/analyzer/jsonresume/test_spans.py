"""Dates of work and of publications, there and back."""

from typing import Any

import pytest

from resumes.analyzer import to_jsonresume
from tests.resumes.analyzer.documents import with_section
from tests.resumes.analyzer.jsonresume.samples import (
    entry_back,
    imported_items,
    warnings_of,
    with_list,
)


def span_of(**dates: Any) -> Any:
    [item] = imported_items(with_list("work", {"name": "Engines", **dates}), "experiences")
    return item.get("dateRange")


def dates_of(**span: Any) -> dict[str, str]:
    document = with_section("experiences", {"workplace": "Engines", "dateRange": span})
    [entry] = to_jsonresume(document)["work"]
    del entry["name"]
    return {str(name): date for name, date in entry.items()}


def test_months_count_from_0() -> None:
    assert span_of(startDate="2020-01-31", endDate="2021-12") == {
        "fromYear": 2020,
        "fromMonth": 0,
        "toYear": 2021,
        "toMonth": 11,
    }
    assert dates_of(fromYear=2020, fromMonth=0, toYear=2021, toMonth=11) == {
        "startDate": "2020-01",
        "endDate": "2021-12",
    }


@pytest.mark.parametrize("end", [{}, {"endDate": ""}, {"endDate": None}, {"endDate": "Present"}])
def test_without_an_end_it_goes_on(end: dict[str, Any]) -> None:
    assert span_of(startDate="2020", **end) == {"fromYear": 2020, "isOngoing": True}


@pytest.mark.parametrize(
    ("dates", "span"),
    [
        ({}, None),
        ({"endDate": ""}, None),
        ({"endDate": "2020"}, {"toYear": 2020}),
        ({"endDate": "Present"}, {"isOngoing": True}),
        ({"startDate": 2020}, {"fromYear": 2020, "isOngoing": True}),
        ({"startDate": "2020", "endDate": "soon"}, {"fromYear": 2020}),
        ({"startDate": "2020", "endDate": {"year": 2021}}, {"fromYear": 2020}),
        ({"startDate": "soon"}, None),
    ],
)
def test_what_is_not_said_is_not_made_up(dates: dict[str, Any], span: Any) -> None:
    assert span_of(**dates) == span


def test_a_date_that_cannot_be_read_is_told_where_it_stands() -> None:
    entry = {"startDate": "soon", "endDate": ["2020"]}
    assert list(warnings_of(with_list("work", {}, entry))) == [
        "work[1].startDate",
        "work[1].endDate",
    ]


@pytest.mark.parametrize(
    ("span", "dates"),
    [
        ({"fromYear": 2020, "isOngoing": True}, {"startDate": "2020"}),
        ({"fromYear": 2020, "toYear": 2021, "isOngoing": True}, {"startDate": "2020"}),
        ({"fromYear": 2020, "fromMonth": 2}, {"startDate": "2020-03", "endDate": "2020-03"}),
        ({"toYear": 2020, "isOngoing": False}, {"endDate": "2020"}),
        ({"fromYear": 2020, "toYear": 20200}, {"startDate": "2020", "endDate": "2020"}),
        ({"fromMonth": 3}, {}),
        ({"isOngoing": True}, {}),
    ],
)
def test_a_span_is_written_as_it_reads(span: dict[str, Any], dates: dict[str, str]) -> None:
    assert dates_of(**span) == dates


@pytest.mark.parametrize(
    ("start", "end"),
    [("2019", "2020"), ("2019-03", "2020-12"), ("2019", None), (None, "2020-01"), (None, None)],
)
def test_dates_come_back(start: str | None, end: str | None) -> None:
    dates = {"startDate": start, "endDate": end}
    entry = {"name": "Engines", **{name: date for name, date in dates.items() if date}}
    assert entry_back("work", entry) == entry


def test_a_release_never_goes_on() -> None:
    entry = {"name": "Notes", "releaseDate": "2017-08"}
    [item] = imported_items(with_list("publications", entry), "publications")
    assert item["dateRange"] == {"fromYear": 2017, "fromMonth": 7}
    assert entry_back("publications", entry) == entry
    ended = {"title": "Notes", "dateRange": {"toYear": 2017}}
    [back] = to_jsonresume(with_section("publications", ended))["publications"]
    assert back["releaseDate"] == "2017"


def test_a_release_may_be_known_by_its_end_alone() -> None:
    span = {"toYear": 2020, "toMonth": 4}
    document = with_section("publications", {"title": "Engines", "dateRange": span})
    [entry] = to_jsonresume(document)["publications"]
    assert entry["releaseDate"] == "2020-05"


def test_an_end_that_is_now_is_no_field_without_a_place() -> None:
    document = with_list("work", {"name": "Engines", "startDate": "2020", "endDate": "Present"})
    assert warnings_of(document) == {}
