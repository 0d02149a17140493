"""Read the objects of a JSON Resume, whose fields can have any values.

Values that cannot be used and fields that are never requested are omitted with a warning, so that
the warnings name everything that was not used.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from resumes.analyzer.findings import Findings, printable

NO_PLACE = "has no counterpart in the analyzer format: left out"
NO_TEXT = "is not text: left out"
NO_LIST = "is not a list: left out"
NO_OBJECT = "is not an object: left out"


def find_text(value: Any) -> str | None:
    """Return a text or number as text, or None for any other value."""
    if type(value) is str:
        return value
    return str(value) if type(value) is int or type(value) is float else None


def is_blank(value: Any) -> bool:
    """Return whether the value is null, an empty or blank text, or an empty list or object."""
    if type(value) is str:
        return not value or value.isspace()
    return value is None or value == [] or value == {}


_LANGUAGE: Final = re.compile(r"[a-z]{2}(?:[-_][A-Za-z0-9]{2,8})?", re.ASCII)
# At least one key must be in this set, or {"id": "5", "no": "7"} would be a text in two languages.
_LANGUAGES: Final = frozenset(
    {"ar", "cs", "da", "de", "en", "es", "fi", "fr", "hi", "it", "ja", "ko", "nl", "pl", "pt",
     "ro", "ru", "sv", "tr", "uk", "zh"}
)  # fmt: skip


def find_languages(value: Mapping[str, Any]) -> list[str]:
    """Return the languages of an object such as `{"en": …, "de": …}`; for other objects, none."""
    if not value or not all(map(_LANGUAGE.fullmatch, value)):
        return []
    if _LANGUAGES.isdisjoint(key[:2] for key in value):
        return []
    return [key for key in value if not is_blank(value[key])]


class EntryReader:
    """An object of a JSON Resume, of which each field is read once. Blank fields count as missing.

    `left` contains the fields that have not been read yet. `is_mere_text` is true if the entry is a
    text instead of an object; the text is treated as its only field.
    """

    __slots__ = ("findings", "is_mere_text", "left")

    def __init__(
        self, values: Mapping[str, Any], findings: Findings, *, is_mere_text: bool = False
    ) -> None:
        self.findings = findings
        self.left = {
            name: value
            for name, each in values.items()
            if not is_blank(value := self._translated(name, each))
        }
        self.is_mere_text = is_mere_text

    def _translated(self, name: str, value: Any) -> Any:
        """If the value is a text in several languages, return one of them, preferably English."""
        if type(value) is not dict or not (languages := find_languages(value)):
            return value
        chosen = next((key for key in languages if key[:2] == "en"), languages[0])
        if len(languages) > 1:
            remark = f"is in {len(languages)} languages: only {printable(chosen)} is used"
            self.findings.warn(name, remark)
        return value[chosen]

    def find_text(self, *names: str) -> str | None:
        """Return the first text in these fields, and warn about different texts in the others."""
        found: str | None = None
        for name in names:
            if (value := self.left.pop(name, None)) is None:
                continue
            text = find_text(value)
            if text is None:
                self.findings.warn(name, NO_TEXT)
            elif found is None:
                found = text
            elif text != found:
                self.findings.warn(name, NO_PLACE)
        return found

    def texts(self, name: str) -> list[str]:
        """Return the texts in the field, which can be a list or a single text.

        If the list contains an object, its name is used."""
        if find_text(self.left.get(name)) is not None:
            return [self.find_text(name) or ""]
        entries = self.iter_objects(name, "name", otherwise=NO_TEXT)
        found = [entry.find_text("name", "title") for _, entry in entries]
        return [text for text in found if text is not None]

    def iter_objects(
        self, name: str, sole_field: str, *, otherwise: str = NO_OBJECT
    ) -> Iterator[tuple[int, "EntryReader"]]:
        """Yield the position and a reader of each object in the list in the field.

        A text is read as an object with only `sole_field`; `otherwise` is the warning about any
        other value. The iterator must be exhausted, since it also reports the unused fields.
        """
        listed = self.left.pop(name, [])
        if type(listed) is not list:
            self.findings.warn(name, NO_LIST)
            return
        self.findings.scope.append(name)
        for position, value in enumerate(listed):
            if is_blank(value):
                continue
            if type(value) is dict:
                with opened(value, self.findings, position) as entry:
                    yield position, entry
            elif (text := find_text(value)) is not None:
                yield position, EntryReader({sole_field: text}, self.findings, is_mere_text=True)
            else:
                self.findings.warn(position, otherwise)
        self.findings.scope.pop()

    def inner(self, name: str) -> AbstractContextManager["EntryReader"]:
        """Open the object in the field, or an empty object; warn about a value of another type."""
        value = self.left.pop(name, {})
        if type(value) is not dict:
            self.findings.warn(name, NO_OBJECT)
            value = {}
        return opened(value, self.findings, name)


@contextmanager
def opened(
    values: Mapping[str, Any], findings: Findings, *steps: str | int
) -> Iterator[EntryReader]:
    """Open the object at these steps from the current scope, and report its unused fields."""
    findings.scope.extend(steps)
    entry = EntryReader(values, findings)
    yield entry
    for name in entry.left:
        findings.warn(name, NO_PLACE)
    del findings.scope[len(findings.scope) - len(steps) :]
