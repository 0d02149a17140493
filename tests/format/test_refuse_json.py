"""Bytes that are no JSON, or JSON that not every store and client can keep as it is."""

import contextlib
import json
from time import process_time
from typing import Any

import pytest

from resumes.analyzer import Format, parse
from resumes.errors import InvalidJson, TooLarge
from tests.support.documents import a_document, admitting

MARK = "a byte order mark, which is allowed only at the beginning"


def refusal_of(body: bytes) -> InvalidJson:
    with pytest.raises(InvalidJson) as refusal:
        parse(body)
    return refusal.value


@pytest.mark.parametrize(
    ("body", "reason", "offset"),
    [
        (b"", "the body is empty", 0),
        (b" \r\n\t", "the body is empty", 0),
        (b"\xef\xbb\xbf", "the body is empty", 0),
        (b"\xef\xbb\xbf \n", "the body is empty", 0),
        (b'\xef\xbb\xbf{"a":1,"a":2}', 'duplicate key "a"', 14),
        (b'\xef\xbb\xbf{"a":NaN}', "NaN is not a JSON number", 8),
        (b"\xef\xbb\xbf\xef\xbb\xbf{}", MARK, 3),
        (b" \xef\xbb\xbf{}", MARK, 1),
        (b"{\xef\xbb\xbf}", MARK, 1),
        (b"{}\xef\xbb\xbf", MARK, 2),
        (b'{"a":"\xff"}', "not UTF-8", 6),
        (b'["\xed\xa0\x80"]', "not UTF-8", 2),
        ('{"a":1}'.encode("utf-16"), "UTF-16, not UTF-8: save it as UTF-8", 0),
        (b"\xfe\xff\0{", "UTF-16, not UTF-8: save it as UTF-8", 0),
        ('{"a":1}'.encode("utf-16-le"), "UTF-16, not UTF-8: save it as UTF-8", 0),
        ('{"a":1}'.encode("utf-16-be"), "UTF-16, not UTF-8: save it as UTF-8", 0),
        ('{"a":1}'.encode("utf-32"), "UTF-32, not UTF-8: save it as UTF-8", 0),
        (b"\0\0\xfe\xff\0\0\0{", "UTF-32, not UTF-8: save it as UTF-8", 0),
        ('{"a":1}'.encode("utf-32-be"), "UTF-32, not UTF-8: save it as UTF-8", 0),
        (b"%PDF-1.4\n%\xe2\xe3", "a PDF, not JSON", 0),
        (b"PK\x03\x04\x14\x00", "a ZIP archive or an office document, not JSON", 0),
        (b"\x1f\x8b\x08\x00", "compressed with gzip, not JSON", 0),
        (b'{"a":NaN}', "NaN is not a JSON number", 5),
        (b"[Infinity]", "Infinity is not a JSON number", 1),
        (b"[-Infinity]", "-Infinity is not a JSON number", 1),
        (b"[1, 1e999]", "a number that overflows", 4),
        (b"[-1e999]", "a number that overflows", 1),
        (b"[" + b"1" * 400 + b".5]", "a number that overflows", 1),
        (b"[9223372036854775808]", "an integer outside -2^63 to 2^63-1", 1),
        (b"[1, -9223372036854775809]", "an integer outside -2^63 to 2^63-1", 4),
        (b'{"n":' + b"9" * 5000 + b"}", "an integer outside -2^63 to 2^63-1", 5),
        (b"[-9223372036854775808, 9223372036854775807, 1e999]", "a number that overflows", 44),
        (b"[" + b"[]," * 40 + b"1e999]", "a number that overflows", 121),
        (b'["\\"[[1e999", 1e999]', "a number that overflows", 14),
        (b'["\\ud800"]', "a lone surrogate", 8),
        (b'["\\ud800\\u0041"]', "a lone surrogate", 13),
        (b'["\\udc00"]', "a lone surrogate", 7),
        (b'["ab\\u0000"]', "the character U+0000", 4),
        (b'{"\\u0000":1}', "the character U+0000", 2),
        (b'["\\\\\\u0000"]', "the character U+0000", 4),
        (b'["\x00"]', "control character (\\u0000-\\u001F) found while parsing a string", 2),
        (b'["a\nb"]', "control character (\\u0000-\\u001F) found while parsing a string", 3),
        (b'{"a":1,"a":2}', 'duplicate key "a"', 11),
        (b'{"a":1,"\\u0061":2}', 'duplicate key "a"', 16),
        (b'{"header":{},"sections":{},"header":{}}', 'duplicate key "header"', 36),
        (b'{"x":{"b":1,"b":2}}', 'duplicate key "b"', 16),
        (b"[" * 33 + b"]" * 33, "nested deeper than 32 levels", 32),
        (b"[" * 20 + b"[]," + b"[" * 13 + b"]" * 33, "nested deeper than 32 levels", 35),
        (b'{"a":' * 33 + b"1" + b"}" * 33, "nested deeper than 32 levels", 160),
        (b"[" * 2_000_000, "nested deeper than 32 levels", 32),
        (b"{} x", "trailing characters", 3),
        (b'{"a":1,}', "trailing comma", 7),
        (b"{\n\xe2\x82\xac}", "key must be a string", 2),
        (b"{", "the text ends in the middle of an object", 1),
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
    assert error.offset == offset
    assert error.message == f"Invalid JSON at byte {offset}: {reason}"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"[9223372036854775807, -9223372036854775808]", [2**63 - 1, -(2**63)]),
        (b"[" * 31 + b"]" * 31, json.loads("[" * 31 + "]" * 31)),
        (b'["\\ud83d\\ude00"]', ["\U0001f600"]),
        (b'["\\\\u0000"]', ["\\u0000"]),
        (b'["[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[ 1e999"]', ["[" * 37 + " 1e999"]),
        (b" [1.5e3, -0.0, 1e-400] ", [1500.0, -0.0, 0.0]),
        (b'["' + b"," * 130_000 + b'"]', ["," * 130_000]),
        (b'["' + b":" * 60_000 + b'"]', [":" * 60_000]),
        (b"[" + b"1," * 119_995 + b"1]", [1] * 119_996),
        (b'{"a":{"b":1},"c":{"b":2}}', {"a": {"b": 1}, "c": {"b": 2}}),
    ],
    ids=lambda value: repr(value[:20]) if isinstance(value, bytes) else None,
)
def test_json_up_to_the_limits_is_kept(text: bytes, value: Any) -> None:
    document = parse(b'{"header":{},"sections":{},"x":' + text + b"}").document
    assert json.loads(document)["x"] == value


