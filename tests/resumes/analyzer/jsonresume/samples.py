"""A JSON Resume with every field of version 1, and its parts one by one."""

import json
from typing import Any

from resumes.analyzer import Resume, parse_imported, public_view, to_jsonresume

COMPLETE: dict[str, Any] = {
    "$schema": "https://example.org/resume-schema/v1.0.0/schema.json",
    "basics": {
        "name": "Ada Example",
        "label": "Analyst",
        "image": "https://example.org/ada.png",
        "email": "ada@example.org",
        "phone": "+44 20 0000 0000",
        "url": "https://example.org",
        "summary": "Writes programs.\nFor engines.",
        "location": {
            "address": "1 Example Street",
            "postalCode": "00000",
            "city": "London",
            "region": "England",
            "countryCode": "GB",
        },
        "profiles": [
            {"network": "GitHub", "username": "ada", "url": "https://github.example/ada"},
            {"network": "Noteboard", "username": "ada-x", "url": "https://example.org/n/17"},
            {"network": "Chatter", "username": "@ada"},
        ],
    },
    "work": [
        {
            "name": "Engine Works",
            "location": "London, England",
            "description": "Maker of engines",
            "position": "Analyst",
            "url": "https://engines.example",
            "startDate": "2019-03-15",
            "endDate": "2021-12",
            "summary": "Wrote the notes.",
            "highlights": ["Found a fault", "Mended it"],
        },
        {"name": "Own account", "startDate": "2022", "description": "Lessons"},
    ],
    "volunteer": [
        {
            "organization": "Code Club",
            "position": "Teacher",
            "url": "https://club.example",
            "startDate": "2018",
            "endDate": "2019-01-31",
            "summary": "Taught.",
            "highlights": ["Ten pupils"],
        }
    ],
    "education": [
        {
            "institution": "Example University",
            "url": "https://university.example",
            "area": "Mathematics, pure",
            "studyType": "Bachelor",
            "startDate": "2010-09",
            "endDate": "2013-06",
            "score": "3.7/4.0",
            "courses": ["Analysis", "Algebra"],
        }
    ],
    "awards": [
        {
            "title": "Medal",
            "date": "2020-11-01",
            "awarder": "Society - London",
            "summary": "For notes - and more",
        }
    ],
    "certificates": [
        {"name": "Engines", "date": "2020-05-06", "url": "https://c.example", "issuer": "Board, UK"}
    ],
    "publications": [
        {
            "name": "Notes",
            "publisher": "Memoirs",
            "releaseDate": "2017-08-10",
            "url": "https://memoirs.example/notes",
            "summary": "On the engine.",
        }
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
        {
            "name": "Table",
            "description": "Of numbers.",
            "highlights": ["The first of its kind"],
            "keywords": ["Numbers"],
            "startDate": "2016-02",
            "endDate": "2016-03",
            "url": "https://table.example",
            "roles": ["Author"],
            "entity": "Engine Works",
            "type": "application",
        }
    ],
    "meta": {"canonical": "https://example.org/resume.json", "version": "v1.0.0"},
}


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
