"""Resumes as Word documents, as other programs read them."""

import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest

from resumes.analyzer import parse_imported, shown_view
from resumes.analyzer.schema import SECTION_TYPES
from resumes.rendering import FileType, PageOptions, Renderer, compose
from resumes.rendering.fonts import FOLDER
from tests.support.documents import (
    CORPUS,
    PEOPLE,
    a_document,
    iter_files,
    person,
    secrets_of,
    with_each_field,
    with_section,
)
from tests.support.pdfs import (
    CJK,
    EACH_SAMPLE,
    SAMPLES,
    absent,
    find_cjk_fonts,
    fold,
    header_of,
    load,
    read_with_pdftotext,
    sections_of,
    texts_of,
    words_of,
)

ID = "0123456789abcdef0123f7e2"
JSON_RESUMES = CORPUS.with_name("jsonresume-fake.tar.gz")
_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_ROLE: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def draw(renderer: Renderer, document: dict[str, Any], *, is_anonymous: bool = False) -> "Word":
    options = PageOptions(is_anonymous=is_anonymous, file_type=FileType.WORD)
    body, missing = renderer.render(compose(document, ID, options))
    assert missing is None
    return Word(body)


class Word:
    """A Word document, read without the package that wrote it."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        with zipfile.ZipFile(BytesIO(body)) as archive:
            assert archive.testzip() is None
            self.parts = {entry.filename: archive.read(entry) for entry in archive.infolist()}
            self.dates = {entry.date_time for entry in archive.infolist()}
            self.modes = {entry.external_attr >> 16 for entry in archive.infolist()}
        self.root = ElementTree.fromstring(self.parts["word/document.xml"])

    def lines(self) -> Iterator[tuple[str, str]]:
        """The style and the text of each paragraph."""
        for paragraph in self.root.iter(f"{_W}p"):
            style = paragraph.find(f"{_W}pPr/{_W}pStyle")
            yield "Normal" if style is None else style.get(f"{_W}val", ""), text_of(paragraph)

    @property
    def text(self) -> str:
        return "\n".join(text for _, text in self.lines())

    @property
    def links(self) -> dict[str, str]:
        """The text of each link, by its address."""
        rels = ElementTree.fromstring(self.parts["word/_rels/document.xml.rels"])
        targets = {rel.get("Id"): rel.get("Target", "") for rel in rels}
        return {
            targets[link.get(_ROLE)]: text_of(link) for link in self.root.iter(f"{_W}hyperlink")
        }

    @property
    def properties(self) -> dict[str, str | None]:
        """The core properties by their names."""
        root = ElementTree.fromstring(self.parts["docProps/core.xml"])
        return {each.tag.partition("}")[2]: each.text for each in root}


def text_of(element: ElementTree.Element) -> str:
    return "".join(
        "\n" if each.tag == f"{_W}br" else each.text or ""
        for each in element.iter()
        if each.tag in (f"{_W}t", f"{_W}br")
    )


def assert_whole(word: Word, document: dict[str, Any]) -> None:
    """Every text is there, under its section's heading."""
    (style, name), *lines = word.lines()
    assert (style, fold(name)) == ("Title", fold(header_of(document)[0]))
    starts = [at for at, (style, _) in enumerate(lines) if style == "Heading1"]
    head, found = lines[: min(starts, default=len(lines))], []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        found.append((lines[start][1], "\n".join(text for _, text in lines[start:end])))
    shown = "\n".join([name, *(text for _, text in head)])
    assert absent(header_of(document), shown) == [], "rendering/word.py: header"
    sections = sections_of(document)
    assert [fold(heading) for heading, _ in found] == [fold(each.heading) for each in sections]
    for section, (_, text) in zip(sections, found, strict=True):
        assert absent(section.texts, text) == [], section.heading


@pytest.mark.parametrize("sample", EACH_SAMPLE)
def test_every_text_of_a_sample_is_found_under_its_heading(renderer: Renderer, sample: str) -> None:
    document = load(SAMPLES[sample])
    word = draw(renderer, document)
    assert_whole(word, document)
    header = document["header"]
    for text, address in ((header.get("email"), "mailto:{}"), (header.get("website"), "{}")):
        if text:
            assert fold(re.sub("^https?://", "", text)) in map(fold, word.links.values())
            assert any(link.endswith(address.format(text)) for link in word.links)
    assert {link.partition(":")[0] for link in word.links} <= {"http", "https", "mailto", "tel"}


