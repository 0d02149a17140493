"""Samples and each section type, in the layouts, as people, screen readers and other programs read them.

What has to be found is read off the document by `tests.support.pdfs`, which knows nothing of how a
page is made.
"""

import re
from typing import Any

import pytest

from resumes.analyzer.schema import HEADER, LAYOUTS, SECTION_TYPES
from resumes.rendering import PageOptions, Paper, Renderer, compose
from resumes.rendering.child import TEMPLATE
from resumes.rendering.shapes import NOT_DRAWN, ROWS
from tests.support.documents import a_document, with_each_field, with_section
from tests.support.pdfs import (
    EACH_LAYOUT,
    SAMPLES,
    Pdf,
    absent,
    fold,
    header_of,
    load,
    read_with_pdftotext,
    require_fonts,
    sections_of,
    texts_of,
    words_of,
)


def test_every_field_of_the_format_is_drawn_and_of_the_header_also_hidden() -> None:
    assert ROWS.keys() == SECTION_TYPES.keys(), "rendering/shapes.py"
    for name, section_type in SECTION_TYPES.items():
        drawn = set(ROWS[name].parts.values())
        assert drawn == section_type.fields.keys() - NOT_DRAWN, f"rendering/shapes.py: {name}"
    assert {field for one in SECTION_TYPES.values() for field in one.fields} >= NOT_DRAWN
    for field in HEADER.fields:
        document = with_section("summaries", {"text": "to marker@example.org"})
        document["header"] = {field: "marker@example.org"}
        page = compose(document, "0" * 24)
        assert "marker" in str(page["header"]), f"rendering/page.py: {field}"
        page = compose(document, "0" * 24, PageOptions(is_anonymous=True))
        is_hidden = "marker" not in str(page["columns"])
        assert is_hidden is (field not in {"title", "location"}), f"rendering/anonymity.py: {field}"


def test_the_template_has_the_layouts_of_the_format_and_no_package() -> None:
    source = TEMPLATE.read_text("utf-8")
    rows = source.partition("#let layouts = (")[2].partition("\n)\n")[0]
    assert re.findall(r"^  (\w+):", rows, re.MULTILINE) == list(LAYOUTS)
    assert not re.search(
        r"#?(import|include|plugin|read|image(?!\(bytes\())\b", re.sub("//.*", "", source)
    )


@pytest.mark.parametrize("paper", Paper)
@pytest.mark.parametrize("layout", EACH_LAYOUT)
def test_every_layout_is_drawn_on_every_paper(
    renderer: Renderer, layout: str, paper: Paper
) -> None:
    for document in (
        a_document(),
        a_document(header={}),
        with_section("summaries", {"text": "x"}, column=2),
    ):
        page = compose(document, "0" * 24, PageOptions(layout=layout, paper=paper))
        assert renderer.render(page).missing is None


@pytest.mark.parametrize("name", SECTION_TYPES)
def test_a_section_of_every_type_is_drawn_with_each_field_alone(
    renderer: Renderer, name: str
) -> None:
    for layout in ("double", "timeline"):
        page = compose(with_each_field(name), "0" * 24, PageOptions(layout=layout))
        assert renderer.render(page).missing is None


ARABIC = "arabic-teacher-elegant-ar"
HINDI = "hindi-social-worker-stockholm-hi"

FEW = [
    ("all-26-section-types-newcondensed-en", "newcondensed"),
    ("arabic-teacher-elegant-ar", "elegant"),
    ("desarrolladora-multicolumn-es", "multicolumn"),
    ("hindi-social-worker-stockholm-hi", "single"),
    ("japanese-game-designer-flipped-ja", "flipped_modern"),
    ("student-double-column-uk", "timeline"),
    ("unusual-but-legal-values-en", "single"),
]

PAIRS = [
    pytest.param(
        sample,
        layout,
        marks=()
        if (sample, layout) in FEW
        # Of the rest: one sample in each layout, the others in one of their own.
        else pytest.mark.slow
        if sample == "nurse-double-column-en" or f"-{layout}-" in sample
        else pytest.mark.campaign,
    )
    for sample in SAMPLES
    for layout in LAYOUTS
]


def draw(renderer: Renderer, document: dict[str, Any], layout: str) -> bytes:
    """The PDF, which conforms to PDF/UA-1 as no text of it is without a font."""
    pdf, missing = renderer.render(compose(document, "0" * 24, PageOptions(layout=layout)))
    assert missing is None
    return pdf


