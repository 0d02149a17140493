r"""Where the items of a JSON array begin and end, found without making a single value.

The grammar is RFC 8259's, read byte by byte: what is not ASCII stands within strings only. What
is JSON and still cannot be kept (duplicate keys, numbers out of range, bytes that are not UTF-8)
is said of each item by the analyzer.

Each pattern passes over as many scalars as there are, and the loop in Python takes a turn for
brackets alone. Repetitions are possessive, so that no stack grows; each has an empty alternative,
since Python 3.11.2 goes on from the middle of a turn that failed.
"""

import re
from collections.abc import Iterator

from importer.parts import Bytes
from resumes.errors import InvalidJson

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
    """What stands between a value and the next one, or the closing bracket."""
    return _SPACE + rb"(?:," + _SPACE + rb"(?!" + closer + rb")|(?=" + closer + rb"))"


def _items(value: bytes) -> bytes:
    return rb"(?:" + value + _then(rb"\]") + rb"|)*+"


def _members(value: bytes) -> bytes:
    return rb"(?:" + _KEY + value + _then(rb"\}") + rb"|)*+"


_FLAT_ARRAY = rb"\[" + _SPACE + _items(_SCALAR) + rb"\]"
_FLAT_OBJECT = rb"\{" + _SPACE + _members(_SCALAR) + rb"\}"
_LEAF = rb"(?:" + _SCALAR + rb"|" + _FLAT_ARRAY + rb"|" + _FLAT_OBJECT + rb")"
# A key whose value is no leaf is the one group.
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
# A token that ends with the text, before it is a whole one.
_CUT_SHORT = re.compile(
    rb"(?:" + _BEGUN_STRING + rb"(?:\\(?:u[0-9a-fA-F]{0,3})?)?|[-+.0-9eE]*+|[a-z]*+)\Z"
)


def begins_array(text: Bytes) -> bool:
    """Whether an array begins here, white space aside."""
    return _BEGINNING.match(text) is not None


def iter_items(text: Bytes) -> Iterator[tuple[int, int]]:
    """Where each item of the array begins and ends, in order.

    Raises InvalidJson at the place where it is no JSON: who must know that the whole is takes all
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
    """Whether the text is one JSON value, without white space around it."""
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
            raise _not_json(text, _after_leaf(text, at))
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


def _after_leaf(text: Bytes, at: int) -> int:
    # What is wrong with a value, or with a string where a key is due, is what comes after it.
    leaf = _PASSED.match(text, at)
    return at if leaf is None else leaf.end()


def _not_json(text: Bytes, at: int) -> InvalidJson:
    """The error for what follows here, white space aside, and may not."""
    at = _after_space(text, at)
    if _CUT_SHORT.match(text, at):
        return _invalid("the text ends in the middle of the array", len(text))
    return _invalid("no value, comma or bracket that may stand here", at)


def _invalid(reason: str, offset: int) -> InvalidJson:
    return InvalidJson(f"Invalid JSON at byte {offset}: {reason}", offset=offset)