@pytest.mark.parametrize("name", SECTION_TYPES)
def test_a_section_of_every_type_is_drawn_with_each_field_alone(
    renderer: Renderer, name: str
) -> None:
    document = with_each_field(name)
    assert_whole(draw(renderer, document), document)


def test_headings_lists_links_and_quotations_are_real(renderer: Renderer) -> None:
    word = draw(renderer, load(SAMPLES["all-26-section-types-newcondensed-en"]))
    lines = [*word.lines()]
    for line in (
        ("Title", "Philippa Corrigan-Osei"),
        ("Heading1", "Experience"),
        ("Heading2", "Lead Curator, Science"),
        (
            "Details",
            "Irwell Museum of Making · 02/2018 – Present · Manchester · irwell.example.org",
        ),
        ("ListBullet", "Raised £640,000 from trusts for a free weekday programme"),
        ("ListBullet", "English · Native"),
        ("ListBullet", "Museums · ●●●●○"),
        ("ListBullet", "Workshop · 30%"),
        ("Quote", "If they only look at it, it is furniture."),
        ("Details", "— My first workshop manager"),
        ("Normal", "Prototyping · Laser cutting · Basic electronics"),
    ):
        assert line in lines
    assert word.links["https://irwell.example.org"] == "irwell.example.org"
    assert word.links["tel:+441614960142"] == "+44 161 496 0142"
    footer = word.parts["word/footer1.xml"].decode()
    assert "Philippa Corrigan-Osei" in footer
    assert 'w:instr="PAGE"' in footer


def test_dates_and_words_are_in_the_language_of_the_resume(renderer: Renderer) -> None:
    german = draw(renderer, load(SAMPLES["ingenieurin-timeline-de"]))
    assert "– heute" in german.text
    japanese = draw(renderer, load(SAMPLES["japanese-game-designer-flipped-ja"]))
    assert "2019.04 – 現在" in japanese.text
    for word, language in ((german, "de"), (japanese, "ja")):
        assert word.properties["language"] == language
        assert f'w:val="{language}' in styles(word, "lang")
        assert 'w:bidi="ar-SA"' in styles(word, "lang")


def styles(word: Word, element: str) -> str:
    """The tag of this name among the defaults of all styles."""
    defaults = word.parts["word/styles.xml"].decode().partition("</w:docDefaults>")[0]
    (tag,) = re.findall(f"<w:{element} [^>]*>", defaults)
    return str(tag)


@pytest.mark.parametrize(
    ("sample", "font"),
    [
        ("japanese-game-designer-flipped-ja", "Yu Gothic"),
        ("korean-marketer-polished-ko", "Malgun Gothic"),
        ("chinese-data-analyst-condensed-zh", "Microsoft YaHei"),
    ],
)
def test_east_asian_texts_have_the_font_of_their_language(
    renderer: Renderer, sample: str, font: str
) -> None:
    word = draw(renderer, load(SAMPLES[sample]))
    assert f'w:eastAsia="{font}"' in styles(word, "rFonts")
    assert f'w:eastAsia="{sample[-2:]}-' in styles(word, "lang")
    assert b"w:bidi/" not in word.parts["word/document.xml"]


def test_an_arabic_resume_reads_from_right_to_left_but_addresses_do_not(renderer: Renderer) -> None:
    word = draw(renderer, load(SAMPLES["arabic-teacher-elegant-ar"]))
    for paragraph in word.root.iter(f"{_W}p"):
        assert paragraph.find(f"{_W}pPr/{_W}bidi") is not None
    runs = {
        text_of(run): run.find(f"{_W}rPr/{_W}rtl") is not None for run in word.root.iter(f"{_W}r")
    }
    for text, is_rtl in runs.items():
        if re.search("[\u0600-\u06ff]", text):
            assert is_rtl
        elif re.search("[A-Za-z]", text):
            assert not is_rtl
    assert runs["\u200e+962 7 0000 0142"] is False
    assert runs["08/2019 – حتى الآن"] is True
    assert runs["English"] is False
    english = draw(renderer, with_section("summaries", {"text": "I know עברית 3, too (لغة)."}))
    found = [
        (text_of(run), run.find(f"{_W}rPr/{_W}rtl") is not None)
        for run in english.root.iter(f"{_W}r")
        if text_of(run) in "I know עברית 3, too (لغة)."
    ]
    assert found == [
        ("I know ", False), ("עברית 3", True), (", too (", False), ("لغة", True), (").", False),
    ]  # fmt: skip
    assert b"w:bidi/" not in english.parts["word/document.xml"]


