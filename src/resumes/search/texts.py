"""Collect the texts of a resume that are searched, in groups of fields."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from resumes.analyzer import list_title, load_stored
from resumes.analyzer.kinds import Added, Group, Kind, Listing, Text
from resumes.analyzer.schema import HEADER, SECTION_TYPES

NAME, EMAIL, TITLE, PLACE, SKILL, WORK, SCHOOL, LABEL, OTHER = GROUPS = "netpswclo"
"""The letters of the groups."""

PREFIXES: Final = {
    "name": NAME,
    "title": TITLE,
    "email": EMAIL,
    "place": PLACE,
    "skill": SKILL,
    "work": WORK,
    "school": SCHOOL,
    "label": LABEL,
}
"""The letter of a group for each prefix in a query."""

_HEADER_GROUPS: Final = {"name": NAME, "email": EMAIL, "title": TITLE, "location": PLACE}

_SECTION_GROUPS: Final = {
    "skills": SKILL,
    "technologies": SKILL,
    "languages": SKILL,
    "industryExperiences": SKILL,
    "strengths": SKILL,
    "experiences": WORK,
    "volunteering": WORK,
    "projects": WORK,
    "educations": SCHOOL,
    "courses": SCHOOL,
    "certificates": SCHOOL,
}

_PICTURES: Final = frozenset({"companyLogo", "image"})
"""Fields that contain the address of a picture, which no view shows."""


def section_group(section_type: str) -> str:
    """Return the group for the items of a section type. `additionalExperiences` has the same group
    as `experiences`, and so on; section types without a group have `OTHER`."""
    name = section_type.removeprefix("additional")
    return _SECTION_GROUPS.get(name[:1].lower() + name[1:], OTHER)


def group_texts(
    document: str | bytes, *, title: str | None, name: str | None, label: str | None
) -> dict[str, list[str]]:
    """Return the texts of a stored resume by group, as they were sent.

    The result contains only texts that people see: no hidden, unknown or style fields, icons, or
    addresses of pictures. `title` and `name` are the values of these columns of `resumes`. Raises
    StoreIncompatible for a damaged document.
    """
    stored = load_stored(document)
    texts: dict[str, list[str]] = {group: [] for group in GROUPS}
    for field, read_field in _HEADER.items():
        texts[_HEADER_GROUPS.get(field, OTHER)] += read_field(stored["header"].get(field))
    texts[TITLE].append(list_title(title, name))
    texts[LABEL] += [label] if label else []
    for section_type, section in stored["sections"].items():
        items = section.get("items") if type(section) is dict else None
        if type(items) is not list or not items:
            continue
        texts[OTHER] += _read_text(section.get("name"))
        if section_type not in _SECTIONS:
            texts[OTHER] += _iter_strings(items)
            continue
        group, readers = _SECTIONS[section_type]
        found = texts[group]
        for item in items:
            for field, value in item.items() if type(item) is dict else ():
                read = readers.get(field)
                if read is _read_text and type(value) is str:
                    found.append(value)  # a faster path for most fields
                elif read is not None:
                    found += read(value)
    return texts


_Read = Callable[[Any], list[str]]
"""A function that returns the shown texts in a stored value, which may be damaged."""


def _read_text(value: Any) -> list[str]:
    return [value] if type(value) is str else []


def _read_list(value: Any) -> list[str]:
    return [entry for entry in value if type(entry) is str] if type(value) is list else []


def _readers(fields: Mapping[str, Kind]) -> dict[str, _Read]:
    """Return a reader for each of the fields that can contain texts."""
    readers = {field: _reader(kind) for field, kind in fields.items() if field not in _PICTURES}
    return {field: read for field, read in readers.items() if read}


def _reader(kind: Kind) -> _Read | None:
    match kind:
        case Added() if of_kind := _reader(kind.kind):
            return lambda value: of_kind(kind.public(value))
        case Listing() if of_entry := _reader(kind.entry):
            if of_entry is _read_text:
                return _read_list
            return lambda value: (
                [text for entry in value for text in of_entry(entry)] if type(value) is list else []
            )
        case Group() if of_fields := _readers(kind.fields):
            return lambda value: (
                [
                    text
                    for field in of_fields
                    if field in value
                    for text in of_fields[field](value[field])
                ]
                if type(value) is dict
                else []
            )
    return _read_text if type(kind) is Text else None


_HEADER: Final = _readers(HEADER.fields)
_SECTIONS: Final = {
    name: (section_group(name), _readers(section_type.fields))
    for name, section_type in SECTION_TYPES.items()
}


def _iter_strings(value: Any) -> Iterator[str]:
    """Yield all strings in the items of an extra section type, whose fields are unknown."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _iter_strings(each)
