import json
from typing import Any

import pytest

from resumes.store.items import MOST_PROBLEMS, Items, Problem, parse_items

PROBLEM = Problem(3, "line 4", "failed", "invalid_json", "Invalid JSON", None, 12)


def test_what_became_of_a_file_s_resumes_survives_the_ledger() -> None:
    items = Items(total=5, done=2, duplicate=1, held=1, failed=1, problems=(PROBLEM,))
    assert parse_items(json.dumps(items.as_json())) == items


def test_the_keys_are_those_of_other_json_of_ours() -> None:
    assert PROBLEM.as_json() == {
        "item": 3,
        "place": "line 4",
        "outcome": "failed",
        "reason": "invalid_json",
        "message": "Invalid JSON",
        "path": None,
        "byteOffset": 12,
    }


def test_what_is_not_known_of_a_problem_may_be_left_out() -> None:
    text = '{"total":1,"done":0,"duplicate":0,"held":1,"failed":0,"problems":[%s]}'
    (problem,) = parse_items(text % '{"item":0,"place":"line 1","outcome":"held"}').problems
    assert problem == Problem(0, "line 1", "held")


def test_no_more_than_the_first_problems_are_kept() -> None:
    items = Items(99, 0, 0, 0, 99, tuple(Problem(at, "", "failed") for at in range(99)))
    kept = parse_items(json.dumps(items.as_json())).problems
    assert [problem.item for problem in kept] == list(range(MOST_PROBLEMS))


WHOLE: dict[str, Any] = {
    "total": 1, "done": 0, "duplicate": 0, "held": 1, "failed": 0,
    "problems": [{"item": 0, "place": "", "outcome": "held"}],
}  # fmt: skip


@pytest.mark.parametrize("text", ["", "not json", "[1,2]", "7", "null", "{}", "[" * 5_000])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_items(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("total", None), ("done", "1"), ("duplicate", -1), ("held", 1.5), ("failed", True),
        ("problems", {}), ("problems", [7]), ("problems", [{}]),
    ],
)  # fmt: skip
def test_counts_and_problems_are_what_they_have_to_be(name: str, value: object) -> None:
    with pytest.raises(ValueError, match="no such"):
        parse_items(json.dumps(WHOLE | {name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("item", "0"), ("place", None), ("outcome", "zz"), ("outcome", []), ("reason", 7),
        ("message", []), ("path", {}), ("byteOffset", "5"),
    ],
)  # fmt: skip
def test_each_field_of_a_problem_is_what_it_has_to_be(name: str, value: object) -> None:
    problem = WHOLE["problems"][0] | {name: value}
    with pytest.raises(ValueError, match=f"no such {name}"):
        parse_items(json.dumps(WHOLE | {"problems": [problem]}))
