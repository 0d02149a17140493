"""A resume, open to read: as text, as JSON, the file that it came from, and what happened to it."""

import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from textual.pilot import Pilot

from resumes.analyzer import Format, parse
from resumes.analyzer.kinds import Added, Kind, Listing, Number
from resumes.analyzer.readable import header_lines
from resumes.analyzer.schema import DATE_RANGE, HEADER, SECTION_TYPES
from resumes.analyzer.view import TO
from resumes.store import accounts, stored_resumes
from resumes.store.entry import Entry
from resumes.store.store import Store
from resumes.store.stored_resumes import StoredResume
from tests.support.terminal.builders import (
    HOSTILE,
    AnImporter,
    a_document,
    a_hostile_document,
    a_section,
    stored,
)
from tests.support.terminal.driving import leads, lines, presses, running, shows, shows_no, until
from tests.support.terminal.hostility import assert_harmless
from tui.screens.resume_views import json_paragraphs, resume_paragraphs

pytestmark = pytest.mark.anyio

DOCUMENT = a_document(
    title="Mine",
    sections=a_section("skills", {"title": "Words", "tags": ["Labels"]}, name="What I can"),
    unknown="kept",
)


async def test_enter_opens_the_resume_tab_its_views_n_the_next_and_escape_returns(
    store: Store,
) -> None:
    stored(store, a_document(title="First"), DOCUMENT)
    async with running(store, "Mine") as pilot:
        await leads(pilot, "enter", "ana › First · ")
        await leads(pilot, "n", "ana › Mine · ", "Ada Lovelace", "WHAT I CAN", "Labels")
        await leads(pilot, "n", "Last resume in the list.")

        await leads(pilot, "tab", '"name": "What I can",', '"showTags": true')
        await leads(pilot, "G", '"title": "Mine",', '"unknown": "kept"', '"isImported": true')
        await leads(pilot, "shift+tab", "WHAT I CAN")
        await leads(pilot, "tab tab", "No source file is known: it came through")
        await leads(pilot, "tab", "Created in ana", "1 warning", "! unknown is")
        await leads(pilot, "tab", "WHAT I CAN")

        await leads(pilot, "p", "ana › First")
        await leads(pilot, "escape", "ana · 1 of 2")


async def test_a_long_text_is_read_line_by_line_and_page_by_page(store: Store) -> None:
    words = [{"title": f"Word {number:03}"} for number in range(200)]
    stored(store, a_document(sections=a_section("skills", *words)))
    async with running(store) as pilot:

        def seen() -> list[int]:
            return [int(one) for one in re.findall("Word ([0-9]+)", "\n".join(lines(pilot.app)))]

        async def goes(key: str, *expected: int) -> None:
            await presses(pilot, key)
            await until(lambda: seen() == [*expected], seen)

        await shows(pilot.app, "Ada Lovelace")
        await presses(pilot, "enter")
        await until(lambda: 0 in seen())
        top = seen()
        await presses(pilot, "pagedown")
        await until(lambda: seen()[:1] == top[-1:], seen)  # one line is on both pages
        first, end = seen()[0], seen()[-1]

        await goes("j", *range(first + 1, end + 2))
        await goes("k", *range(first, end + 1))
        await goes("space", *range(end, 2 * end - first + 1))
        await goes("pageup", *range(first, end + 1))
        await goes("g", *top)
        await goes("G", *range(199 + first - end, 200))
        await goes("j", *range(199 + first - end, 200))


async def test_it_can_be_opened_at_once(store: Store) -> None:
    _, second = stored(store, a_document(title="First"), DOCUMENT)
    async with running(store, account="ana", open_id=second) as pilot:
        await shows(pilot.app, "ana › Mine · ", "WHAT I CAN")

        await leads(pilot, "escape", "ana · 2 of 2")


async def test_a_resume_deleted_meanwhile_says_so(store: Store) -> None:
    (resume_id,) = stored(store, DOCUMENT)
    async with running(store, "Mine") as pilot:
        stored_resumes.delete_resume(store, accounts.get_account(store, "ana").id, resume_id)

        await leads(pilot, "enter", "! Resume not found. It may have been deleted.")


# As text.


