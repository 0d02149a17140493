"""Reading objects whose fields may hold anything."""

from typing import Any

import pytest

from resumes.analyzer.findings import Findings
from resumes.analyzer.jsonresume.entries import Entry, opened


def test_the_first_field_with_a_text_counts() -> None:
    entry = Entry({"a": None, "b": " ", "c": "x", "d": "y"}, Findings())
    assert entry.find_text("a", "b", "c", "d") == "x"


def test_a_second_text_is_told_unless_it_says_the_same() -> None:
    findings = Findings()
    Entry({"a": "x", "b": "x", "c": "y"}, findings).find_text("a", "b", "c")
    assert [issue.path for issue in findings.warnings] == ["c"]


@pytest.mark.parametrize(("value", "text"), [("x", "x"), (5, "5"), (3.7, "3.7"), (0, "0")])
def test_a_number_counts_as_its_digits(value: Any, text: str) -> None:
    findings = Findings()
    assert Entry({"a": value}, findings).find_text("a") == text
    assert not findings.warnings


@pytest.mark.parametrize("value", [True, False, ["x"], {"x": 1}])
def test_what_is_no_text_is_told_and_left_out(value: Any) -> None:
    findings = Findings()
    assert Entry({"a": value}, findings).find_text("a") is None
    assert [issue.message for issue in findings.warnings] == ["a is no text: left out"]


@pytest.mark.parametrize("value", [None, "", " \n", [], {}])
def test_blank_is_as_if_absent(value: Any) -> None:
    findings = Findings()
    with opened({"a": value, "unasked": value}, findings) as entry:
        assert not entry.has("a")
        assert entry.find_text("a") is None
        assert entry.texts("a") == []
        assert list(entry.iter_objects("a", "x")) == []
    assert not findings.warnings


@pytest.mark.parametrize(
    ("value", "texts", "told"),
    [
        (["a", 5, "", None], ["a", "5"], []),
        ("a", ["a"], []),
        ([{"name": "a"}, {"title": "b"}], ["a", "b"], []),
        ([{"name": "a", "grade": 1}], ["a"], ["list[0].grade"]),
        (["a", True, ["b"], {"x": 1}], ["a"], ["list[1]", "list[2]", "list[3].x"]),
        ({"a": 1}, [], ["list"]),
        (True, [], ["list"]),
    ],
)
def test_texts_of_a_list_of_all_kinds(value: Any, texts: list[str], told: list[str]) -> None:
    findings = Findings()
    assert Entry({"list": value}, findings).texts("list") == texts
    assert [issue.path for issue in findings.warnings] == told
    assert findings.scope == []


@pytest.mark.parametrize(
    ("value", "found", "told"),
    [
        ([{"a": "x"}, "y", 5], [(0, "x"), (1, "y"), (2, "5")], []),
        ([None, {"a": "x"}, "", []], [(1, "x")], []),
        ([True, [1], {"a": "x"}], [(2, "x")], ["list[0]", "list[1]"]),
        ([{"a": "x", "b": 1}], [(0, "x")], ["list[0].b"]),
        ({"a": "x"}, [], ["list"]),
        ("x", [], ["list"]),
    ],
)
def test_objects_keep_the_position_that_they_have_in_the_list(
    value: Any, found: list[tuple[int, str]], told: list[str]
) -> None:
    findings = Findings()
    entries = Entry({"list": value}, findings).iter_objects("list", "a")
    assert [(position, entry.find_text("a")) for position, entry in entries] == found
    assert [issue.path for issue in findings.warnings] == told
    assert findings.scope == []


def test_a_date_that_cannot_be_read_is_told_with_its_words() -> None:
    findings = Findings()
    assert Entry({"date": "Summer\x1b 2020"}, findings).find_moment("date") is None
    [warning] = findings.warnings
    assert warning.message == 'date "Summer\\x1b 2020" cannot be read as a date: left out'


def test_an_inner_object_tells_for_itself_and_what_is_none_is_told() -> None:
    findings = Findings()
    with opened({"a": {"b": "x", "c": "y"}, "d": "z"}, findings) as entry:
        with entry.inner("a") as inner:
            assert inner.find_text("b") == "x"
        with entry.inner("d") as inner:
            assert inner.find_text("b") is None
    assert [(issue.path, issue.message) for issue in findings.warnings] == [
        ("a.c", "c has no place in the analyzer format: left out"),
        ("d", "d is no object: left out"),
    ]


def test_whatever_is_told_says_why_and_what_comes_behind_it_is_read() -> None:
    findings = Findings()
    values = {
        "a": "x",
        "b": "y",
        "c": True,
        "d": [None, True, "z"],
        "e": 5,
        "f": ["", True, {"g": 1}],
    }
    with opened(values, findings) as entry:
        assert entry.find_text("a", "b") == "x"
        assert entry.texts("c") == []
        assert entry.texts("d") == ["z"]
        assert list(entry.iter_objects("e", "name")) == []
        assert [at for at, inner in entry.iter_objects("f", "name")] == [2]
        entry.tell("a", "is told")
    assert [(issue.path, issue.message) for issue in findings.warnings] == [
        ("b", "b has no place in the analyzer format: left out"),
        ("c", "c is no list: left out"),
        ("d[1]", "d[1] is no text: left out"),
        ("e", "e is no list: left out"),
        ("f[1]", "f[1] is no object: left out"),
        ("f[2].g", "g has no place in the analyzer format: left out"),
        ("a", "a is told"),
    ]


def test_a_text_in_the_place_of_an_object_is_told_of_like_its_field() -> None:
    findings = Findings()
    [(_, entry)] = Entry({"a": ["x"]}, findings).iter_objects("a", "name")
    entry.tell("name", "is told")
    assert [issue.message for issue in findings.warnings] == ["name is told"]
