"""A page as a Word document: one column, in styles that its reader can change.

The page is what `resumes.rendering.page` composes, so that a document has the texts of the PDF. Only the
child process loads this module, as a file: it imports nothing of the service.
"""

import io
import re
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from docx import Document
from docx.document import Document as DocumentObject
from docx.enum.style import WD_STYLE_TYPE
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml.ns import qn
from docx.oxml.parser import OxmlElement
from docx.shared import Mm, Pt, RGBColor

MADE_AT: Final = datetime(1980, 1, 1)  # noqa: DTZ001  (the first time that a zip can say, without a zone)
"""The time in the document and of its parts, so that the same page gives the same bytes."""

MAX_PROPERTY_CHARS: Final = 255
DOTS: Final = 5
MAX_LOGO_MM: Final = 55

# Fonts that come with Word; where they are missing, programs choose others for the language.
_LATIN: Final = "Calibri"
_SERIF: Final = "Cambria"
_EAST_ASIAN: Final = {"ja": "Yu Gothic", "ko": "Malgun Gothic"}
_INDIC: Final = frozenset(["bn", "gu", "hi", "kn", "ml", "mr", "ne", "or", "pa", "si", "ta", "te"])
_SCALE: Final = 1.12
"""How much larger Calibri has to be than the fonts of the PDF to look as large."""

_REGIONS: Final = {"ar": "ar-SA", "he": "he-IL", "ja": "ja-JP", "ko": "ko-KR", "zh": "zh-CN"}
"""Languages that Word knows only with a region."""

_STYLES: Final = {
    "Normal": (1.0, 0.0, 0.25),
    "Title": (2.4, 0.0, 0.1),
    "Subtitle": (1.2, 0.0, 0.3),
    "Details": (1.0, 0.0, 0.25),
    "Heading 1": (1.35, 1.2, 0.3),
    "Heading 2": (1.05, 0.5, 0.05),
    "List Bullet": (1.0, 0.0, 0.15),
    "Quote": (1.0, 0.0, 0.25),
    "Header": (0.93, 0.0, 0.0),
    "Footer": (0.85, 0.0, 0.0),
}
"""The size of each style, and the space above and below, in sizes of a text."""

_UNUSED: Final = ("thumbnail", "extended-properties", "stylesWithEffects", "customXml")
"""Parts of python-docx's template that a document can do without, by their relationships."""


_CLASSES: Final = {"L": "L", "R": "R", "AL": "R", "AN": "R", "EN": "N", "NSM": "M", "BN": "M"}
"""Bidirectional classes of characters: letters from left or from right, numbers and marks."""


class Part(NamedTuple):
    """A text of a line. `is_address` if it reads from left to right in any script."""

    text: str | None
    url: str | None = None
    is_address: bool = False


def build(page: Mapping[str, Any], logo: bytes | None = None) -> bytes:
    """Return the document. `logo` is the picture of the page's house style."""
    document = Document()
    _set_up(document, page)
    _set_styles(document, page)
    writer = _Writer(document, is_rtl=page["dir"] == "rtl")
    header = page["header"]
    contacts = [Part(each["text"], each["url"], is_address=True) for each in header["contacts"]]
    writer.line("Title", Part(header["name"]))
    writer.line("Subtitle", Part(header["title"]))
    writer.line("Details", *contacts)
    for section in (section for column in page["columns"] for section in column):
        writer.line("Heading 1", Part(section["heading"]))
        for item in section["items"]:
            getattr(writer, section["shape"])(item)
    writer.footer(header["running"])
    if page["brand"]:
        _add_brand(document, page["brand"], logo)
    return _packed(document)


