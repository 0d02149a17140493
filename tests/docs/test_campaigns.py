"""The pages of the campaigns, and their tools: what they look for would be noticed."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests import mutants
from tests.chaos import campaign, checker
from tests.chaos.campaign import FAILED, HEAD, Row
from tests.chaos.checker import Found
from tests.support.api.load import Answer, Attempt

NONE: Final = re.compile(
    r"lost|duplicated|partially stored|inconsistent|repeated|skipped( by the polling client)?|violations"
    r"|out of order|other errors|refused but stored|not imported|partially imported|over the limit"
    r"|failed|errors|wrong decisions|unanswered|still open|connections left open"
    r"|entries from other accounts"
    r"|unexpected sequences|control characters|accepted( after the changes)?|accepted but unanswered"
    r"|read errors|undetected changes|files changed|of them unexpected|sockets opened"
    r"|stores that failed to open"
)
"""What a row counts of which there may be none."""


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs" / "contributors" / "faults.md").read_text(encoding="utf-8")


@pytest.mark.docs
@pytest.mark.slow
def test_the_page_has_a_row_for_each_case_of_each_test(page: str, repository: Path) -> None:
    collect = [sys.executable, "-m", "pytest", "tests/chaos", "-m", "chaos", "--collect-only", "-q"]
    line = [*collect, "--seed", "7"]
    done = subprocess.run(line, cwd=repository, capture_output=True, text=True, check=True)
    tests = re.findall(r"^tests/chaos/(test_\w+\.py::.+)$", done.stdout, re.MULTILINE)
    numbers = {row.function: row.number for row in campaign.iter_rows()}

    in_order = sorted(tests, key=lambda test: (numbers[test.partition("[")[0]], test))
    assert [row.test for row in campaign.parse_rows(page)] == in_order


@pytest.mark.docs
def test_every_row_was_run_and_none_has_failed_or_lost_or_duplicated_anything(page: str) -> None:
    rows = campaign.parse_rows(page)
    assert [row.test for row in rows if not row.figures or row.figures == FAILED] == []
    assert [row.test for row in rows if not row.seed] == []
    # `0 lost`, `recovery 2 s`
    counts = [figure.split(" ", 1) for row in rows for figure in row.figures.split(", ")]
    known = [number for number, *name in counts if name and NONE.fullmatch(name[0])]
    assert len(known) > len(rows)
    assert set(known) == {"0"}


@pytest.mark.docs
def test_the_page_has_every_area_with_its_modules_and_counts_the_inputs_that_were_found(
    repository: Path,
) -> None:
    text = (repository / "docs" / "contributors" / "mutants.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (`.+?) \| [\d,]+ ", text, re.MULTILINE)
    told = {name: {*re.findall(r"([\w*]+)\.py`", modules)} for name, modules in rows}
    assert told == {
        name: {Path(module).stem for module in area.modules} for name, area in mutants.AREAS.items()
    }
    found = len([*(repository / "tests/fuzz/corpus").glob("*/found-*")])
    number = ("no", "one", "two", "three", "four", "five")[found]
    assert f"There are {number} such inputs:" in text


def a_row(test: str, number: int = 1, **others: str) -> Row:
    texts = {"fault": "a fault", "promise": "a promise", "injected": "a signal"}
    return Row(number, test=test, **(texts | others))


def test_rows_of_a_run_take_the_place_of_theirs_and_those_without_a_test_go() -> None:
    old = [a_row("test_a.py::test_1[x]"), a_row("test_a.py::test_2", 2), a_row("test_a.py::test_3")]
    page = campaign.merged(f"before\n\n{HEAD}\nafter\n", old, old)
    new = a_row("test_a.py::test_1[x]", figures="1 | 2", seed="7")
    said = [old[0], old[1], a_row("test_a.py::test_3", fault="another")]

    merged = campaign.merged(page, [new], said)

    assert campaign.parse_rows(merged) == [new, old[1]]
    assert (merged[:10], merged[-9:]) == ("before\n\n| ", "|\n\nafter\n")
    figures = {"kills": 1_200, "lost": 0, "recovery_s": 1.2345, "log_at_most_mb": 250.4}
    assert campaign.written(figures) == "1,200 kills, 0 lost, recovery 1.23 s, log at most 250 MB"
    changes = {"change_in_p99_ms/min": -8.934, "change_in_open_files_/min": -0.23}
    written = "change in p99 -8.93 ms/min, change in open files -0.23/min"
    assert campaign.written(changes) == written


# What is held against a store

STORED: Final = [("1", "one"), ("2", "two"), ("3", "three")]


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        (STORED, Found(3, lost=0, doubled=0, uninvited=0)),
        (STORED[:2], Found(2, lost=1, doubled=0, uninvited=0)),
        ([*STORED[:2], ("4", "three")], Found(3, lost=1, doubled=0, uninvited=0)),
        ([*STORED, ("4", "three")], Found(4, lost=0, doubled=1, uninvited=0)),
        ([*STORED, ("4", "four"), ("5", "five")], Found(5, lost=0, doubled=0, uninvited=1)),
    ],
)
def test_a_store_that_is_not_as_clients_were_told_is_noticed(
    stored: list[tuple[str, str]], found: Found
) -> None:
    assert checker.compare(stored, dict(STORED), unknown={"four"}) == found


def test_a_lower_id_for_what_was_sent_later_is_out_of_order() -> None:
    def attempt(resume_id: str, began_s: float, ended_s: float) -> Attempt:
        answer = Answer(201, {}, json.dumps({"id": resume_id}).encode())
        return Attempt("", b"", began_s, was_known=True, answer=answer, ended_s=ended_s)

    one_by_one = [attempt("2", 0, 1), attempt("1", 2, 3), attempt("3", 4, 5)]
    assert checker.count_out_of_order(one_by_one) == 1
    at_once = [attempt("2", 0, 3), attempt("1", 1, 2), attempt("3", 2, 4)]
    assert checker.count_out_of_order(at_once) == 0
    with pytest.raises(AssertionError, match="twice"):
        checker.told_of([attempt("1", 0, 1), attempt("1", 2, 3)])
