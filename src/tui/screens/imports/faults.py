"""Where in a file's text that stands which kept it out."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Final

from resumes.analyzer.findings import printable
from resumes.store.import_ledger import FileRow

_SPACE: Final = re.compile(r"[ \t\r\n\ufeff]*")
_LINE: Final = re.compile(r"line (\d+)")
_ITEM: Final = re.compile(r"item (\d+)")
_DECODER: Final = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is known of where it is. `place` is which resume of several, as reports say it."""

    path: str | None = None
    byte_offset: int | None = None
    place: str = ""


def fault_of(file: FileRow) -> Fault:
    """Where the file's ledger row says that it is; of a file of several, its first problem."""
    if file.items is not None and file.items.problems:
        first = file.items.problems[0]
        return Fault(first.path, first.byte_offset, first.place)
    return Fault(file.path, file.byte_offset)


def decoded(source: bytes) -> str:
    r"""The bytes as text, those that are not UTF-8 as `\xff`."""
    return source.decode("utf-8", "backslashreplace")


def find_fault(source: bytes, fault: Fault) -> int | None:
    """The number of the character in `decoded(source)`; None if that cannot be said.

    Where the path leads to nothing, since a field is missing, it is what should hold it.
    """
    line, item = _LINE.fullmatch(fault.place), _ITEM.fullmatch(fault.place)
    if fault.place and not line and not item:
        return None  # in an archive, of which the source is no text
    start = _start_of_line(source, int(line[1])) if line else 0
    if start is None:
        return None
    if fault.byte_offset is not None and item is None:
        return _at_byte(source, start, fault.byte_offset)
    path = f"[{int(item[1]) - 1}]" if item else ""
    if fault.path:
        path = f"{path}.{fault.path}" if path else fault.path
    if not path:
        return len(decoded(source[:start])) if line else None
    return _find_value(decoded(source), len(decoded(source[:start])), path)


def _at_byte(source: bytes, start: int, byte_offset: int) -> int | None:
    # Offsets count from the resume's own first byte.
    begin = start + len(source[start:]) - len(source[start:].lstrip()) if start else 0
    at = begin + byte_offset
    return len(decoded(source[:at])) if at <= len(source) else None


def _start_of_line(source: bytes, number: int) -> int | None:
    start = 0
    for _ in range(number - 1):
        start = source.find(b"\n", start) + 1
        if not start:
            return None
    return start


def _find_value(text: str, start: int, path: str) -> int | None:
    """Where the member begins that the path leads to, or the last one on the way there."""
    found: int | None = None
    at, prefix = _skip(text, start), ""
    try:
        while prefix != path:
            for name, begin, value in _iter_members(text, at, prefix):
                if path == name or path.startswith((f"{name}.", f"{name}[")):
                    prefix, found, at = name, begin, value
                    break
            else:
                return found
    except (JSONDecodeError, IndexError, RecursionError):
        return found  # the text ends here, or is no JSON from here on
    return found


def _iter_members(text: str, at: int, prefix: str) -> Iterator[tuple[str, int, int]]:
    """The members of the value there: its path, where it begins, and where its value does."""
    if text[at] not in "{[":
        return
    is_object, number = text[at] == "{", 0
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        begin = at
        name = f"{prefix}[{number}]"
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            name = f"{prefix}.{printable(str(key))}" if prefix else printable(str(key))
            at = _skip(text, _skip(text, at) + 1)
        yield name, begin, at
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        at = _skip(text, at + 1) if text[at] == "," else at
        number += 1


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()
