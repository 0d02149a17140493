"""A JSON Resume with every field of version 1, and what has to come back of any.

Every field of the schema, and every older name, has its rule here: it comes back as it was, as a
month, or it is excused, with the reason. A field without a rule is an error. The schema is the one
that JSON Resume publishes.
"""

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jsonschema_rs

from resumes.analyzer import Resume, parse_imported, to_jsonresume
from tests.support.documents import public_view

# fmt: off
COMPLETE: Final[dict[str, Any]] = {
    "$schema": "https://example.org/resume-schema/v1.0.0/schema.json",
    "basics": {
        "name": "Ada Example", "label": "Analyst", "image": "https://example.org/ada.png",
        "email": "ada@example.org", "phone": "+44 20 0000 0000", "url": "https://example.org",
        "summary": "Writes programs.\nFor engines.",
        "location": {"address": "1 Example Street", "postalCode": "00000", "city": "London",
                     "region": "England", "countryCode": "GB"},
        "profiles": [
            {"network": "GitHub", "username": "ada", "url": "https://github.example/ada"},
            {"network": "Noteboard", "username": "ada-x", "url": "https://example.org/n/17"},
            {"network": "Chatter", "username": "@ada"},
        ],
    },
    "work": [
        {"name": "Engine Works", "location": "London, England", "description": "Maker of engines",
         "position": "Analyst", "url": "https://engines.example", "startDate": "2019-03-15",
         "endDate": "2021-12", "summary": "Wrote the notes.",
         "highlights": ["Found a fault", "Fixed it"]},
        {"name": "Own account", "startDate": "2022", "description": "Lessons"},
    ],
    "volunteer": [
        {"organization": "Code Club", "position": "Teacher", "url": "https://club.example",
         "startDate": "2018", "endDate": "2019-01-31", "summary": "Taught.",
         "highlights": ["Ten pupils"]},
    ],
    "education": [
        {"institution": "Example University", "url": "https://university.example",
         "area": "Mathematics, pure", "studyType": "Bachelor", "startDate": "2010-09",
         "endDate": "2013-06", "score": "3.7/4.0", "courses": ["Analysis", "Algebra"]},
    ],
    "awards": [
        {"title": "Medal", "date": "2020-11-01", "awarder": "Society - London",
         "summary": "For notes - and more"},
    ],
    "certificates": [
        {"name": "Engines", "date": "2020-05-06", "url": "https://c.example", "issuer": "Board, UK"},
    ],
    "publications": [
        {"name": "Notes", "publisher": "Memoirs", "releaseDate": "2017-08-10",
         "url": "https://memoirs.example/notes", "summary": "On the engine."},
    ],
    "skills": [{"name": "Analysis", "level": "Master", "keywords": ["Series", "Numbers"]}],
    "languages": [
        {"language": "English", "fluency": "Native speaker"},
        {"language": "French", "fluency": "Enough for maths"},
    ],
    "interests": [{"name": "Music", "keywords": ["Harp", "Flute"]}],
    "references": [
        {"name": "Cy Example"},
        {"name": "Bo Example", "reference": "She saw further."},
    ],
    "projects": [
        {"name": "Table", "description": "Of numbers.", "highlights": ["The first of its kind"],
         "keywords": ["Numbers"], "startDate": "2016-02", "endDate": "2016-03",
         "url": "https://table.example", "roles": ["Author"], "entity": "Engine Works",
         "type": "application"},
    ],
    "meta": {"canonical": "https://example.org/resume.json", "version": "v1.0.0"},
}
# fmt: on


def imported(document: Any) -> Resume:
    return parse_imported(json.dumps(document).encode())


def imported_view(document: Any) -> dict[str, Any]:
    """What is shown of a JSON Resume that was imported."""
    return public_view(imported(document).document)


def imported_items(document: Any, section: str) -> Any:
    return imported_view(document)["sections"][section]["items"]


