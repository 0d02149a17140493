"""Find the position of an error in the text of a file."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Final

from resumes.analyzer.findings import printable

_SPACE: Final = re.compile(r"[ \t\r\n\ufeff]*")
_LINE: Final = re.compile(r"line (\d+)")
_ITEM: Final = re.compile(r"item (\d+)")
_DECODER: Final = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Fault:
    """The known position of an error. In a bundle, `position` (`line 2`) locates the resume."""

    path: str | None = None
    byte_offset: int | None = None
    position: str = ""


def decoded(source: bytes) -> str:
    r"""Decode UTF-8, and show invalid bytes as `\xff`."""
    return source.decode("utf-8", "backslashreplace")


def find_fault(source: bytes, fault: Fault) -> int | None:
    """Return the index of the error in `decoded(source)`, or None if the index is unknown.

    If the field at the path is missing, return the index of the value that should contain it.
    """
    line, item = _LINE.fullmatch(fault.position), _ITEM.fullmatch(fault.position)
    if fault.position and not line and not item:
        return None  # the resume is in an archive, which is not text
    start = 0
    if line:
        *before, rest = source.split(b"\n", int(line[1]) - 1)
        if len(before) < int(line[1]) - 1:
            return None
        start = len(source) - len(rest)
    if fault.byte_offset is not None and item is None:
        # The offset is relative to the resume's first byte.
        begin = start + len(source[start:]) - len(source[start:].lstrip()) if start else 0
        at = begin + fault.byte_offset
        return len(decoded(source[:at])) if at <= len(source) else None
    path = f"[{int(item[1]) - 1}]" if item else ""
    if fault.path:
        path = f"{path}.{fault.path}" if path else fault.path
    if not path:
        return len(decoded(source[:start])) if line else None
    return _find_value(decoded(source), len(decoded(source[:start])), path)


def _find_value(text: str, start: int, path: str) -> int | None:
    """Return the index of the member at `path`, or of the nearest existing parent."""
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
        return found  # the rest is missing or invalid JSON
    return found


def _iter_members(text: str, at: int, prefix: str) -> Iterator[tuple[str, int, int]]:
    """Yield the path, the index and the index of the value for each member of the value at `at`."""
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
