"""The tools of the campaigns: what they say is so, and what they look for would be noticed."""

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from tests import mutants
from tests.chaos import campaign, stores
from tests.chaos import checker as store_checker
from tests.chaos.campaign import FAILED, HEAD, Row
from tests.chaos.checker import Found
from tests.support.api.load import Answer, Attempt

# `make mutants`

FAKE = """
import json, sys
from pathlib import Path

print("The clean tests fail")
ends = json.loads({ends!r})
if ends is None:
    sys.exit(1)
folder = Path("mutants")
folder.mkdir(exist_ok=True)
(folder / "listing.py.meta").write_text(json.dumps({{"exit_code_by_key": ends}}))
"""


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ({"a": 1, "b": 36}, "| quota | 2 | 2 | 0 | 0 | 0 | 100.0% |"),
        ({"a": 1, "b": 0, "c": 33, "d": 1}, "| quota | 4 | 2 | 1 | 1 | 0 | 50.0% |"),
        ({"a": 1, "b": None, "c": None}, "| quota | 3 | 1 | 0 | 0 | 2 | 100.0% |"),
        ({"a": None}, "| quota | 1 | 0 | 0 | 0 | 1 | none tried |"),
        ({}, "| quota | 0 | 0 | 0 | 0 | 0 | none tried |"),
    ],
)
def test_a_row_counts_each_mutant_once_and_hides_none(
    ends: dict[str, int | None], told: str
) -> None:
    assert mutants.row("quota", ends) == told


def test_the_page_has_every_area_with_its_modules_and_counts_the_inputs_that_were_found(
    repository: Path,
) -> None:
    page = (repository / "docs" / "mutants.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (`.+?) \| [\d,]+ ", page, re.MULTILINE)
    told = {name: {*re.findall(r"([\w*]+)\.py`", modules)} for name, modules in rows}
    assert told == {
        name: {Path(module).stem for module in area.modules} for name, area in mutants.AREAS.items()
    }
    assert len([*(repository / "tests/fuzz/corpus").glob("*/found-*")]) == 5
    assert "There are five such inputs:" in page


def test_each_checkout_has_copies_of_its_own() -> None:
    assert mutants.FOLDER.name != "resumes-mutants"


@pytest.mark.parametrize(
    ("ends", "code", "told"),
    [
        (None, 2, "quota: mutmut ended with 1"),
        (None, 2, "The clean tests fail"),
        ({}, 2, "none tried"),
        ({"a": 1, "b": None}, 2, "| 1 | 100.0% |"),
        ({"a": 1, "b": 0}, 1, "\n  b\n"),
        ({"a": 1}, 0, "| 0 | 100.0% |"),
    ],
)
def test_the_end_says_whether_mutants_were_tried_and_survived(
    tmp_path: Path, repository: Path, ends: dict[str, int | None] | None, code: int, told: str
) -> None:
    # given a mutmut that comes to this
    site = tmp_path / "site" / "mutmut"
    site.mkdir(parents=True)
    (site / "__main__.py").write_text(FAKE.format(ends=json.dumps(ends)))
    # when it is run
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutants", "--areas", "quota", "--folder", tmp_path / "copies",
         "--site", site.parent],
        cwd=repository, capture_output=True, text=True,
    )  # fmt: skip
    # then that is said
    assert told in done.stdout + done.stderr
    assert done.returncode == code


# The page of the fault campaign

NONE: Final = re.compile(
    r"lost|duplicated|partial|inconsistent|repeated|skipped( by the polling client)?|violations"
    r"|out of order|other errors|refused but stored|not imported|partly imported|over the limit"
    r"|failed|errors|wrong|unanswered|still open|left open|entries from other accounts"
    r"|unexpected sequences|control characters|(of them )?accepted|accepted but unanswered"
    r"|read errors|undetected changes|files changed|stores that failed to open"
)
"""What a row counts of which there may be none."""


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs" / "reliability.md").read_text(encoding="utf-8")


@pytest.mark.docs
@pytest.mark.slow
def test_the_page_has_a_row_for_each_case_of_each_test(page: str, repository: Path) -> None:
    collect = [sys.executable, "-m", "pytest", "tests/chaos", "-m", "chaos", "--collect-only", "-q"]
    done = subprocess.run(collect, cwd=repository, capture_output=True, text=True, check=True)
    tests = re.findall(r"^tests/chaos/(test_\w+\.py::.+)$", done.stdout, re.MULTILINE)

    assert [row.test for row in campaign.parse_rows(page)] == sorted_as_rows(tests)


