"""docs/reliability.md has a row for each test of the fault campaign, and none that failed."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.chaos import campaign
from tests.chaos.campaign import FAILED

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


def test_every_row_was_run_and_none_has_failed_or_lost_or_doubled_anything(page: str) -> None:
    rows = campaign.parse_rows(page)
    assert [row.test for row in rows if not row.figures or row.figures == FAILED] == []
    assert [row.test for row in rows if not row.seed] == []
    # `0 lost`, `recovery 2 s`
    counts = [figure.split(" ", 1) for row in rows for figure in row.figures.split(", ")]
    known = [number for number, *name in counts if name and NONE.fullmatch(name[0])]
    assert len(known) > len(rows)
    assert set(known) == {"0"}
