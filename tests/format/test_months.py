"""Months that count from 0 or from 1, as an account or a setting says (docs/format.md, Dates)."""

import json

import pytest

from resumes.analyzer import (
    Format,
    iter_sections,
    parse,
    parse_imported,
    public_json,
    shown_view,
    stored_warnings,
    to_jsonresume,
)
from resumes.analyzer.plain import parse_plain
from resumes.analyzer.readable import section_lines
from resumes.analyzer.view import TO
from resumes.rendering.page import compose
from tests.support.documents import with_section

NOT_FROM_0 = "is outside the range 0 to 11: months of this resume count from 0 (January)"
NOT_FROM_1 = "is outside the range 1 to 12: months of this resume count from 1 (January)"


def a_job(start: float, end: float) -> bytes:
    """A document with a job from this month of 2020 to that of 2021."""
    dates = {"fromYear": 2020, "fromMonth": start, "toYear": 2021, "toMonth": end}
    item = {"position": "Nurse", "dateRange": dates}
    return json.dumps(with_section("experiences", item)).encode()


def shown(body: bytes, first_month: int | None) -> list[str]:
    """The dates as they are exported, read and printed."""
    parsed = parse(body, Format(first_month=first_month))
    document = json.loads(parsed.document)
    view = shown_view(parsed.document, recorded=parsed.first_month)
    (section,) = iter_sections(document, recorded=parsed.first_month)
    assert section.items[0]["dateRange"] == view["sections"]["experiences"]["items"][0]["dateRange"]
    (job,) = to_jsonresume(view)["work"]
    lines = section_lines(document, parsed.first_month)
    (read,) = (p.text for line in lines for p in line.phrases if "2020" in p.text)
    ((printed,),) = compose(document, "", first_month=parsed.first_month)["columns"]
    dates = [f"{job['startDate']} {job['endDate']}", read, printed["items"][0]["dates"]]
    return [text.replace(TO, " - ") for text in dates]


@pytest.mark.parametrize(
    ("first_month", "months", "exported", "read", "printed"),
    [
        (None, (0, 5), "2020-01 2021-06", "Jan 2020 - Jun 2021", "01/2020 - 06/2021"),
        (0, (0, 5), "2020-01 2021-06", "Jan 2020 - Jun 2021", "01/2020 - 06/2021"),
        (1, (1, 6), "2020-01 2021-06", "Jan 2020 - Jun 2021", "01/2020 - 06/2021"),
        (None, (1, 12), "2020-01 2021-12", "Jan 2020 - Dec 2021", "01/2020 - 12/2021"),
        (1, (1, 12), "2020-01 2021-12", "Jan 2020 - Dec 2021", "01/2020 - 12/2021"),
        (0, (1, 12), "2020-02 2021", "Feb 2020 - month 12 2021", "02/2020 - 2021"),
        (1, (0, 12.0), "2020 2021-12", "2020 - Dec 2021", "2020 - 12/2021"),
    ],
)
def test_dates_are_shown_by_the_first_month_that_was_set(
    first_month: int | None, months: tuple[float, float], exported: str, read: str, printed: str
) -> None:
    assert shown(a_job(*months), first_month) == [exported, read, printed]


@pytest.mark.parametrize(
    ("first_month", "months", "warned"),
    [
        (None, (0, 11), ()),
        (0, (0, 11), ()),
        (1, (1, 12), ()),
        (1, (12, 12), ()),
        (None, (1, 12), ("is 12, so all months of this resume count from 1 (January)",)),
        (0, (1, 12), (f"12 {NOT_FROM_0}",)),
        (1, (0, 13), (f"0 {NOT_FROM_1}", f"13 {NOT_FROM_1}")),
    ],
)
def test_months_that_contradict_what_was_set_are_warned_of(
    first_month: int | None, months: tuple[int, int], warned: tuple[str, ...]
) -> None:
    body = a_job(*months)
    spaced = body.replace(b'Month": ', b'Month"\n : ')
    escaped = body.replace(b"Month", b"\\u004donth")
    for sent in (body, spaced, escaped):
        parsed = parse(sent, Format(first_month=first_month))
        found = tuple(issue.message.partition(" ")[2] for issue in parsed.warnings)
        assert found == warned
        assert stored_warnings(parsed.document, parsed.first_month) == parsed.warnings
        assert parsed.first_month == first_month
        assert (parse_plain(sent, first_month) is None) or not warned
    assert json.loads(public_json(parsed.document)) == json.loads(body)


def test_the_fast_path_takes_months_from_1() -> None:
    assert parse_plain(a_job(1, 10), 1)
    assert parse_plain(a_job(0, 10), 0)


def test_a_json_resume_counts_from_0_whatever_was_set() -> None:
    work = [{"name": "Mill", "startDate": "2020-01", "endDate": "2021-12"}]
    sent = json.dumps({"basics": {"name": "Ada"}, "work": work}).encode()
    for first_month in (None, 0, 1):
        parsed = parse_imported(sent, Format(first_month=first_month))
        assert (parsed.first_month, parsed.warnings) == (0, ())
        back = to_jsonresume(shown_view(parsed.document, recorded=parsed.first_month))
        assert [back["work"][0][end] for end in ("startDate", "endDate")] == ["2020-01", "2021-12"]


def test_an_account_s_own_first_month_comes_before_that_of_the_settings() -> None:
    for setting in (None, 0, 1):
        accepted = Format(frozenset({"hobbies"}), 4_096, setting)
        assert accepted.for_account(None) is accepted
        for first_month in (0, 1):
            expected = Format(frozenset({"hobbies"}), 4_096, first_month)
            assert accepted.for_account(first_month) == expected
