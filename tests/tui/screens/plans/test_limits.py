"""Limits as people read and type them."""

import pytest

from resumes.errors import InvalidArgument
from resumes.store.plans import PlanInfo, Requests
from tui.screens.plans.limits import (
    allowance,
    differences,
    facts,
    maximum_text,
    parse_maximum,
    parse_rate,
    rate_text,
)

PRO = PlanInfo("pro", 1_000, api_listing=False, accounts=2, requests_per_day=0)


@pytest.mark.parametrize("maximum", [0, 5, 1_000, 10**17, None])
def test_a_maximum_is_read_as_it_is_written(maximum: int | None) -> None:
    assert parse_maximum(maximum_text(maximum)) == maximum


@pytest.mark.parametrize("rate", [0, 1, 1_000_000, None])
def test_a_rate_is_read_as_it_is_written(rate: int | None) -> None:
    assert parse_rate(rate_text(rate), Requests.PER_HOUR) == rate


@pytest.mark.parametrize("text", [" 1000 ", "1,000", "01000"])
def test_numbers_may_be_typed_in_several_ways(text: str) -> None:
    assert parse_maximum(text) == 1_000


@pytest.mark.parametrize("text", ["", "many", "-1", "1.5", "٣", "1" * 19, "default"])
def test_what_is_no_maximum_is_refused_with_what_was_typed(text: str) -> None:
    with pytest.raises(InvalidArgument, match="is neither a number nor unlimited") as raised:
        parse_maximum(text)
    assert f'"{text}"' in raised.value.message


@pytest.mark.parametrize("text", ["", "0", "many", "1,000,001", "-1"])
def test_what_is_no_rate_is_refused_with_its_window(text: str) -> None:
    with pytest.raises(InvalidArgument, match=f'Per hour: "{text}" is neither'):
        parse_rate(text, Requests.PER_HOUR)


def test_a_plan_is_told_by_its_limits() -> None:
    assert list(facts(PRO)) == [
        ("Resumes", "1,000"),
        ("Listing", "no"),
        ("Per minute", "default"),
        ("Per hour", "default"),
        ("Per day", "unlimited"),
    ]
    assert allowance(PRO) == "1,000 resumes, without API listing"
    assert allowance(PlanInfo("all", None, True, 0)) == "any number of resumes, with API listing"


def test_only_what_differs_is_told_and_the_accounts_are_no_difference() -> None:
    new = PlanInfo("pro", None, api_listing=False, accounts=3, requests_per_day=7)

    assert differences(PRO, new) == [("Resumes", "1,000 → unlimited"), ("Per day", "unlimited → 7")]
    assert differences(PRO, PlanInfo("pro", 1_000, False, 9, requests_per_day=0)) == []
