"""What a file or a member contains once it is decompressed: lines, an array, or one value."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from importer.files import JSON_SPACE
from importer.options import Limits
from importer.outcomes import Refusal
from resumes.errors import InvalidJson, TooLarge
from resumes.import_reasons import Reason

Bytes = bytes | bytearray
"""The whole of a file or of a member, inflated."""


@dataclass(frozen=True, slots=True)
class Part:
    """One resume of a file, as bytes that nobody has parsed yet, or why it cannot be read."""

    number: int
    """From 1 through the whole file, parts that are refused among them."""

    place: str
    """For people: "item 3", "member good/a.json", "member more.ndjson, line 2"; empty for the only
    value of a file. Names of members are escaped in it."""

    byte_offset: int | None
    """Where the part begins in the inflated file or member; None for a member that is refused."""

    body: bytes
    """The JSON value's own bytes, outer white space cut; empty when it is refused."""

    refusal: Refusal | None = None


class CannotUnpack(Exception):
    """Nothing of a file or of a member can be read, for the reason in `refusal`."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def resume_too_large(limits: Limits) -> Refusal:
    """For a resume over the limit, in the words of the API."""
    return Refusal(Reason.TOO_LARGE, TooLarge(limit_bytes=limits.max_bytes).message)


def file_too_large(limits: Limits) -> Refusal:
    """For a file that is too large, whatever its parts are."""
    return Refusal(
        Reason.TOO_LARGE,
        f"File too large: uncompressed, the limit is {limits.max_file_bytes} bytes (max_file_bytes). "
        "Split it into several files",
    )


def too_many_parts(limits: Limits) -> Refusal:
    """For a file of more resumes than are taken from one."""
    return Refusal(
        Reason.TOO_LARGE,
        f"File too large: it contains more than {limits.max_parts:,} resumes. "
        "Split it into several files",
    )


def invalid_archive(message: str) -> Refusal:
    """For an archive or a member that cannot be opened."""
    return Refusal(Reason.INVALID_ARCHIVE, message)


MAX_DEPTH = 1_000
"""Levels of nesting in an item; a resume may have far fewer (docs/format.md, JSON)."""

_SPACE = rb"[ \t\r\n]*+"
_PLAIN = rb'[^"\\\x00-\x1f]*+'
_ESCAPE = rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})'
_BEGUN_STRING = rb'"' + _PLAIN + rb"(?:" + _ESCAPE + _PLAIN + rb"|)*+"
_STRING = _BEGUN_STRING + rb'"'
_INTEGER = rb"-?(?:0|[1-9][0-9]*+)"
_NUMBER = _INTEGER + rb"(?:\.[0-9]++[eE][+-]?[0-9]++|\.[0-9]++|[eE][+-]?[0-9]++|)"
_SCALAR = rb"(?:" + _STRING + rb"|" + _NUMBER + rb"|true|false|null)"
_KEY = _STRING + _SPACE + rb":" + _SPACE


def _then(closer: bytes) -> bytes:
    """Return what stands between a value and the next one, or the closing bracket."""
    return _SPACE + rb"(?:," + _SPACE + rb"(?!" + closer + rb")|(?=" + closer + rb"))"


def _items(value: bytes) -> bytes:
    return rb"(?:" + value + _then(rb"\]") + rb"|)*+"


def _members(value: bytes) -> bytes:
    return rb"(?:" + _KEY + value + _then(rb"\}") + rb"|)*+"


_FLAT_ARRAY = rb"\[" + _SPACE + _items(_SCALAR) + rb"\]"
_FLAT_OBJECT = rb"\{" + _SPACE + _members(_SCALAR) + rb"\}"
_LEAF = rb"(?:" + _SCALAR + rb"|" + _FLAT_ARRAY + rb"|" + _FLAT_OBJECT + rb")"
# A key whose value is not a leaf is the one group.
_IN_ARRAY = _items(_LEAF)
_IN_OBJECT = _members(_LEAF) + rb"(?:(" + _KEY + rb")|)"

_WHITE = re.compile(_SPACE)
_BEGINNING = re.compile(_SPACE + rb"\[" + _SPACE)
_PASSED = re.compile(_LEAF)
_OPENED = {b"[": re.compile(_SPACE + _IN_ARRAY), b"{": re.compile(_SPACE + _IN_OBJECT)}
_CONTINUED = {
    b"[": re.compile(_then(rb"\]") + _IN_ARRAY),
    b"{": re.compile(_then(rb"\}") + _IN_OBJECT),
}
_CLOSERS = {b"[": b"]", b"{": b"}"}
_NEXT_ITEM = re.compile(_then(rb"\]"))
# A token that ends with the text, before it is complete.
_CUT_SHORT = re.compile(
    rb"(?:" + _BEGUN_STRING + rb"(?:\\(?:u[0-9a-fA-F]{0,3})?)?|[-+.0-9eE]*+|[a-z]*+)\Z"
)


def begins_array(text: Bytes) -> bool:
    """Return whether an array begins here, white space aside."""
    return _BEGINNING.match(text) is not None


def iter_items(text: Bytes) -> Iterator[tuple[int, int]]:
    """Where each item of the array begins and ends, in order.

    Raises InvalidJson at the place where it is not JSON: a caller that must know that the whole is takes all
    of them before any is used.
    """
    beginning = _BEGINNING.match(text)
    at = len(text) if beginning is None else beginning.end()
    while text[at : at + 1] != b"]":
        end = _find_end(text, at)
        yield at, end
        following = _NEXT_ITEM.match(text, end)
        if following is None:
            raise _not_json(text, end)
        at = following.end()
    end = _after_space(text, at + 1)
    if end != len(text):
        raise _invalid("trailing characters", end)


def is_value(text: Bytes) -> bool:
    """Return whether the text is one JSON value, without white space around it."""
    try:
        return _find_end(text, 0) == len(text)
    except InvalidJson:
        return False


def _find_end(text: Bytes, at: int) -> int:
    """Where the JSON value ends that begins at this byte. Raises InvalidJson."""
    leaf = _PASSED.match(text, at)
    if leaf is not None:
        return leaf.end()
    opened: list[bytes] = []
    is_value_due = True
    while True:
        bracket = bytes(text[at : at + 1])
        if not is_value_due or bracket not in _OPENED:
            # What is wrong with a value, or with a string where a key is due, is what comes after.
            leaf = _PASSED.match(text, at)
            raise _not_json(text, at if leaf is None else leaf.end())
        if len(opened) == MAX_DEPTH:
            raise _invalid(f"nested deeper than {MAX_DEPTH:,} levels", at)
        opened.append(bracket)
        passed = _OPENED[bracket].match(text, at + 1)
        while passed is not None:
            at = passed.end()
            has_key = passed.lastindex is not None
            if has_key or text[at : at + 1] != _CLOSERS[opened[-1]]:
                break
            opened.pop()
            at += 1
            if not opened:
                return at
            passed = _CONTINUED[opened[-1]].match(text, at)
        else:
            raise _not_json(text, at)
        is_value_due = has_key or opened[-1] == b"["


def _after_space(text: Bytes, at: int) -> int:
    white = _WHITE.match(text, at)
    return at if white is None else white.end()


def _not_json(text: Bytes, at: int) -> InvalidJson:
    """Return the error for what follows here, white space aside, and may not."""
    at = _after_space(text, at)
    if _CUT_SHORT.match(text, at):
        return _invalid("the text ends in the middle of the array", len(text))
    return _invalid("expected a value, comma or bracket", at)


def _invalid(reason: str, offset: int) -> InvalidJson:
    return InvalidJson(f"Invalid JSON at byte {offset}: {reason}", offset=offset)


_OBJECT = ord("{")
# From the first byte that is not white space to the end of its line.
_LINE = re.compile(rb"[^ \t\r\n][^\n]*+")


def unpack_lines(content: Bytes, limits: Limits) -> Iterator[Part]:
    """Yield the lines, as they are: whether they are JSON is not looked at. Raises CannotUnpack."""
    spans = _take((found.span() for found in _LINE.finditer(content)), limits)
    if not spans:
        message = "It contains no resume: every line is blank"
        raise CannotUnpack(Refusal(Reason.INVALID_JSON, message, byte_offset=0))
    return _iter_parts(content, spans, limits, is_by_line=True)


def _take(spans: Iterator[tuple[int, int]], limits: Limits) -> list[tuple[int, int]]:
    """Return where the parts are. Raises CannotUnpack for more than are taken from a file."""
    taken = list(itertools.islice(spans, limits.max_parts + 1))
    if len(taken) > limits.max_parts:
        raise CannotUnpack(too_many_parts(limits))
    return taken


def _iter_parts(
    content: Bytes, spans: list[tuple[int, int]], limits: Limits, *, is_by_line: bool
) -> Iterator[Part]:
    too_large = resume_too_large(limits)
    line, counted_to = 1, 0
    for number, (begin, end) in enumerate(spans, 1):
        place = f"item {number}"
        if is_by_line:
            line += content.count(b"\n", counted_to, begin)
            counted_to = begin
            place = f"line {line}"
        # A line end may be two bytes, of which the carriage return is not part of the value.
        body = b"" if end - begin > limits.max_bytes + 1 else bytes(content[begin:end])
        body = body.rstrip(JSON_SPACE)
        if body and len(body) <= limits.max_bytes:
            yield Part(number, place, begin, body)
        else:
            yield Part(number, place, begin, b"", too_large)


def looks_like_lines(content: Bytes, *, is_whole: bool = True) -> bool:
    """Return whether the first line is a complete object, and the next one begins another.

    So a resume on one line that something else follows is not taken for its first line. Without
    `is_whole` the content is a beginning, whose next line may not be there yet.
    """
    first = _LINE.search(content)
    if first is None or content[first.start()] != _OBJECT:
        return False
    following = _LINE.search(content, first.end())
    if content[following.start()] != _OBJECT if following else is_whole:
        return False
    return is_value(first[0].rstrip(JSON_SPACE))


GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGICS: Final = (b"PK\x03\x04", b"PK\x05\x06")
"""What a zip begins with; the second, one that is empty."""

_ENCODINGS = {
    b"\xef\xbb\xbf": "a byte order mark",
    b"\xff\xfe": "UTF-16, not UTF-8",
    b"\xfe\xff": "UTF-16, not UTF-8",
}
_TAR_AT, _TAR = 257, b"ustar"


def is_several(content: Bytes) -> bool:
    """Return whether it is an array, or values one after the other, each on a line."""
    return begins_array(content) or looks_like_lines(content)


def check_beginning(beginning: Bytes, limits: Limits, *, is_by_line: bool) -> None:
    """Raises CannotUnpack when more than one resume may have, which this is, was one value."""
    _refuse_foreign(beginning)
    if is_by_line or begins_array(beginning):
        return
    if not looks_like_lines(beginning, is_whole=False):
        raise CannotUnpack(resume_too_large(limits))


def unpack_content(content: Bytes, limits: Limits, *, is_by_line: bool) -> Iterator[Part]:
    """Yield the parts: `is_by_line` a value a line whatever it looks like, else by what it looks like.

    Raises CannotUnpack immediately, if at all.
    """
    _refuse_foreign(content)
    if is_by_line or looks_like_lines(content):
        return unpack_lines(content, limits)
    if begins_array(content):
        return _unpack_array(content, limits)
    return _unpack_value(content, limits)


def _refuse_foreign(content: Bytes) -> None:
    is_tar = content[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR
    if is_tar or content.startswith((GZIP_MAGIC, *ZIP_MAGICS)):
        raise CannotUnpack(
            invalid_archive("It contains an archive, not JSON: nested archives are not opened")
        )
    for mark, encoding in _ENCODINGS.items():
        if content.startswith(mark):
            message = f"Invalid JSON at byte 0: {encoding}"
            raise CannotUnpack(Refusal(Reason.INVALID_JSON, message, byte_offset=0))


def _unpack_array(content: Bytes, limits: Limits) -> Iterator[Part]:
    try:
        spans = _take(iter_items(content), limits)
    except InvalidJson as error:
        refusal = Refusal(Reason.INVALID_JSON, error.message, byte_offset=error.offset)
        raise CannotUnpack(refusal) from None
    if not spans:
        message = "It contains no resume: the array is empty"
        raise CannotUnpack(Refusal(Reason.INVALID_RESUME, message))
    return _iter_parts(content, spans, limits, is_by_line=False)


def _unpack_value(content: Bytes, limits: Limits) -> Iterator[Part]:
    if len(content) > limits.max_bytes:
        raise CannotUnpack(resume_too_large(limits))
    body = bytes(content).strip(JSON_SPACE)
    if not body:
        message = "It contains no resume: it is empty"
        raise CannotUnpack(Refusal(Reason.INVALID_JSON, message, byte_offset=0))
    return iter([Part(1, "", content.find(body[:1]), body)])
