"""Books, as other programs read them."""

import json
import re
from typing import Any

import pytest

from resumes.analyzer import DEFAULT_FORMAT, parse
from resumes.rendering import PageOptions, Renderer, TooLong
from resumes.rendering.book import Book
from resumes.store.entry import Entry
from resumes.store.stored_resumes import StoredResume
from tests.rendering.test_anonymity import check_anonymous
from tests.support.documents import PEOPLE, person, with_section
from tests.support.pdfs import CJK, EACH_LAYOUT, SAMPLES, Pdf, load

HOSTILE = ["1 0 R", "/StructParents 0 (", "a) 2 0 R (b", "\\) 3 0 R", "(((", "endobj", "stream"]
"""Names that look like parts of a PDF."""

LONG = ["Builds engines of many wheels. " * 150] * 3
"""Texts of more than a page."""


def bind(renderer: Renderer, *documents: dict[str, Any], **options: Any) -> Pdf:
    """The documents as a book."""
    book = Book("class-2026", ["Acme"], PageOptions(**options))
    for number, document in enumerate(documents):
        book.draw(renderer, stored(document, number), DEFAULT_FORMAT)
    return Pdf(book.finish(renderer))


def stored(document: dict[str, Any], number: int = 0) -> StoredResume:
    entry = Entry(f"{number:024x}", None, None, "Resume.pdf", "2027-01-15", "2027-01-15")
    return StoredResume(entry, parse(json.dumps(document).encode()).document.decode())


def named(name: str, *texts: str) -> dict[str, Any]:
    document = with_section("summaries", *[{"text": text} for text in texts or ["Analyst."]])
    return document | {"header": {"name": name, "email": "ada@example.org"}}


def link_targets(pdf: Pdf) -> list[tuple[str, int]]:
    """What each link of the contents says, and the page that it leads to, the first page being 0."""
    numbers = [page.indirect_reference for page in pdf.reader.pages]
    annotations: Any = pdf.reader.pages[1]["/Annots"]
    links = [link.get_object() for link in annotations]
    return [(str(link["/Contents"]), numbers.index(link["/Dest"][0])) for link in links]


def foot_of(pdf: Pdf, page: int) -> str:
    return pdf.reader.pages[page].extract_text().splitlines()[-1]


def bookmarks(pdf: Pdf) -> list[tuple[str, int | None]]:
    """The bookmarks of the first level, with the numbers of their pages."""
    first = [one for one in pdf.reader.outline if not isinstance(one, list)]
    return [(str(one.title), pdf.reader.get_destination_page_number(one)) for one in first]


def test_a_book_has_a_title_contents_and_each_resume_on_the_pages_that_they_say(
    renderer: Renderer,
) -> None:
    pdf = bind(renderer, named("Ada", *LONG), named("Bo"), named("Cy"), layout="single")
    count = len(pdf.reader.pages)
    assert pdf.reader.page_labels == ["i", "ii", *map(str, range(1, count - 1))]
    assert pdf.reader.pages[0].extract_text().split() == ["class-2026", "Acme"]
    contents = re.sub(r"[ .]+", " ", pdf.reader.pages[1].extract_text())
    assert contents.split("\n") == ["Contents", "Ada 1", f"Bo {count - 3}", f"Cy {count - 2}", "ii"]
    places = [2, count - 2, count - 1]
    assert count - 2 > places[0] + 1
    assert link_targets(pdf) == [(f"Page {place - 1}", place) for place in places]
    assert bookmarks(pdf) == [
        ("Contents", 1), ("Ada", 2), ("Bo", count - 2), ("Cy", count - 1)
    ]  # fmt: skip
    assert [foot_of(pdf, page) for page in (2, 3, count - 1)] == [
        "Ada · 1",
        "Ada · 2",
        f"Cy · {count - 2}",
    ]
    assert pdf.reader.metadata is not None
    assert pdf.reader.metadata.title == "class-2026"
    metadata: Any = pdf.root["/Metadata"]
    xml = metadata.get_data().decode()
    assert "<pdfuaid:part>1<" in xml
    assert f"NPages>{count}<" in xml


def test_the_same_resumes_give_the_same_bytes(renderer: Renderer) -> None:
    assert bind(renderer, named("Ada")).body == bind(renderer, named("Ada")).body


