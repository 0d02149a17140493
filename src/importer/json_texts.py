"""The content of a file or zip member after decompression: lines, an array, or one value."""

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

Bytes = bytes | bytearray
"""The whole content of a file or member, decompressed."""


@dataclass(frozen=True, slots=True)
class Part:
    """One resume of a file as unparsed bytes, or why it cannot be read."""

    number: int
    """Its number in the whole file, from 1; refused parts are counted."""
    place: str
    """Its position, for people: "item 3", "member good/a.json", "member more.ndjson, line 2"; empty for
    the only value of a file. Names of members are escaped."""
    body: bytes = b""
    """The bytes of the JSON value without outer white space; empty if it is refused."""
    refusal: Result | None = None

    label: str | None = None
    """The label by the first folder of a zip's member."""


class CannotUnpack(Exception):
    """Raised when nothing of a file or member can be read, for the reason in `refusal`."""

    def __init__(
        self,
        reason: Reason,
        message: str,
        byte_offset: int | None = None,
        skipped: SkippedMembers = NONE_SKIPPED,
    ) -> None:
        super().__init__(message)
        refusal = failed(reason, message, byte_offset=byte_offset)
        self.refusal = refusal._replace(skipped=skipped)


def resume_too_large(limits: Limits) -> CannotUnpack:
    """Return the error for a resume over the limit, in the words of the API."""
    return CannotUnpack(Reason.TOO_LARGE, TooLarge(limit_bytes=limits.max_bytes).message)


def file_too_large(limits: Limits) -> CannotUnpack:
    return CannotUnpack(
        Reason.TOO_LARGE,
        f"File too large: the limit is {limits.max_file_bytes} bytes uncompressed (max_file_bytes). "
        "Split it into several files",
    )


def too_many_parts(limits: Limits) -> CannotUnpack:
    return CannotUnpack(
        Reason.TOO_LARGE,
        f"File too large: it contains more than {limits.max_parts:,} resumes. "
        "Split it into several files",
    )


def invalid_archive(message: str, skipped: SkippedMembers = NONE_SKIPPED) -> CannotUnpack:
    """Return the error for an archive or a member that cannot be opened."""
    return CannotUnpack(Reason.INVALID_ARCHIVE, message, skipped=skipped)


MAX_DEPTH = 500
"""The levels of nesting that are always accepted; whether more are depends on the depth of the stack.
A resume may have far fewer (docs/format.md, JSON)."""
_BEGINNING = re.compile(rb"[ \t\r\n]*+\[[ \t\r\n]*+")
_BETWEEN = re.compile(rb"[ \t\r\n,]*+")

_skip = msgspec.json.Decoder(msgspec.Raw).decode
_MALFORMED = re.compile(r"JSON is malformed: (.*) \(byte ([0-9]+)\)")


def begins_array(text: Bytes) -> bool:
    return _BEGINNING.match(text) is not None


def iter_items(text: Bytes) -> Iterator[tuple[int, int]]:
    """Yield the begin and end offset of each item of the array, in order. Raises InvalidJson before the
    first item, with the offset at which the text stops being JSON."""
    text = check_syntax(text)
    found = _BEGINNING.match(text)
    while found is not None and text[at := found.end()] != ord("]"):
        end = at + _find_end(memoryview(text)[at:])
        if text[end - 1] in JSON_SPACE:
            end = at + len(text[at:end].rstrip(JSON_SPACE))
        yield at, end
        found = _BETWEEN.match(text, end)


def _find_end(text: memoryview) -> int:
    """Return where the JSON value ends with which the text begins, or the white space after it. More
    follows: the array's end, at the latest."""
    try:
        _skip(text)
    except msgspec.DecodeError as error:
        malformed = _MALFORMED.fullmatch(str(error))
        assert malformed is not None
        return int(malformed[2]) - 1  # the offset that msgspec gives is one too large
    raise AssertionError("the array has no end")


def check_syntax(text: Bytes) -> Bytes:
    """Return the text, with other escapes for halves of surrogate pairs, of which msgspec takes none.

    Raises InvalidJson unless it is one JSON value, with or without white space around it. Only syntax is
    checked: the analyzer may still refuse a number or half of a surrogate pair.
    """
    try:
        try:
            _skip(text)
        except msgspec.DecodeError:  # perhaps for half of a surrogate pair
            text = bytes(text).replace(rb"\ud", rb"\u0").replace(rb"\uD", rb"\u0")
            _skip(text)
        return text
    except RecursionError:
        reason = f"nested deeper than {MAX_DEPTH} levels"
        raise InvalidJson(f"Invalid JSON at byte 0: {reason}", offset=0) from None
    except msgspec.DecodeError as error:
        offset, reason = len(text), "expected a value, comma or bracket"
        if malformed := _MALFORMED.fullmatch(str(error)):
            offset = int(malformed[2])
            # The offset that msgspec gives for trailing characters is one too large.
            if malformed[1].startswith("trailing comma"):
                offset = text.rindex(b",", 0, offset)
            elif malformed[1] == "trailing characters":
                offset, reason = offset - 1, malformed[1]
        elif text.rstrip(JSON_SPACE).endswith(b"]") and b"\\u" in text[-5:]:
            offset = text.rindex(b"\\u")  # the text ends within an escape
        if offset >= len(text):
            reason = "the text ends in the middle of the array"
        raise InvalidJson(f"Invalid JSON at byte {offset}: {reason}", offset=offset) from None


