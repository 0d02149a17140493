"""Compose the content and layout of a resume's pages, as a pure function of its document.

The template renders this page and adds only lines; `word` converts it to a Word document. Texts are
not changed, except that characters that no page can show are removed.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

from resumes.analyzer import DEFAULT_FORMAT, Format, iter_sections, list_title, plain_number
from resumes.analyzer.schema import LAYOUTS
from resumes.analyzer.view import ShownSection
from resumes.rendering import fonts
from resumes.rendering.anonymity import Anonymizer, alias_of
from resumes.rendering.phones import find_number
from resumes.rendering.shapes import NOT_DRAWN, ROWS, SectionShape, Shape
from resumes.rendering.words import RIGHT_TO_LEFT, UNSPACED, WORDS, find_language

DEFAULT_LAYOUT: Final = "double"
MAX_CHARS: Final = 200_000
LONG_CHARS: Final = 50_000
"""In longer resumes, lines are broken one at a time: optimizing whole paragraphs is slow."""

MAX_RUNNING_CHARS: Final = 60
"""The maximum length of the name at the foot of the second and later pages."""

CHARS_PER_TEXT: Final = 25
"""The number of characters that are added to the length of each text, for the box that it needs."""


class Paper(StrEnum):
    """The paper size."""

    A4 = "a4"
    LETTER = "letter"


class FileType(StrEnum):
    """The file types that a resume can be rendered as. The values are the suffixes."""

    PDF = "pdf"
    WORD = "docx"

    @property
    def noun(self) -> str:
        """The name of the file type in messages."""
        return "PDF" if self is FileType.PDF else "Word document"


@dataclass(frozen=True, slots=True)
class PageOptions:
    """Options for rendering a resume. If `layout` or `paper` is None, the resume's own style
    applies. Word documents ignore the layout."""

    layout: str | None = None
    paper: Paper | None = None
    is_anonymous: bool = False
    file_type: FileType = FileType.PDF
    first_page: int | None = None
    """The page number on which the resume begins in a book; None if it is not part of a book."""

    alias: str | None = None
    """The replacement for the name in an anonymous resume; if None, it is derived from the ID."""

    has_brand: bool = True
    """Whether the account's house style is shown, unless the resume's own style hides it."""


DEFAULT_CHOICE: Final = PageOptions()


class TooLong(Exception):
    """The resume has too much text to be rendered. `chars` is its number of characters."""

    def __init__(self, chars: int, file_type: FileType) -> None:
        super().__init__(
            f"Too long for a {file_type.noun}: the resume has {chars:,} characters; "
            f"the limit is {MAX_CHARS:,}"
        )
        self.chars = chars


def compose(
    document: Mapping[str, Any],
    resume_id: str,
    choice: PageOptions = DEFAULT_CHOICE,
    format: Format = DEFAULT_FORMAT,  # noqa: A002  (callers read best with this name)
    first_month: int | None = None,
    brand: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the page in the form that the template expects. Raises TooLong.

    `first_month` is the recorded number of January, if any. `brand` is the house style
    (`rendering.branding`), which the resume's style can hide.
    """
    header = {key: text for key, text in document["header"].items() if isinstance(text, str)}
    hidden = None
    if choice.is_anonymous:
        alias = choice.alias or alias_of(resume_id)
        hidden = Anonymizer({key: clean(text) or "" for key, text in header.items()}, alias)
    sections = [
        section
        for section in iter_sections(document, format, first_month)
        if not (hidden and hidden.leaves_out(section.type))
    ]
    headings = [section.heading for section in sections]
    texts = [*(text for section in sections for text in _iter_drawn(section)), *headings]
    counted = [*texts, *header.values()]
    chars = sum(map(len, counted)) + CHARS_PER_TEXT * len(counted)
    if chars > MAX_CHARS:
        raise TooLong(chars, choice.file_type)
    said = [text for section in sections for text in _iter_drawn(section, but=_QUOTED)]
    language = find_language([header.get("title") or "", *headings, *said])
    page = _Page(language, hidden)
    style = document.get("style") or {}
    layout = choice.layout or style.get("layout") or DEFAULT_LAYOUT
    name = clean(header.get("name"))
    if hidden and (name or choice.alias):
        name = hidden.alias
    title = list_title(page.text(document.get("title")), name)
    if style.get("hideBranding") or not choice.has_brand:
        brand = None
    has_contacts = hidden is None and not (brand and brand["replace_contact"])
    drawn = [
        (section.column, found)
        for section in sections
        if (found := page.section(section.type, section.heading, section.items))
    ]
    return {
        "file_type": choice.file_type,
        "title": title,
        "author": name or "",
        "lang": language,
        "dir": "rtl" if language in RIGHT_TO_LEFT else "ltr",
        # Hyphenation is rare in Hindi and related languages, and it is slow.
        "hyphenates": language not in RIGHT_TO_LEFT | {"hi", "mr", "ne"},
        "spaced": language not in UNSPACED,
        "linebreaks": "optimized" if chars <= LONG_CHARS else "simple",
        "paper": _paper(choice, style),
        "first_page": choice.first_page,
        "brand": brand,
        "layout": layout if layout in LAYOUTS else DEFAULT_LAYOUT,
        "style": style_of(style, language),
        "header": {
            "name": name or title,
            "running": (name or title)[:MAX_RUNNING_CHARS],
            "title": page.text(header.get("title")),
            "contacts": [*_iter_contacts(page, header)] if has_contacts else [],
        },
        "columns": _columns(drawn),
    }


