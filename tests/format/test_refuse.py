"""What refuses a document, in which words, in which order, and where it stands."""

import json
from time import process_time
from typing import Any

import pytest

from resumes.analyzer import parse
from resumes.analyzer.schema import nearest_section_type
from resumes.errors import CoverLetter, InvalidResume
from tests.support.documents import (
    SECTIONS,
    a_document,
    admitting,
    issues_of,
    listed,
    parsed,
    refusals_of,
    warnings_of,
    with_section,
)

COLUMN = "column must be a number: 0, 1 or 2"
WRONG_COLUMNS: list[Any] = [-1, 3, 0.5, "0", True, None, [], 2**62]


@pytest.mark.parametrize("other", [[], "x", 5, None, True, json.loads("[" * 32 + "]" * 32)])
def test_what_is_no_object_is_refused_as_a_whole(other: Any) -> None:
    assert listed(issues_of(other)) == [("", "The resume must be a JSON object")]


@pytest.mark.parametrize("wrong", [None, [], "Ada", 5, True])
@pytest.mark.parametrize("required", ["header", "sections"])
def test_a_missing_object_is_named(required: str, wrong: Any) -> None:
    expected = [(required, f"Missing required field: {required} (must be an object)")]
    without = a_document()
    del without[required]
    assert listed(issues_of(without)) == expected
    assert listed(issues_of(a_document(**{required: wrong}))) == expected


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        (a_document(style=[]), "style", "Invalid field style: must be an object"),
        (a_document(sections={"skills": []}), "sections.skills",
         'Invalid section "skills": must be an object'),
        (a_document(sections={"skills": None}), "sections.skills",
         'Invalid section "skills": must be an object'),
        (a_document(sections={"skills": {"name": "Skills"}}), "sections.skills.column",
         'Invalid section "skills": column is required and must be a number: 0, 1 or 2'),
        *((with_section("skills", column=bad), "sections.skills.column",
           f'Invalid section "skills": {COLUMN}')
          for bad in WRONG_COLUMNS),
        (with_section("skills", name=5), "sections.skills.name",
         'Invalid section "skills": name must be a string'),
        (with_section("skills", name=None), "sections.skills.name",
         'Invalid section "skills": name must be a string'),
        (with_section("skills", order="1"), "sections.skills.order",
         'Invalid section "skills": order must be a number'),
        (with_section("skills", None), "sections.skills.items[0]",
         'Invalid section "skills": items[0] must be an object'),
        (with_section("skills", {}, {}, 5), "sections.skills.items[2]",
         'Invalid section "skills": items[2] must be an object'),
        (a_document(sections={"skills": {"column": 0, "items": {}}}), "sections.skills.items",
         'Invalid section "skills": items must be an array of objects'),
        (with_section("skills", *[{}] * 501), "sections.skills.items",
         'Invalid section "skills": items must be an array of at most 500 items'),
        (with_section("experiences", {}, {}, {"dateRange": {"fromYear": "2020"}}),
         "sections.experiences.items[2].dateRange.fromYear",
         'Invalid section "experiences": items[2].dateRange.fromYear must be a number'),
        (with_section("education"), "sections.education",
         'Invalid section "education": unknown section type (did you mean educations?)'),
    ],
)  # fmt: skip
def test_a_problem_names_the_section_and_the_field(document: Any, path: str, message: str) -> None:
    assert listed(issues_of(document)) == [(path, message)]


def test_problems_come_in_document_order_and_the_first_is_the_error() -> None:
    document: dict[str, Any] = {
        "title": 1,
        "sections": {
            "skills": {"items": [{"tags": 1, "title": 2}], "column": "0"},
            "awards": {"column": 7},
        },
        "header": {"phone": 1, "email": 2},
    }
    assert refusals_of(document) == [
        "Invalid field title: must be a string",
        'Invalid section "skills": items[0].tags must be an array of strings',
        'Invalid section "skills": items[0].title must be a string',
        f'Invalid section "skills": {COLUMN}',
        f'Invalid section "awards": {COLUMN}',
        "Invalid field header.phone: must be a string",
        "Invalid field header.email: must be a string",
    ]
    assert refusals_of({"title": 1}) == [
        "Missing required field: header (must be an object)",
        "Missing required field: sections (must be an object)",
        "Invalid field title: must be a string",
    ]


@pytest.mark.parametrize(
    "many",
    [
        with_section("summaries", *[{"text": 1}] * 300),
        with_section("summaries", *[1] * 300),
        {"header": None, **with_section("summaries", *[1] * 300)},
        {**with_section("summaries", *[1] * 300), "header": 7},
        a_document(sections={f"unknown{number}": 0 for number in range(60)}),
    ],
)
def test_there_are_50_problems_at_most(many: Any) -> None:
    assert len(issues_of(many)) == 50