@pytest.mark.parametrize(
    ("bad", "reason", "last"),
    [
        (b"1e999", "a number that overflows", 0),
        (b"9223372036854775808", "an integer outside", 0),
        (b"[" * 40 + b"]" * 40, "nested deeper than 32 levels", 32),
        (b'"\\u0000"', "the character U+0000", 1),
    ],
)
@pytest.mark.parametrize(
    "around",
    [
        b'{"header": {"website": %s}, "sections": {}}',
        b'{"header": {}, "sections": {"languages": {"column": 0, "items": [{"level": %s}]}}}',
        b'{"header": {}, "sections": {"mytime": {"column": 0, "items": [{"pieces": %s}]}}}',
        b'{"header":{},"sections":{"customs":{"column":0,"items":[{"dateRange":{"toMonth":%s}}]}}}',
        b'{"header": {}, "sections": {"languages": {"column": 0, "items": [{"record": %s}]}}}',
        b'{"header": {}, "sections": {"languages": {"column": 0, "order": %s}}}',
        b'{"header": {}, "sections": {"languages": {"column": %s}}}',
        b'{"header": {}, "sections": {"skills": {"column": 0, "layoutMode": %s}}}',
        b'{"header": {}, "sections": {"hobbies": {"column": 0, "items": [%s]}}}',
        b'{"header": {}, "sections": {}, "style": {"fontSize": %s}}',
        b'{"header": {}, "sections": {}, "unknown": %s}',
        b'{"header": {}, "sections": {}, "isImported": %s}',
        b'{"header": 5, "sections": {}, "unknown": %s}',
        b'{"type": "coverLetter", "unknown": %s}',
        b'{"sections": [%s]}',
        b"[%s]",
    ],
)
def test_what_cannot_be_kept_is_found_wherever_it_stands_and_before_all_else(
    around: bytes, bad: bytes, reason: str, last: int
) -> None:
    with pytest.raises(InvalidJson, match=reason.replace("+", r"\+")) as refusal:
        parse(around % bad, admitting("hobbies"))
    start = around.index(b"%s")
    assert refusal.value.offset is not None
    assert start <= refusal.value.offset <= start + last


@pytest.mark.parametrize(
    "around",
    [
        b'{"header":{},"sections":{"skills":{"column":0,"items":[{"x":%s}]}}}',
        b'{"header":{},"sections":{"skills":{"column":0,"items":[],"x":{"y":{"z":%s}}}}}',
        b'{"header":{},"sections":{"hobbies":{"column":0,"items":[{"x":%s}]}}}',
    ],
)
def test_a_document_may_nest_32_levels_deep_also_in_unknown_fields(around: bytes) -> None:
    levels_around = 5
    room = 32 - levels_around
    parse(around % (b"[" * room + b"]" * room), admitting("hobbies"))
    with pytest.raises(InvalidJson, match="nested deeper than 32 levels"):
        parse(around % (b"[" * (room + 1) + b"]" * (room + 1)), admitting("hobbies"))


def test_only_the_beginning_of_a_body_is_looked_through_for_a_place() -> None:
    error = refusal_of(b"[" + b"0," * 20_001 + b"1e999]")
    assert error.offset is None
    assert error.message == "Invalid JSON: a number or a nesting depth that cannot be stored"


def test_a_duplicate_key_is_named_safely() -> None:
    error = refusal_of(b'{"a\\u001b[2J":1,"a\\u001b[2J":2}')
    assert "\x1b" not in error.message
    long = b'"' + b"k" * 1000 + b'":1'
    assert len(refusal_of(b"{" + long + b"," + long + b"}").message) < 150


def test_size_over_the_setting_is_too_large_and_is_not_read() -> None:
    body = json.dumps(a_document()).encode()
    parse(body, Format(max_bytes=len(body)))
    for refused in (body, b"\xff" * len(body)):
        with pytest.raises(TooLarge) as refusal:
            parse(refused, Format(max_bytes=len(body) - 1))
        assert refusal.value.limit_bytes == len(body) - 1
    assert Format().max_bytes == 2_097_152


@pytest.mark.timing
@pytest.mark.parametrize("unit", [b'\\",', b'\\":', b'"', b"\\"])
def test_a_string_that_never_ends_takes_no_longer_than_its_length(unit: bytes) -> None:
    body = b'{"header":"' + unit * 200_000
    started_s = process_time()
    refusal_of(body)
    with contextlib.suppress(InvalidJson):
        parse(b"[" * 40 + body)
    assert process_time() - started_s < 2