def an_entry() -> Entry:
    at = "2026-01-31T09:00:00.000Z"
    return Entry("0" * 24, None, "Ada Lovelace", "AdaLovelaceResume.pdf", at, at)


PICTURES = frozenset({"icon", "companyLogo", "image"})
"""What a terminal cannot draw. The JSON view has it."""


def text(document: dict[str, Any]) -> list[str]:
    admits = Format(extra_section_types=frozenset(document["sections"]))
    stored = parse(json.dumps(document).encode(), admits).document.decode()
    return [
        f"{p.mark}{p.content.plain}" for p in resume_paragraphs(StoredResume(an_entry(), stored))
    ]


def section_text(section_type: str, *items: dict[str, Any]) -> list[str]:
    """What follows the section's heading."""
    lines = text(a_document(sections=a_section(section_type, *items)))
    return lines[lines.index("") + 2 :]


@pytest.mark.parametrize(
    ("section_type", "item", "expected"),
    [
        ("experiences",
         {"position": "Curator", "workplace": "Museum", "location": "Leeds",
          "dateRange": {"fromYear": 2018, "fromMonth": 1, "isOngoing": True},
          "description": "First line.\nSecond line.", "bullets": ["One", "Two\nlines"]},
         ["Curator · Museum", f"Feb 2018{TO}present · Leeds", "First line.", "Second line.",
          "  • One", "  • Two", "    lines"]),
        ("languages", {"name": "Twi", "level": 4, "levelText": "Fluent"}, ["Twi · ●●●●○ 4/5 · Fluent"]),
        ("languages", {"name": "English", "level": 4.5}, ["English · ●●●●○ 4.5/5"]),
        ("industryExperiences", {"name": "Ferries", "level": 0}, ["Ferries · ○○○○○○○○○○ 0/10"]),
        ("industryExperiences", {"name": "Odd", "level": 12}, ["Odd · ●●●●●●●●●● 12/10"]),
        ("skills", {"title": "Words", "tags": ["Labels", "Scripts"]}, ["Words", "Labels · Scripts"]),
        ("educations", {"degree": "MSc", "gpa": "74", "maxGpa": "100", "gpaText": "Distinction"},
         ["MSc", "Grade 74/100 · Distinction"]),
        ("educations", {"degree": "MSc", "maxGpa": "4.0"}, ["MSc"]),
        ("quotes", {"quote": "Look.", "author": "A manager"}, ["  Look.", "  — A manager"]),
        ("mytime", {"pieces": 2, "data": [{"title": "Writing", "value": 12.5}, {"value": 0}]},
         ["  • Writing · 12.5", "  • 0"]),
        ("mytime", {"pieces": 2}, ["2 pieces"]),
        ("certificates", {"title": "Height", "issuer": "School"}, ["Height · School"]),
        # A type that the table does not know, field by field.
        ("hobbies", {"what": "Chess", "years": 3}, ["what: Chess", "years: 3"]),
    ],
)  # fmt: skip
def test_items_read_as_people_write_them(
    section_type: str, item: dict[str, Any], expected: list[str]
) -> None:
    assert section_text(section_type, item) == expected


def test_sections_come_in_reading_order_under_their_headings() -> None:
    sections = {
        **a_section("skills", {"title": "Later"}, order=2, name="What I can"),
        **a_section("awards", {"title": "First"}, order=1),
        **a_section("courses", order=0),
    }
    for style, layout in (
        ({}, "Double Column"),
        ({"style": {}}, "Double Column"),
        ({"style": {"layout": "ivyleague"}}, "Ivy League"),
    ):
        lines = text(a_document(sections=sections, **style))
        assert any(line.endswith(f" · layout {layout}") for line in lines)
        assert lines[3:] == ["", "AWARDS", "First", "", "WHAT I CAN", "Later"]


def a_value(kind: Kind) -> Any:
    if isinstance(kind, Added):
        return a_value(kind.kind)
    if isinstance(kind, Number):
        return 3
    if kind is DATE_RANGE:
        return {"fromYear": 1999}
    if isinstance(kind, Listing):
        return [{"title": "marker"}] if kind.of_what == "objects" else ["marker"]
    return "marker"


