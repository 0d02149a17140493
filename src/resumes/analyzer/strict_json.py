"""Parse JSON, and reject what a store or client could not keep unchanged (docs/format.md, JSON).

The parser rejects most of it: other encodings, NaN, Infinity, lone surrogates, duplicate keys,
control characters, trailing content. Numbers and depth are checked in two steps: `is_faithful` only
returns whether parsed values are acceptable, since it is called for every unknown field;
`refuse_unfaithful` then reads the bytes again to find the reason and offset. U+0000 is searched for
in the bytes, since it can be in any string or key.
"""

import re
from itertools import islice
from math import isfinite
from typing import Any, NoReturn

import jiter

from resumes.analyzer.findings import printable
from resumes.errors import InvalidJson

MAX_DEPTH = 32
MAX_VALUES = 120_000
"""The maximum number of values. A typical resume has a few hundred, and a section full of tags has
100,000. Reading more values would take so long that other requests wait."""

MAX_FIELDS = 50_000
"""The maximum number of fields, which take longer to read than other values."""

MAX_TOKENS = 20_000
"""The number of tokens that are searched for the reason why a document cannot be stored."""

MIN_INTEGER = -(2**63)
MAX_INTEGER = 2**63 - 1

# The first bytes of other file formats, and what the message says about them.
_FOREIGN = {
    b"%PDF": "a PDF, not JSON",
    b"PK\x03\x04": "a ZIP archive or an office document, not JSON",
    b"\x1f\x8b": "compressed with gzip, not JSON",
}
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MISPLACED_MARK = "a byte order mark, which is allowed only at the beginning"
# Text in these encodings begins with a byte order mark, or with ASCII characters and zero bytes.
_UTF_32 = re.compile(rb"\xff\xfe\0\0|\0\0\xfe\xff|[^\0]\0\0\0|\0\0\0[^\0]", re.DOTALL)
_UTF_16 = re.compile(rb"\xff\xfe|\xfe\xff|[^\0]\0[^\0]\0|\0[^\0]\0[^\0]", re.DOTALL)
_NOT_NUMBERS = re.compile(rb"-?(?:NaN|Infinity)")
# After an escaped backslash, "u0000" is plain text.
_ESCAPED_NUL = re.compile(rb"(?<!\\)(?:\\\\)*+(\\u0000)")
# Unterminated strings match too: otherwise, the search would try to match from each quotation mark.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
_TOKEN = re.compile(_STRING + rb"|[\[{]|[\]}]|(-?[0-9][0-9.eE+-]*+)", re.DOTALL)


def _up_to(separator: bytes, number: int) -> re.Pattern[bytes]:
    """Return a pattern that matches up to the separator with this number, outside strings.

    All quantifiers are possessive, so that matching needs neither backtracking nor memory.
    """
    between = b'[^"%b]*+' % separator
    step = b"%b(?:%b%b)*+%b" % (between, _STRING, between, separator)
    return re.compile(b"(?:%b){%d}+" % (step, number), re.DOTALL)


_TOO_MANY_VALUES = _up_to(b",", MAX_VALUES)
_TOO_MANY_FIELDS = _up_to(b":", MAX_FIELDS + 1)
_LOCATED_MESSAGE = re.compile(r"(.*) at line ([0-9]+) column ([0-9]+)", re.DOTALL)
_DUPLICATE_KEY = re.compile(r'Detected duplicate key "(.*)"', re.DOTALL)
# An integer with more characters, including the sign, is out of range.
_MAX_INTEGER_CHARS = len(str(MIN_INTEGER))

_BLOCK_BYTES = 4_096


def without_mark(text: bytes) -> bytes:
    """Replace a byte order mark at the beginning with spaces, so that offsets do not change."""
    return b"   " + text[3:] if text.startswith(BYTE_ORDER_MARK) else text


def find_foreign_encoding(text: bytes) -> str | None:
    """Return the message and advice for text in UTF-16 or UTF-32, or None for other text."""
    for encoding, beginning in (("UTF-32", _UTF_32), ("UTF-16", _UTF_16)):
        if beginning.match(text):
            return f"{encoding}, not UTF-8: save it as UTF-8"
    return None


def read_json(body: bytes) -> Any:
    """Parse the bytes. Raises InvalidJson with the reason and the byte offset.

    Depth and the range of numbers are not checked: see `is_faithful`.
    """
    # Counting commas is fast. Texts can contain commas, so the pattern then checks exactly.
    if body.count(b",") >= MAX_VALUES:
        _refuse_many(body, _TOO_MANY_VALUES, f"more than {MAX_VALUES:,} values")
    if body.count(b":") > MAX_FIELDS:
        _refuse_many(body, _TOO_MANY_FIELDS, f"more than {MAX_FIELDS:,} fields")
    return read_long_json(body)


