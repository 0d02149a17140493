"""Warnings about a JSON Resume that is imported, and what refuses it, with its own paths."""

import json
from typing import Any

import pytest

from resumes.analyzer import Format, parse_imported
from resumes.errors import CoverLetter, InvalidJson, InvalidResume, TooLarge
from tests.support.json_resumes import (
    COMPLETE,
    imported,
    iter_leaves,
    path_of,
    replaced_at,
    warnings_of,
    with_list,
)

BLANKS: list[Any] = [None, "", " \n", [], {}]
NO_PLACE = "has no counterpart in the analyzer format: left out"


@pytest.mark.parametrize(
    ("document", "warnings"),
    [
        ({"basics": {"pronouns": "she"}, "x-tools": [1], "work": [{"team": 5}], "themes": ""},
         {"basics.pronouns": f"pronouns {NO_PLACE}", "work[0].team": f"team {NO_PLACE}",
          "x-tools": f"x-tools {NO_PLACE}"}),
        ({"basics": {}, "$schema": "x", "meta": {"theme": "even"}}, {}),
        *(({"basics": wrong, "work": [{"name": "Engines"}]},
           {"basics": "basics is not an object: left out"}) for wrong in ("x", 5, True, ["x"])),
        ({"basics": {"name": True}}, {"basics.name": "name is not text: left out"}),
        ({"basics": {"name": ["x"], "email": {"x": 1}}},
         {"basics.name": "name is not text: left out", "basics.email": "email is not text: left out"}),
        ({"basics": {"url": "a", "website": "b"}}, {"basics.website": f"website {NO_PLACE}"}),
        ({"basics": {"url": "a", "website": "a"}}, {}),
        ({"basics": {"location": 5}}, {}),
        ({"basics": {"location": {"city": "L", "address": "A"}}},
         {"basics.location.address": f"address {NO_PLACE}"}),
        ({"basics": {"location": ["L"]}}, {"basics.location": "location is not text: left out"}),
        ({"basics": {"profiles": "x"}}, {"basics.profiles": "profiles is not a list: left out"}),
        (with_list("work", True, [1], {"name": "x", "b": 1}),
         {"work[0]": "work[0] is not an object: left out", "work[1]": "work[1] is not an object: left out",
          "work[2].b": f"b {NO_PLACE}"}),
        ({"basics": {}, "work": {"name": "x"}}, {"work": "work is not a list: left out"}),
        ({"basics": {}, "work": "x"}, {"work": "work is not a list: left out"}),
        (with_list("work", {"highlights": True}, {"highlights": {"a": 1}}),
         {f"work[{at}].highlights": "highlights is not a list: left out" for at in (0, 1)}),
        (with_list("work", {"highlights": ["a", True, ["b"], {"x": 1}, {"name": "n", "y": 1}]}),
         {"work[0].highlights[1]": "highlights[1] is not text: left out",
          "work[0].highlights[2]": "highlights[2] is not text: left out",
          "work[0].highlights[3].x": f"x {NO_PLACE}", "work[0].highlights[4].y": f"y {NO_PLACE}"}),
        (with_list("work", {}, {"startDate": "soon", "endDate": ["2020"]}),
         {"work[1].startDate": 'startDate "soon" cannot be read as a date: left out',
          "work[1].endDate": "endDate is not text: left out"}),
        (with_list("work", {"name": "E", "startDate": "2020", "endDate": "Present"}), {}),
        (with_list("projects", {"highlights": ["x"] * 200}), {}),
        (with_list("projects", {"highlights": ["x"] * 200, "keywords": ["Go"]}),
         {"projects[0].keywords": "keywords has no room in highlights: left out"}),
        (with_list("projects", {"highlights": ["x"], "keywords": ["y" * 9_999] * 2}), {}),
        (with_list("projects", {"highlights": ["x"], "keywords": ["y" * 9_999, "y" * 10_000]}),
         {"projects[0].keywords": "keywords has no room in highlights: left out"}),
        (with_list("references", {"name": "Di", "reference": {"text": "Good."}}),
         {"references[0].reference": f"reference {NO_PLACE}"}),
        ({"basics": {"profiles": [{"username": "ada", "url": "https://example.org/17"}]}},
         {"basics.profiles[0].username": f"username {NO_PLACE}"}),
        ({"basics": {"profiles": [{"username": "@xAda", "url": "https://a.example/Xada"}]}}, {}),
        ({"basics": {"profiles": [{"username": "Xbo", "url": "https://a.example/bo"}]}},
         {"basics.profiles[0].username": f"username {NO_PLACE}"}),
        *(({"basics": {"name": blank, "unasked": blank, "profiles": blank, "location": blank},
            "work": [blank, {"highlights": blank, "startDate": blank}]}, {})
          for blank in BLANKS),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_what_has_no_place_or_cannot_be_used_is_left_out_with_a_warning(
    document: Any, warnings: dict[str, str]
) -> None:
    assert list(warnings_of(document).items()) == list(warnings.items())


def test_there_are_at_most_50_warnings_and_a_count() -> None:
    warnings = warnings_of(with_list("work", *[{"team": 1}] * 60))
    assert len(warnings) == 51
    assert warnings[""] == "10 more warnings"


# What refuses it


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"1e999", "overflows"),
        (b"9223372036854775808", "outside"),
        (b"[" * 40 + b"]" * 40, "nested deeper"),
        (b'"\\u0000"', "U\\+0000"),
    ],
)
@pytest.mark.parametrize(
    "around",
    [
        b'{"basics": {"x": %s}}',
        b'{"work": [{"name": %s}]}',
        b'{"basics": {}, "meta": %s}',
        b'{"basics": {}, "type": "coverLetter", "x": %s}',
    ],
)
def test_json_that_cannot_be_kept_is_refused_with_its_place(
    around: bytes, bad: bytes, reason: str
) -> None:
    with pytest.raises(InvalidJson, match=reason) as refusal:
        parse_imported(around % bad)
    assert refusal.value.offset is not None
    assert refusal.value.offset >= around.index(b"%s")


