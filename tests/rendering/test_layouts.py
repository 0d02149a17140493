"""What the eye sees of the layouts: what stands beside what, and how full pages are.

Positions of words are read with `pdftotext -bbox`, those of shapes and the fonts with pypdf, and colors off
pictures by pdftoppm.
"""

import itertools
import re
from collections.abc import Sequence
from html import unescape
from typing import Any, NamedTuple

import pytest

from resumes.rendering import PageOptions, Paper, Renderer, compose
from tests.support.documents import a_document, with_section
from tests.support.pdfs import EACH_LAYOUT, SAMPLES, Pdf, load, read_with_pdftotext

COO = "long-senior-career-high-performer-en"
PROFESSOR = "academic-publications-classic-it"
ENGINEER = "ingenieurin-timeline-de"


class Word(NamedTuple):
    """A word and where it is, in points from the top left of its page."""

    page: int
    left: float
    top: float
    right: float
    bottom: float
    text: str


def draw(renderer: Renderer, document: dict[str, Any], layout: str) -> bytes:
    options = PageOptions(layout=layout, paper=Paper.A4)
    return renderer.render(compose(document, "0" * 24, options)).body


def words_at(pdf: bytes) -> list[Word]:
    """The words in the order of the file."""
    return [
        Word(number, float(left), float(top), float(right), float(bottom), unescape(text))
        for number, page in enumerate(read_with_pdftotext(pdf, "-bbox").split("<page ")[1:], 1)
        for left, top, right, bottom, text in re.findall(
            r'<word xMin="(.+)" yMin="(.+)" xMax="(.+)" yMax="(.+)">(.*)</word>', page
        )
    ]


def phrase(words: Sequence[Word], text: str) -> list[Word]:
    """The words of a text that is there once."""
    parts = text.split()
    found = [
        [*words[at : at + len(parts)]]
        for at in range(len(words))
        if [word.text for word in words[at : at + len(parts)]] == parts
    ]
    assert len(found) == 1, (text, found)
    return found[0]


def is_on_one_line(words: Sequence[Word]) -> bool:
    return max(word.top for word in words) - min(word.top for word in words) < 4


def line_of(words: Sequence[Word], among: Word) -> list[Word]:
    """The words of the line that a word is on."""
    return [word for word in words if is_on_one_line([word, among])]


def painted_at(pdf: bytes) -> list[tuple[float, float]]:
    """Where the shapes of the first page begin, in points from its top left."""
    page = Pdf(pdf).reader.pages[0]
    found = []

    def note(operator: bytes, operands: Any, cm: Any, _: Any) -> None:
        if operator in (b"m", b"re"):
            x, y = map(float, operands[:2])
            right, down = cm[0] * x + cm[2] * y + cm[4], cm[1] * x + cm[3] * y + cm[5]
            found.append((right, float(page.mediabox.height) - down))

    page.extract_text(visitor_operand_before=note)
    return found


# Levels

SPOKEN = {
    "Deutsch": "Muttersprache",
    "Englisch": "Verhandlungssicher (C1)",
    "Tschechisch": "Grundkenntnisse (A2)",
    "Sorbisch": "Lesen",
    "Dänisch": "Wenig, aber gern",
    "Polnisch": "B1",
    "Latein": "",
}


def languages(count: int, column: int) -> dict[str, Any]:
    items = [
        {"name": name, "level": 1 + len(name) % 5, "levelText": note}
        for name, note in [*SPOKEN.items()][:count]
    ]
    sections = {"languages": {"column": column, "name": "Sprachen", "items": items}}
    if column:
        sections["summaries"] = {"column": 0, "name": "Profil", "items": [{"text": "Plant."}]}
    return a_document(sections=sections)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "column"), [(3, 0), (4, 0), (5, 0), (7, 1)])
@pytest.mark.parametrize(
    "layout", ["double", "newcondensed", "polished", "stockholm", "flipped_modern", "multicolumn"]
)
def test_the_marks_of_a_level_are_nearest_to_their_own_language(
    renderer: Renderer, layout: str, count: int, column: int
) -> None:
    pdf = draw(renderer, languages(count, column), layout)
    words = words_at(pdf)
    spoken = [*SPOKEN.items()][:count]
    names = [phrase(words, name)[0] for name, _ in spoken]
    notes = [phrase(words, note) if note else [] for _, note in spoken]
    assert all(note == [] or is_on_one_line(note) for note in notes)
    in_rows = [len(line_of(names, name)) for name in names]
    assert min(in_rows) > 1 or max(in_rows) == 1
    shapes = painted_at(pdf)
    for name, note in zip(names, notes, strict=True):
        end = max(word.right for word in line_of([name, *note], name))
        next_left = min(
            (other.left for other in line_of(names, name) if other.left > name.left), default=10_000
        )
        marks = [x for x, y in shapes if name.top < y < name.bottom and name.left < x < next_left]
        assert marks, name
        assert end <= min(marks), name
        assert min(marks) - end < next_left - max(marks) or max(in_rows) == 1, name


