"""NDJSON: a resume a line, each line for itself, and blank lines passed over."""

import itertools
import re
from collections.abc import Iterator

from importer import arrays
from importer.parts import (
    Bytes,
    CannotUnpack,
    Limits,
    Part,
    cut,
    holds_no_resume,
    resume_too_large,
    too_many_parts,
)
from importer.reading import JSON_SPACE

_OBJECT = ord("{")
# From the first byte that is not white space to the end of its line.
_LINE = re.compile(rb"[^ \t\r\n][^\n]*+")


def unpack_lines(content: Bytes, limits: Limits) -> Iterator[Part]:
    """The lines, as they are: whether they are JSON is not looked at. Raises CannotUnpack."""
    count = sum(1 for _ in itertools.islice(_LINE.finditer(content), limits.max_parts + 1))
    if count > limits.max_parts:
        raise CannotUnpack(too_many_parts(limits))
    if not count:
        raise CannotUnpack(holds_no_resume("every line is blank"))
    return _iter_lines(content, limits)


def _iter_lines(content: Bytes, limits: Limits) -> Iterator[Part]:
    too_large = resume_too_large(limits)
    line, counted_to = 1, 0
    for number, found in enumerate(_LINE.finditer(content), 1):
        begin, end = found.span()
        line += content.count(b"\n", counted_to, begin)
        counted_to = begin
        place = f"line {line}"
        # The line end may be two bytes, of which the carriage return is no part of the value.
        body = b"" if end - begin > limits.max_bytes + 1 else cut(content, begin, end)
        body = body.rstrip(JSON_SPACE)
        if body and len(body) <= limits.max_bytes:
            yield Part(number, place, begin, body)
        else:
            yield Part(number, place, begin, b"", too_large)


def looks_like_lines(content: Bytes, *, is_whole: bool = True) -> bool:
    """Whether the first line is a whole object in itself, and the next one begins another.

    So a resume on one line that something else follows is not taken for its first line. Without
    `is_whole` the content is a beginning, whose next line may not be there yet.
    """
    first = _LINE.search(content)
    if first is None or content[first.start()] != _OBJECT:
        return False
    following = _LINE.search(content, first.end())
    if content[following.start()] != _OBJECT if following else is_whole:
        return False
    return arrays.is_value(cut(content, *first.span()).rstrip(JSON_SPACE))
