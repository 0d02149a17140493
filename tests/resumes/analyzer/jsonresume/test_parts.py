"""How fields of the two formats go together, there and back."""

import itertools
from typing import Any

import pytest

from resumes.analyzer import to_jsonresume
from resumes.analyzer.jsonresume import parts
from tests.resumes.analyzer.documents import with_section
from tests.resumes.analyzer.jsonresume.samples import (
    entry_back,
    imported_items,
    with_list,
)


def written(section: str, item: dict[str, Any], key: str) -> Any:
    [entry] = to_jsonresume(with_section(section, item))[key]
    return entry


@pytest.mark.parametrize(
    ("entry", "degree"),
    [
        ({"studyType": "Bachelor", "area": "Physics"}, "Bachelor, Physics"),
        ({"studyType": "Bachelor", "area": "Maths, pure"}, "Bachelor, Maths, pure"),
        ({"studyType": "Bachelor of Arts"}, "Bachelor of Arts"),
    ],
)
def test_a_degree_is_study_type_and_area(entry: dict[str, str], degree: str) -> None:
    [item] = imported_items(with_list("education", entry), "educations")
    assert item == {"degree": degree}
    assert entry_back("education", entry) == entry


def test_an_area_alone_comes_back_as_the_study_type() -> None:
    assert entry_back("education", {"area": "Physics"}) == {"studyType": "Physics"}


def test_a_score_is_written_with_the_highest() -> None:
    assert written("educations", {"gpa": "3.7", "maxGpa": "4.0"}, "education") == {
        "score": "3.7/4.0"
    }
    assert written("educations", {"gpa": "3.7"}, "education") == {"score": "3.7"}
    assert to_jsonresume(with_section("educations", {"maxGpa": "4.0"})).get("education") is None
    assert entry_back("education", {"score": 3.7}) == {"score": "3.7"}
    assert entry_back("education", {"gpa": "1.3"}) == {"score": "1.3"}


@pytest.mark.parametrize(
    ("entry", "description"),
    [
        (
            {"awarder": "Time", "date": "2014-11-01", "summary": "For x"},
            "Time - 2014-11-01 - For x",
        ),
        ({"awarder": "A - B", "date": "2014", "summary": "C - D"}, "A - B - 2014 - C - D"),
        ({"date": "2014", "summary": "For x"}, "2014 - For x"),
        ({"awarder": "Time", "date": "2014-11"}, "Time - 2014-11"),
        ({"summary": "For x"}, "For x"),
        ({"date": "2014"}, "2014"),
    ],
)
def test_an_award_says_by_whom_when_and_for_what(entry: dict[str, str], description: str) -> None:
    [item] = imported_items(with_list("awards", entry), "awards")
    assert item == {"description": description}
    assert entry_back("awards", entry) == entry


def test_an_award_without_a_date_comes_back_as_a_summary() -> None:
    entry = {"title": "Medal", "awarder": "Time", "summary": "For x"}
    assert entry_back("awards", entry) == {"title": "Medal", "summary": "Time - For x"}


@pytest.mark.parametrize(
    ("entry", "issuer"),
    [
        ({"issuer": "Board, UK", "date": "2020-05-06"}, "Board, UK, 2020-05-06"),
        ({"issuer": "Board"}, "Board"),
        ({"date": "2020"}, "2020"),
    ],
)
def test_a_certificate_says_by_whom_and_when(entry: dict[str, str], issuer: str) -> None:
    [item] = imported_items(with_list("certificates", entry), "certificates")
    assert item == {"issuer": issuer}
    assert entry_back("certificates", entry) == entry


def test_keywords_of_an_interest_are_one_text() -> None:
    entry = {"name": "Music", "keywords": ["Harp", "Flute"]}
    [item] = imported_items(with_list("interests", entry), "interests")
    assert item == {"title": "Music", "description": "Harp, Flute"}
    assert entry_back("interests", entry) == entry


@pytest.mark.parametrize("location", ["London", {"city": "London"}, {"city": "London", "x": ""}])
def test_a_place_of_work_may_be_an_object(location: Any) -> None:
    assert entry_back("work", {"location": location}) == {"location": "London"}


def test_entries_of_a_list_that_are_not_shown_are_not_written() -> None:
    item = {"bullets": ["a", None, "", "b"]}
    assert written("experiences", item, "work") == {"highlights": ["a", "b"]}


def test_summaries_too_long_for_one_are_divided_again_wherever_line_ends_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parts, "MAX_TEXT_CHARS", 4)
    summaries = parts.Paragraphs("text", "summary")
    texts = [
        "".join(signs) for count in range(5) for signs in itertools.product("a\n", repeat=count)
    ]
    for some in itertools.product(texts, repeat=3):
        joined = summaries.join({"text": text} for text in some).get("summary", "")
        divided = [item["text"] for item in summaries.divide({"text": joined})]
        assert all(0 < len(text) <= 4 and "a" in text for text in divided), joined
        assert "".join(divided).count("a") == "".join(some).count("a")