class _Writer:
    """Writes lines to a document; and items, each by the method with the name of its `Shape`."""

    def __init__(self, document: DocumentObject, *, is_rtl: bool) -> None:
        self._document, self._is_rtl = document, is_rtl
        self._style_ids = {style.name: style.style_id for style in document.styles}
        self._link_ids = dict[str, str]()
        self._end: Any = document.element.body.sectPr
        """Before which paragraphs are added. The methods of python-docx look through all for the place."""

        # The mark keeps two addresses beside each other from reading from left to right as a whole.
        self._between = " · \u200f" if is_rtl else " · "

    def line(self, style: str, *parts: Part) -> None:
        """Add a paragraph with those parts that have a text, if there are any."""
        if present := [part for part in parts if part.text]:
            paragraph = self._end.makeelement(qn("w:p"))
            self._end.addprevious(paragraph)
            self._fill(paragraph, style, present)

    def _fill(self, paragraph: Any, style: str, parts: Iterable[Part]) -> None:
        properties = _add(paragraph, "w:pPr")
        _add(properties, "w:pStyle", "w:val", self._style_ids[style])
        if self._is_rtl:
            _add(properties, "w:bidi")
        for number, part in enumerate(parts):
            self._add_runs(paragraph, Part(self._between if number else ""))
            self._add_runs(paragraph, part)

    def _add_runs(self, place: Any, part: Part) -> None:
        if part.url is not None:
            place = _add(place, "w:hyperlink", "r:id", self._get_link_id(part.url))
        for text, is_rtl in self._iter_directed(part):
            run = _add(place, "w:r")
            if part.url is not None or is_rtl:
                properties = _add(run, "w:rPr")
                if part.url is not None:
                    _add(properties, "w:rStyle", "w:val", self._style_ids["Hyperlink"])
                if is_rtl:
                    _add(properties, "w:rtl")
            for number, line in enumerate(text.split("\n")):
                if number:
                    _add(run, "w:br")
                _add(run, "w:t", "xml:space", "preserve").text = line

    def _get_link_id(self, url: str) -> str:
        # Programs that are strict about addresses refuse a whole document for one with other signs.
        url = quote(url, safe="%/:?#[]@!$&'()*+,;=~")
        if url not in self._link_ids:
            self._link_ids[url] = link_id = f"link{len(self._link_ids)}"
            rels = self._document.part.rels
            rels.add_relationship(RELATIONSHIP_TYPE.HYPERLINK, url, link_id, is_external=True)
        return self._link_ids[url]

    def _iter_directed(self, part: Part) -> Iterator[tuple[str, bool]]:
        """Yield the text in pieces, each with whether it reads from right to left, which Word has to be
        told. Other signs between letters go with these if they agree, and digits with those before, much
        as in the Unicode Bidirectional Algorithm.
        """
        text = part.text or ""
        classes = "".join(_CLASSES.get(unicodedata.bidirectional(char), "O") for char in text)
        if part.is_address and self._is_rtl and "R" not in classes:
            yield f"\u200e{text}", False
            return
        own, other = "RL" if self._is_rtl else "LR"
        pieces, end = list[tuple[str, bool]](), 0
        for found in re.finditer(f"{other}(?:[^{own}]*[{other}NM])?", classes):
            pieces += [(text[end : found.start()], self._is_rtl)]
            pieces += [(text[found.start() : found.end()], not self._is_rtl)]
            end = found.end()
        yield from (piece for piece in [*pieces, (text[end:], self._is_rtl)] if piece[0])

    def _paragraphs(self, text: str | None, style: str = "Normal") -> None:
        for line in (text or "").split("\n"):
            self.line(style, Part(line.strip()))

    def entry(self, item: Mapping[str, Any]) -> None:
        """Add a heading, a line with the rest of the head, the text and the bullets."""
        self.line("Heading 2", Part(item["title"]))
        details = [Part(item[name]) for name in ("sub", "by", "dates", "place")]
        self.line("Details", *details, Part(item["shown-link"], item["link"], is_address=True))
        self._paragraphs(item["text"])
        for bullet in item["bullets"]:
            self.line("List Bullet", Part(bullet))

    def level(self, item: Mapping[str, Any]) -> None:
        """Add an entry of a list: a title, and its level in words or as dots."""
        note, share = item["note"], item["level"]
        if note is None and share is not None:
            filled = round(share * DOTS)
            note = "●" * filled + "○" * (DOTS - filled)
        self.line("List Bullet", Part(item["title"]), Part(note))

    slices = level

    def tags(self, item: Mapping[str, Any]) -> None:
        """Add the title, the text and a line of tags."""
        self.line("Heading 2", Part(item["title"]))
        self._paragraphs(item["text"])
        self.line("Normal", *map(Part, item["tags"]))

    def text(self, item: Mapping[str, Any]) -> None:
        """Add the paragraphs of a text."""
        self._paragraphs(item["text"])

    def quote(self, item: Mapping[str, Any]) -> None:
        """Add a quotation and its author."""
        self._paragraphs(item["text"], "Quote")
        self.line("Details", Part(item["by"] and f"— {item['by']}"))

    def footer(self, name: str) -> None:
        """Put the name and the number of the page at the foot of the second and later pages."""
        section = self._document.sections[0]
        section.different_first_page_header_footer = True
        paragraph: Any = section.footer.paragraphs[0]._p
        self._fill(paragraph, "Footer", [Part(name + self._between)])
        _add(_add(paragraph, "w:fldSimple", "w:instr", "PAGE"), "w:r")


def _add_brand(document: DocumentObject, brand: Mapping[str, Any], logo: bytes | None) -> None:
    """Put the house style above the first page, and its footer below each."""
    section = document.sections[0]
    first = section.first_page_header
    if logo is not None:
        picture = first.paragraphs[0].add_run().add_picture(io.BytesIO(logo))
        if picture.width > Mm(MAX_LOGO_MM):
            picture.height = round(picture.height * Mm(MAX_LOGO_MM) / picture.width)
            picture.width = Mm(MAX_LOGO_MM)
        picture._inline.docPr.set("descr", brand["alt"])
    if brand["name"]:
        first.add_paragraph(style="Header").add_run(brand["name"]).bold = True
    for line in brand["lines"]:
        first.add_paragraph(line, style="Header")
    for footer in (section.first_page_footer, section.footer) if brand["footer"] else ():
        footer.add_paragraph(brand["footer"], style="Footer")


