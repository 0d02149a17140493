import json

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
