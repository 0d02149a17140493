"""What the service sets in a document: `isImported`, `record` and `show*`.

They are set where somebody reads a resume whole, and counted for nothing where they are stored:
an earlier version wrote them into the document, and a client may send them.
"""

from typing import Any

import orjson

from resumes.analyzer.kinds import shown_fields
from resumes.analyzer.sections import SECTION_TYPES


def whole_view(document: str | bytes) -> dict[str, Any]:
    """Return everything of a stored document, hidden and unknown fields too, with the fields that
    the service sets at the end of each item and of the document (docs/format.md)."""
    stored = take_out(orjson.loads(document))
    for name, section in stored["sections"].items():
        section_type = SECTION_TYPES.get(name)
        if section_type is None:
            continue
        for item in section.get("items") or []:
            shown = shown_fields(item, section_type.fields)
            item["record"] = name
            item.update((flag, field in shown) for field, flag in section_type.show_flags.items())
    stored["isImported"] = True
    return stored


def take_out(stored: dict[str, Any]) -> dict[str, Any]:
    """Return the document, without the fields that the service sets. It is changed in place;
    where it has not the shape of a resume, it is left as it is."""
    stored.pop("isImported", None)
    sections = stored.get("sections")
    for name, section in sections.items() if type(sections) is dict else ():
        section_type = SECTION_TYPES.get(name)
        items = section.get("items") if type(section) is dict else None
        if section_type is not None and type(items) is list:
            for item in items:
                if type(item) is dict:
                    for field in section_type.item.set_by_service:
                        item.pop(field, None)
    return stored
