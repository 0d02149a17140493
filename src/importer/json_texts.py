"""JSON files and zip members after decompression: lines, an array or a single value."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from importer.files import JSON_SPACE
from importer.options import Limits
from importer.outcomes import NONE_SKIPPED, Result, SkippedMembers, failed
from resumes.analyzer.strict_json import (
    BYTE_ORDER_MARK,
    MISPLACED_MARK,
    find_foreign_encoding,
    without_mark,
)
from resumes.errors import InvalidJson, TooLarge
from resumes.import_reasons import Reason


@dataclass(frozen=True, slots=True)
class Part:
    """One resume of a file as unparsed bytes, or the reason why it cannot be read."""

    number: int
    """Its number in the file, starting at 1. Rejected parts are counted."""
    place: str
    """Its position, for display: "item 3", "member good/a.json", "member more.ndjson, line 2". It
    is empty for the only value of a file. Member names are escaped."""
    body: bytes = b""
    """The bytes of the JSON value without the white space around it; empty if it was rejected."""
    refusal: Result | None = None

    label: str | None = None
    """The label that the first folder of a zip member's path stands for."""


class CannotUnpack(Exception):
    """Raised when nothing in a file or member can be read. `refusal` contains the reason."""

    def __init__(self, refusal: Result) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def resume_too_large(limits: Limits) -> CannotUnpack:
    """Return the error for a resume over the limit, with the same message as the API."""
    return CannotUnpack(failed(Reason.TOO_LARGE, TooLarge(limit_bytes=limits.max_bytes).message))


def file_too_large(limits: Limits) -> CannotUnpack:
    return _too_large(f"the limit is {limits.max_file_bytes} bytes uncompressed (max_file_bytes)")


def too_many_parts(limits: Limits) -> CannotUnpack:
    return _too_large(f"it contains more than {limits.max_parts:,} resumes")


def _too_large(why: str) -> CannotUnpack:
    message = f"File too large: {why}. Split it into several files"
    return CannotUnpack(failed(Reason.TOO_LARGE, message))


def invalid_json(message: str, byte_offset: int | None = 0) -> CannotUnpack:
    return CannotUnpack(failed(Reason.INVALID_JSON, message, byte_offset=byte_offset))


def invalid_archive(message: str, skipped: SkippedMembers = NONE_SKIPPED) -> CannotUnpack:
    """Return the error for an archive or member that cannot be opened."""
    return CannotUnpack(failed(Reason.INVALID_ARCHIVE, message)._replace(skipped=skipped))


MAX_DEPTH = 500
"""The nesting depth that is always accepted; whether deeper nesting is accepted depends on the
stack's depth. The limit for a resume is much lower (docs/format.md, JSON)."""
_BEGINNING = re.compile(rb"[ \t\r\n]*+\[[ \t\r\n]*+")
_BETWEEN = re.compile(rb"[ \t\r\n,]*+")

_skip = msgspec.json.Decoder(msgspec.Raw).decode
_MALFORMED = re.compile(r"JSON is malformed: (.*) \(byte ([0-9]+)\)")


def begins_array(text: bytes) -> bool:
    return _BEGINNING.match(text) is not None


