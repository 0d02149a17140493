"""Bundles of JSON: arrays, and a value per line."""

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from importer.json_texts import (
    MAX_DEPTH,
    CannotUnpack,
    Part,
    check_syntax,
    iter_items,
    looks_like_lines,
    unpack_content,
)
from resumes.errors import InvalidJson
from resumes.import_reasons import Reason
from tests.support.inbox.packing import LIMITS, WIDE

# Arrays


MIB = 1024 * 1024
LONG = 64 * MIB
ARRAY_LIMIT_S = 120.0
"""For texts of 64 MiB; what is not linear takes hours."""

TOKENS = [
    *("[", "]", "{", "}", ",", ":", '"', "\\", '"a"', '"\\n"', '"\\u00e9"', '"\\ud800"', '"\\x"'),
    *(["1", "-0.5e+3", "0", "01", "1.", "-", "true", "null", "nul", "NaN"]),
    *(" ", "\n", "\x00", "\xa0"),
    *("[]", "{}", "[1]", '{"a":1}', '"k":', '"k":[', '{"k":{"a":[1]}}'),
]


def is_json(text: bytes) -> bool:
    """What the standard library says, for text that is ASCII or Latin-1 in strings."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        json.loads(text.decode("latin-1"), parse_constant=refuse)
    except ValueError:
        return False
    return True


def items(text: bytes) -> list[bytes]:
    return [text[begin:end] for begin, end in iter_items(text)]


def fault_of(text: bytes) -> InvalidJson:
    with pytest.raises(InvalidJson) as fault:
        items(text)
    return fault.value


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
)


@given(
    st.lists(VALUES, max_size=6),
    st.booleans(),
    st.sampled_from([None, 1]),
    st.sampled_from(["", " \r\n\t"]),
)
def test_each_item_is_found_byte_for_byte(
    values: list[Any], is_ascii: bool, indent: int | None, space: str
) -> None:
    texts = [json.dumps(value, ensure_ascii=is_ascii, indent=indent) for value in values]
    text = f"{space}[{space}{f'{space},{space}'.join(texts)}{space}]{space}"
    encoded = text.encode("utf-8", "surrogatepass")
    assert items(encoded) == [one.encode("utf-8", "surrogatepass") for one in texts]


@given(st.lists(st.sampled_from(TOKENS), max_size=12).map("".join))
@example('{"":{"":""}}')
@example('{"k": [ "x" ] , "l" : "\\\\" }')
def test_what_is_taken_for_json_is_json_and_nothing_else(text: str) -> None:
    encoded = text.strip(" \t\r\n").encode("latin-1")
    with contextlib.nullcontext() if is_json(encoded) else pytest.raises(InvalidJson):
        check_syntax(encoded)
    array = b"[" + encoded + b"]"
    if is_json(array):
        assert len(items(array)) == len(json.loads(array.decode("latin-1")))
    else:
        assert 0 <= (fault_of(array).offset or 0) <= len(array)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        (b"[1 2]", 3),
        (b"[1,]", 2),
        (b"[,1]", 1),
        (b'[{"a" 1}]', 6),
        (b'[{"a":1,}]', 7),
        (b"[\n  1 ,\n]", 6),
        (rb'["\u"]', 2),
        (rb'["\ud"]', 2),
        (b'[{"a":}]', 6),
        (b"[{1:2}]", 2),
        (b'[{"a":{"b":[1 x]}}]', 14),
        (b'[{"a":[{}]]]', 10),
        (b"[01]", 2),
        (b"[NaN]", 1),
        (b"[1] x", 4),
        (b"[1][2]", 3),
        (b'["a\nb"]', 3),
    ],
)
def test_the_place_is_told_where_it_stops_being_json(text: bytes, offset: int) -> None:
    fault = fault_of(text)
    assert fault.offset == offset
    assert fault.message.startswith(f"Invalid JSON at byte {offset}: ")


def test_nesting_without_end_is_refused_and_not_followed() -> None:
    assert items(b"[" + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"]")
    assert "nested deeper than" in fault_of(b"[" * 1_000_000).message
    assert "nested deeper than" in fault_of(b'[{"a":' * 1_000_000).message


@pytest.mark.timing
@pytest.mark.parametrize(
    ("beginning", "unit", "is_by_line"),
    [
        (b"", b"[", False),
        (b"[", b"{", False),
        (b"[", b'{"', False),
        (b"[", b'{"":', False),
        (b"[", b'"', False),
        (b'["', b"\\", False),
        (b'["', b"\xff", False),
        (b"[", b" ", False),
        (b"[", b"1", False),
        (b"[[", b"[],", False),
        (b'[{"":', b'"","":', False),
        *((b"", unit, True) for unit in (b"\n", b"\r\n", b" ", b"[", b'"', b"{", b"\\", b"{}")),
    ],
)
def test_64_mib_of_anything_take_time_in_proportion(
    beginning: bytes, unit: bytes, is_by_line: bool
) -> None:
    text = beginning + unit * (LONG // len(unit))
    started = time.monotonic()
    looks_like_lines(text)
    if is_by_line:
        with contextlib.suppress(CannotUnpack):
            (part,) = unpack_content(text, WIDE, is_by_line=True)
            assert part.refusal is not None
    else:
        fault_of(text)
    assert time.monotonic() - started < ARRAY_LIMIT_S


# Lines


def test_each_line_and_each_item_of_an_array_is_a_part_whatever_it_is() -> None:
    content = b'\n{"a":1}\r\n \t\r\n  }{  \n\n\x00\xff'
    parts = list(unpack_content(content, WIDE, is_by_line=True))
    assert [(part.number, part.place, part.body) for part in parts] == [
        (1, "line 2", b'{"a":1}'),
        (2, "line 4", b"}{"),
        (3, "line 6", b"\x00\xff"),
    ]
    parts = parts_of(b' [ {"a":1}, [] ,\n7,{"a":1,"a":2}]\n')
    assert [(part.number, part.place, part.body) for part in parts] == [
        (1, "item 1", b'{"a":1}'),
        (2, "item 2", b"[]"),
        (3, "item 3", b"7"),
        (4, "item 4", b'{"a":1,"a":2}'),
    ]


def test_more_lines_than_are_taken_are_refused_before_the_first() -> None:
    parts = parts_of(b"1\n\n" * LIMITS.max_parts, is_by_line=True)
    assert len(parts) == LIMITS.max_parts
    with pytest.raises(CannotUnpack, match="more than 50 resumes"):
        unpack_content(b"1\n" * (LIMITS.max_parts + 1), LIMITS, is_by_line=True)


# Whichever


def parts_of(content: bytes, *, is_by_line: bool = False) -> list[Part]:
    return list(unpack_content(content, LIMITS, is_by_line=is_by_line))


def test_a_line_or_an_item_over_the_limit_is_refused_and_the_others_are_not() -> None:
    largest = json.dumps("x" * (LIMITS.max_bytes - 2)).encode()
    over = largest.replace(b"x", b"xx", 1)
    values = [b"{}", over, largest, over, b"{}"]
    for parts in (
        parts_of(b"\r\n".join(values), is_by_line=True),
        parts_of(b"[" + b",".join(values) + b"]"),
    ):
        assert [part.number for part in parts] == [1, 2, 3, 4, 5]
        assert [part.body for part in parts] == [b"{}", b"", largest, b"", b"{}"]
        reasons = [part.refusal and part.refusal.reason for part in parts]
        assert reasons == [None, Reason.TOO_LARGE, None, Reason.TOO_LARGE, None]


def test_what_is_longer_than_a_resume_is_several_or_is_refused() -> None:
    line = json.dumps({"a": "x" * (LIMITS.max_bytes // 2)}).encode() + b"\n"
    for content, parts in ((b"[%s]" % b",".join([line] * 3), 3), (line * 3, 3)):
        assert len(parts_of(content)) == parts
    for content in (b'{"a":"' + b"x" * LIMITS.max_bytes, b"{\n" * LIMITS.max_bytes):
        with pytest.raises(CannotUnpack, match=r"^Resume too large"):
            parts_of(content)