def read_long_json(body: bytes) -> Any:
    """Parse the bytes like `read_json`, but without limits for the numbers of values and fields."""
    try:
        # The parser's cache outlives the call, so it may contain keys but no personal data.
        value = jiter.from_json(
            body, catch_duplicate_keys=True, allow_inf_nan=False, cache_mode="keys"
        )
    except ValueError as error:
        _refuse(body, str(error))
    if b"\\u0000" in body and (nul := _ESCAPED_NUL.search(body)):
        raise _invalid("the character U+0000", nul.start(1))
    return value


def _refuse_many(body: bytes, too_many: re.Pattern[bytes], reason: str) -> None:
    if found := too_many.match(body):
        raise _invalid(reason, found.end() - 1)


def is_faithful(value: Any, depth: int = 1) -> bool:
    """Return whether all numbers in a parsed value are in range and it is not nested too deeply.

    `depth` is the depth of the value itself; the document has depth 1.
    """
    level = [value]
    while level:
        deeper: list[Any] = []
        for each in level:
            kind = type(each)
            if kind is dict or kind is list:
                if depth > MAX_DEPTH:
                    return False
                deeper.extend(each.values() if kind is dict else each)
            elif kind is int:
                if not MIN_INTEGER <= each <= MAX_INTEGER:
                    return False
            elif kind is float and not isfinite(each):
                return False
        level = deeper
        depth += 1
    return True


def refuse_unfaithful(body: bytes) -> None:
    """Raise InvalidJson for the first number out of range or the first value nested too deeply.

    Do nothing if neither is in the first tokens. The bytes need to be valid JSON only up to there.
    """
    depth = 0
    for token in islice(_TOKEN.finditer(body), MAX_TOKENS):
        first = body[token.start()]
        if first in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise _invalid(f"nested deeper than {MAX_DEPTH} levels", token.start())
        elif first in b"]}":
            depth -= 1
        elif token[1] is not None and (reason := _out_of_range(token[1])):
            raise _invalid(reason, token.start())


def _out_of_range(number: bytes) -> str | None:
    if any(char in number for char in b".eE"):
        return None if isfinite(float(number)) else "a number that overflows"
    if len(number) > _MAX_INTEGER_CHARS or not MIN_INTEGER <= int(number) <= MAX_INTEGER:
        return "an integer outside -2^63 to 2^63-1"
    return None


def _refuse(body: bytes, message: str) -> NoReturn:
    """Raise InvalidJson with a clearer message than the parser's."""
    if not body.strip(b" \t\r\n"):
        raise _invalid("the body is empty", 0)
    if encoding := find_foreign_encoding(body):
        raise _invalid(encoding, 0)
    for beginning, name in _FOREIGN.items():
        if body.startswith(beginning):
            raise _invalid(name, 0)
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise _invalid("not UTF-8", error.start) from None
    if "recursion limit" in message or "number out of range" in message:
        refuse_unfaithful(body)
    located = _LOCATED_MESSAGE.fullmatch(message)
    if located is None:
        raise InvalidJson(f"Invalid JSON: {printable(message)}")
    reason, line, column = located.groups()
    is_cut_short = reason.startswith("EOF")
    offset = len(body) if is_cut_short else _offset(body, int(line), int(column))
    if body.startswith(BYTE_ORDER_MARK, offset):
        raise _invalid(MISPLACED_MARK, offset)
    # The parser may have read a sign before NaN or Infinity as a part of a number.
    for start in (max(offset - 1, 0), offset):
        if not_a_number := _NOT_NUMBERS.match(body, start):
            raise _invalid(f"{not_a_number[0].decode()} is not a JSON number", start)
    raise _invalid(_reason(reason), offset)


def _reason(message: str) -> str:
    if message.startswith("EOF while parsing "):
        return f"the text ends in the middle of {message.removeprefix('EOF while parsing ')}"
    duplicate = _DUPLICATE_KEY.fullmatch(message)
    if duplicate:
        return f'duplicate key "{printable(duplicate[1])}"'
    if "surrogate" in message or "end of hex escape" in message:
        return "a lone surrogate"
    return message


def _offset(body: bytes, line: int, column: int) -> int:
    """Return the byte offset for the parser's line and column in bytes, which both count from 1."""
    start, left = 0, line - 1
    # Count in blocks, since a body can consist of only line breaks.
    while (here := body.count(b"\n", start, start + _BLOCK_BYTES)) < left and start < len(body):
        left -= here
        start += _BLOCK_BYTES
    for _ in range(left):
        start = body.index(b"\n", start) + 1
    return min(max(start + column - 1, 0), len(body))


def _invalid(reason: str, offset: int) -> InvalidJson:
    return InvalidJson(f"Invalid JSON at byte {offset}: {reason}", offset=offset)
