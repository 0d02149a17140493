"""A resume as it is read."""

import json
from typing import Any

import pytest

from resumes.analyzer import Format, parse
from resumes.analyzer.kinds import Kind, Listing, Number
from resumes.analyzer.reading import TO
from resumes.analyzer.sections import DATE_RANGE, SECTION_TYPES
from tests.tui.builders import HOSTILE, a_document, a_hostile_document, a_section, an_entry
from tui.screens.resumes.reading import resume_paragraphs

PICTURES = frozenset({"icon", "companyLogo", "image"})
"""What a terminal cannot draw. The JSON view has it."""


def text(document: dict[str, Any]) -> list[str]:
    admits = Format(extra_section_types=frozenset(document["sections"]))
    stored = parse(json.dumps(document).encode(), admits).document.decode()
    return [f"{p.mark}{p.content.plain}" for p in resume_paragraphs(stored, an_entry())]


def section_text(section_type: str, *items: dict[str, Any]) -> list[str]:
    """What follows the section's heading."""
    lines = text(a_document(sections=a_section(section_type, *items)))
    return lines[lines.index("") + 2 :]


def test_the_header_comes_first() -> None:
    document = a_document(style={"layout": "newcondensed"})
    document["header"] |= {"title": "Analyst", "email": "ada@example.org", "phone": ""}

    assert text(document) == [
        "Ada Lovelace",
        "Analyst",
        "ada@example.org",
        f"{'0' * 24} · created 2026-01-31 09:00 UTC · AdaLovelaceResume.pdf · layout Modern",
    ]


def test_a_job_reads_like_one() -> None:
    job = {
        "position": "Curator",
        "workplace": "Museum",
        "location": "Leeds",
        "dateRange": {"fromYear": 2018, "fromMonth": 1, "isOngoing": True},
        "description": "First line.\nSecond line.",
        "bullets": ["One", "Two\nlines"],
    }

    assert section_text("experiences", job) == [
        "Curator · Museum",
        f"Feb 2018{TO}present · Leeds",
        "First line.",
        "Second line.",
        "  • One",
        "  • Two",
        "    lines",
    ]


@pytest.mark.parametrize(
    ("section_type", "item", "expected"),
    [
        ("languages", {"name": "Twi", "level": 4, "levelText": "Fluent"}, ["Twi · ●●●●○ 4/5 · Fluent"]),
        ("languages", {"name": "English", "level": 4.5}, ["English · ●●●●○ 4.5/5"]),
        ("industryExperiences", {"name": "Ferries", "level": 0}, ["Ferries · ○○○○○○○○○○ 0/10"]),
        ("industryExperiences", {"name": "Odd", "level": 12}, ["Odd · ●●●●●●●●●● 12/10"]),
        ("skills", {"title": "Words", "tags": ["Labels", "Scripts"]}, ["Words", "Labels · Scripts"]),
        ("educations", {"degree": "MSc", "gpa": "74", "maxGpa": "100", "gpaText": "Distinction"},
         ["MSc", "Grade 74/100 · Distinction"]),
        ("quotes", {"quote": "Look.", "author": "A manager"}, ["  Look.", "  — A manager"]),
        ("mytime", {"pieces": 2, "data": [{"title": "Writing", "value": 12.5}, {"value": 0}]},
         ["  • Writing · 12.5", "  • 0"]),
        ("mytime", {"pieces": 2}, ["2 pieces"]),
        ("certificates", {"title": "Height", "issuer": "School"}, ["Height · School"]),
    ],
)  # fmt: skip
def test_items_of_other_types(section_type: str, item: dict[str, Any], expected: list[str]) -> None:
    assert section_text(section_type, item) == expected


def test_sections_come_in_reading_order_under_their_headings() -> None:
    sections = {
        **a_section("skills", {"title": "Later"}, order=2, name="What I can"),
        **a_section("awards", {"title": "First"}, order=1),
        **a_section("courses", order=0),
    }

    assert text(a_document(sections=sections))[2:] == [
        "", "AWARDS", "First", "", "WHAT I CAN", "Later",
    ]  # fmt: skip


def test_a_section_type_that_the_table_does_not_know_is_read_field_by_field() -> None:
    assert section_text("hobbies", {"what": "Chess", "years": 3}) == ["what: Chess", "years: 3"]


def test_no_control_character_comes_through() -> None:
    assert "".join(text(a_hostile_document())).isprintable()


def a_value(kind: Kind) -> Any:
    if isinstance(kind, Number):
        return 3
    if kind is DATE_RANGE:
        return {"fromYear": 1999}
    if isinstance(kind, Listing):
        return [{"title": "marker"}] if kind.of_what == "objects" else ["marker"]
    return "marker"


EXPECTED = {"level": "3/", "pieces": "3 pieces", "dateRange": "1999"}


@pytest.mark.parametrize(
    ("section_type", "field"),
    [(name, field) for name, row in SECTION_TYPES.items() for field in row.fields],
)
def test_every_field_of_the_format_is_read_or_a_picture(section_type: str, field: str) -> None:
    shown = " ".join(
        section_text(section_type, {field: a_value(SECTION_TYPES[section_type].fields[field])})
    )

    assert (EXPECTED.get(field, "marker") in shown) is (field not in PICTURES)


def test_hostile_text_is_drawn_as_text() -> None:
    shown = section_text("summaries", {"text": HOSTILE})

    assert "[@click=app.quit]x[/]" in shown[0]