def test_a_json_resume_that_calls_itself_a_cover_letter_is_one() -> None:
    with pytest.raises(CoverLetter):
        imported(COMPLETE | {"type": "cover letter"})


def test_the_size_limit_is_of_the_json_resume() -> None:
    body = json.dumps(COMPLETE).encode()
    parse_imported(body, Format(max_bytes=len(body)))
    with pytest.raises(TooLarge):
        parse_imported(body, Format(max_bytes=len(body) - 1))


LONG = "x" * 20_001
REPORTED_AT = {
    "education[0].area": "education[0].studyType",
    "awards[0].date": "awards[0].awarder",
    "awards[0].summary": "awards[0].awarder",
    "certificates[0].date": "certificates[0].issuer",
    **{f"basics.location.{name}": "basics.location" for name in ("city", "region", "countryCode")},
}
"""Of several fields that are one in the analyzer format the first is named."""

NOT_TAKEN = {*warnings_of(COMPLETE), "basics.profiles[0].username", "projects[0].keywords[0]"}


def test_a_text_that_is_too_long_is_reported_at_its_path_in_the_json_resume() -> None:
    for steps in iter_leaves(COMPLETE):
        path = path_of(steps)
        document = replaced_at(COMPLETE, steps, LONG)
        if steps[0] in ("$schema", "meta") or path in NOT_TAKEN or "Date" in path:
            imported(document)
        elif path != "projects[0].roles[0]":
            with pytest.raises(InvalidResume) as refusal:
                imported(document)
            [issue] = refusal.value.issues
            owner = REPORTED_AT.get(path, path.removesuffix(f"[{steps[-1]}]"))
            assert issue.path == owner
            assert issue.message.startswith(f"{owner}: Invalid ")
            assert issue.message.endswith("at most 20,000 characters")


@pytest.mark.parametrize(
    ("resume", "path", "expectation"),
    [
        (with_list("work", {"highlights": ["x"] * 201}), "work[0].highlights", "at most 200"),
        (with_list("work", {}, {"description": LONG}), "work[1].description", "at most 20,000"),
        (with_list("work", "E", LONG), "work[1]", "at most 20,000 characters"),
        (with_list("skills", *["x"] * 1_001), "skills", "at most 500 items"),
        (with_list("languages", *["x"] * 501), "languages", "at most 500 items"),
        ({"education": [{"score": f"{LONG}/4"}]}, "education[0].score", "at most 20,000"),
        ({"education": [{"score": f"4/{LONG}"}]}, "education[0].score", "at most 20,000"),
        (with_list("awards", {"awarder": LONG[:15_000], "summary": LONG[:15_000]}),
         "awards[0].awarder", "at most 20,000 characters"),
        (with_list("awards", {"date": "2020", "summary": LONG}), "awards[0].date", "at most 20"),
    ],
)  # fmt: skip
def test_a_limit_is_reported_at_its_path_in_the_json_resume(
    resume: Any, path: str, expectation: str
) -> None:
    with pytest.raises(InvalidResume) as refusal:
        imported(resume)
    [issue] = refusal.value.issues
    assert issue.path == path
    assert issue.message.startswith(f"{path}: Invalid ")
    assert expectation in issue.message
