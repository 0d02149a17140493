"""Convert a page to a Word document with one column, in styles that the user can change.

`resumes.rendering.page` composes the page, so the document and the PDF have the same texts. Only
the child process loads this module, as a file, so it must not import other modules of the service.
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

MADE_AT: Final = datetime(1980, 1, 1)  # noqa: DTZ001  (the earliest time in a zip, which has no zone)
"""The time of the document and its parts. It is constant so that equal pages give equal bytes."""

MAX_PROPERTY_CHARS: Final = 255
DOTS: Final = 5
MAX_LOGO_MM: Final = 55

# These fonts come with Word. Where a font is missing, programs choose another for the language.
_LATIN: Final = "Calibri"
_SERIF: Final = "Cambria"
_EAST_ASIAN: Final = {"ja": "Yu Gothic", "ko": "Malgun Gothic"}
_INDIC: Final = frozenset(["bn", "gu", "hi", "kn", "ml", "mr", "ne", "or", "pa", "si", "ta", "te"])
_SCALE: Final = 1.12
"""The factor by which Calibri must be larger than the fonts of the PDF to look the same size."""

_REGIONS: Final = {"ar": "ar-SA", "he": "he-IL", "ja": "ja-JP", "ko": "ko-KR", "zh": "zh-CN"}
"""Languages that Word recognizes only with a region."""

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
"""The font size, the space above and the space below of each style, relative to the text size."""

_UNUSED: Final = ("thumbnail", "extended-properties", "stylesWithEffects", "customXml")
"""The relationships of those parts of python-docx's template that a document does not need."""


_CLASSES: Final = {"L": "L", "R": "R", "AL": "R", "AN": "R", "EN": "N", "NSM": "M", "BN": "M"}
"""Unicode's bidirectional classes in groups: L and R are letters from left to right and from right
to left, N are numbers, and M are marks."""


class Part(NamedTuple):
    """A text in a line. An address (`is_address`) reads from left to right in any script."""

    text: str | None
    url: str | None = None
    is_address: bool = False


def build(page: Mapping[str, Any], logo: bytes | None = None) -> bytes:
    """Return the document as bytes. `logo` is the house style's logo as PNG."""
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
        writer.brand(page["brand"], logo)
    return _packed(document)


