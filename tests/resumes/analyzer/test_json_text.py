import contextlib
import json
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resumes.analyzer.json_text import is_faithful, read_json, refuse_unfaithful
from resumes.errors import InvalidJson


def faithful(body: bytes) -> Any:
    value = read_json(body)
    if not is_faithful(value):
        refuse_unfaithful(body)
        pytest.fail("refused, but without a reason")
    return value


def refusal_of(body: bytes) -> InvalidJson:
    with pytest.raises(InvalidJson) as refusal:
        faithful(body)
    return refusal.value


@pytest.mark.parametrize(
    ("body", "reason", "offset"),
    [
        (b"", "the body is empty", 0),
        (b" \r\n\t", "the body is empty", 0),
        (b"\xef\xbb\xbf{}", "a byte order mark", 0),
        (b'{"a":"\xff"}', "not UTF-8", 6),
        ('{"a":1}'.encode("utf-16"), "UTF-16, not UTF-8", 0),
        (b"%PDF-1.4\n%\xe2\xe3", "a PDF, not JSON", 0),
        (b"PK\x03\x04\x14\x00", "a ZIP archive or an office document, not JSON", 0),
        (b"\x1f\x8b\x08\x00", "compressed with gzip, not JSON", 0),
        (b'["\xed\xa0\x80"]', "not UTF-8", 2),
        (b'{"a":NaN}', "NaN is not a JSON number", 5),
        (b"[Infinity]", "Infinity is not a JSON number", 1),
        (b"[-Infinity]", "-Infinity is not a JSON number", 1),
        (b"[1, 1e999]", "a number that overflows", 4),
        (b"[-1e999]", "a number that overflows", 1),
        (b"[" + b"1" * 400 + b".5]", "a number that overflows", 1),
        (b"[9223372036854775808]", "an integer outside", 1),
        (b"[-9223372036854775809]", "an integer outside", 1),
        (b'{"n":' + b"9" * 5000 + b"}", "an integer outside", 5),
        (b'["\\ud800"]', "a lone surrogate", 8),
        (b'["\\ud800\\u0041"]', "a lone surrogate", 13),
        (b'["\\udc00"]', "a lone surrogate", 7),
        (b'["\x00"]', "control character", 2),
        (b'["ab\\u0000"]', "the character U+0000", 4),
        (b'{"\\u0000":1}', "the character U+0000", 2),
        (b'["\\\\\\u0000"]', "the character U+0000", 4),
        (b'{"a":1,"a":2}', 'duplicate key "a"', 11),
        (b'{"x":{"b":1,"b":2}}', 'duplicate key "b"', 16),
        (b"[" * 33 + b"]" * 33, "nested deeper than 32 levels", 32),
        (b'{"a":' * 33 + b"1" + b"}" * 33, "nested deeper than 32 levels", 160),
        (b"[" * 2_000_000, "nested deeper than 32 levels", 32),
        (b"{} x", "trailing characters", 3),
        (b'{"a":1,}', "trailing comma", 7),
        (b"{\n\xe2\x82\xac}", "key must be a string", 2),
        (b"{", "the text ends in the middle of an object", 1),
        (b'["a\nb"]', "control character", 3),
        (b'["\\\n' + b"," * 120_001 + b'"]', "invalid escape", 3),
        (b"[" + b"1," * 120_000 + b"1]", "more than 120,000 values", 240_000),
        (b'["a,b\\",c"' + b",[]" * 120_000, "more than 120,000 values", 10 + 3 * 119_999),
        (b'{"":{' + b'"":1,' * 50_001, "more than 50,000 fields", 250_002),
        (b"\n" * 10_000 + b"x", "expected value", 10_000),
    ],
    ids=lambda value: repr(value[:20]) if isinstance(value, bytes) else None,
)
def test_not_json_is_refused_with_the_reason_and_the_byte_offset(
    body: bytes, reason: str, offset: int
) -> None:
    error = refusal_of(body)
    assert reason in error.message
    assert error.offset == offset
    assert error.message.startswith(f"Invalid JSON at byte {offset}: ")


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"[9223372036854775807, -9223372036854775808]", [2**63 - 1, -(2**63)]),
        (b"[" * 32 + b"]" * 32, json.loads("[" * 32 + "]" * 32)),
        (b'["\\ud83d\\ude00"]', ["\U0001f600"]),
        (b'["\\\\u0000"]', ["\\u0000"]),
        (b'["[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[ 1e999"]', ["[" * 37 + " 1e999"]),
        (b" [1.5e3, -0.0, 1e-400] ", [1500.0, -0.0, 0.0]),
        (b'["' + b"," * 130_000 + b'"]', ["," * 130_000]),
        (b"[" + b"1," * 119_999 + b"1]", [1] * 120_000),
        (b'{"a":{"b":1},"c":{"b":2}}', {"a": {"b": 1}, "c": {"b": 2}}),
    ],
)
def test_json_up_to_the_limits_is_read(body: bytes, value: Any) -> None:
    assert faithful(body) == value


