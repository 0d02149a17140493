"""What a file or a member holds once it is inflated: lines, an array, or one value."""

from collections.abc import Iterator
from typing import Final

from importer import arrays, lines
from importer.inflating import GZIP_MAGIC
from importer.outcomes import Refusal
from importer.parts import (
    Bytes,
    CannotUnpack,
    Limits,
    Part,
    cut,
    holds_no_resume,
    invalid_archive,
    invalid_json,
    resume_too_large,
    too_many_parts,
)
from importer.reading import JSON_SPACE
from resumes.errors import InvalidJson
from resumes.reasons import Reason

ZIP_MAGICS: Final = (b"PK\x03\x04", b"PK\x05\x06")
"""What a zip begins with; the second, one that is empty."""

_ENCODINGS = {
    b"\xef\xbb\xbf": "a byte order mark",
    b"\xff\xfe": "UTF-16, not UTF-8",
    b"\xfe\xff": "UTF-16, not UTF-8",
}
_TAR_AT, _TAR = 257, b"ustar"


def is_several(content: Bytes) -> bool:
    """Whether it is an array, or values one after the other, each on a line."""
    return arrays.begins_array(content) or lines.looks_like_lines(content)


def check_beginning(beginning: Bytes, limits: Limits, *, is_by_line: bool) -> None:
    """Raises CannotUnpack when more than one resume may have, which this is, was one value."""
    _refuse_foreign(beginning)
    if is_by_line or arrays.begins_array(beginning):
        return
    if not lines.looks_like_lines(beginning, is_whole=False):
        raise CannotUnpack(resume_too_large(limits))


def unpack_content(content: Bytes, limits: Limits, *, is_by_line: bool) -> Iterator[Part]:
    """The parts: `is_by_line` a value a line whatever it looks like, else by what it looks like.

    Raises CannotUnpack at once, if at all.
    """
    _refuse_foreign(content)
    if is_by_line or lines.looks_like_lines(content):
        return lines.unpack_lines(content, limits)
    if arrays.begins_array(content):
        return _unpack_array(content, limits)
    return _unpack_value(content, limits)


def _refuse_foreign(content: Bytes) -> None:
    is_tar = content[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR
    if is_tar or content.startswith((GZIP_MAGIC, *ZIP_MAGICS)):
        raise CannotUnpack(
            invalid_archive("It holds an archive, not JSON: archives within files are not opened")
        )
    for mark, encoding in _ENCODINGS.items():
        if content.startswith(mark):
            message = f"Invalid JSON at byte 0: {encoding}"
            raise CannotUnpack(Refusal(Reason.INVALID_JSON, message, byte_offset=0))


def _unpack_array(content: Bytes, limits: Limits) -> Iterator[Part]:
    spans: list[tuple[int, int]] = []
    try:
        for span in arrays.iter_items(content):
            if len(spans) == limits.max_parts:
                raise CannotUnpack(too_many_parts(limits))
            spans.append(span)
    except InvalidJson as error:
        raise CannotUnpack(invalid_json(error)) from None
    if not spans:
        message = "It holds no resume: the array is empty"
        raise CannotUnpack(Refusal(Reason.INVALID_RESUME, message))
    return _iter_items(content, spans, limits)


def _iter_items(content: Bytes, spans: list[tuple[int, int]], limits: Limits) -> Iterator[Part]:
    too_large = resume_too_large(limits)
    for number, (begin, end) in enumerate(spans, 1):
        place = f"item {number}"
        if end - begin > limits.max_bytes:
            yield Part(number, place, begin, b"", too_large)
        else:
            yield Part(number, place, begin, cut(content, begin, end))


def _unpack_value(content: Bytes, limits: Limits) -> Iterator[Part]:
    if len(content) > limits.max_bytes:
        raise CannotUnpack(resume_too_large(limits))
    body = bytes(content).strip(JSON_SPACE)
    if not body:
        raise CannotUnpack(holds_no_resume("it is empty"))
    return iter([Part(1, "", content.find(body[:1]), body)])
