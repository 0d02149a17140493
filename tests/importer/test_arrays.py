import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from importer.arrays import MAX_DEPTH, begins_array, is_value, iter_items
from resumes.errors import InvalidJson

MIB = 1024 * 1024
LONG = 64 * MIB
LIMIT_S = 120.0
"""For texts of 64 MiB; what is not linear takes hours."""

TOKENS = [
    *("[", "]", "{", "}", ",", ":", '"', "\\", '"a"', '"\\n"', '"\\u00e9"', '"\\ud800"', '"\\x"'),
    *(
        "1",
        "-0.5e+3",
        "0",
        "01",
        "1.",
        "-",
        "true",
        "null",
        "nul",
        "NaN",
        " ",
        "\n",
        "\x00",
        "\xa0",
    ),
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
    assert is_value(encoded) == is_json(encoded)
    array = b"[" + encoded + b"]"
    if is_json(array):
        assert len(items(array)) == len(json.loads(array.decode("latin-1")))
    else:
        assert 0 <= (fault_of(array).offset or 0) <= len(array)


@given(
    st.lists(VALUES, min_size=1, max_size=4).map(lambda values: json.dumps(values).encode()),
    st.data(),
)
def test_an_array_that_is_cut_short_anywhere_is_none(text: bytes, data: st.DataObject) -> None:
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    fault = fault_of(cut)
    assert fault.offset == len(cut)
    assert "the text ends in the middle of the array" in fault.message


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        (b"[1 2]", 3),
        (b"[1,]", 2),
        (b"[,1]", 1),
        (b'[{"a" 1}]', 6),
        (b'[{"a":1,}]', 7),
        (b'[{"a":}]', 6),
        (b"[{1:2}]", 3),
        (b'[{"a":{"b":[1 x]}}]', 14),
        (b'[{"a":[{}]]]', 10),
        (b"[01]", 2),
        (b"[NaN]", 1),
        (b"[1] x", 4),
        (b"[1][2]", 3),
        (b'["a\nb"]', 1),
    ],
)
def test_the_place_is_told_where_it_stops_being_json(text: bytes, offset: int) -> None:
    fault = fault_of(text)
    assert fault.offset == offset
    assert fault.message.startswith(f"Invalid JSON at byte {offset}: ")


def test_an_array_is_known_by_its_first_byte() -> None:
    assert begins_array(b" \r\n[")
    assert not begins_array(b"")
    assert not begins_array(b'{"a":[]}')
    assert not begins_array(b"\xef\xbb\xbf[]")


def test_what_the_analyzer_refuses_is_an_item_all_the_same() -> None:
    wrong = [
        b'{"a":1,"a":2}',
        b"1" * 5_000,
        b"1e999",
        b'"\\ud800"',
        b'"\xff"',
        b"[" * 40 + b"]" * 40,
    ]
    assert items(b"[" + b",".join(wrong) + b"]") == wrong


def test_nesting_without_end_is_refused_and_not_followed() -> None:
    assert items(b"[" + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"]")
    assert "nested deeper than" in fault_of(b"[" * 1_000_000).message
    assert "nested deeper than" in fault_of(b'[{"a":' * 1_000_000).message


@pytest.mark.timing
@pytest.mark.parametrize(
    ("beginning", "unit"),
    [
        (b"", b"["),
        (b"[", b"{"),
        (b"[", b'{"'),
        (b"[", b'{"":'),
        (b"[", b'"'),
        (b'["', b"\\"),
        (b'["', b"\xff"),
        (b"[", b" "),
        (b"[", b"1"),
        (b"[[", b"[],"),
        (b'[{"":', b'"","":'),
    ],
)
def test_64_mib_of_anything_takes_time_in_proportion(beginning: bytes, unit: bytes) -> None:
    text = beginning + unit * (LONG // len(unit))
    started = time.monotonic()
    fault_of(text)
    assert time.monotonic() - started < LIMIT_S


@pytest.mark.timing
def test_100_000_tiny_items_take_time_in_proportion() -> None:
    started = time.monotonic()
    assert len(items(b"[" + b",".join([b'{"a":{}}'] * 100_000) + b"]")) == 100_000
    assert time.monotonic() - started < LIMIT_S
