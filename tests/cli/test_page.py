"""A resume as people read it in a terminal."""

import json
from typing import Any

from click import unstyle

from cli import page
from cli.text import safe_text, width
from resumes.analyzer import DEFAULT_FORMAT, Format, parse
from resumes.analyzer.reading import TO
from resumes.store.listing import Entry, StoredResume


def shown(document: dict[str, Any], accepted: Format = DEFAULT_FORMAT) -> list[str]:
    """The lines of a page, without the style of headings."""
    parsed = parse(json.dumps(document).encode(), accepted)
    when = "2026-01-31T09:00:00.000Z"
    entry = Entry("0" * 24, parsed.title, parsed.name, parsed.filename, when, when)
    lines = page.lines(StoredResume(entry, parsed.document.decode()), accepted)
    return [unstyle(line) for line in lines]


def with_section(kind: str, *items: dict[str, Any]) -> dict[str, Any]:
    return {"header": {"name": "Ada"}, "sections": {kind: {"column": 0, "items": list(items)}}}


def test_an_item_is_a_headline_and_its_details() -> None:
    job = {
        "workplace": "Engine Works",
        "position": "Analyst",
        "dateRange": {"fromYear": 1840, "fromMonth": 0, "toYear": 1843, "toMonth": 11},
        "description": "Notes.",
        "bullets": ["First program", ""],
        "link": "https://example.org",
    }

    lines = shown(with_section("experiences", job))

    assert lines[lines.index("EXPERIENCE") + 1 :] == [
        f"  Analyst · Engine Works · Jan 1840{TO}Dec 1843 · https://example.org",
        "    Notes.",
        "    - First program",
    ]


def test_dates_are_as_full_as_they_are() -> None:
    def dates(**given: Any) -> str:
        return shown(with_section("customs", {"title": "T", "dateRange": given}))[-1]

    assert dates(fromYear=2020, isOngoing=True) == f"  T · 2020{TO}present"
    assert dates(fromYear=2015.0, fromMonth=1.0, isOngoing=True) == f"  T · Feb 2015{TO}present"
    assert dates(toYear=2020, toMonth=1) == "  T · until Feb 2020"
    assert dates(fromYear=2020, fromMonth=12) == "  T · month 12 2020"
    assert dates(fromYear=2020, toYear=2020) == "  T · 2020"


def test_what_fields_of_an_extra_section_type_mean_is_not_guessed() -> None:
    accepted = Format(extra_section_types=frozenset({"hobbies"}))
    hobby = {"title": "Chess", "years": 3.0, "dateRange": {"fromYear": "long ago"}}

    lines = shown(with_section("hobbies", hobby), accepted)

    assert lines[-3:] == ["    title: Chess", "    years: 3", "    date range: long ago"]


def test_hidden_fields_stay_hidden_and_empty_sections_say_so() -> None:
    lines = shown(with_section("skills", {"title": "", "tags": []}))

    assert lines[-2:] == ["SKILLS", "  (nothing to show)"]


def test_hostile_text_is_escaped_and_lines_fit() -> None:
    item = {"title": "\x1b]0;owned\x07", "description": "very long words " * 40 + "\u202eend"}

    lines = shown(with_section("achievements", item))

    assert all(safe_text(line) == line for line in lines)
    assert max(map(width, lines)) <= page.WIDTH
