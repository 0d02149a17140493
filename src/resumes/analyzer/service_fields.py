"""What the service sets in a document, taken out of one that is stored."""

from typing import Any

from resumes.analyzer.sections import SECTION_TYPES, SectionType


def take_out(stored: dict[str, Any]) -> bool:
    """The document is as it was sent: without `isImported`, `record` and `show*`.

    Whether what was taken out is what the service sets: true, the type of the section, true or
    false. Where the document has not the shape of one, it is left as it is.
    """
    is_ours = stored.pop("isImported", None) is True
    sections = stored.get("sections")
    if type(sections) is not dict:
        return is_ours
    for name, section in sections.items():
        section_type = SECTION_TYPES.get(name)
        items = section.get("items") if type(section) is dict else None
        if section_type is not None and type(items) is list:
            is_ours &= _take_out_of_items(items, section_type)
    return is_ours


def _take_out_of_items(items: list[Any], section_type: SectionType) -> bool:
    is_ours = True
    for item in items:
        if type(item) is dict:
            take = item.pop
            is_ours &= take("record", None) == section_type.name
            for flag in section_type.show_flags:
                if type(take(flag, False)) is not bool:
                    is_ours = False
    return is_ours
