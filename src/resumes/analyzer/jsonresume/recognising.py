"""Whether a document is a JSON Resume, told by its shape."""

from typing import Any, Final

from resumes.analyzer.jsonresume.mapping import KEYS, LISTS

# Names that the analyzer format has nowhere, so that a list of this name is no slip of its writer.
_TELLING: Final = frozenset({"work", "education"})
_CONTENT: Final = frozenset(KEYS) - {"$schema", "meta"}
_FIELDS: Final = {
    row.key: {name for part in row.parts for name in part.names}
    for row in LISTS
    if row.key in _TELLING
}


def is_json_resume(document: Any) -> bool:
    """Whether a JSON value is a JSON Resume and nothing else (docs/format.md, JSON Resume).

    What has `header` or `sections` is an analyzer document, however broken. Otherwise an object
    `basics` tells, or `$schema`, or entries of `work` or `education` among nothing unknown.
    """
    if type(document) is not dict or "header" in document or "sections" in document:
        return False
    if type(document.get("basics")) is dict:
        return True
    if document.keys().isdisjoint(_CONTENT):
        return False
    return _names_the_schema(document.get("$schema")) or (
        document.keys() <= set(KEYS)
        and any(_has_entries(document.get(key), _FIELDS[key]) for key in _TELLING)
    )


def _names_the_schema(schema: Any) -> bool:
    if type(schema) is not str:
        return False
    address = schema.lower()
    # Offers of jobs have a schema beside that of resumes.
    return ("jsonresume" in address or "resume-schema" in address) and "job" not in address


def _has_entries(listed: Any, fields: set[str]) -> bool:
    if type(listed) is not list or not listed:
        return False
    return all(type(entry) is dict and not entry.keys().isdisjoint(fields) for entry in listed)
