"""Lay out a stored resume as lines for reading in a terminal.

The resume's texts are not changed, so callers must escape them before they show them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from resumes.analyzer.kinds import Number
from resumes.analyzer.schema import SECTION_TYPES, Format
from resumes.analyzer.view import ShownSection, date_range, iter_sections, plain_number

CONTACTS: Final = ("email", "phone", "location", "website")
"""The contact fields of the header."""

LEADS: Final = ("position", "degree", "role", "title", "name")
"""Fields that can begin an item, in the order in which they are shown."""

SECONDS: Final = ("workplace", "institution", "author", "issuer", "contact", "edition")
"""Fields that follow LEADS on the same line."""

PLACES: Final = ("location", "link")
"""Fields that are shown after the dates."""

PROSE: Final = ("text", "description")

BULLET: Final = "  • "


class Role(StrEnum):
    """The role of a phrase, which determines its style."""

    NAME = "name"
    TITLE = "title"
    HEADING = "heading"
    LEAD = "lead"
    TEXT = "text"
    DETAIL = "detail"
    QUOTE = "quote"


class Phrase(NamedTuple):
    """A text without line breaks. `source` is the type of its section, or its header field."""

    text: str
    role: Role = Role.TEXT
    source: str = ""


class Line(NamedTuple):
    """Phrases on one line, separated by dots. A blank line has no phrases.

    `mark` comes before the first phrase. If the line wraps, it is indented by the width of `mark`.
    """

    phrases: Sequence[Phrase] = ()
    mark: str = ""


BLANK: Final = Line()


def header_lines(document: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the lines of the header: the person's name and contacts."""
    header = document["header"]
    for field, role in (("name", Role.NAME), ("title", Role.TITLE)):
        for line in _text_lines(header.get(field) or "", role=role):
            yield _from(field, line)
    contacts = [field for field in CONTACTS if header.get(field)]
    if contacts:
        yield Line([Phrase(_on_one_line(header[field]), source=field) for field in contacts])


def _from(source: str, line: Line) -> Line:
    return line._replace(phrases=[phrase._replace(source=source) for phrase in line.phrases])


def section_lines(document: Mapping[str, Any], first_month: int | None) -> Iterator[Line]:
    """Yield the lines of the nonempty sections, with a blank line before each section.

    Sections of all types are shown, even if the settings no longer allow a type. `first_month` is
    the recorded number that stands for January, or None.
    """
    for section in iter_sections(document, Format(frozenset(document["sections"])), first_month):
        if section.items:
            yield BLANK
            yield _from(section.type, _line([section.heading.upper()], Role.HEADING))
            for line in _items(section):
                yield _from(section.type, line)


def _items(section: ShownSection) -> Iterator[Line]:
    for number, item in enumerate(section.items):
        lines = list(_item(section.type, item))
        # Put a blank line before items that are longer than one line.
        if number and len(lines) > 1:
            yield BLANK
        yield from lines


def _item(section_type: str, item: Mapping[str, Any]) -> Iterator[Line]:
    if section_type not in SECTION_TYPES:
        # Show the field names of extra section types, since the meaning of their fields is unknown.
        for field, value in item.items():
            yield from _text_lines(f"{field}: {_plain(value)}" if field else _plain(value))
        return
    yield from _first_line(section_type, item)
    dates = date_range(item.get("dateRange") or {})
    if details := [*filter(None, [dates]), *_present(item, *PLACES)]:
        yield _line(details, Role.DETAIL)
    for text in _present(item, *PROSE):
        yield from _text_lines(text)
    # The highest possible grade means nothing without the grade.
    grade = "/".join(_present(item, "gpa", "maxGpa")) if "gpa" in item else ""
    if grades := [*([f"Grade {grade}"] if grade else ()), *_present(item, "gpaText")]:
        yield _line(grades)
    for text in item.get("bullets", ()):
        yield from _text_lines(text, mark=BULLET)
    if tags := item.get("tags"):
        yield _line(tags)
    for text in _present(item, "quote"):
        yield from _text_lines(text, mark="  ", role=Role.QUOTE)
        yield from (_line([name], mark="  — ") for name in _present(item, "author"))
    yield from _slices(item)


def _first_line(section_type: str, item: Mapping[str, Any]) -> Iterator[Line]:
    # The author of a quote is shown below it.
    names = [*_present(item, *LEADS), *(() if "quote" in item else _present(item, *SECONDS))]
    phrases = [Phrase(_on_one_line(text)) for text in [*names, *_level(section_type, item)]]
    if names:
        phrases[0] = Phrase(phrases[0].text, Role.LEAD)
    if phrases:
        yield Line(phrases)


def _level(section_type: str, item: Mapping[str, Any]) -> Iterator[str]:
    level = item.get("level")
    kind = SECTION_TYPES[section_type].fields.get("level")
    if level is not None and isinstance(kind, Number):
        highest = int(kind.highest)
        filled = max(0, min(int(level), highest))
        dots = "●" * filled + "○" * (highest - filled)
        yield f"{dots} {plain_number(level)}/{highest}"
    yield from _present(item, "levelText")


def _slices(item: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the slices of a pie chart as a list."""
    if "pieces" in item and not item.get("data"):
        yield _line([f"{plain_number(item['pieces'])} pieces"])
    for piece in item.get("data", ()):
        value = [plain_number(piece["value"])] if "value" in piece else []
        yield _line([*_present(piece, "title"), *value], mark=BULLET)


def _present(item: Mapping[str, Any], *fields: str) -> list[str]:
    return [item[field] for field in fields if field in item]


def _line(texts: Iterable[str], role: Role = Role.TEXT, *, mark: str = "") -> Line:
    return Line([Phrase(_on_one_line(text), role) for text in texts], mark)


def _text_lines(text: str, *, mark: str = "", role: Role = Role.TEXT) -> Iterator[Line]:
    """Yield a `Line` for each line of the text. Only the first has the mark."""
    for number, line in enumerate(text.splitlines()):
        yield Line([Phrase(line, role)], " " * len(mark) if number else mark)


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _plain(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return plain_number(value)
        case dict():
            return " ".join(map(_plain, value.values()))
        case list():
            return ", ".join(map(_plain, value))
        case _:
            return str(value)
