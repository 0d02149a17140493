"""Whatever strangers write is text: never source, never an address of another kind, never an error."""

import json
from typing import Any

import pytest
from hypothesis import given, settings

from resumes.analyzer.schema import LAYOUTS
from resumes.errors import InvalidInput, InvalidResume
from resumes.rendering import PageOptions, Renderer, TooLong, compose
from resumes.rendering.page import find_url
from tests.support.api import bombs
from tests.support.documents import DOCUMENTS, HEADER, a_document, with_section
from tests.support.pdfs import Pdf, as_stored, fold, read_with_pdftotext

SOURCE = (
    '#read("/etc/passwd")',
    "$x$ $ sum_(i=0) $",
    '#import "@preview/cetz:0.3.0"',
    '#eval("1 + 1") #panic("x")',
    '#image("/etc/passwd") #include "resume.typ"',
    r"\u{41} \#x \\ C:\temp\new \end{document}",
    "= Heading  - item  + item  / term: x  <label> @label",
    "*bold* _emph_ `raw` ```x``` // no comment /* nor this */ ~ -- --- ...",
    '"]}{#(]) quotes \' and "',
    "%s {} {{x}} ${HOME} $(id) <script>alert(1)</script>",
)

ADDRESSES = (
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "file:///etc/passwd",
    "FILE:/etc/passwd",
    "data:text/html,x",
    "vbscript:x",
    "ftp://example.com",
    "//example.com",
    "../../etc/passwd",
    "https://",
    "http:",
    "mailto:",
    "https://[",
    "https://example.com/\u202egnp.exe",
    "https://example.com/" + "a" * 9_000,
)

UNUSUAL = (
    "\u202eRLO \u202a\u202b\u202d\u202c\u2066LRI\u2067\u2068\u2069\u200e\u200f\u061c end",
    "\x01\x07\x1b[31mred\x7f\x80\x9b \ufffe\uffff end",
    "a\tb\r\nc\rd\x0be\x0cf\x85g\u2028h\u2029i",
    "z" + "\u0336\u0489" * 9_000 + " end",
    "👩\u200d" * 6_000 + " end",
    "\U000e0041" * 19_000 + " end",
    "क्" * 9_000,
    "x" * 10_000,
    "ab\u00a0" * 6_000,
    "\u0301 alone \u200b\u2060\ufeff\u00ad",
    "\ue000\ufffc\U0010ffff\U000f0000 end",
)


def everywhere(text: str) -> dict[str, Any]:
    """A resume that has the text wherever one may stand."""
    entry = {"position": text, "workplace": text, "location": text, "link": text}
    return a_document(
        title=text,
        header=dict.fromkeys(HEADER, text),
        sections={
            "experiences": {
                "column": 0,
                "name": text,
                "items": [entry | {"description": text, "bullets": [text]}],
            },
            "skills": {"column": 1, "items": [{"title": text, "tags": [text, text]}]},
            "quotes": {"column": 1, "items": [{"quote": text, "author": text}]},
            "languages": {"column": 1, "items": [{"name": text, "level": 3, "levelText": text}]},
            "mytime": {"column": 1, "items": [{"data": [{"title": text, "value": 1}]}]},
        },
    )


@pytest.mark.parametrize("text", SOURCE)
def test_source_is_printed_as_it_is(renderer: Renderer, text: str) -> None:
    page = compose(everywhere(text), "0" * 24, PageOptions(layout="single"))
    pdf = Pdf(renderer.render(page).body)
    said = fold("".join(each.text for each in pdf.elements()))
    assert said.count(fold(text)) >= 18
    assert fold(text) in fold(read_with_pdftotext(pdf.body))
    assert b"root:x:0:0" not in pdf.streams
    assert pdf.reader.metadata is not None
    assert pdf.reader.metadata.title == " ".join(text.split("\n"))


@pytest.mark.parametrize("text", UNUSUAL, ids=range(len(UNUSUAL)))
def test_odd_characters_and_endless_words_are_drawn(renderer: Renderer, text: str) -> None:
    pdf = renderer.render(compose(with_section("summaries", {"text": text}), "0" * 24)).body
    assert not text.endswith("end") or "end" in read_with_pdftotext(pdf)


def test_what_is_not_seen_is_no_name_and_no_title_and_a_tab_parts_words(renderer: Renderer) -> None:
    for blank in ("\x01", "\u200b", "\u202e\u202c", "\u00ad", "\u3000"):
        page = compose(a_document(title=blank, header={"name": blank}), "0" * 24)
        said = (page["title"], page["author"], page["header"]["name"])
        assert said == ("New Resume", "", "New Resume")
    pdf = renderer.render(compose(with_section("summaries", {"text": "one\ttwo"}), "0" * 24)).body
    assert "one two" in read_with_pdftotext(pdf)


@pytest.mark.parametrize("number", [1e308, -1e308, 5e-324, -1, 2**63 - 1, -(2**63), 0.5, 12, -0.0])
def test_any_number_is_drawn(renderer: Renderer, number: float) -> None:
    dates = dict.fromkeys(("fromYear", "fromMonth", "toYear", "toMonth"), number)
    names = ["fontSize", "marginOption", "pageMarginOption", "columnLayoutOption"]
    names += ["lineHeightOption", "headerExtraSpacing"]
    document = a_document(
        style=dict.fromkeys(names, number),
        sections={
            "experiences": {"column": 0, "order": number, "items": [{"dateRange": dates}]},
            "languages": {"column": 0, "items": [{"name": "x", "level": number}]},
            "industryExperiences": {"column": 1, "items": [{"name": "x", "level": number}]},
            "mytime": {
                "column": 1,
                "items": [{"data": [{"title": "x", "value": number}, {"title": "y", "value": 1}]}],
            },
        },
    )
    for layout in ("double", "stockholm", "timeline"):
        page = compose(document, "0" * 24, PageOptions(layout=layout))
        assert renderer.render(page).missing is None