_OBJECT = ord("{")
# From the first byte that is not white space to the end of its line.
_LINE = re.compile(rb"[^ \t\r\n][^\n]*+")


def _iter_parts(
    content: Bytes, spans: list[tuple[int, int]], limits: Limits, *, is_by_line: bool
) -> Iterator[Part]:
    too_large = resume_too_large(limits).refusal
    marked = failed(Reason.INVALID_JSON, f"Invalid JSON at byte 0: {MISPLACED_MARK}", byte_offset=0)
    line, counted_to = 1, 0
    for number, (begin, end) in enumerate(spans, 1):
        place = f"item {number}"
        if is_by_line:
            line += content.count(b"\n", counted_to, begin)
            counted_to = begin
            place = f"line {line}"
        # A line may end with a carriage return, which is not part of the value.
        body = b"" if end - begin > limits.max_bytes + 1 else bytes(content[begin:end])
        body = body.rstrip(JSON_SPACE)
        if not body or len(body) > limits.max_bytes:
            yield Part(number, place, refusal=too_large)
        elif body.startswith(BYTE_ORDER_MARK):  # two files were concatenated
            yield Part(number, place, refusal=marked)
        else:
            yield Part(number, place, body)


def looks_like_lines(content: Bytes, *, is_whole: bool = True) -> bool:
    """Return whether the first line is a complete object, and the next line begins another.

    A resume on one line followed by other text is not JSON Lines. Without `is_whole` the content is
    only a beginning, whose next line may be missing.
    """
    first = _LINE.search(content)
    if first is None or content[first.start()] != _OBJECT:
        return False
    following = _LINE.search(content, first.end())
    if content[following.start()] != _OBJECT if following else is_whole:
        return False
    try:
        check_syntax(first[0])
    except InvalidJson:
        return False
    return True


GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGICS: Final = (b"PK\x03\x04", b"PK\x05\x06")
"""The first bytes of a zip archive; the second value is for an empty archive."""
_TAR_AT, _TAR = 257, b"ustar"


def is_json_bundle(content: Bytes) -> bool:
    """Return whether the content is an array, or looks like JSON Lines."""
    content = without_mark(content)
    return begins_array(content) or looks_like_lines(content)


def check_beginning(beginning: Bytes, limits: Limits, *, is_by_line: bool) -> None:
    """Raise CannotUnpack if a beginning that is longer than a resume may be is that of one value."""
    _refuse_foreign(beginning)
    beginning = without_mark(beginning)
    if is_by_line or begins_array(beginning):
        return
    if not looks_like_lines(beginning, is_whole=False):
        raise resume_too_large(limits)


def unpack_content(content: Bytes, limits: Limits, *, is_by_line: bool) -> Iterator[Part]:
    """Return an iterator over the parts: a value per line if `is_by_line`, else depending on the content.
    Lines are not checked for JSON. Raises CannotUnpack immediately, if at all."""
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
        raise CannotUnpack(Reason.INVALID_JSON, error.message, error.offset) from None
    if len(taken) > limits.max_parts:
        raise too_many_parts(limits)
    if not taken and is_by_line:
        raise CannotUnpack(Reason.INVALID_JSON, "It contains no resume: every line is blank", 0)
    if not taken:
        raise CannotUnpack(Reason.INVALID_RESUME, "It contains no resume: the array is empty")
    return _iter_parts(content, taken, limits, is_by_line=is_by_line)


def _refuse_foreign(content: Bytes) -> None:
    is_tar = content[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR
    if is_tar or content.startswith((GZIP_MAGIC, *ZIP_MAGICS)):
        raise invalid_archive("It contains an archive, not JSON: nested archives are not opened")
    if encoding := find_foreign_encoding(content):
        raise CannotUnpack(Reason.INVALID_JSON, f"Invalid JSON at byte 0: {encoding}", 0)


def _find_value(content: Bytes, limits: Limits) -> bytes:
    if len(content) > limits.max_bytes:
        raise resume_too_large(limits)
    body = bytes(content).strip(JSON_SPACE)
    if not body:
        raise CannotUnpack(Reason.INVALID_JSON, "It contains no resume: it is empty", 0)
    return body