def _add(parent: Any, name: str, attribute: str = "", value: str = "") -> Any:
    """Return a new last child element, perhaps with an attribute."""
    child = parent.makeelement(qn(name), {qn(attribute): value} if attribute else None)
    parent.append(child)
    return child


def _set_up(document: DocumentObject, page: Mapping[str, Any]) -> None:
    """Set the properties and the paper, and take out what python-docx's template has besides."""
    for rels in (document.part.rels, document.part.package.rels):
        for name in [name for name, rel in rels.items() if rel.reltype.endswith(_UNUSED)]:
            del rels[name]
    for style in list(document.styles):
        if style.type is WD_STYLE_TYPE.TABLE and style.name != "Normal Table":
            style.delete()
    [mode] = document.settings.element.xpath(".//w:compatSetting[@w:name='compatibilityMode']")
    mode.set(qn("w:val"), "15")
    properties = document.core_properties
    properties.title = page["title"][:MAX_PROPERTY_CHARS]
    properties.author = page["author"][:MAX_PROPERTY_CHARS]
    properties.language = page["lang"]
    properties.comments = properties.last_modified_by = ""
    properties.created = properties.modified = MADE_AT
    section, margin = document.sections[0], Mm(page["style"]["margin"])
    size = (210, 297) if page["paper"] == "a4" else (215.9, 279.4)
    section.page_width, section.page_height = map(Mm, size)
    section.left_margin = section.right_margin = section.top_margin = section.bottom_margin = margin
    section.footer_distance = Mm(page["style"]["margin"] / 2)


def _set_styles(document: DocumentObject, page: Mapping[str, Any]) -> None:
    """Give the styles the fonts of the language, and the sizes and colors of the page."""
    language, look = page["lang"], page["style"]
    styles: Any = document.styles
    # No fonts of a theme; and letters are not set apart, since those of Arabic are joined.
    for kind in ("rFonts", "rPr/w:spacing", "rPr/w:kern", "pBdr"):
        for element in styles.element.xpath(f".//w:{kind}"):
            element.getparent().remove(element)
    [defaults] = styles.element.xpath("w:docDefaults/w:rPrDefault/w:rPr")
    fonts = OxmlElement("w:rFonts")
    east_asian = _EAST_ASIAN.get(language, "Microsoft YaHei")
    others = "Nirmala UI" if language in _INDIC else "Arial"
    for name, font in {
        "ascii": _LATIN,
        "hAnsi": _LATIN,
        "eastAsia": east_asian,
        "cs": others,
    }.items():
        fonts.set(qn(f"w:{name}"), font)
    defaults.insert(0, fonts)
    kind = (
        "eastAsia" if language in ("ja", "ko", "zh") else "bidi" if page["dir"] == "rtl" else "val"
    )
    for name in ("val", kind):
        defaults.find(qn("w:lang")).set(qn(f"w:{name}"), _REGIONS.get(language, language))
    accent = RGBColor.from_string(look["accent"].removeprefix("#"))
    link = styles.add_style("Hyperlink", WD_STYLE_TYPE.CHARACTER, builtin=True)
    link.font.color.rgb, link.font.underline = accent, True
    styles.add_style("Details", WD_STYLE_TYPE.PARAGRAPH).base_style = styles["Normal"]
    size_pt = look["size"] * _SCALE
    for name, (scale, above, below) in _STYLES.items():
        style = styles[name]
        font, spacing = style.font, style.paragraph_format
        is_heading = name.startswith(("Title", "Heading"))
        font.name = _SERIF if is_heading and look["heading"] == look["serif"] else None
        font.bold = font.cs_bold = is_heading
        font.italic = font.cs_italic = name == "Quote"
        font.color.rgb = accent if is_heading else RGBColor(0x1D, 0x21, 0x26)
        font.size = Pt(round(2 * size_pt * scale) / 2)
        spacing.space_before = Pt(above * size_pt * look["spacing"])
        spacing.space_after = Pt(below * size_pt)
        spacing.line_spacing = 1 + look["leading"] / 2
        # The size of Arabic and the like, which python-docx does not set.
        [size] = style.element.xpath("w:rPr/w:sz")
        for other in style.element.xpath("w:rPr/w:szCs"):
            other.getparent().remove(other)
        size.addnext(OxmlElement("w:szCs", {qn("w:val"): size.get(qn("w:val"))}))


def _packed(document: DocumentObject) -> bytes:
    """Return the document's bytes, with the same time for each part."""
    written, packed = io.BytesIO(), io.BytesIO()
    document.save(written)
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(packed, "w") as target:
        for part in source.infolist():
            entry = zipfile.ZipInfo(part.filename, MADE_AT.timetuple()[:6])
            entry.external_attr = 0o600 << 16  # its owner may read it when it is unpacked
            target.writestr(entry, source.read(part), zipfile.ZIP_DEFLATED)
    return packed.getvalue()
