"""Reading an object of a JSON Resume, whose fields may hold anything.

What is requested and cannot be used is reported and left out, as is what nobody requests. So a
document shows what of it was not used.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from resumes.analyzer.findings import Findings

NO_PLACE = "has no counterpart in the analyzer format: left out"
NO_TEXT = "is not text: left out"
NO_LIST = "is not a list: left out"
NO_OBJECT = "is not an object: left out"


def find_text(value: Any) -> str | None:
    """Return the value as text, a number in its digits; None when it is something else."""
    if type(value) is str:
        return value
    return str(value) if type(value) is int or type(value) is float else None


def is_blank(value: Any) -> bool:
    """Return whether nothing is lost with the value: null, white space, an empty list or object."""
    if type(value) is str:
        return not value or value.isspace()
    return value is None or value == [] or value == {}


class EntryReader:
    """An object of a JSON Resume. Its fields are read one by one, each once; blank ones are missing.

    `left` are those that nobody has read yet. `is_mere_text`: there is no object, but a text that
    counts as its one field.
    """

    __slots__ = ("findings", "is_mere_text", "left")

    def __init__(
        self, values: Mapping[str, Any], findings: Findings, *, is_mere_text: bool = False
    ) -> None:
        self.left = {name: value for name, value in values.items() if not is_blank(value)}
        self.findings = findings
        self.is_mere_text = is_mere_text

    def find_text(self, *names: str) -> str | None:
        """Return the text of the first of the fields that has one; another text in the others is reported."""
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
        """Return the texts in the field: of a list, or a single one. A listed object counts by its name."""
        if find_text(self.left.get(name)) is not None:
            return [self.find_text(name) or ""]
        entries = self.iter_objects(name, "name", otherwise=NO_TEXT)
        found = [entry.find_text("name", "title") for _, entry in entries]
        return [text for text in found if text is not None]

    def iter_objects(
        self, name: str, sole_field: str, *, otherwise: str = NO_OBJECT
    ) -> Iterator[tuple[int, "EntryReader"]]:
        """Yield the objects listed in the field, each with its position; report what is not an object.

        A text counts as an object with nothing but `sole_field`; `otherwise` is what is said of
        anything else. To be read to its end.
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
        """Open the object in the field, empty when there is none; report anything else in it."""
        value = self.left.pop(name, {})
        if type(value) is not dict:
            self.findings.warn(name, NO_OBJECT)
            value = {}
        return opened(value, self.findings, name)


@contextmanager
def opened(
    values: Mapping[str, Any], findings: Findings, *steps: str | int
) -> Iterator[EntryReader]:
    """Open an object this many steps into the one that is open; report what was not used after the block."""
    findings.scope.extend(steps)
    entry = EntryReader(values, findings)
    yield entry
    for name in entry.left:
        findings.warn(name, NO_PLACE)
    del findings.scope[len(findings.scope) - len(steps) :]