def file_name(shown: str, resume_id: str, choice: PageOptions) -> str:
    """Return the file name that the list shows, with the suffix of the file type. The name of an
    anonymous file contains the alias instead of the person's name."""
    if choice.is_anonymous:
        shown = f"{alias_of(resume_id).replace(' ', '')}Resume.pdf"
    return f"{shown.removesuffix('.pdf')}.{choice.file_type}"


def _columns(drawn: list[tuple[int, dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    """Return the sections of each nonempty column, the main column first."""
    found = [[section for place, section in drawn if place == column] for column in range(3)]
    return [sections for sections in found if sections] or [[]]


def _paper(choice: PageOptions, style: Mapping[str, Any]) -> str:
    paper = choice.paper or (Paper.LETTER if style.get("isLetterSize") else Paper.A4)
    return "us-letter" if paper is Paper.LETTER else "a4"


_QUOTED: Final = frozenset({"author", "institution", "issuer", "location", "quote", "workplace"})
"""Fields with names and quotations, whose language can differ from the resume's."""


def _iter_drawn(section: ShownSection, but: Set[str] = frozenset()) -> Iterator[str]:
    # A section type that is not in the table is rendered with all of its fields.
    unseen = NOT_DRAWN | but if section.type in ROWS else frozenset[str]()
    for item in section.items:
        yield from _iter_texts({name: item[name] for name in item if name not in unseen})


def _iter_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _iter_texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _iter_texts(each)


# Contacts and links

_SCHEMES: Final = frozenset({"http", "https", "mailto", "tel"})
_DOMAIN: Final = re.compile(r"[\w-]+(\.[\w-]+)+(:\d+)?([/?#].*)?", re.ASCII)
_EMAIL: Final = re.compile(r"[^\s@:/?#]+@[^\s@:/?#]+")
MAX_URL_CHARS: Final = 2_000
"""The maximum length of a link. Typst rejects URLs of more than 8,000 bytes."""


def find_url(text: str) -> str | None:
    """Return the URL for a text that is a URL with an accepted scheme, or begins with a domain."""
    text = text.strip()
    if len(text) > MAX_URL_CHARS or not text.isprintable() or re.search(r"\s", text):
        return None
    if _DOMAIN.fullmatch(text):
        return f"https://{text}"
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    target = parts.netloc if parts.scheme in ("http", "https") else parts.path
    return text if parts.scheme in _SCHEMES and target else None


def _iter_contacts(page: "_Page", header: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for field in ("email", "phone", "website", "location"):
        text = page.text(header.get(field))
        if not text:
            continue
        url = None
        if field == "email" and _EMAIL.fullmatch(text):
            url = find_url(f"mailto:{text}")
        elif field == "phone" and (number := find_number(text)):
            url = find_url(f"tel:{number.dialed}")
        elif field == "website":
            url = find_url(text)
        yield {"text": _short_url(text) if field == "website" else text, "url": url}


def _short_url(text: str) -> str:
    return re.sub(r"^https?://(www\.)?", "", text).rstrip("/") or text


# Sections

_BREAKS: Final = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNSEEN: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff\ufffe\uffff]")
MAX_STACKED_CHARS: Final = 30
"""The limit of combining characters in Unicode's Stream-Safe Text Format (UAX 15, section 13)."""

_VIRAMA: Final = 9
"""The combining class of the signs that join two consonants."""

_BLANK: Final = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
"""The categories of characters that are invisible when printed."""

_FOREIGN: Final = re.compile(rf"[^\s\x00-\x7f]{{{2 * MAX_STACKED_CHARS},}}")


def _unstack(found: re.Match[str]) -> str:
    """Remove the combining characters beyond the limit, and split longer joined letters.

    Typst crashes on 128 joined consonants, and on 2,032 accents on one letter.
    """
    parts = list[str]()
    stacked, joins = 0, False
    for char in found[0]:
        category = unicodedata.category(char)
        is_mark = category[0] == "M" or category == "Cf"
        stacked = stacked + 1 if joins or is_mark else 0
        joins = char == "\u200d" or unicodedata.combining(char) == _VIRAMA
        if stacked <= MAX_STACKED_CHARS:
            parts.append(char)
        elif not is_mark:
            parts.append(f"\u200b{char}")
            stacked = 0
    return "".join(parts)


def clean(value: object) -> str | None:
    """Remove the characters that no page can show. Return None if no visible character is left."""
    if not isinstance(value, str):
        return None
    shown = _UNSEEN.sub("", _BREAKS.sub("\n", value)).replace("\t", " ").strip()
    if all(unicodedata.category(char) in _BLANK for char in shown):
        return None
    return _FOREIGN.sub(_unstack, shown)


class _Page:
    """Composes the parts of a page in one language."""

    def __init__(self, language: str, hidden: Anonymizer | None) -> None:
        self._words = WORDS.get(language, WORDS["en"])
        self._hidden = hidden
        self._has_eastern_dates = language in ("ja", "ko", "zh")

    def text(self, value: object) -> str | None:
        """Clean the text, and replace the person's name if the page is anonymous."""
        shown = clean(value)
        return shown if shown is None or self._hidden is None else self._hidden.replace(shown)

    def section(
        self, section_type: str, heading: str, items: Iterable[Mapping[str, Any]]
    ) -> dict[str, Any] | None:
        """Return the section in the template's form, or None if it has nothing to show."""
        row = ROWS.get(section_type)
        drawn: list[dict[str, Any]]
        if row is None:
            shape = Shape.TEXT
            drawn = [{"text": self._extra(item)} for item in items]
        else:
            shape = row.shape
            draw = {Shape.ENTRY: self._entry, Shape.LEVEL: self._level, Shape.TAGS: self._tags}
            if shape is Shape.SLICES:
                drawn = [found for item in items for found in self._slices(item)]
            else:
                drawn = [draw.get(shape, self._texts)(row, item) for item in items]
        shown = [item for item in drawn if any(item.values())]
        if not shown:
            return None
        return {"heading": self.text(heading) or section_type, "shape": shape.value, "items": shown}

    def _entry(self, row: SectionShape, item: Mapping[str, Any]) -> dict[str, Any]:
        get = _getter(row, item)
        link = None if self._hidden else self.text(get("link"))
        text = self.text(get("text"))
        if grade := self._grade(get("grade"), get("max_grade")):
            # Some analyzers write the label of the grade here, but the page already adds it.
            text = grade if text in (None, self._words.grade) else f"{grade}\n{text}"
        entry = {
            "title": self.text(get("title")),
            "sub": self.text(get("sub")),
            "by": self.text(get("by")),
            "dates": self._dates(get("dates")),
            "place": self.text(get("place")),
            "text": text,
            "bullets": [line for each in get("bullets") or () if (line := self.text(each))],
            "link": find_url(link) if link else None,
            "shown-link": _short_url(link) if link else None,
        }
        if entry["title"] is None:
            part = "sub" if entry["sub"] else "by"
            entry["title"], entry[part] = entry[part], None
        return entry

    def _level(self, row: SectionShape, item: Mapping[str, Any]) -> dict[str, Any]:
        get = _getter(row, item)
        level = get("level")
        share = None if level is None else max(0.0, min(1.0, level / row.full_level))
        title, note = self.text(get("title")), self.text(get("note"))
        return {"title": title or note or "", "note": note if title else None, "level": share}

    def _tags(self, row: SectionShape, item: Mapping[str, Any]) -> dict[str, Any]:
        get = _getter(row, item)
        tags = [tag for each in get("tags") or () if (tag := self.text(each))]
        return {"title": self.text(get("title")), "text": self.text(get("text")), "tags": tags}

    def _texts(self, row: SectionShape, item: Mapping[str, Any]) -> dict[str, Any]:
        return {part: self.text(item.get(name)) for part, name in row.parts.items()}

    def _slices(self, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        slices = [part for part in item.get("data") or () if self.text(part.get("title"))]
        values = [min(1e6, max(0.0, part.get("value") or 0)) for part in slices]
        whole = sum(values)
        for part, value in zip(slices, values, strict=True):
            share = value / whole if whole else 0.0
            percent = f"{share:.0%}" if whole else None
            yield {"title": self.text(part.get("title")), "level": share, "note": percent}

    def _extra(self, item: object) -> str | None:
        """Return all texts of an item whose section type is not in the table, one per line."""
        texts = [*_iter_texts(item)]
        if self._hidden is not None:
            texts = [text for text in texts if find_url(text) is None]
        return self.text("\n".join(texts))

    def _grade(self, grade: object, most: object) -> str | None:
        grade, most = self.text(grade), self.text(most)
        if grade is None:
            return None
        return f"{self._words.grade} {grade}" + (f" / {most}" if most else "")

    def _dates(self, fields: Mapping[str, Any] | None) -> str | None:
        """Format dates as `02/2018 – Present`. Months count from 0 (docs/format.md, Dates)."""
        if not fields:
            return None
        begin = self._instant(fields.get("fromYear"), fields.get("fromMonth"))
        end = self._instant(fields.get("toYear"), fields.get("toMonth"))
        if fields.get("isOngoing"):
            end = self._words.present
        if begin and end and begin != end:
            return f"{begin} – {end}"
        return begin or (f"– {end}" if end and not fields.get("isOngoing") else end) or None

    def _instant(self, year: float | None, month: float | None) -> str:
        if year is None:
            return ""
        shown = plain_number(year)
        if month is None or month not in range(12):
            return shown
        number = f"{int(month) + 1:02}"
        return f"{shown}.{number}" if self._has_eastern_dates else f"{number}/{shown}"


def _getter(row: SectionShape, item: Mapping[str, Any]) -> Any:
    return lambda part: item.get(row.parts.get(part, ""))


# Style

SIZES: Final = (8.4, 9.0, 9.6, 10.2, 10.8)
LEADINGS: Final = (0.26, 0.35, 0.48)
SPACINGS: Final = (0.7, 0.85, 1.0, 1.2, 1.4)
MARGINS_MM: Final = (9, 12, 15, 18, 21, 24)
SHARES: Final = (0.58, 0.63, 0.67, 0.71)
EXTRAS_PT: Final = (0, 5, 10, 16, 22)

DEFAULT_COLOUR: Final = "#1f5f7a"
CONTRAST: Final = 4.5
"""The minimum contrast between a text and its background (WCAG 2.2, 1.4.3, level AA)."""

_BODY_FONTS: Final = {
    "opensans": "Open Sans",
    "roboto": "Roboto",
    "ptsans": "Open Sans",
    "interui": "Inter",
}
_SERIF: Final = "Libertinus Serif"
_SERIF_HEADINGS: Final = frozenset(
    {"bitter", "tinos", "volkhov", "robotoslab", "playfair", "abril", "gelasio"}
)


def style_of(style: Mapping[str, Any], language: str) -> dict[str, Any]:
    """Convert the resume's style to the sizes, colors and fonts that the template expects."""
    colours = [text for text in style.get("colors") or () if isinstance(text, str)]
    accent = _rgb(colours[0] if colours else DEFAULT_COLOUR)
    second = _rgb(colours[1]) if len(colours) > 1 else accent
    white = (255, 255, 255)
    solid = legible(accent, white)
    tint = _mixed(accent, white, 0.09)
    body = _BODY_FONTS.get(str(style.get("fontBody") or "").lower(), "Open Sans")
    heading = str(style.get("fontHeading") or "").lower()
    return {
        "size": _pick(SIZES, style.get("fontSize"), 2),
        "leading": _pick(LEADINGS, style.get("lineHeightOption"), 1),
        "spacing": _pick(SPACINGS, style.get("marginOption"), 2),
        "margin": _pick(MARGINS_MM, style.get("pageMarginOption"), 2),
        "share": _pick(SHARES, style.get("columnLayoutOption"), 1),
        "extra": _pick(EXTRAS_PT, style.get("headerExtraSpacing"), 0),
        "accent": _hex(solid),
        "second": _hex(legible(second, white)),
        "solid": _hex(solid),
        "tint": _hex(tint),
        "accent_on_tint": _hex(legible(accent, tint)),
        "second_on_tint": _hex(legible(second, tint)),
        "body": body,
        "heading": _SERIF if heading in _SERIF_HEADINGS else body,
        "serif": _SERIF,
        "fallbacks": fonts.fallbacks(language),
    }


def _pick(values: tuple[float, ...], option: object, default: int) -> float:
    """Return the value for the option's number, which is limited to the valid range."""
    number = option if isinstance(option, int | float) and not isinstance(option, bool) else default
    return values[int(max(0, min(len(values) - 1, number)))]


Rgb = tuple[float, float, float]


def _rgb(colour: str) -> Rgb:
    digits = colour.lstrip("#")
    if len(digits) in (3, 4):
        digits = "".join(2 * digit for digit in digits)
    try:
        red, green, blue = (int(digits[at : at + 2], 16) for at in (0, 2, 4))
    except ValueError:
        return _rgb(DEFAULT_COLOUR)
    return red, green, blue


def _hex(colour: Rgb) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in colour)


def _mixed(colour: Rgb, other: Rgb, share: float) -> Rgb:
    red, green, blue = (
        share * own + (1 - share) * two for own, two in zip(colour, other, strict=True)
    )
    return red, green, blue


def contrast(one: Rgb, other: Rgb) -> float:
    """Return the contrast ratio of two colors, from 1 to 21 (WCAG 2.2)."""
    darker, lighter = sorted(map(_luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Rgb) -> float:
    parts = (part / 255 for part in colour)
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def legible(colour: Rgb, ground: Rgb) -> Rgb:
    """Darken the color until it is legible on the light background `ground`."""
    black = (0, 0, 0)
    for step in range(51):
        darker = _mixed(colour, black, 1 - step / 50)
        rounded = tuple(map(round, darker))
        if contrast((rounded[0], rounded[1], rounded[2]), ground) >= CONTRAST:
            return darker
    return black