@pytest.mark.timing
@pytest.mark.parametrize("unit", [b'\\",', b'\\":', b'"', b"\\"])
def test_a_string_that_never_ends_takes_no_longer_than_its_length(unit: bytes) -> None:
    body = b'{"header":"' + unit * 200_000
    started_s = process_time()
    refusal_of(body)
    with contextlib.suppress(InvalidJson):
        refuse_unfaithful(body)
    assert process_time() - started_s < 2


def test_a_duplicate_key_is_named_safely() -> None:
    error = refusal_of(b'{"a\\u001b[2J":1,"a\\u001b[2J":2}')
    assert "\x1b" not in error.message
    long = b'"' + b"k" * 1000 + b'":1'
    assert len(refusal_of(b"{" + long + b"," + long + b"}").message) < 150


def test_depth_counts_from_where_a_value_stands() -> None:
    assert is_faithful([], depth=32)
    assert not is_faithful([], depth=33)
    assert is_faithful("text", depth=33)


_numbers = st.one_of(
    st.integers(-(2**65), 2**65).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["1e400", "-1E+400", "0e999", "1e308", "9" * 30, "0.0"]),
)
_texts = st.recursive(
    st.one_of(_numbers, st.text().map(json.dumps)),
    lambda inner: st.lists(inner, max_size=4).map(lambda texts: f"[{','.join(texts)}]"),
)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(text=_texts, nested=st.integers(0, 34))
def test_both_ways_of_looking_for_what_cannot_be_kept_agree(text: str, nested: int) -> None:
    body = ("[" * nested + text.replace("\\u0000", "") + "]" * nested).encode()
    try:
        refuse_unfaithful(body)
        is_refused = False
    except InvalidJson:
        is_refused = True
    assert is_faithful(read_json(body)) is not is_refused


def test_the_smallest_and_the_largest_integer_can_be_kept() -> None:
    with pytest.raises(InvalidJson) as refusal:
        refuse_unfaithful(b"[-9223372036854775808, 9223372036854775807, 1e999]")
    assert refusal.value.offset == 44
    for number in (b"-9223372036854775809", b"9223372036854775808"):
        with pytest.raises(InvalidJson) as refusal:
            refuse_unfaithful(b"[1, %b]" % number)
        assert refusal.value.offset == 4


def test_arrays_beside_each_other_are_not_one_in_the_other() -> None:
    with pytest.raises(InvalidJson, match="overflows") as refusal:
        refuse_unfaithful(b"[" + b"[]," * 40 + b"1e999]")
    assert refusal.value.offset == 121
    with pytest.raises(InvalidJson, match="deeper than 32") as refusal:
        refuse_unfaithful(b"[" * 20 + b"[]," + b"[" * 13)
    assert refusal.value.offset == 35


def test_only_the_beginning_of_a_body_is_looked_through_for_a_place() -> None:
    refuse_unfaithful(b"[" + b"0," * 20_001 + b"1e999]")