@pytest.mark.parametrize(("sample", "layout"), PAIRS)
def test_every_text_of_a_sample_is_found_and_read_aloud_in_order(
    renderer: Renderer, sample: str, layout: str
) -> None:
    require_fonts(sample)
    document = load(SAMPLES[sample])
    pdf = Pdf(draw(renderer, document, layout))
    whole, raw = read_with_pdftotext(pdf.body), read_with_pdftotext(pdf.body, "-raw")
    if sample == ARABIC:
        assert_most_words(document, whole)
    else:
        # By position, a title of two lines has the dates beside it between them; in the order of
        # the file it has not.
        lost = [text for text in absent(texts_of(document), whole) if absent([text], raw)]
        assert lost == []
    assert_sections_are_whole_and_in_order(pdf, document, is_mirrored=sample == ARABIC)
    assert_known(pdf, document, sample)
    header = document["header"]
    assert {link.partition(":")[0] for link in pdf.links} <= {"http", "https", "mailto", "tel"}
    if header.get("email"):
        assert f"mailto:{header['email']}" in pdf.links
    if header.get("website"):
        assert any(link.endswith(header["website"]) for link in pdf.links)


def assert_sections_are_whole_and_in_order(
    pdf: Pdf, document: dict[str, Any], *, is_mirrored: bool
) -> None:
    """The tag tree has a heading for each section, and behind it all of its texts."""
    elements, sections = pdf.elements(), sections_of(document)
    first, *starts = [at for at, each in enumerate(elements) if each.tag in ("H1", "H2")]
    assert [each.tag for each in elements if each.tag in ("H1", "H2")] == [
        "H1", *("H2" for _ in sections),
    ]  # fmt: skip
    assert first == 0
    assert {each.tag for each in elements} <= {"H1", "H2", "P", "LI"}, "not a paragraph"
    ends = [*starts[1:], len(elements)]
    spoken = [
        "".join(each.text for each in elements[at:end])
        for at, end in zip(starts, ends, strict=True)
    ]
    if is_mirrored:  # Typst writes Arabic letters as they stand, from left to right.
        there = [
            word in fold(text)[::-1]
            for text, each in zip(spoken, sections, strict=True)
            for word in words_of([each.heading, *each.texts])
        ]
        assert sum(there) >= 0.85 * len(there)
        return
    assert fold(elements[first].text) == fold(document["header"]["name"])
    assert [fold(elements[at].text) for at in starts] == [fold(each.heading) for each in sections]
    for section, text in zip(sections, spoken, strict=True):
        assert absent(section.texts, text) == [], section.heading
    head = "".join(each.text for each in elements[first : starts[0]])
    assert absent(header_of(document), head) == [], "rendering/resume.typ or page.py: header"


def assert_known(pdf: Pdf, document: dict[str, Any], sample: str) -> None:
    """Its title, author, language and standard are said, and no date."""
    name = document["header"]["name"].strip()
    known = pdf.reader.metadata
    assert known is not None
    assert known.author == name
    assert known.title == ((document.get("title") or "").strip() or f"{name} Resume")
    language = sample.removesuffix("-BR").rpartition("-")[2]
    assert str(pdf.root["/Lang"]) == (language if len(language) == 2 else "en")
    assert b"<pdfuaid:part>1</pdfuaid:part>" in pdf.streams
    assert b"/DisplayDocTitle true" in pdf.body
    assert not re.search(rb"(Creat\w+|Mod\w*)Date", pdf.body + pdf.streams)


def assert_most_words(document: dict[str, Any], found: str) -> None:
    """Most words are there: poppler leaves vowel signs and ligatures of Arabic otherwise."""
    folded, words = fold(found), words_of(texts_of(document))
    assert sum(word in folded for word in words) >= 0.85 * len(words)


@pytest.mark.parametrize(
    "sample",
    [
        sample if sample in (ARABIC, "nurse-double-column-en", HINDI)
        else pytest.param(sample, marks=pytest.mark.slow)
        for sample in SAMPLES
    ],
)  # fmt: skip
def test_in_a_single_column_programs_that_guess_by_position_find_every_text_too(
    renderer: Renderer, sample: str
) -> None:
    require_fonts(sample)
    document = load(SAMPLES[sample])
    pdf = draw(renderer, document, "single")
    found = [read_with_pdftotext(pdf, "-raw")]
    if sample != HINDI:  # of which pypdf reads letters as they are shaped, not as they are written
        found.append(Pdf(pdf).text)
    for text in found:
        if sample == ARABIC:
            assert_most_words(document, text)
        else:
            assert absent(texts_of(document), text) == []


@pytest.mark.parametrize("layout", ["ivyleague", "timeline"])
def test_headings_in_capitals_are_words_for_programs_that_guess_by_position(
    renderer: Renderer, layout: str
) -> None:
    document = load(SAMPLES["long-senior-career-high-performer-en"])
    pdf = draw(renderer, document, layout)
    for options in ([], ["-raw"]):
        lines = read_with_pdftotext(pdf, *options).splitlines()
        headings = [section.heading.upper() for section in sections_of(document)]
        assert [heading for heading in headings if heading not in lines] == []


