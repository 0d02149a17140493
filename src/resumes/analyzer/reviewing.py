"""What there was to say about a resume that is stored by now."""

from typing import Any

import orjson

from resumes.analyzer.format import Format
from resumes.analyzer.sections import SECTION_TYPES
from resumes.analyzer.validation import validate
from resumes.errors import Issue


def stored_warnings(document: str | bytes) -> tuple[Issue, ...]:
    """The warnings about a stored document, but for those about what the service sets itself.

    At most 50, in document order, and then one that counts the rest. Section types that were
    admitted when it was stored are taken as admitted.
    """
    stored = orjson.loads(document)
    sections = stored["sections"]
    for name, section in sections.items():
        _leave_out_service_fields(name, section)
    stored.pop("isImported", None)
    return validate(stored, Format(extra_section_types=frozenset(sections))).all_warnings()


def _leave_out_service_fields(name: str, section: dict[str, Any]) -> None:
    section_type = SECTION_TYPES.get(name)
    if section_type is None:
        return
    for item in section.get("items") or []:
        for field in section_type.set_by_service:
            item.pop(field, None)