def with_list(key: str, *entries: Any) -> dict[str, Any]:
    """A JSON Resume with one list."""
    return {"basics": {}, key: list(entries)}


def there_and_back(document: Any) -> dict[str, Any]:
    """The JSON Resume that is written of one that was imported."""
    return to_jsonresume(imported_view(document))


def entry_back(key: str, entry: Any) -> Any:
    """What becomes of one entry there and back."""
    [back] = there_and_back(with_list(key, entry))[key]
    return back


def warnings_of(document: Any) -> dict[str, str]:
    return {issue.path: issue.message for issue in imported(document).warnings}


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
        **_same("institution", "area", "studyType", "location", "score", "courses"),
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
        "keywords": Excused("they become one more of the highlights"),
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


def _with_keywords_as_highlight(project: dict[str, Any]) -> dict[str, Any]:
    others = {name: value for name, value in project.items() if name != "keywords"}
    if not (keywords := project.get("keywords")):
        return others
    return others | {"highlights": [*project.get("highlights", ()), ", ".join(keywords)]}


def _expected_entries(entries: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    if key == "projects":
        entries = [_with_keywords_as_highlight(entry) for entry in entries]
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


_JOINING: Final = Counter(dict.fromkeys(",-/", 2**62))


def characters(value: Any) -> Counter[str]:
    """What all texts in a value say together, without blanks and what joins texts."""
    return Counter("".join("".join(_iter_texts(value)).split())) - _JOINING


WRITTEN: Final[Mapping[str, str]] = {
    "summaries": "text",
    "findMeOnline": "title link",
    "experiences": "workplace position location link description bullets",
    "educations": "institution degree location gpa maxGpa bullets",
    "projects": "title link description bullets",
    "volunteering": "institution role description bullets",
    "publications": "title edition link description",
    "skills": "title description tags",
    "languages": "name levelText",
    "awards": "title description",
    "certificates": "title issuer",
    "interests": "title description",
    "quotes": "quote author",
    "references": "name",
    "additionalExperiences": "workplace position location link description bullets",
    "additionalPublications": "title edition link description",
    "additionalTechnologies": "title description tags",
}
"""The fields with texts that a JSON Resume has a place for, by section type."""


def characters_to_write(view: Mapping[str, Any]) -> Counter[str]:
    """The same of all that a JSON Resume has a place for."""
    header = {name: text for name, text in view["header"].items() if name != "location"}
    found = characters(header)  # countries may be written as codes
    for name, section in view["sections"].items():
        if name not in WRITTEN or (name == "quotes" and section.get("name") != "References"):
            continue
        fields = WRITTEN[name].split()
        for item in section["items"]:
            kept = {field: value for field, value in item.items() if field in fields}
            if "gpa" not in kept:
                kept.pop("maxGpa", None)  # says nothing alone
            found += characters(kept)
    return found


def _iter_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _iter_texts(each)


SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "jsonresume-schema-1.0.0.json").read_text("utf-8")
)

_VALIDATOR: Final = jsonschema_rs.Draft4Validator(SCHEMA, validate_formats=False)


def iter_faults(value: Any) -> Iterator[str]:
    """What of the value the schema forbids, each with its path; nothing for a valid value."""
    for error in _VALIDATOR.iter_errors(value):
        yield f"{error.instance_path}: {error.message}"


def iter_leaves(value: Any, *steps: Any) -> Iterator[tuple[Any, ...]]:
    """The ways to every value inside that is no object or list."""
    if isinstance(value, dict | list):
        for step, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from iter_leaves(inner, *steps, step)
    else:
        yield steps


def path_of(steps: tuple[Any, ...]) -> str:
    """The way as an issue has it: `work[0].name`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)[1:]


def replaced_at(resume: Mapping[str, Any], steps: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The same with another value there."""
    changed: dict[str, Any] = copy.deepcopy(dict(resume))
    at: Any = changed
    for step in steps[:-1]:
        at = at[step]
    at[steps[-1]] = value
    return changed