class _Writer:
    """Writes lines and items to a document. Each `Shape` has a method of the same name."""

    def __init__(self, document: DocumentObject, *, is_rtl: bool) -> None:
        self._document, self._is_rtl = document, is_rtl
        self._style_ids = {style.name: style.style_id for style in document.styles}
        self._link_ids = dict[str, str]()
        self._end: Any = document.element.body.sectPr
        """The element before which paragraphs are added. python-docx would search for it each time."""

        # Without the mark, neighboring addresses would together be ordered from left to right.
        self._between = " · \u200f" if is_rtl else " · "

    def line(self, style: str, *parts: Part) -> None:
        """Add a paragraph with the nonempty parts, if there are any."""
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
        # Some programs reject the document if a URL contains other characters.
        url = quote(url, safe="%/:?#[]@!$&'()*+,;=~")
        if url not in self._link_ids:
            self._link_ids[url] = link_id = f"link{len(self._link_ids)}"
            rels = self._document.part.rels
            rels.add_relationship(RELATIONSHIP_TYPE.HYPERLINK, url, link_id, is_external=True)
        return self._link_ids[url]

    def _iter_directed(self, part: Part) -> Iterator[tuple[str, bool]]:
        """Yield pieces of the text, each with whether it reads from right to left, for Word.

        Similarly to the Unicode Bidirectional Algorithm, other characters between letters of one
        direction have this direction, and digits have the direction of the letters before them.
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
        """Add a heading, a line of details, the text and the bullets."""
        self.line("Heading 2", Part(item["title"]))
        details = [Part(item[name]) for name in ("sub", "by", "dates", "place")]
        self.line("Details", *details, Part(item["shown-link"], item["link"], is_address=True))
        self._paragraphs(item["text"])
        for bullet in item["bullets"]:
            self.line("List Bullet", Part(bullet))

    def level(self, item: Mapping[str, Any]) -> None:
        """Add a list item with a title and the level, in words or as dots."""
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
        """Add the text's paragraphs."""
        self._paragraphs(item["text"])

    def quote(self, item: Mapping[str, Any]) -> None:
        """Add a quotation and its author."""
        self._paragraphs(item["text"], "Quote")
        self.line("Details", Part(item["by"] and f"— {item['by']}"))

    def footer(self, name: str) -> None:
        """Add a footer with the name and page number to the second and later pages."""
        section = self._document.sections[0]
        section.different_first_page_header_footer = True
        paragraph: Any = section.footer.paragraphs[0]._p
        self._fill(paragraph, "Footer", [Part(name + self._between)])
        _add(_add(paragraph, "w:fldSimple", "w:instr", "PAGE"), "w:r")

    def brand(self, brand: Mapping[str, Any], logo: bytes | None) -> None:
        """Add the house style to the first page's header, and its footer to all pages."""
        section = self._document.sections[0]
        header = section.first_page_header
        if logo is not None:
            paragraph = self._branded(header, "Header")
            paragraph.paragraph_format.space_after = Mm(2)
            picture = paragraph.add_run().add_picture(io.BytesIO(logo))
            if picture.width > Mm(MAX_LOGO_MM):
                picture.height = round(picture.height * Mm(MAX_LOGO_MM) / picture.width)
                picture.width = Mm(MAX_LOGO_MM)
            picture._inline.docPr.set("descr", brand["alt"])
            for side in "TBLR":  # otherwise, LibreOffice adds 3 mm
                picture._inline.set(f"dist{side}", "0")
        if brand["name"]:
            for run in self._branded(header, "Header", brand["name"]).runs:
                run.font.bold = run.font.cs_bold = True
        for line in filter(None, brand["lines"]):
            self._branded(header, "Header", line)
        empty, *shown = header.paragraphs
        if shown:
            empty._p.getparent().remove(empty._p)
            shown[-1].paragraph_format.space_after = Mm(4)
        for footer in (section.first_page_footer, section.footer) if brand["footer"] else ():
            self._branded(footer, "Footer", brand["footer"])

    def _branded(self, place: Any, style: str, *texts: str) -> Any:
        paragraph = place.add_paragraph()
        self._fill(paragraph._p, style, [Part(text, is_address=True) for text in texts])
        return paragraph


def _add(parent: Any, name: str, attribute: str = "", value: str = "") -> Any:
    """Append a child element, optionally with an attribute, and return it."""
    child = parent.makeelement(qn(name), {qn(attribute): value} if attribute else None)
    parent.append(child)
    return child


def _set_up(document: DocumentObject, page: Mapping[str, Any]) -> None:
    """Set the properties and the paper size, and remove unused parts of python-docx's template."""
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
    """Set the styles' fonts for the language, and their sizes and colors as in the page."""
    language, look = page["lang"], page["style"]
    styles: Any = document.styles
    # Remove the theme's fonts, and the letter spacing, which would separate joined Arabic letters.
    for kind in ("rFonts", "rPr/w:spacing", "rPr/w:kern", "pBdr"):
        for element in styles.element.xpath(f".//w:{kind}"):
            element.getparent().remove(element)
    [defaults] = styles.element.xpath("w:docDefaults/w:rPrDefault/w:rPr")
    east_asian = _EAST_ASIAN.get(language, "Microsoft YaHei")
    others = "Nirmala UI" if language in _INDIC else "Arial"
    names = {"ascii": _LATIN, "hAnsi": _LATIN, "eastAsia": east_asian, "cs": others}
    fonts = OxmlElement("w:rFonts", {qn(f"w:{name}"): font for name, font in names.items()})
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
        # Also set the size for scripts such as Arabic: python-docx does not set it.
        [size] = style.element.xpath("w:rPr/w:sz")
        for other in style.element.xpath("w:rPr/w:szCs"):
            other.getparent().remove(other)
        size.addnext(OxmlElement("w:szCs", {qn("w:val"): size.get(qn("w:val"))}))


def _packed(document: DocumentObject) -> bytes:
    """Return the document as bytes, with the same time for each part."""
    written, packed = io.BytesIO(), io.BytesIO()
    document.save(written)
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(packed, "w") as target:
        for part in source.infolist():
            entry = zipfile.ZipInfo(part.filename, MADE_AT.timetuple()[:6])
            entry.external_attr = 0o600 << 16  # readable for its owner when it is unpacked
            target.writestr(entry, source.read(part), zipfile.ZIP_DEFLATED)
    return packed.getvalue()
