"""From a JSON Resume to an analyzer document."""

from typing import Any

import pytest

from resumes.analyzer.jsonresume import Conversion, convert
from resumes.analyzer.sections import SECTION_TYPES
from resumes.errors import Issue
from tests.resumes.analyzer.jsonresume.samples import (
    COMPLETE,
    imported_items,
    imported_view,
    warnings_of,
    with_list,
)


def test_basics_are_the_header_and_the_title() -> None:
    view = imported_view(COMPLETE)
    assert view["header"] == {
        "name": "Ada Example",
        "title": "Analyst",
        "email": "ada@example.org",
        "phone": "+44 20 0000 0000",
        "location": "London, England, GB",
        "website": "https://example.org",
    }
    assert view["title"] == "Ada Example - Analyst"


@pytest.mark.parametrize(
    ("basics", "title"),
    [
        ({"name": "Ada"}, "Ada"),
        ({"label": "Analyst"}, "Analyst"),
        ({}, None),
        ({"name": "A" * 150, "label": "B" * 150}, f"{'A' * 150} - {'B' * 47}"),
        ({"name": "A" * 197, "label": "B"}, f"{'A' * 197} -"),
    ],
)
def test_the_title_is_what_there_is_of_name_and_label(basics: Any, title: str | None) -> None:
    assert imported_view({"basics": basics}).get("title") == title


def test_sections_have_the_order_of_the_table_and_their_headings() -> None:
    sections = imported_view(COMPLETE)["sections"]
    assert [(name, s["column"], s["order"], s["name"]) for name, s in sections.items()] == [
        ("summaries", 0, 0, "Summary"),
        ("findMeOnline", 1, 1, "Find Me Online"),
        ("experiences", 0, 2, "Experience"),
        ("educations", 0, 3, "Education"),
        ("projects", 0, 4, "Projects"),
        ("volunteering", 0, 5, "Volunteering"),
        ("publications", 0, 6, "Publications"),
        ("skills", 1, 7, "Skills"),
        ("languages", 1, 8, "Languages"),
        ("awards", 1, 9, "Awards"),
        ("certificates", 1, 10, "Certificates"),
        ("interests", 1, 11, "Interests"),
        ("quotes", 1, 12, "References"),
        ("references", 1, 13, "References"),
    ]


def test_an_experience_has_everything() -> None:
    [first, second] = imported_items(COMPLETE, "experiences")
    assert first == {
        "workplace": "Engine Works",
        "position": "Analyst",
        "location": "London, England",
        "link": "https://engines.example",
        "dateRange": {"fromYear": 2019, "fromMonth": 2, "toYear": 2021, "toMonth": 11},
        "description": "Wrote the notes.",
        "bullets": ["Found a fault", "Mended it"],
    }
    assert second["description"] == "Lessons"


@pytest.mark.parametrize(
    ("key", "old", "section", "item"),
    [
        ("work", {"company": "E", "website": "w"}, "experiences", {"workplace": "E", "link": "w"}),
        (
            "education",
            {"institution": "U", "gpa": "1"},
            "educations",
            {"institution": "U", "gpa": "1"},
        ),
        (
            "publications",
            {"name": "N", "website": "w"},
            "publications",
            {"title": "N", "link": "w"},
        ),
    ],
)
def test_older_names_are_read(key: str, old: Any, section: str, item: Any) -> None:
    assert imported_items(with_list(key, old), section) == [item]
    assert imported_view({"basics": {"website": "w"}})["header"] == {"website": "w"}


def test_a_reference_with_a_text_is_a_quote_and_one_without_a_name() -> None:
    references = with_list(
        "references",
        {"name": "Bo", "reference": "Good."},
        {"name": "Cy", "reference": ""},
        {"name": "Di", "reference": {"text": "Good."}},
        "Works.",
    )
    assert imported_items(references, "quotes") == [
        {"quote": "Good.", "author": "Bo"},
        {"quote": "Works."},
    ]
    assert imported_items(references, "references") == [{"name": "Cy"}, {"name": "Di"}]
    assert list(warnings_of(references)) == ["references[2].reference"]


