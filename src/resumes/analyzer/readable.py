"""A stored resume laid out line by line, as people read it in a terminal.

Texts are as the resume has them: whoever shows them makes them harmless.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from resumes.analyzer.kinds import Number
from resumes.analyzer.schema import SECTION_TYPES, Format
from resumes.analyzer.view import ShownSection, date_range, iter_sections, plain_number

CONTACTS: Final = ("email", "phone", "location", "website")
"""Fields of the header by which its owner is reached."""

LEADS: Final = ("position", "degree", "role", "title", "name")
"""What an item is first of all; the first that there is leads."""

SECONDS: Final = ("workplace", "institution", "author", "issuer", "contact", "edition")
"""Whose, where or by whom, on the same line."""

PLACES: Final = ("location", "link")
"""Where more of it is, after the dates."""

PROSE: Final = ("text", "description")

BULLET: Final = "  • "


class Role(StrEnum):
    """What a phrase is, which decides how it looks."""

    NAME = "name"
    TITLE = "title"
    HEADING = "heading"
    LEAD = "lead"
    TEXT = "text"
    DETAIL = "detail"
    QUOTE = "quote"


class Phrase(NamedTuple):
    """A text without line ends."""

    text: str
    role: Role = Role.TEXT


class Line(NamedTuple):
    """Phrases that stand in one line, with a dot between them; a blank line has none.

    `mark` is before the first. Where the line has to wrap, what follows is indented alike.
    """

    phrases: Sequence[Phrase] = ()
    mark: str = ""


BLANK: Final = Line()


def header_lines(document: Mapping[str, Any]) -> Iterator[Line]:
    """Yield whose resume it is and how to reach them."""
    header = document["header"]
    for field, role in (("name", Role.NAME), ("title", Role.TITLE)):
        yield from _text_lines(header.get(field) or "", role=role)
    if contacts := [header[field] for field in CONTACTS if header.get(field)]:
        yield _line(contacts)


def section_lines(document: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the sections that have something to show, each after a blank line.

    Whatever was admitted when it was stored is read, also when settings have changed since.
    """
    for section in iter_sections(document, Format(frozenset(document["sections"]))):
        if section.items:
            yield BLANK
            yield _line([section.heading.upper()], Role.HEADING)
            yield from _items(section)


def _items(section: ShownSection) -> Iterator[Line]:
    for number, item in enumerate(section.items):
        lines = list(_item(section.type, item))
        # Items of several lines stand apart, short ones together.
        if number and len(lines) > 1:
            yield BLANK
        yield from lines


def _item(section_type: str, item: Mapping[str, Any]) -> Iterator[Line]:
    if section_type not in SECTION_TYPES:
        # What fields of extra section types mean is not known: they are shown by name.
        for field, value in item.items():
            yield from _text_lines(f"{field}: {_plain(value)}" if field else _plain(value))
        return
    yield from _first_line(section_type, item)
    dates = date_range(item.get("dateRange") or {})
    if details := [*filter(None, [dates]), *_present(item, *PLACES)]:
        yield _line(details, Role.DETAIL)
    for text in _present(item, *PROSE):
        yield from _text_lines(text)
    # The highest possible grade says nothing on its own.
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
    # A quote's author stands below it.
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
    """Yield a pie chart of one's time as a list."""
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
    """Yield a line for each of the text's own; the mark stands before the first."""
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
