"""House styles: what they show, what is refused, and that no file fails for them."""

import os
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from resumes.analyzer import DEFAULT_FORMAT
from resumes.rendering import FileType, PageOptions, Renderer, compose
from resumes.rendering.book import Book
from resumes.rendering.branding import load_branding
from tests.rendering.test_book import named, stored
from tests.rendering.test_word import Word
from tests.support.pdfs import EACH_LAYOUT, SAMPLES, Pdf, load

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 30 10">{}</svg>'
TOML = """name = "Example Service"
contact_lines = ["12 Example Street"]
footer = "Confidential"
replace_contact = true
"""


def png(width: int = 3, height: int = 2) -> bytes:
    """A red picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress((b"\0" + b"\xff\0\0" * width) * height)
    parts = [chunk(b"IHDR", head), chunk(b"IDAT", pixels), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def put(home: Path, name: str, content: str | bytes) -> None:
    folder = home / "branding" / "acme"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def brand_of(home: Path) -> Any:
    found = load_branding(home, "acme")
    assert found.problems == ()
    return found.brand


@pytest.mark.parametrize("layout", EACH_LAYOUT)
@pytest.mark.parametrize("logo", ["logo.svg", "logo.png"])
def test_a_pdf_shows_the_house_style_and_stays_accessible(
    renderer: Renderer, tmp_path: Path, layout: str, logo: str
) -> None:
    put(tmp_path, "branding.toml", TOML)
    put(tmp_path, logo, png() if logo.endswith("png") else SVG.format('<path d="M0 0h9v9z"/>'))
    options = PageOptions(layout=layout)
    page = compose(named("Ada"), "0" * 24, options, brand=brand_of(tmp_path))
    drawn = renderer.render(page)
    assert drawn.missing is None
    pdf = Pdf(drawn.body)
    assert b"pdfuaid" in pdf.streams
    assert b"/Figure" in pdf.body
    assert b"Example Service" in pdf.body  # the text for a picture that is not seen
    for text in ("Example Service", "12 Example Street", "Confidential", "Ada"):
        assert text.lower() in pdf.text.lower()  # some layouts set names in capitals
    assert "ada@example.org" not in pdf.text


def test_a_house_style_is_hidden_on_request(tmp_path: Path) -> None:
    put(tmp_path, "branding.toml", TOML)
    document, brand = named("Ada"), brand_of(tmp_path)
    assert compose(document, "0" * 24, brand=brand)["brand"] == brand
    for hidden in (
        compose(document, "0" * 24, PageOptions(has_brand=False), brand=brand),
        compose(document | {"style": {"hideBranding": True}}, "0" * 24, brand=brand),
    ):
        assert hidden["brand"] is None
        assert hidden["header"]["contacts"]
    assert load_branding(tmp_path, "other").brand is None
    assert load_branding(tmp_path, "../branding/acme").brand is None


@pytest.mark.parametrize("logo", ["logo.svg", "logo.png"])
def test_a_word_document_shows_it_on_its_first_page(
    renderer: Renderer, tmp_path: Path, logo: str
) -> None:
    put(tmp_path, "branding.toml", TOML)
    put(tmp_path, logo, png() if logo.endswith("png") else SVG.format('<path d="M0 0h9v9z"/>'))
    options = PageOptions(file_type=FileType.WORD)
    page = compose(named("Ada"), "0" * 24, options, brand=brand_of(tmp_path))
    body = renderer.render(page).body
    assert body == renderer.render(page).body
    parts = Word(body).parts
    assert any(part.startswith(b"\x89PNG") for part in parts.values())
    headers = b"".join(part for name, part in parts.items() if name.startswith("word/header"))
    feet = [part for name, part in parts.items() if name.startswith("word/footer")]
    assert b"Example Service" in headers
    assert b"12 Example Street" in headers
    assert b'distL="0"' in headers  # LibreOffice indents the logo otherwise
    assert b"<w:p/>" not in headers
    assert [b"Confidential" in part for part in feet] == [True, True]
    assert not any(b"ada@example.org" in part for part in parts.values())


def test_a_house_style_reads_from_right_to_left_in_such_a_resume(
    renderer: Renderer, tmp_path: Path
) -> None:
    put(tmp_path, "branding.toml", 'contact_lines = ["شارع المثال"]\nfooter = "سري"')
    document = load(SAMPLES["arabic-teacher-elegant-ar"])
    options = PageOptions(file_type=FileType.WORD)
    body = renderer.render(compose(document, "0" * 24, options, brand=brand_of(tmp_path))).body
    for name, part in Word(body).parts.items():
        if re.match("word/(header|footer)", name):
            assert part.count(b"<w:bidi/>") in (1, 2)
            assert part.count(b"<w:rtl/>") >= 1


def test_a_book_shows_it_on_its_first_page_and_each_resume(
    renderer: Renderer, tmp_path: Path
) -> None:
    put(tmp_path, "branding.toml", TOML)
    put(tmp_path, "logo.svg", SVG.format('<circle r="5"/>'))
    book = Book("Acme", [], PageOptions(layout="elegant"), brand_of(tmp_path))
    book.draw(renderer, stored(named("Ada")), DEFAULT_FORMAT)
    pdf = Pdf(book.finish(renderer))
    for page in (0, 2):
        assert "Example Service" in pdf.reader.pages[page].extract_text()
        assert "Confidential" in pdf.reader.pages[page].extract_text()
    assert b"pdfuaid" in pdf.streams


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("logo.svg", "<svg", "unclosed token"),
        ("logo.svg", "<svg/>", "not an SVG image"),
        ("logo.svg", SVG.format('<image href="https://example.org/x.png"/>'), "<image> is not"),
        ("logo.svg", SVG.format('<use href="#a"/>'), "<use> is not accepted"),
        ("logo.svg", SVG.format("<script>x</script>"), "<script> is not accepted"),
        ("logo.svg", SVG.format('<rect fill="url(file:///etc/passwd)"/>'), "outside the file"),
        ("logo.svg", SVG.format("<style>@import 'x.css';</style>"), "outside the file"),
        ("logo.svg", SVG.format('<linearGradient href="x.svg#a"/>'), "outside the file"),
        ("logo.svg", '<!DOCTYPE svg [<!ENTITY a "b">]>' + SVG.format("&a;"), "a DOCTYPE is not"),
        ("logo.svg", SVG.format("<g/>" * 5_000), "more than 5,000 elements"),
        ("logo.svg", SVG.format(" " * 300_000), "larger than 256 KiB"),
        ("logo.svg", b"\xff\xfe", "codec can't decode"),
        ("logo.png", b"GIF89a", "not a PNG image"),
        ("logo.png", png()[:-20], "the image is damaged"),
        ("logo.png", png()[:45] + b"xx" + png()[47:], "the image is damaged"),
        ("logo.png", png(2_001, 1), "larger than 2,000 pixels"),
        ("branding.toml", "name =", "Invalid value"),
        ("branding.toml", "name = " + "[" * 8_000, "nested too deeply"),
        ("branding.toml", "nome = 'x'", "unknown: nome. Use name, contact_lines"),
        ("branding.toml", "name = 1", "each text must have up to 120 characters"),
        ("branding.toml", "contact_lines = 'x'", "must be a list of up to 6 texts"),
        ("branding.toml", "replace_contact = 'yes'", "replace_contact must be true or false"),
    ],
)
def test_what_is_broken_is_named_and_left_out(
    tmp_path: Path, name: str, content: str | bytes, why: str
) -> None:
    put(tmp_path, name, content)
    found = load_branding(tmp_path, "acme")
    assert found.brand is None
    [problem] = found.problems
    assert problem.startswith(f"{tmp_path / 'branding' / 'acme' / name}: ")
    assert why in problem


def test_a_pipe_in_place_of_a_logo_is_not_waited_for(tmp_path: Path) -> None:
    put(tmp_path, "branding.toml", TOML)
    os.mkfifo(tmp_path / "branding/acme/logo.svg")
    found = load_branding(tmp_path, "acme")
    assert found.brand is not None
    assert found.brand["name"] == "Example Service"
    assert [problem.rpartition(": ")[2] for problem in found.problems] == ["not a regular file"]


@pytest.mark.parametrize("file_type", FileType)
def test_a_logo_of_any_proportions_or_that_cannot_be_drawn_fails_no_file(
    renderer: Renderer, tmp_path: Path, file_type: FileType
) -> None:
    put(tmp_path, "logo.svg", SVG.replace("30 10", "100000 1").format('<path d="M0 0h9v9z"/>'))
    brand, options = brand_of(tmp_path), PageOptions(file_type=file_type)
    page = compose(named("Ada"), "0" * 24, options, brand=brand)
    assert len(renderer.render(page).body) > 1_000
    broken = brand | {"logo": "no picture"}
    drawn = renderer.render_resume(stored(named("Ada")), options, brand=broken)
    assert len(drawn.body) > 1_000