@pytest.mark.slow
def test_a_run_says_its_seed_before_its_first_test(repository: Path) -> None:
    collect = [sys.executable, "-m", "pytest", "tests/chaos/test_limits.py", "-m", "chaos"]
    line = [*collect, "--collect-only", "--seed", "7"]
    done = subprocess.run(line, cwd=repository, capture_output=True, text=True, check=True)
    assert "chaos: --seed 7\n" in done.stdout.partition("collected ")[0]


def sorted_as_rows(tests: list[str]) -> list[str]:
    """The tests in the order of their faults' numbers."""
    numbers = {row.function: row.number for row in campaign.iter_rows()}
    return sorted(tests, key=lambda test: (numbers[test.partition("[")[0]], test))


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


def a_row(test: str, number: int = 1, **others: str) -> Row:
    texts = {"fault": "a fault", "promise": "a promise", "injected": "a signal"}
    return Row(number, test=test, **(texts | others))


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


# The checker of the cluster drill


@pytest.fixture
def checker(repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Benchmarks are no part of the installed packages."""
    monkeypatch.syspath_prepend(repository)
    return importlib.import_module("benchmarks.cluster.checker")


@pytest.fixture
def history(checker: ModuleType) -> Any:
    """Three acknowledged creates, a file, and a reader that saw all of them."""
    history = importlib.import_module("benchmarks.cluster.history").History("ana")
    for number in (1, 2, 3):
        history.acknowledge(history.begin(f"ana-{number}"), f"id-{number}")
    history.dropped.append("ana-file-1")
    walk = history.begin_walk(process=0)
    walk.ids += ["id-1", "id-2", "id-3", "id-4"]
    walk.is_finished = True
    return history


Judge = Callable[..., list[str]]


@pytest.fixture
def kinds(checker: ModuleType, history: Any) -> Judge:
    """What is found wrong when the store holds these, by id; the counter fits unless told."""

    def judge(counter: int | None = None, **stored: str) -> list[str]:
        resumes = [checker.Stored(one.replace("_", "-"), marker) for one, marker in stored.items()]
        count = len(resumes) if counter is None else counter
        return [
            finding.kind
            for finding in checker.check(history, checker.StoreContents(resumes, count))
        ]

    return judge


ALL: Final = {"id_1": "ana-1", "id_2": "ana-2", "id_3": "ana-3", "id_4": "ana-file-1"}


@pytest.mark.parametrize(
    ("counter", "stored", "told"),
    [
        (None, ALL, []),
        (None, {"id_1": "ana-1", "id_3": "ana-3", "id_4": "ana-file-1"}, ["lost", "vanished"]),
        (None, ALL | {"id_5": "ana-2"}, ["doubled"]),
        (None, ALL | {"id_5": "ana-file-1"}, ["doubled"]),
        (None, ALL | {"id_5": "bob-1"}, ["unasked"]),
        (5, ALL, ["miscounted"]),
    ],
)
def test_a_store_that_differs_from_the_history_is_reported(
    kinds: Judge, counter: int | None, stored: dict[str, str], told: list[str]
) -> None:
    assert kinds(counter, **stored) == told


def test_a_file_that_was_put_away_as_done_and_is_not_stored_is_lost(
    kinds: Judge, history: Any
) -> None:
    history.dropped.append("ana-file-2")
    assert kinds(**ALL) == ["not imported"]
    history.done.add("ana-file-2")
    assert kinds(**ALL) == ["lost"]


def test_creates_with_two_answers_or_none_or_a_refusal_are_reported(
    kinds: Judge, history: Any
) -> None:
    history.begin("ana-5")
    assert kinds(**ALL) == ["unanswered"]
    assert kinds(**ALL, id_5="ana-5") == ["unanswered"]
    history.begin("ana-6").refusals.append(422)
    assert kinds(**ALL) == ["unanswered", "refused"]
    history.acknowledge(history.creations["ana-1"], "id-9")
    assert "doubled" in kinds(**ALL)


@pytest.mark.parametrize(
    ("status", "created_s", "is_planned", "told"),
    [
        (503, 39.0, False, []),
        (503, 39.0, True, ["failed"]),
        (201, 39.0, True, []),
        (503, 41.0, False, ["outage"]),
    ],
)
def test_a_planned_event_has_no_5xx_and_none_an_outage_of_twice_the_ttl(
    history: Any, status: int, created_s: float, is_planned: bool, told: list[str]
) -> None:
    report = importlib.import_module("benchmarks.cluster.report")
    answer = importlib.import_module("benchmarks.cluster.history").Answer
    history.add(answer(0, "POST", 0.0, 1.0, status))
    history.add(answer(0, "POST", 0.0, created_s, 201))
    window = report.Window(0.0, 45.0)
    found = report.misses(history, window, 1, is_planned=is_planned)
    assert [one.kind for one in found] == told


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        ("1 3 2 4", ["disordered"]),
        ("1 1 2 3 4", ["disordered"]),
        ("1 2 3", []),  # what it lacks may have come later
        ("1 3", ["skipped"]),
        ("1", ["skipped", "skipped"]),
    ],
)
def test_pages_that_skip_or_repeat_are_reported(
    kinds: Judge, history: Any, shown: str, told: list[str]
) -> None:
    history.walks[0].ids[:] = [f"id-{number}" for number in shown.split()]
    assert kinds(**ALL) == told


def test_a_walk_that_is_not_finished_need_not_have_shown_all(kinds: Judge, history: Any) -> None:
    history.walks[0].ids[:] = ["id-1"]
    history.walks[0].is_finished = False
    assert kinds(**ALL) == []


# What the chaos tests hold against a store


STORED = [("1", "one"), ("2", "two"), ("3", "three")]
TOLD = dict(STORED)


def an_attempt(resume_id: str, began_s: float, ended_s: float) -> Attempt:
    """A create that was acknowledged."""
    answer = Answer(201, {}, json.dumps({"id": resume_id}).encode())
    return Attempt("", b"", began_s, was_known=True, answer=answer, ended_s=ended_s)


def test_what_is_as_it_was_told_has_nothing_wrong() -> None:
    assert store_checker.compare(STORED, TOLD) == Found(3, lost=0, doubled=0, uninvited=0)


def test_what_is_not_there_is_lost() -> None:
    assert store_checker.compare(STORED[:2], TOLD) == Found(2, lost=1, doubled=0, uninvited=0)


def test_what_has_another_id_is_lost() -> None:
    stored = [*STORED[:2], ("4", "three")]
    assert store_checker.compare(stored, TOLD) == Found(3, lost=1, doubled=0, uninvited=0)


def test_what_is_there_twice_is_doubled() -> None:
    stored = [*STORED, ("4", "three")]
    assert store_checker.compare(stored, TOLD) == Found(4, lost=0, doubled=1, uninvited=0)


def test_what_was_refused_and_is_there_is_uninvited() -> None:
    found = store_checker.compare([*STORED, ("4", "four"), ("5", "five")], TOLD, unknown={"four"})
    assert found == Found(5, lost=0, doubled=0, uninvited=1)


def test_a_store_that_lacks_something_fails_the_check(tmp_path: Path) -> None:
    told = stores.a_full_store(tmp_path / "resumes.db", 3)
    assert store_checker.check(tmp_path / "resumes.db", told).stored == 3

    with pytest.raises(AssertionError):
        store_checker.check(tmp_path / "resumes.db", told | {"f" * 24: "number 3"})


def test_a_lower_id_for_what_was_sent_later_is_out_of_order() -> None:
    attempts = [an_attempt("2", 0, 1), an_attempt("1", 2, 3), an_attempt("3", 4, 5)]
    assert store_checker.count_out_of_order(attempts) == 1


def test_ids_of_what_was_sent_at_the_same_time_are_in_any_order() -> None:
    attempts = [an_attempt("2", 0, 3), an_attempt("1", 1, 2), an_attempt("3", 2, 4)]
    assert store_checker.count_out_of_order(attempts) == 0


def test_an_id_that_was_given_twice_is_noticed() -> None:
    with pytest.raises(AssertionError, match="twice"):
        store_checker.told_of([an_attempt("1", 0, 1), an_attempt("1", 2, 3)])


def test_names_that_are_missing_or_too_many_are_counted() -> None:
    assert store_checker.count_differences(["a", "b", "c"], ["a", "b", "b"]) == (1, 1)