# The head

CONTACTS = {
    "email": "ines.carvalhosa@example.org",
    "phone": "+351 22 555 01 42",
    "website": "ines-carvalhosa.example.org",
    "location": "Porto, Portugal",
}
TWO_COLUMNS = {
    "summaries": {"column": 0, "items": [{"text": "Builds bridges."}]},
    "interests": {"column": 1, "items": [{"title": "Chess"}]},
}


@pytest.mark.parametrize("sections", [{}, TWO_COLUMNS], ids=["one column", "two columns"])
@pytest.mark.parametrize("layout", EACH_LAYOUT)
def test_contacts_are_divided_and_none_is_alone_on_the_last_line(
    renderer: Renderer, layout: str, sections: dict[str, Any]
) -> None:
    header = {"name": "Inês", **CONTACTS}
    words = words_at(draw(renderer, a_document(header=header, sections=sections), layout))
    found = [phrase(words, text) for text in CONTACTS.values()]
    assert all(map(is_on_one_line, found))
    rows = [sum(is_on_one_line([one[0], other[0]]) for other in found) for one in found]
    if layout in ("newcondensed", "condensed"):
        assert rows == [1, 1, 1, 1]
        return
    assert rows in ([4, 4, 4, 4], [2, 2, 2, 2])
    for before, after in itertools.pairwise(found):
        if is_on_one_line([before[0], after[0]]):
            between = [
                word.text for word in line_of(words, after[0])
                if before[-1].right <= word.left < after[0].left
            ]  # fmt: skip
            assert between == ["|"]


# Entries

LINKED = {"link": "https://lighthouse.example.org", "description": "Keeps ships off the rocks."}


@pytest.mark.parametrize(
    ("section", "item"),
    [
        ("experiences", {"position": "Keeper", "workplace": "Tower", "location": "Faro"}),
        ("experiences", {"position": "Keeper", "workplace": "Tower"}),
        ("projects", {"title": "Keeper", "location": "Faro"}),
        ("projects", {"title": "Keeper"}),
    ],
)
@pytest.mark.parametrize("layout", ["double", "ivyleague", "timeline", "condensed", "minimal"])
def test_a_link_stands_with_what_it_is_of_and_not_as_the_first_line_of_the_text(
    renderer: Renderer, layout: str, section: str, item: dict[str, str]
) -> None:
    dated = {**item, **LINKED, "dateRange": {"fromYear": 2001}}
    words = words_at(draw(renderer, with_section(section, dated), layout))
    [link] = phrase(words, "lighthouse.example.org")
    line = [word.text for word in line_of(words, link)]
    assert {"Keeper", "Tower", "Faro", "2001"} & {*line}
    assert "Keeps" not in line


@pytest.mark.parametrize("layout", EACH_LAYOUT)
def test_of_an_employer_and_a_title_one_is_bold(renderer: Renderer, layout: str) -> None:
    job = {"position": "Keeper", "workplace": "Tower", "dateRange": {"fromYear": 2001}}
    fonts = {}

    def note(text: str, cm: Any, tm: Any, font: Any, size: float) -> None:
        if words := text.split():
            fonts.update(dict.fromkeys(words, font["/BaseFont"]))

    pdf = Pdf(draw(renderer, with_section("experiences", job), layout))
    pdf.reader.pages[0].extract_text(visitor_text=note)
    assert ["Bold" in fonts[word] for word in ("Keeper", "Tower")].count(True) == 1


@pytest.mark.parametrize("layout", ["minimal", "double"])
def test_a_title_of_two_words_is_not_broken_after_the_first(
    renderer: Renderer, layout: str
) -> None:
    words = words_at(draw(renderer, load(SAMPLES[ENGINEER]), layout))
    assert is_on_one_line(phrase(words, "Sicherheits- und Gesundheitsschutzkoordinatorin"))


# Pages


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sample", "layout"),
    [
        (PROFESSOR, "newcondensed"),
        *(
            (COO, layout)
            for layout in (
                "double", "stockholm", "double_colored", "flipped_modern", "single", "condensed",
                "multicolumn", "high_performer",
            )
        ),
    ],
)  # fmt: skip
def test_a_sparse_last_page_is_saved(renderer: Renderer, sample: str, layout: str) -> None:
    words = words_at(draw(renderer, load(SAMPLES[sample]), layout))
    last = max(word.page for word in words)
    lowest = max(word.bottom for word in words if word.page == last and word.bottom < 790)
    assert lowest > 842 * 0.4
    assert min(word.bottom - word.top for word in words) > 7
