import time

import pytest

from importer.lines import looks_like_lines, unpack_lines
from importer.parts import CannotUnpack
from resumes.reasons import Reason
from tests.importer.packing import LIMITS, WIDE

LONG = 64 * 1024 * 1024
LIMIT_S = 60.0


def test_each_line_is_a_part_and_blank_ones_are_counted_only() -> None:
    content = b'\n{"a":1}\r\n \t\r\n  {"b":2}  \n\n{"c":3}'
    parts = list(unpack_lines(content, WIDE))
    assert [(part.number, part.place, part.byte_offset, part.body) for part in parts] == [
        (1, "line 2", 1, b'{"a":1}'),
        (2, "line 4", 16, b'{"b":2}'),
        (3, "line 6", 27, b'{"c":3}'),
    ]


def test_a_line_that_is_no_json_is_a_part_like_the_others() -> None:
    parts = list(unpack_lines(b'{"a":1}\n}{\n\x00\xff\n{"b":2}\n', WIDE))
    assert [part.body for part in parts] == [b'{"a":1}', b"}{", b"\x00\xff", b'{"b":2}']


def test_a_line_over_the_limit_is_refused_and_the_others_are_not() -> None:
    largest = b"x" * LIMITS.max_bytes
    content = b"a\r\n" + largest + b"x\r\n" + largest + b"\r\n" + largest + b"xx\r\nb"
    parts = list(unpack_lines(content, LIMITS))
    assert [part.number for part in parts] == [1, 2, 3, 4, 5]
    assert [part.body for part in parts] == [b"a", b"", largest, b"", b"b"]
    reasons = [part.refusal and part.refusal.reason for part in parts]
    assert reasons == [None, Reason.TOO_LARGE, None, Reason.TOO_LARGE, None]


@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\t\n "])
def test_blank_lines_alone_are_no_resume(content: bytes) -> None:
    with pytest.raises(CannotUnpack, match="holds no resume") as caught:
        unpack_lines(content, WIDE)
    assert caught.value.refusal.reason is Reason.INVALID_JSON


def test_more_lines_than_are_taken_are_refused_before_the_first() -> None:
    assert len(list(unpack_lines(b"1\n\n" * LIMITS.max_parts, LIMITS))) == LIMITS.max_parts
    with pytest.raises(CannotUnpack, match="more than 50 resumes"):
        unpack_lines(b"1\n" * (LIMITS.max_parts + 1), LIMITS)


@pytest.mark.parametrize(
    ("content", "is_several"),
    [
        (b'{"a":1}\n{"b":2}\n', True),
        (b'\n{"a":1} \r\n\r\n {"b":', True),
        (b'{"a":1}', False),
        (b'{"a":1}\n', False),
        (b'{"a":1}{"b":2}\n', False),
        (b'{\n"a":1\n}\n{\n"b":2\n}', False),
        (b'{"a":\n{"b":2}}', False),
        (b'{"a":1\n{"b":2}\n', False),
        (b'{"a":1}\n\x00\x00\x00\x00', False),
        (b'{"a":1}\n]', False),
        (b'"a"\n"b"\n', False),
        (b"", False),
    ],
)
def test_lines_are_known_by_the_first_being_whole_and_another_following(
    content: bytes, is_several: bool
) -> None:
    assert looks_like_lines(content) == is_several


def test_of_a_beginning_the_next_line_may_not_be_there_yet() -> None:
    assert looks_like_lines(b'{"a":1}\n', is_whole=False)
    assert looks_like_lines(b'{"a":1}', is_whole=False)
    assert not looks_like_lines(b'{"a":', is_whole=False)
    assert not looks_like_lines(b'{"a":1}\nx', is_whole=False)


@pytest.mark.timing
@pytest.mark.parametrize("unit", [b"\n", b"\r\n", b" ", b"[", b'"', b"{", b"\\", b"{}"])
def test_64_mib_of_anything_takes_time_in_proportion(unit: bytes) -> None:
    content = unit * (LONG // len(unit))
    started = time.monotonic()
    looks_like_lines(content)
    if content.strip():
        (part,) = unpack_lines(content, WIDE)
        assert part.refusal is not None
    else:
        with pytest.raises(CannotUnpack):
            unpack_lines(content, WIDE)
    assert time.monotonic() - started < LIMIT_S