@pytest.mark.timing
def test_problems_past_50_take_no_time_to_make() -> None:
    # Each would be compared with 26 names: seconds for a body within the size limit.
    sections = {f"experience{number}": 0 for number in range(20_000)}
    started_s = process_time()
    assert len(refusals_of(a_document(sections=sections))) == 50
    assert process_time() - started_s < 0.5


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("qqüß 日本", "qqüß 日本"),
        ("qq\nz", "qq\\nz"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202eqq", "\\u202eqq"),
        ("می\u200cروم", "می\u200cروم"),
        ("z" * 60, "z" * 60),
        ("z" * 5_000, "z" * 60 + "…"),
    ],
)
def test_a_name_is_printed_safely_and_cut(name: str, printed: str) -> None:
    [(path, message)] = listed(issues_of(a_document(sections={name: {}})))
    assert path == f"sections.{printed}"
    assert message.startswith(f'Invalid section "{printed}": unknown section type (must be one of ')
    assert warnings_of(a_document(**{name: 1})) == [
        (printed, f"{printed} is not a known field: stored, but not displayed")
    ]


def test_the_refusal_of_an_unknown_section_type_lists_all_that_are_known() -> None:
    known = ", ".join([*SECTIONS, "hobbies", "zeal"])
    assert refusals_of(with_section("qqqqq"), admitting("zeal", "hobbies")) == [
        f'Invalid section "qqqqq": unknown section type (must be one of {known})'
    ]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("education", "educations"),
        ("Educations", "educations"),
        ("summary", "summaries"),
        ("experience", "experiences"),
        ("skill", "skills"),
        ("findmeonline", "findMeOnline"),
        ("zzz", None),
        ("", None),
        ("educations" * 100_000, None),
    ],
)
def test_the_nearest_section_type_is_found_in_any_case(name: str, nearest: str | None) -> None:
    assert nearest_section_type(name) == nearest


def test_column_2_needs_the_layout_multicolumn() -> None:
    section = with_section("skills", column=2)
    styles: list[Any] = [{}, None, [], {"layout": None}, {"layout": "double"}]
    for style in styles:
        assert refusals_of({**section, "style": style})[0] == (
            'Invalid section "skills": column must be 0 or 1 (2 needs style.layout multicolumn)'
        )
    parsed({**section, "style": {"layout": "multicolumn"}})
    parsed({"style": {"layout": "multicolumn"}, **section})


def test_admitted_section_types_obey_the_rules_of_sections() -> None:
    accepted = admitting("hobbies")
    for section, problem in (
        ({}, "column is required and must be a number: 0, 1 or 2"),
        ({"column": 7}, COLUMN),
        ({"column": 0, "items": {}}, "items must be an array of objects"),
        ({"column": 0, "items": [1] * 501}, "items must be an array of at most 500 items"),
    ):
        document = a_document(sections={"hobbies": section})
        assert refusals_of(document, accepted) == [f'Invalid section "hobbies": {problem}']
    assert "unknown section type" in refusals_of(with_section("hobbies"))[0]


def test_far_too_many_odd_fields_are_refused_as_a_whole() -> None:
    def with_odd_fields(count: int) -> bytes:
        odd = ",".join(f'"x{number}":1' for number in range(count))
        return f'{{"header":{{{odd}}},"sections":{{}}}}'.encode()

    assert parse(with_odd_fields(10_000)).warnings[-1].message == "9,950 more warnings"
    with pytest.raises(InvalidResume) as refusal:
        parse(with_odd_fields(10_001))
    assert listed(refusal.value.issues) == [
        ("", "The resume has more than 10,000 unknown or unusual fields")
    ]


@pytest.mark.parametrize(
    "marked",
    [
        {"type": "coverLetter"},
        {"kind": "Cover Letters"},
        {"documentType": "COVER-LETTER_2"},
        {"isCoverLetter": True},
        {"coverLetter": None},
        {"coverLetters": []},
        {"1 c.o.v.e.r-l-e-t-t-e-r s 2": 1},
        {"sections": {"coverLetter": {}}},
        {"sections": {"coverLetters": None}, "header": 5},
    ],
)
def test_cover_letters_are_refused_before_anything_else_is_looked_at(marked: Any) -> None:
    for document in (marked, {**a_document(), **marked}):
        with pytest.raises(CoverLetter, match="Cover letters cannot be created"):
            parsed(document)


@pytest.mark.parametrize(
    "unmarked",
    [
        {"type": "resume"},
        {"type": "coverLetterly"},
        {"type": ["coverLetter"]},
        {"isCoverLetter": False},
        {"isCoverLetter": "true"},
        {"title": "coverLetter"},
        {"letterOfCover": 1},
    ],
)
def test_cover_letters_are_only_those_marked_as_one(unmarked: Any) -> None:
    parsed(a_document(**unmarked))