@pytest.mark.parametrize("whose", [*EACH_SAMPLE, *PEOPLE])
def test_an_anonymous_document_has_no_name_address_or_number_in_any_part(
    renderer: Renderer, whose: str | tuple[str, str, str, str]
) -> None:
    document = load(SAMPLES[whose]) if isinstance(whose, str) else person(whose)
    word = draw(renderer, document, is_anonymous=True)
    for text in secrets_of(document):
        for part in word.parts.values():
            assert fold(text) not in fold(re.sub("<[^>]*>", "", part.decode()))
            assert text.encode() not in part
    assert word.links == {}
    assert word.properties["creator"] == "Candidate 7E2"
    assert next(word.lines()) == ("Title", "Candidate 7E2")


def test_the_properties_say_whose_it_is_and_no_program_or_time(renderer: Renderer) -> None:
    document = a_document(header={"name": "Ada " * 100}, title="CV")
    said = draw(renderer, document).properties
    assert (said["title"], said["creator"]) == ("CV", ("Ada " * 100)[:255])
    assert {said[name] for name in ("description", "lastModifiedBy", "subject")} == {None}
    assert said["created"] == said["modified"] == "1980-01-01T00:00:00Z"


def test_two_processes_write_the_same_bytes(renderer: Renderer) -> None:
    document = load(SAMPLES["all-26-section-types-newcondensed-en"])
    word = draw(renderer, document)
    with closing(Renderer([], timeout_s=60)) as other:
        assert draw(other, document).body == word.body
    assert word.dates == {(1980, 1, 1, 0, 0, 0)}
    assert word.modes == {0o600}


def test_no_text_breaks_the_document(renderer: Renderer) -> None:
    text = "a\x01b\x08 <w:p>&amp;</w:p>\ufffe]]> \U0001f600\x0bz\r\n\u2028q\tr {PAGE} \u202e"
    urls = [
        "https://x.example/ä ö",
        "https://x.example/\"'<>{}|^`\\",
        "https://[::1",
        "file:///etc/passwd",
        "javascript:alert(1)",
    ]
    items = [{"position": text, "workplace": text, "bullets": [text], "link": url} for url in urls]
    document = with_section("experiences", *items) | {"header": {"name": text, "email": text}}
    word = draw(renderer, document)
    assert absent([re.sub("[\x01\x08\ufffe]", "", text)], word.text) == []
    assert set(word.links) == {"https://x.example/%22'%3C%3E%7B%7D%7C%5E%60%5C"}


@pytest.mark.slow
def test_libreoffice_opens_the_samples_with_every_text(renderer: Renderer, tmp_path: Path) -> None:
    soffice = shutil.which("soffice")
    if soffice is None:
        pytest.skip("LibreOffice is not installed: apt install libreoffice-writer")
    documents = {name: load(path) for name, path in SAMPLES.items()}
    if JSON_RESUMES.exists():
        real = [shown_view(parse_imported(body).document) for _, body in iter_files(JSON_RESUMES)]
        documents |= {f"real-{number}": document for number, document in enumerate(real[:64])}
    for name, document in documents.items():
        (tmp_path / f"{name}.docx").write_bytes(draw(renderer, document).body)
    profile = f"-env:UserInstallation=file://{tmp_path}/profile"
    files = sorted(map(str, tmp_path.glob("*.docx")))
    (tmp_path / "fonts").symlink_to(FOLDER / "fonts")
    subprocess.run(
        [soffice, profile, "--headless", "--convert-to", "pdf", "--outdir", str(tmp_path), *files],
        check=True,
        timeout=280,
        capture_output=True,
        env=os.environ | {"XDG_DATA_HOME": str(tmp_path)},
    )

    for name, document in documents.items():
        body = (tmp_path / f"{name}.pdf").read_bytes()
        found = read_with_pdftotext(body) + read_with_pdftotext(body, "-raw")
        if name == "arabic-teacher-elegant-ar":  # poppler leaves out some of its vowel signs
            words = words_of(texts_of(document))
            assert sum(word in fold(found) for word in words) >= 0.9 * len(words)
        elif name not in CJK or find_cjk_fonts():
            assert absent(texts_of(document), found) == [], name