def test_whatever_has_no_place_is_told_where_it_stands() -> None:
    assert set(warnings_of(COMPLETE)) == {
        "basics.image",
        "basics.location.address",
        "basics.location.postalCode",
        "basics.profiles[1].username",
        "work[0].description",
        "volunteer[0].url",
        "education[0].url",
        "certificates[0].url",
        "projects[0].keywords",
        "projects[0].roles",
        "projects[0].entity",
        "projects[0].type",
    }
    unknown = {"basics": {"pronouns": "she"}, "x-tools": [1], "work": [{"team": 5}], "themes": ""}
    assert warnings_of(unknown) == {
        "basics.pronouns": "pronouns has no place in the analyzer format: left out",
        "work[0].team": "team has no place in the analyzer format: left out",
        "x-tools": "x-tools has no place in the analyzer format: left out",
    }


def test_meta_and_schema_need_no_word() -> None:
    assert warnings_of({"basics": {}, "$schema": "x", "meta": {"theme": "even"}}) == {}


@pytest.mark.parametrize("wrong", ["x", 5, True, ["x"]])
def test_basics_of_a_wrong_type_leave_the_rest(wrong: Any) -> None:
    resume = {"basics": wrong, "work": [{"name": "Engines"}]}
    assert imported_view(resume)["header"] == {}
    assert imported_items(resume, "experiences") == [{"workplace": "Engines"}]
    assert warnings_of(resume) == {"basics": "basics is no object: left out"}


def test_entries_that_say_nothing_make_no_items() -> None:
    assert (
        imported_view(with_list("work", {}, None, {"company": ""}, {"url": []}))["sections"] == {}
    )


def test_there_are_at_most_50_warnings_and_a_count() -> None:
    warnings = warnings_of(with_list("work", *[{"team": 1}] * 60))
    assert len(warnings) == 51
    assert warnings[""] == "10 more warnings"


def test_every_field_of_the_document_has_its_origin() -> None:
    conversion = convert(COMPLETE)
    for name, section in conversion.document["sections"].items():
        for position, item in enumerate(section["items"]):
            for field in item:
                assert f"sections.{name}.items[{position}].{field}" in conversion.origins
        assert name in SECTION_TYPES
    for field in conversion.document["header"]:
        assert f"header.{field}" in conversion.origins


@pytest.mark.parametrize(
    ("path", "origin"),
    [
        ("header.title", "basics.label"),
        ("sections.summaries.items[0].text", "basics.summary"),
        ("sections.experiences.items", "work"),
        ("sections.experiences.items[1].description", "work[1].description"),
        ("sections.experiences.items[0].bullets[1]", "work[0].highlights"),
        ("sections.experiences.items[0].dateRange.fromYear", "work[0].startDate"),
        ("sections.findMeOnline.items[2].link", "basics.profiles[2].username"),
        ("sections.quotes.items[0].quote", "references[1].reference"),
        ("sections.references.items[0].name", "references[0].name"),
    ],
)
def test_what_is_said_of_the_document_is_traced_to_the_json_resume(path: str, origin: str) -> None:
    traced = convert(COMPLETE).traced(Issue(path, "said"))
    assert traced == Issue(origin, f"{origin}: said")


def test_what_comes_from_nowhere_keeps_its_path() -> None:
    for path in ("", "style.layout", "sections"):
        assert Conversion().traced(Issue(path, "said")) == Issue(path, "said")


def test_what_is_said_of_a_mere_text_in_a_list_names_its_position() -> None:
    conversion = convert({"basics": {}, "work": ["Example Ltd"]})
    traced = conversion.traced(Issue("sections.experiences.items[0].workplace", "said"))
    assert traced == Issue("work[0]", "work[0]: said")