@pytest.mark.parametrize(
    "names",
    [
        sorted(SAMPLES.keys() - CJK)[:4],
        pytest.param(sorted(SAMPLES.keys() - CJK), marks=pytest.mark.slow),
    ],
    ids=["some", "all"],
)
def test_tags_and_links_of_each_resume_are_those_of_its_own_pdf(
    renderer: Renderer, names: list[str]
) -> None:
    documents = [load(SAMPLES[name]) for name in names]
    pdf = bind(renderer, *documents)
    root: Any = pdf.root
    assert root["/MarkInfo"]["/Marked"]
    [whole] = root["/StructTreeRoot"]["/K"]
    front, *parts = whole["/K"]
    assert [part["/S"] for part in (front, *parts)] == ["/Part"] * (1 + len(documents))
    all_elements = pdf.elements()
    for number, document in enumerate(documents):
        alone = Book("", [], PageOptions())
        own = Pdf(alone.draw(renderer, stored(document, number), DEFAULT_FORMAT).body)
        elements = own.elements()
        assert parts[number]["/Lang"] == own.root["/Lang"]
        begin = all_elements.index(elements[0])
        assert all_elements[begin : begin + len(elements)] == elements
        assert set(own.links) <= set(pdf.links)
    check_marks(pdf)


def check_marks(pdf: Pdf) -> None:
    """Each page and link finds its element, and each element names the element above it."""
    tree: Any = pdf.root["/StructTreeRoot"]
    numbers = tree["/ParentTree"]["/Nums"]
    keys, values = numbers[::2], [number.get_object() for number in numbers[1::2]]
    assert keys == list(range(len(keys)))
    assert tree["/ParentTreeNextKey"] == len(keys)
    used = list[int]()
    page: Any
    for page in pdf.reader.pages:
        used.append(page["/StructParents"])
        for mark, element in enumerate(values[page["/StructParents"]]):
            kids = element.get_object()["/K"]
            assert mark in [kid if isinstance(kid, int) else kid.get("/MCID") for kid in kids]
        for link in page.get("/Annots", []):
            used.append(link.get_object()["/StructParent"])
            own = [kid for kid in values[used[-1]]["/K"] if not isinstance(kid, int)]
            assert link in [kid.get_object().raw_get("/Obj") for kid in own]
    assert sorted(used) == keys
    nodes = [pdf.root.raw_get("/StructTreeRoot")]
    while nodes:
        node = nodes.pop()
        for kid in node.get_object()["/K"]:
            if hasattr(kid, "idnum"):
                assert kid.get_object().raw_get("/P") == node
                nodes.append(kid)


def test_texts_that_look_like_parts_of_a_pdf_stay_texts(renderer: Renderer) -> None:
    pdf = bind(renderer, *(named(f"{name} x", name) for name in HOSTILE), layout="single")
    assert [title for title, _ in bookmarks(pdf)[1:]] == [f"{name} x" for name in HOSTILE]
    assert [text for tag, text in pdf.elements() if tag == "H1"][1:] == [
        f"{name} x" for name in HOSTILE
    ]
    check_marks(pdf)


def test_links_of_a_resume_that_look_like_those_of_the_contents_are_kept(
    renderer: Renderer,
) -> None:
    url = "https://book.invalid/7"
    document = named("Ada")
    pdf = bind(renderer, document | {"header": document["header"] | {"website": url}})
    annotations: Any = pdf.reader.pages[2]["/Annots"]
    assert url in [link.get_object().get("/A", {}).get("/URI") for link in annotations]


@pytest.mark.parametrize("layout", EACH_LAYOUT)
def test_an_anonymous_book_numbers_its_candidates_and_names_none(
    renderer: Renderer, layout: str
) -> None:
    people = [*map(person, PEOPLE), named("")]
    pdf = bind(renderer, *people, is_anonymous=True, layout=layout)
    candidates = [f"Candidate {number}" for number in range(1, len(people) + 1)]
    # Some layouts set names in capitals.
    assert [title.title() for title, _ in bookmarks(pdf)] == ["Contents", *candidates]
    assert "Candidate 1 · 1" in pdf.reader.pages[2].extract_text()
    check_anonymous(pdf, *people)


def test_a_resume_that_cannot_be_drawn_leaves_no_gap(renderer: Renderer) -> None:
    book = Book("Acme", [], PageOptions(layout="single"))
    for number, text in enumerate(["One.", "word " * 50_000, "Two."]):
        document = named(
            f"Ada {number}", *[text[at : at + 20_000] for at in range(0, len(text), 20_000)]
        )
        if number == 1:
            with pytest.raises(TooLong):
                book.draw(renderer, stored(document, number), DEFAULT_FORMAT)
        else:
            book.draw(renderer, stored(document, number), DEFAULT_FORMAT)
    pdf = Pdf(book.finish(renderer))
    assert link_targets(pdf) == [("Page 1", 2), ("Page 2", 3)]


def test_a_book_with_a_character_that_no_font_has_does_not_claim_to_be_accessible(
    renderer: Renderer,
) -> None:
    pdf = bind(renderer, named("Ada"), named("\U00012000"))
    metadata: Any = pdf.root["/Metadata"]
    assert b"pdfuaid" not in metadata.get_data()
    assert len(pdf.reader.pages) == 4