def iter_items(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and end offset of each item in the array, in order. Raises InvalidJson before
    the first item, with the offset of the syntax error."""
    text = check_syntax(text)
    found = _BEGINNING.match(text)
    while found is not None and text[at := found.end()] != ord("]"):
        end = at + _find_end(memoryview(text)[at:])
        if text[end - 1] in JSON_SPACE:
            end = at + len(text[at:end].rstrip(JSON_SPACE))
        yield at, end
        found = _BETWEEN.match(text, end)


def _find_end(text: memoryview) -> int:
    """Return the end offset of the JSON value at the start of the text, or of the white space after
    it. More text must follow: at least the end of the array."""
    try:
        _skip(text)
    except msgspec.DecodeError as error:
        malformed = _MALFORMED.fullmatch(str(error))
        assert malformed is not None
        return int(malformed[2]) - 1  # the offset that msgspec reports is one too large
    raise AssertionError("the array has no end")


def check_syntax(text: bytes) -> bytes:
    """Return the text with the halves of surrogate pairs replaced, since msgspec rejects them.

    Raises InvalidJson unless the text is one JSON value, with optional white space around it. Only
    the syntax is checked: the analyzer may still reject a number or half of a surrogate pair.
    """
    try:
        try:
            _skip(text)
        except msgspec.DecodeError:  # perhaps because of half a surrogate pair
            text = text.replace(rb"\ud", rb"\u0").replace(rb"\uD", rb"\u0")
            _skip(text)
        return text
    except RecursionError:
        reason = f"nested deeper than {MAX_DEPTH} levels"
        raise InvalidJson(f"Invalid JSON at byte 0: {reason}", offset=0) from None
    except msgspec.DecodeError as error:
        offset, reason = len(text), "expected a value, comma or bracket"
        if malformed := _MALFORMED.fullmatch(str(error)):
            offset = int(malformed[2])
            # The offset that msgspec reports for trailing characters is one too large.
            if malformed[1].startswith("trailing comma"):
                offset = text.rindex(b",", 0, offset)
            elif malformed[1] == "trailing characters":
                offset, reason = offset - 1, malformed[1]
        elif text.rstrip(JSON_SPACE).endswith(b"]") and b"\\u" in text[-5:]:
            offset = text.rindex(b"\\u")  # the text ends within an escape sequence
        if offset >= len(text):
            reason = "the text ends in the middle of the array"
        raise InvalidJson(f"Invalid JSON at byte {offset}: {reason}", offset=offset) from None


_OBJECT = ord("{")
# This matches from the first byte that is not white space to the end of its line.
_LINE = re.compile(rb"[^ \t\r\n][^\n]*+")


def _iter_parts(
    content: bytes, spans: list[tuple[int, int]], limits: Limits, *, is_by_line: bool
) -> Iterator[Part]:
    too_large = resume_too_large(limits).refusal
    marked = invalid_json(f"Invalid JSON at byte 0: {MISPLACED_MARK}").refusal
    line, counted_to = 1, 0
    for number, (begin, end) in enumerate(spans, 1):
        place = f"item {number}"
        if is_by_line:
            line += content.count(b"\n", counted_to, begin)
            counted_to = begin
            place = f"line {line}"
        # A line may end with a carriage return, which is not part of the value.
        body = b"" if end - begin > limits.max_bytes + 1 else content[begin:end]
        body = body.rstrip(JSON_SPACE)
        if not body or len(body) > limits.max_bytes:
            yield Part(number, place, refusal=too_large)
        elif body.startswith(BYTE_ORDER_MARK):  # two files were concatenated
            yield Part(number, place, refusal=marked)
        else:
            yield Part(number, place, body)


def looks_like_lines(content: bytes) -> bool:
    """Return whether the first line is a complete object and the next line starts with another. A
    resume on one line followed by other text is not JSON Lines."""
    first = _LINE.search(content)
    if first is None or content[first.start()] != _OBJECT:
        return False
    following = _LINE.search(content, first.end())
    if following is None or content[following.start()] != _OBJECT:
        return False
    try:
        check_syntax(first[0])
    except InvalidJson:
        return False
    return True


GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGICS: Final = (b"PK\x03\x04", b"PK\x05\x06")
"""The first bytes of a zip archive; the second value is for an empty archive."""
COMPRESSED: Final = (GZIP_MAGIC, *ZIP_MAGICS)
_TAR_AT, _TAR = 257, b"ustar"


def is_json_bundle(content: bytes) -> bool:
    """Return whether the content is an array or looks like JSON Lines."""
    content = without_mark(content)
    return begins_array(content) or looks_like_lines(content)


def unpack_content(content: bytes, limits: Limits, *, is_by_line: bool) -> Iterator[Part]:
    """Return an iterator over the parts: one per line if `is_by_line`, otherwise depending on the
    content. The lines are not parsed. Raises CannotUnpack immediately or not at all."""
    _refuse_foreign(content)
    content = without_mark(content)
    is_by_line = is_by_line or looks_like_lines(content)
    if not is_by_line and not begins_array(content):
        return iter([Part(1, "", _find_value(content, limits))])
    spans = (found.span() for found in _LINE.finditer(content))
    try:
        taken = [
            *itertools.islice(spans if is_by_line else iter_items(content), limits.max_parts + 1)
        ]
    except InvalidJson as error:
        raise invalid_json(error.message, error.offset) from None
    if len(taken) > limits.max_parts:
        raise too_many_parts(limits)
    if not taken and is_by_line:
        raise invalid_json("It contains no resume: every line is blank")
    if not taken:
        message = "It contains no resume: the array is empty"
        raise CannotUnpack(failed(Reason.INVALID_RESUME, message))
    return _iter_parts(content, taken, limits, is_by_line=is_by_line)


def _refuse_foreign(content: bytes) -> None:
    is_tar = content[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR
    if is_tar or content.startswith(COMPRESSED):
        raise invalid_archive("It contains an archive, not JSON: nested archives are not opened")
    if encoding := find_foreign_encoding(content):
        raise invalid_json(f"Invalid JSON at byte 0: {encoding}")


def _find_value(content: bytes, limits: Limits) -> bytes:
    if len(content) > limits.max_bytes:
        raise resume_too_large(limits)
    body = content.strip(JSON_SPACE)
    if not body:
        raise invalid_json("It contains no resume: it is empty")
    return body
