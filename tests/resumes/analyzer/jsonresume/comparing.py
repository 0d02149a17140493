"""What of a JSON Resume has to come back when it was imported and is written again.

Every field of the schema, and every older name, has its rule here: it comes back as it was, as a
month, or it is excused, with the reason. A field without a rule is an error.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from resumes.analyzer.jsonresume.mapping import ALIKE, LISTS, PROFILES, SUMMARY


@dataclass(frozen=True)
class Back:
    """Comes back under this name."""

    name: str
    changed: Callable[[Any], Any] = lambda value: value


@dataclass(frozen=True)
class Excused:
    """Does not come back."""

    why: str


@dataclass(frozen=True)
class Unless:
    """Excused when the entry has this other field, else it comes back under that name."""

    other: str
    why: str


Rule = Back | Excused | Unless


def _same(*names: str) -> dict[str, Rule]:
    return {name: Back(name) for name in names}


def _dates(*names: str) -> dict[str, Rule]:
    # The analyzer format knows no days.
    return {name: Back(name, lambda date: date[: len("2020-01")]) for name in names}


_NO_FIELD = Excused("the analyzer format has no such field")
_PRIVATE = Excused("where somebody lives is not taken over")
_URL: dict[str, Rule] = {"url": Back("url"), "website": Back("url")}

ENTRIES: Mapping[str, Mapping[str, Rule]] = {
    "profiles": {
        **_same("network"),
        **_URL,
        "username": Unless("url", "the analyzer format has one field for both"),
    },
    "work": {
        **_same("name", "position", "location", "summary", "highlights"),
        **_dates("startDate", "endDate"),
        **_URL,
        "company": Back("name"),
        "description": Unless("summary", "the analyzer format has one field for both"),
    },
    "volunteer": {
        **_same("organization", "position", "summary", "highlights"),
        **_dates("startDate", "endDate"),
        "url": _NO_FIELD,
    },
    "education": {
        **_same("institution", "area", "studyType", "score", "courses"),
        **_dates("startDate", "endDate"),
        "gpa": Back("score"),
        "url": _NO_FIELD,
    },
    "awards": _same("title", "date", "awarder", "summary"),
    "certificates": {**_same("name", "date", "issuer"), "url": _NO_FIELD},
    "publications": {**_same("name", "publisher", "summary"), **_dates("releaseDate"), **_URL},
    "skills": _same("name", "level", "keywords"),
    "languages": _same("language", "fluency"),
    "interests": _same("name", "keywords"),
    "references": _same("name", "reference"),
    "projects": {
        **_same("name", "description", "highlights"),
        **_dates("startDate", "endDate"),
        **_URL,
        "keywords": _NO_FIELD,
        "roles": _NO_FIELD,
        "entity": _NO_FIELD,
        "type": _NO_FIELD,
    },
}

BASICS: Mapping[str, Rule] = {
    **_same("name", "label", "email", "phone", "summary"),
    **_URL,
    "location": Back("location", lambda place: _expected(place, LOCATION)),
    "profiles": Back("profiles", lambda profiles: _expected_entries(profiles, "profiles")),
    "image": _NO_FIELD,
    "picture": _NO_FIELD,
}

LOCATION: Mapping[str, Rule] = {
    **_same("city", "region", "countryCode"),
    "address": _PRIVATE,
    "postalCode": _PRIVATE,
}


def expected_back(resume: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Resume without what is excused, by its names of version 1.

    The file's own `$schema` and `meta` are excused as a whole, and empty values are as if absent,
    in lists too.
    """
    lists = {
        key: _expected_entries(entries, key)
        for key, entries in resume.items()
        if key not in ("$schema", "meta", "basics")
    }
    basics = _expected(resume.get("basics", {}), BASICS)
    return {"basics": basics, **{key: entries for key, entries in lists.items() if entries}}


def written_back(resume: Mapping[str, Any]) -> dict[str, Any]:
    """What of a written JSON Resume is compared: all but `$schema` and `meta`."""
    return {key: value for key, value in resume.items() if key not in ("$schema", "meta")}


def _expected_entries(entries: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    back = [each for entry in entries if (each := _expected(entry, ENTRIES[key]))]
    # Those with a text are quotes in the analyzer format, and come before those without.
    return sorted(back, key=lambda each: "reference" not in each) if key == "references" else back


def _expected(entry: Mapping[str, Any], rules: Mapping[str, Rule]) -> dict[str, Any]:
    back: dict[str, Any] = {}
    for name, value in entry.items():
        rule = rules[name]
        if isinstance(rule, Unless):
            rule = Excused(rule.why) if entry.get(rule.other) else Back(_instead(name))
        if isinstance(value, list):
            value = [each for each in value if each]
        if isinstance(rule, Back) and value and (kept := rule.changed(value)):
            back[rule.name] = kept
    return back


def _instead(name: str) -> str:
    return {"description": "summary"}.get(name, name)


def characters(value: Any) -> Counter[str]:
    """What all texts in a value say together, without blanks and what joins texts."""
    return Counter("".join("".join(_iter_texts(value)).split())) - _JOINING


_JOINING = Counter(dict.fromkeys(",-/", 2**62))


def characters_to_write(view: Mapping[str, Any]) -> Counter[str]:
    """The same of all that a JSON Resume has a place for."""
    header = {name: text for name, text in view["header"].items() if name != "location"}
    told = characters(header)  # countries may be written as codes
    for row in (SUMMARY, PROFILES, *LISTS, *ALIKE):
        section = view["sections"].get(row.section, {})
        if row.needs and section.get("name") != row.heading:
            continue
        fields = {field for part in row.parts for field in part.fields} - {"icon", "dateRange"}
        for item in section.get("items", ()):
            kept = {name: value for name, value in item.items() if name in fields}
            if "gpa" not in kept:
                kept.pop("maxGpa", None)  # says nothing alone
            told += characters(kept)
    return told


def _iter_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _iter_texts(each)