def drawn(renderer: Renderer, document: dict[str, Any], layout: str) -> None:
    """It is drawn, in this layout too, or no resume at all."""
    try:
        stored = as_stored(json.dumps(document).encode())
    except (InvalidResume, InvalidInput):
        return
    for choice in (PageOptions(layout=layout), PageOptions(layout=layout, is_anonymous=True)):
        assert renderer.render(compose(stored, "0" * 24, choice)).body.startswith(b"%PDF-")


def test_marks_that_follow_no_letter_are_drawn_where_capitals_are_set_apart(
    renderer: Renderer,
) -> None:
    stray = "::\u08caA"
    document = with_section("summaries", {"text": "x"}) | {"header": {"name": stray}}
    document["sections"]["summaries"]["name"] = stray
    drawn(renderer, document, "high_performer")


@pytest.mark.parametrize(
    ("layout", "chosen"),
    [
        ("double", settings(max_examples=8, derandomize=True)),
        *(
            pytest.param(one, settings(max_examples=300), marks=pytest.mark.campaign)
            for one in LAYOUTS
        ),
    ],
)
def test_any_valid_document_is_drawn(renderer: Renderer, layout: str, chosen: settings) -> None:
    @chosen
    @given(document=DOCUMENTS)
    def check(document: dict[str, Any]) -> None:
        drawn(renderer, document, layout)

    check()


def test_what_has_too_much_text_is_refused_before_it_is_drawn() -> None:
    with pytest.raises(TooLong) as refusal:
        compose(as_stored(bombs.valid(2 * 1024 * 1024)), "0" * 24)
    assert refusal.value.chars > 1_900_000
    assert str(refusal.value).endswith(" characters; the limit is 200,000")
    names = ("summaries", "experiences", "projects", "awards", "courses", "books", "quotes")
    for document in (
        with_section("summaries", *[{"text": "x" * 20_000}] * 10),
        with_section("skills", *[{"tags": ["x"] * 200}] * 50),
        a_document(sections={
            name: {"column": 0, "name": "x" * 20_000, "items": [{"text": "x", "title": "x"}]}
            for name in names
        } | {"customs": {"column": 0, "name": "x" * 20_000, "items": [{"title": "x" * 20_000}]}},
        header=dict.fromkeys(("name", "email", "phone"), "x" * 20_000)),
    ):  # fmt: skip
        with pytest.raises(TooLong):
            compose(document, "0" * 24)


BULKY = {
    "texts": with_section("summaries", *[{"text": "Builds things that last. " * 790}] * 10),
    "words": with_section("summaries", *[{"text": "x" * 19_900}] * 10),
    "Hindi": with_section("summaries", *[{"text": "सामाजिक " * 2_480}] * 10),
    "Chinese": with_section("summaries", *[{"text": "数据" * 9_900}] * 10),
    "entries": with_section("experiences", *[{"position": "x"}] * 500),
    "tags": with_section("skills", *[{"tags": ["x"] * 200}] * 38),
    "bullets": with_section("projects", *[{"bullets": ["x"] * 200}] * 38),
    "slices": with_section("mytime", *[{"data": [{"title": "x", "value": 1}] * 200}] * 38),
    "a name": a_document(header={"name": "x " * 9_900}),
    "headings": a_document(
        sections={
            name: {"column": 0, "name": "x " * 9_900, "items": [{"title": "x"}]}
            for name in ("awards", "courses", "projects", "customs", "customs2", "strengths")
        }
    ),
}
"""Nearly as much as is drawn."""


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["double", "timeline", "multicolumn"])
@pytest.mark.parametrize("name", BULKY)
def test_what_has_not_too_much_text_fits_into_the_memory_of_the_child(
    renderer: Renderer, name: str, layout: str
) -> None:
    page = compose(BULKY[name], "0" * 24, PageOptions(layout=layout))
    assert renderer.render(page).body.startswith(b"%PDF-")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://ada.example.com/a?b=c#d", "https://ada.example.com/a?b=c#d"),
        ("HTTP://ada.example.com", "HTTP://ada.example.com"),
        (" ada.example.com ", "https://ada.example.com"),
        ("ada.example.com:8080/x", "https://ada.example.com:8080/x"),
        ("linkedin.com/in/ada", "https://linkedin.com/in/ada"),
        ("mailto:ada@example.com", "mailto:ada@example.com"),
        ("tel:+441614960142", "tel:+441614960142"),
        ("https://bücher.example/ä", "https://bücher.example/ä"),
        ("", None),
        ("ada", None),
        ("ada@example.com", None),
        ("localhost:8000", None),
        ("two words.example", None),
        ("https://x.example/" + "a" * 1_982, "https://x.example/" + "a" * 1_982),
        ("https://x.example/" + "a" * 1_983, None),
        *((address, None) for address in ADDRESSES),
    ],
)
def test_addresses_are_found(text: str, url: str | None) -> None:
    assert find_url(text) == url