BESIDE = {"maxGpa": {"gpa": "1"}}
"""What a field says nothing without."""

EXPECTED = {"level": "3/", "pieces": "3 pieces", "dateRange": "1999"}


def test_every_field_of_the_format_is_read_or_a_picture() -> None:
    for field in HEADER.fields:
        shown = [
            phrase.text
            for line in header_lines({"header": {field: "x"}})
            for phrase in line.phrases
        ]
        assert shown == ["x"], f"analyzer/readable.py lacks {field} of the header"
    for section_type, row in SECTION_TYPES.items():
        for field, kind in row.fields.items():
            item = BESIDE.get(field, {}) | {field: a_value(kind)}
            is_read = EXPECTED.get(field, "marker") in " ".join(section_text(section_type, item))
            assert is_read is (field not in PICTURES), f"readable.py: {section_type}.{field}"


# As JSON.


def test_the_text_is_the_document_again() -> None:
    document = a_hostile_document() | {"tag": "\U000e0041", "numbers": [1.0, -2.5, 0, 2**62]}

    text = "\n".join(f"{p.mark}{p.content.plain}" for p in json_paragraphs(orjson.dumps(document)))

    assert json.loads(text) == document
    assert text.replace("\n", "").isprintable()


# The file that it came from, which a real importer put away.

FILE = b'{"header": {"name": "Ada"},\n "sections": {}, "odd": true}'


@asynccontextmanager
async def imported(store: Store, root: Path, content: bytes = FILE) -> AsyncIterator[Pilot[int]]:
    """A resume that came from a file is open."""
    root = root / "inbox"
    root.mkdir()
    importer = AnImporter(store, root)
    importer.drop("ana/cv.json", content)
    await importer.round()
    importer.close()
    async with running(store, "1 of 1", size=(160, 40)) as pilot:
        await leads(pilot, "enter", "esc Back", "created 20")
        yield pilot


async def test_the_file_is_shown_as_it_was_written_and_history_tells_how_it_came(
    store: Store, tmp_path: Path
) -> None:
    async with imported(store, tmp_path) as pilot:
        await leads(
            pilot,
            "tab tab",
            "Imported from ana/cv.json, which is now",
            '{"header": {"name": "Ada"},',
        )
        await shows(pilot.app, ' "sections": {}, "odd": true}')
        await leads(pilot, "tab", "Picked up ana/cv.json", "Imported into ana")
        await shows(pilot.app, "! odd is not a known field")


@pytest.mark.parametrize("then", ["moved", "link", "pipe"])
async def test_a_file_that_lies_there_no_more_is_not_read(
    store: Store, tmp_path: Path, then: str
) -> None:
    async with imported(store, tmp_path) as pilot:
        (file,) = [
            one for one in tmp_path.glob("inbox/_done/*/*/*.json") if ".report." not in one.name
        ]
        file.unlink()
        if then == "link":
            (tmp_path / "elsewhere").write_bytes(b"SECRET")
            file.symlink_to(tmp_path / "elsewhere")
        if then == "pipe":
            os.mkfifo(file)
        await leads(pilot, "tab tab", "Imported from ana/cv.json, which is no longer in")
        await shows_no(pilot.app, "SECRET", '"odd"')


async def test_only_the_beginning_of_a_large_file_is_shown(store: Store, tmp_path: Path) -> None:
    content = FILE[:-1] + b', "notes": "' + b"x" * 70_000 + b'"}'
    async with imported(store, tmp_path, content) as pilot:
        await leads(pilot, "tab tab", "Imported from ana/cv.json")
        await leads(pilot, "G", "… first 65,536 bytes only")


async def test_what_a_file_holds_is_drawn_as_text(store: Store, tmp_path: Path) -> None:
    # As they are, not escaped, but for those that JSON does not allow.
    harmless = HOSTILE.replace("\x1b", "\\u001b").replace("\x07", "\\u0007")
    content = f'{{"header": {{"name": "{harmless}"}}, "sections": {{}}}}'.encode()
    async with imported(store, tmp_path, content) as pilot:
        for _ in range(3):
            await leads(pilot, "tab", "a[/b]c")
            assert_harmless(pilot)
