"""Builders of documents, with defaults, and short ways to have them parsed."""

import json
from typing import Any

import pytest

from resumes.analyzer import DEFAULT_FORMAT, Format, Resume, parse
from resumes.errors import InvalidResume


def a_document(**members: Any) -> dict[str, Any]:
    """A small valid document; a member given replaces the default one."""
    return {"header": {"name": "Ada Lovelace"}, "sections": {}, **members}


def with_section(section_type: str, *items: Any, **fields: Any) -> dict[str, Any]:
    """A document with one section; `fields` are further fields of that section."""
    return a_document(sections={section_type: {"column": 0, **fields, "items": list(items)}})


def parsed(document: Any, accepted: Format = DEFAULT_FORMAT) -> Resume:
    return parse(json.dumps(document).encode(), accepted)


def stored(document: Any, accepted: Format = DEFAULT_FORMAT) -> Any:
    return json.loads(parsed(document, accepted).document)


def stored_item(section_type: str, item: dict[str, Any]) -> Any:
    return stored(with_section(section_type, item))["sections"][section_type]["items"][0]


def warnings_of(document: Any, accepted: Format = DEFAULT_FORMAT) -> dict[str, str]:
    return {issue.path: issue.message for issue in parsed(document, accepted).warnings}


def refusals_of(document: Any, accepted: Format = DEFAULT_FORMAT) -> list[str]:
    with pytest.raises(InvalidResume) as refusal:
        parsed(document, accepted)
    return [issue.message for issue in refusal.value.issues]


def refusal_of(document: Any, accepted: Format = DEFAULT_FORMAT) -> str:
    return refusals_of(document, accepted)[0]
