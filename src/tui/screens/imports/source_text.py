"""The beginning of a file as lines of harmless text, with the place of the fault in them."""

from collections.abc import Sequence
from dataclasses import dataclass

from resumes.store.import_ledger import SOURCE_BYTES
from resumes.text import escaped
from tui.screens.imports.faults import Fault, decoded, find_fault

TAB = "  "


@dataclass(frozen=True, slots=True)
class Mark:
    """The character at fault: its line and column as people count them, from 1.

    `at` is its number in the line as it is shown, where escapes take more room.
    """

    line: int
    column: int
    at: int


@dataclass(frozen=True, slots=True)
class SourceText:
    """Lines in which nothing is acted upon. `mark` None: where the fault is cannot be said.

    `is_whole` is whether the file goes no further than what the ledger keeps of it.
    """

    lines: Sequence[str]
    mark: Mark | None
    is_whole: bool


def lay_out(source: bytes, fault: Fault) -> SourceText:
    """The bytes as lines; what is not UTF-8 and what would not be drawn are escapes in them."""
    text = decoded(source)
    lines = text.split("\n")
    at = find_fault(source, fault)
    mark = None if at is None else _mark(text, lines, at)
    return SourceText(tuple(map(_shown, lines)), mark, len(source) < SOURCE_BYTES)


def _mark(text: str, lines: Sequence[str], at: int) -> Mark:
    line = text.count("\n", 0, at)
    before = text[text.rfind("\n", 0, at) + 1 : at]
    # A fault at the end of a line, or of the text, stands behind its last character.
    return Mark(line + 1, len(before) + 1, min(len(_shown(before)), len(_shown(lines[line]))))


def _shown(line: str) -> str:
    return escaped(line.removesuffix("\r").replace("\t", TAB))