@pytest.mark.parametrize("layout", EACH_LAYOUT)
def test_all_that_is_painted_is_decoration_and_of_a_level_its_words_alone_are_read(
    renderer: Renderer, layout: str
) -> None:
    full = Pdf(draw(renderer, load(SAMPLES["all-26-section-types-newcondensed-en"]), layout))
    assert [marks for marks in full.painted if "/Artifact" not in marks] == []
    assert "Figure" not in {each.tag for each in full.elements()}
    bare, bar, both = (
        Pdf(draw(renderer, with_section("languages", {"name": "Welsh", **level}), layout))
        for level in ({}, {"level": 3}, {"level": 3, "levelText": "a little"})
    )
    assert len(bar.painted) > len(bare.painted)
    assert bar.elements() == bare.elements()
    assert "a little" in both.elements()[-1].text


@pytest.mark.parametrize("layout", EACH_LAYOUT)
def test_pages_are_numbered_from_the_second_on(renderer: Renderer, layout: str) -> None:
    document = with_section("summaries", *[{"text": "Builds bridges. " * 200}] * 7)
    pages = Pdf(draw(renderer, document, layout)).reader.pages
    numbers = [re.findall(r"Ada Lovelace · (\d+/\d+)", page.extract_text()) for page in pages]
    assert len(numbers) > 2
    assert numbers == [[], *([f"{number}/{len(numbers)}"] for number in range(2, len(numbers) + 1))]


@pytest.mark.slow
@pytest.mark.parametrize(("option", "points"), [(1, 9.0), (4, 10.8)])
def test_a_last_page_with_little_text_is_avoided_by_a_slightly_smaller_text(
    renderer: Renderer, option: int, points: float
) -> None:
    def measure(lines: int) -> tuple[int, float]:
        """The number of pages, and the height of a line."""
        document = with_section("experiences", {"bullets": ["line"] * lines})
        document["style"] = {"fontSize": option}
        pdf = draw(renderer, document, "single")
        found = re.search(r'yMin="(.*?)".* yMax="(.*?)">line<', read_with_pdftotext(pdf, "-bbox"))
        assert found is not None
        return len(Pdf(pdf).reader.pages), float(found[2]) - float(found[1])

    _, full = measure(35)
    smaller = []
    for lines in range(36, 70):
        pages, height = measure(lines)
        if pages == 2:
            break
        if height < full - 0.01:
            smaller.append(height / full)
    assert height == pytest.approx(full)  # a smaller text would not have spared the page
    assert len(smaller) > 1
    assert min(smaller) >= max(0.88, 8 / points) - 0.001


@pytest.mark.parametrize("layout", ["double", "polished", "multicolumn"])
def test_in_languages_from_right_to_left_columns_are_mirrored(
    renderer: Renderer, layout: str
) -> None:
    orders = []
    for words in ("She led the team", "عملت في المدرسة مع فريق", "ניהלה צוות של עשרה"):
        sections = {
            "summaries": {"column": 0, "name": words, "items": [{"text": f"{words} 111"}]},
            "books": {"column": 1, "name": words, "items": [{"title": f"{words} 222"}]},
        }
        pdf = draw(renderer, a_document(sections=sections), layout)
        found = re.findall(r'xMin="([\d.]+)".*>(111|222)<', read_with_pdftotext(pdf, "-bbox"))
        orders.append([word for _, word in sorted(found, key=lambda each: float(each[0]))])
    english, arabic, hebrew = orders
    assert sorted(english) == ["111", "222"]
    assert arabic == hebrew == english[::-1]


@pytest.mark.parametrize("layout", ["double", "ivyleague", "timeline", "condensed", "minimal"])
def test_a_link_stands_with_what_it_is_of_and_not_as_the_first_line_of_the_text(
    renderer: Renderer, layout: str
) -> None:
    more = {
        "link": "https://lighthouse.example.org", "description": "Keeps ships off the rocks.",
        "dateRange": {"fromYear": 2001},
    }  # fmt: skip
    for section, item in (
        ("experiences", {"position": "Keeper", "workplace": "Tower", "location": "Faro"}),
        ("experiences", {"position": "Keeper", "workplace": "Tower"}),
        ("projects", {"title": "Keeper", "location": "Faro"}),
        ("projects", {"title": "Keeper"}),
    ):
        found = read_with_pdftotext(
            draw(renderer, with_section(section, item | more), layout), "-bbox"
        )
        words = re.findall(r'yMin="([\d.]+)".*>(\S+)</word>', found)
        [top] = [float(at) for at, word in words if word == "lighthouse.example.org"]
        line = {word for at, word in words if abs(float(at) - top) < 4}
        assert {"Keeper", "Tower", "Faro", "2001"} & line
        assert "Keeps" not in line
