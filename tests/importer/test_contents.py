import json
import tarfile
from io import BytesIO

import pytest

from importer.contents import check_beginning, is_several, unpack_content
from importer.outcomes import Refusal
from importer.parts import Bytes, CannotUnpack, Part
from resumes.reasons import Reason
from tests.importer.packing import LIMITS, WIDE, gzipped, zipped


def parts_of(content: Bytes, *, is_by_line: bool = False) -> list[Part]:
    return list(unpack_content(content, LIMITS, is_by_line=is_by_line))


def refusal_of(content: Bytes, *, is_by_line: bool = False) -> Refusal:
    with pytest.raises(CannotUnpack) as caught:
        unpack_content(content, LIMITS, is_by_line=is_by_line)
    return caught.value.refusal


def test_the_items_of_an_array_are_parts_whatever_they_are() -> None:
    parts = parts_of(b' [ {"a":1}, [] ,\n7,{"a":1,"a":2}]\n')
    assert [(part.number, part.place, part.byte_offset, part.body) for part in parts] == [
        (1, "item 1", 3, b'{"a":1}'),
        (2, "item 2", 12, b"[]"),
        (3, "item 3", 17, b"7"),
        (4, "item 4", 19, b'{"a":1,"a":2}'),
    ]


def test_an_item_over_the_limit_is_refused_and_the_others_are_not() -> None:
    largest = json.dumps("x" * (LIMITS.max_bytes - 2)).encode()
    assert len(largest) == LIMITS.max_bytes
    parts = parts_of(b"[" + largest + b"," + largest.replace(b"x", b"xx", 1) + b",{}]")
    assert [part.body for part in parts] == [largest, b"", b"{}"]
    assert parts[1].refusal is not None
    assert parts[1].refusal.reason is Reason.TOO_LARGE
    assert parts[1].byte_offset == LIMITS.max_bytes + 2


@pytest.mark.parametrize(
    ("content", "offset"),
    [(b'[{"a":1}', 8), (b'[{"a":1}] x', 10), (b'[{"a":1}][]', 9), (b'[{"a":1},{"b" 2}]', 14)],
)
def test_of_an_array_that_is_no_json_as_a_whole_nothing_is_given(
    content: bytes, offset: int
) -> None:
    refusal = refusal_of(content)
    assert refusal.reason is Reason.INVALID_JSON
    assert refusal.byte_offset == offset


def test_an_array_of_more_items_than_are_taken_is_refused() -> None:
    assert len(parts_of(b"[" + b",".join([b"{}"] * LIMITS.max_parts) + b"]")) == LIMITS.max_parts
    refusal = refusal_of(b"[" + b",".join([b"{}"] * (LIMITS.max_parts + 1)) + b"]")
    assert refusal.reason is Reason.TOO_LARGE


def test_an_empty_array_and_nothing_at_all_hold_no_resume() -> None:
    assert refusal_of(b" [ ] ").reason is Reason.INVALID_RESUME
    for content in (b"", b" \r\n"):
        refusal = refusal_of(content)
        assert refusal.reason is Reason.INVALID_JSON
        assert "holds no resume" in refusal.message


def test_the_only_value_has_no_place() -> None:
    (part,) = parts_of(bytearray(b'\n\n{"a":\n1}\n'))
    assert part == Part(1, "", 2, b'{"a":\n1}')
    assert type(part.body) is bytes


def test_the_only_value_has_the_size_of_the_api() -> None:
    assert parts_of(b"x" * LIMITS.max_bytes)
    assert refusal_of(b"x" * (LIMITS.max_bytes + 1)).reason is Reason.TOO_LARGE


def test_lines_are_told_by_name_or_by_look() -> None:
    assert [part.place for part in parts_of(b'{"a":1}\n{"b":2}')] == ["line 1", "line 2"]
    assert [part.place for part in parts_of(b'{"a":1}\nx')] == [""]
    assert [part.place for part in parts_of(b'{"a":1}\nx', is_by_line=True)] == ["line 1", "line 2"]
    assert [part.body for part in parts_of(b"[1,\n2]", is_by_line=True)] == [b"[1,", b"2]"]


@pytest.mark.parametrize("is_by_line", [True, False])
@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"])
def test_other_encodings_are_refused_as_a_whole(mark: bytes, is_by_line: bool) -> None:
    refusal = refusal_of(mark + b'{"a":1}\n{"b":2}\n', is_by_line=is_by_line)
    assert refusal.reason is Reason.INVALID_JSON
    assert refusal.byte_offset == 0


def test_an_archive_in_place_of_json_is_named_as_one() -> None:
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.json"))
    for content in (gzipped(b"{}"), zipped({"a.json": b"{}"}), zipped({}), buffer.getvalue()):
        refusal = refusal_of(content)
        assert refusal.reason is Reason.INVALID_ARCHIVE
        assert "archives within files are not opened" in refusal.message


def test_several_are_an_array_or_lines() -> None:
    assert is_several(b" []")
    assert is_several(b'{"a":1}\n{"b":2}')
    assert not is_several(b'{"a":[]}')


def test_what_is_longer_than_a_resume_may_be_several_or_is_refused() -> None:
    line = json.dumps({"a": "x" * (LIMITS.max_bytes // 2)}).encode() + b"\n"
    for beginning in (b'["' + b"x" * LIMITS.max_bytes, line * 3, line + b"\n" * LIMITS.max_bytes):
        check_beginning(beginning, LIMITS, is_by_line=False)
    check_beginning(b"x" * LIMITS.max_bytes, LIMITS, is_by_line=True)
    for beginning in (b'{"a":"' + b"x" * LIMITS.max_bytes, b"{\n" * LIMITS.max_bytes):
        with pytest.raises(CannotUnpack, match="Resume too large"):
            check_beginning(beginning, LIMITS, is_by_line=False)
    with pytest.raises(CannotUnpack, match="archive"):
        check_beginning(gzipped(b"{}"), LIMITS, is_by_line=True)


def test_a_part_is_made_when_it_is_asked_for() -> None:
    parts = unpack_content(b"[{},{}]", WIDE, is_by_line=False)
    assert next(parts).number == 1
    assert next(parts).number == 2
    assert next(parts, None) is None
