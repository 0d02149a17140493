"""docs/reliability.md has the rows that the fault campaign has, and none that failed."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.chaos import campaign
from tests.chaos.campaign import FAILED, HEAD, Row

pytestmark = pytest.mark.docs

NONE: Final = re.compile(
    r"lost|doubled|partial|torn|repeated|missed( by the follower)?|missing( or changed)?|violations"
    r"|out of order|otherwise wrong|refused and stored|not imported|half imported|over the limit"
    r"|failed|errors|wrong|unanswered|still open|left open|foreign (entries|sequences)"
    r"|control characters|accepted|accepted after|accepted and unanswered|told when read"
    r"|files changed|unopened"
)
"""What a row counts of which there may be none."""


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs" / "reliability.md").read_text(encoding="utf-8")


def a_row(test: str, number: int = 1, **others: str) -> Row:
    texts = {"fault": "a fault", "promise": "a promise", "injected": "a signal"}
    return Row(number, test=test, **(texts | others))


def test_the_page_has_the_campaigns_rows_as_they_are(page: str) -> None:
    assert {row.claim for row in campaign.parse_rows(page)} == {
        row.claim for row in campaign.iter_rows()
    }


@pytest.mark.slow
def test_the_page_has_a_row_for_each_case_of_each_test(page: str, repository: Path) -> None:
    collect = [sys.executable, "-m", "pytest", "tests/chaos", "-m", "chaos", "--collect-only", "-q"]
    done = subprocess.run(collect, cwd=repository, capture_output=True, text=True, check=True)
    tests = re.findall(r"^tests/chaos/(test_\w+\.py::.+)$", done.stdout, re.MULTILINE)

    assert [row.test for row in campaign.parse_rows(page)] == sorted_as_rows(tests)


def sorted_as_rows(tests: list[str]) -> list[str]:
    """The tests in the order of their faults' numbers."""
    numbers = {row.function: row.number for row in campaign.iter_rows()}
    return sorted(tests, key=lambda test: (numbers[test.partition("[")[0]], test))


def test_no_row_of_the_page_lost_or_doubled_anything(page: str) -> None:
    counts = [figure.split(" ", 1) for figure in figures_of(page)]
    known = [number for number, *name in counts if name and NONE.fullmatch(name[0])]

    assert len(known) > len(campaign.parse_rows(page))
    assert set(known) == {"0"}


def figures_of(page: str) -> list[str]:
    """All that rows of the page have measured: `0 lost`, `recovery 2 s`."""
    return [figure for row in campaign.parse_rows(page) for figure in row.figures.split(", ")]


def test_every_row_of_the_page_was_run_and_none_has_failed(page: str) -> None:
    rows = campaign.parse_rows(page)
    assert [row.test for row in rows if not row.figures or row.figures == FAILED] == []
    assert [row.test for row in rows if not row.seed] == []


def test_the_rows_of_a_run_take_the_place_of_theirs_and_leave_the_others_alone() -> None:
    old = [a_row("test_a.py::test_1[x]"), a_row("test_a.py::test_2", 2, figures="3 kills")]
    page = campaign.merged(f"before\n\n{HEAD}\nafter\n", old, old)
    new = a_row("test_a.py::test_1[x]", figures="1 | 2", seed="7")

    merged = campaign.merged(page, [new], old)

    assert campaign.parse_rows(merged) == [new, old[1]]
    assert merged.startswith("before\n\n|")
    assert merged.endswith("|\n\nafter\n")


def test_rows_whose_test_is_gone_or_says_something_else_go() -> None:
    old = [a_row("test_a.py::test_1"), a_row("test_a.py::test_2"), a_row("test_a.py::test_3")]
    page = campaign.merged(HEAD, old, old)
    said = [a_row("test_a.py::test_1"), a_row("test_a.py::test_2", fault="another")]

    assert campaign.parse_rows(campaign.merged(page, [], said)) == [old[0]]


def test_a_page_without_the_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="no table"):
        campaign.merged("# Reliability\n", [], [])


def test_figures_are_written_with_their_units() -> None:
    figures = {"kills": 1_200, "lost": 0, "recovery_s": 1.2345, "log_at_most_mb": 250.4}

    assert campaign.written(figures) == "1,200 kills, 0 lost, recovery 1.23 s, log at most 250 MB"
