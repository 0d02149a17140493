"""Where in the source of a file the error is, and the source as lines that are harmless."""

import json
from typing import Any

import pytest

from resumes.store.import_ledger import SOURCE_BYTES
from resumes.text import is_harmless
from tests.support.terminal.builders import HOSTILE
from tui.screens.file_source import (
    Fault,
    Mark,
    SourceText,
    decoded,
    find_fault,
    iter_pieces,
    lay_out,
)

DOCUMENT = b"""{
  "header": {"name": "Ada"},
  "sections": {
    "skills": {"column": 0, "items": [{"title": "a"}, {"title": 5, "tags": ["x", 1]}]}
  }
}
"""


def found(source: bytes, **fault: Any) -> str | None:
    """What stands at the fault, up to ten characters of it."""
    at = find_fault(source, Fault(**fault))
    return None if at is None else decoded(source)[at : at + 10]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("header", '"header": '),
        ("header.name", '"name": "A'),
        ("sections.skills", '"skills": '),
        ("sections.skills.items[1]", '{"title": '),
        ("sections.skills.items[1].title", '"title": 5'),
        ("sections.skills.items[1].tags[1]", "1]}]}\n  }\n"),
    ],
)
def test_a_path_leads_to_its_member(path: str, text: str) -> None:
    assert found(DOCUMENT, path=path) == text


def test_of_a_missing_field_what_should_hold_it_is_found() -> None:
    assert found(DOCUMENT, path="sections.skills.order") == '"skills": '
    assert found(DOCUMENT, path="style.layout") is None


def test_a_name_that_is_not_harmless_is_found_as_paths_write_it() -> None:
    source = json.dumps({"a\x1bb": {"c": 1}}).encode()
    assert found(source, path="a\\x1bb.c") == '"c": 1}}'


def test_a_byte_offset_counts_bytes() -> None:
    source = '{"é": "ü" x}'.encode()
    assert found(source, byte_offset=source.index(b"x")) == "x}"


def test_bytes_that_are_no_text_do_not_shift_what_follows() -> None:
    assert found(b"\xff\xfe{x", byte_offset=3) == "x"


def test_a_fault_at_the_end_or_beyond_what_is_kept() -> None:
    assert find_fault(b"{", Fault(byte_offset=1)) == 1
    assert find_fault(b"{", Fault(byte_offset=2)) is None


def test_of_a_source_that_is_cut_off_what_is_there_is_found() -> None:
    assert found(DOCUMENT[:60], path="sections.skills.items[1].title") == '"skills":'
    assert found(b"", path="header") is None
    assert found(b'{"a"', path="a.b") == '"a"'


def test_the_offset_of_a_line_is_one_within_its_resume() -> None:
    source = b'{"a": 1}\n\n  {"b": x}\n'
    assert found(source, place="line 3", byte_offset=6) == "x}\n"
    assert found(source, place="line 3") == '  {"b": x}'
    assert found(source, place="line 9", byte_offset=0) is None


def test_a_path_is_one_within_its_line_or_item() -> None:
    lines = b'{"header": 1}\n{"header": 2}\n'
    assert found(lines, place="line 2", path="header") == '"header": '
    assert find_fault(lines, Fault("header", place="line 2")) == 15
    array = b'[{"header": 1}, {"header": 2}]'
    assert find_fault(array, Fault("header", place="item 2")) == 17
    assert find_fault(array, Fault(place="item 2")) == 16


def test_in_an_archive_nothing_is_found() -> None:
    assert find_fault(b"PK", Fault("header", 1, "member a.json")) is None


def test_nothing_known_is_nothing_found() -> None:
    assert find_fault(DOCUMENT, Fault()) is None


@pytest.mark.parametrize("source", [b"[" * 5_000, b'{"a":' * 5_000, b"\x00\xff", b"]", b"{5: 1}"])
def test_whatever_the_source_is_nothing_is_raised(source: bytes) -> None:
    find_fault(source, Fault(path="a.a[0].b"))


def test_what_is_no_text_is_written_as_escapes() -> None:
    assert lay_out(b"a\xffb\x1b[2J\xc2\x9b", Fault()).lines == ("a\\xffb\\x1b[2J\\x9b",)


def test_lines_end_with_the_file_s_own_line_ends() -> None:
    assert lay_out(b"{\r\n\t1\r\n}", Fault()).lines == ("{", "  1", "}")
    assert lay_out(b"", Fault()).lines == ("",)


@pytest.mark.parametrize("text", [HOSTILE, "\x00\x08\x7f\x9d", "\u2028\u202e\u2066\u200b"])
def test_no_line_holds_what_a_terminal_acts_upon(text: str) -> None:
    assert all(map(is_harmless, lay_out(text.encode(), Fault()).lines))


@pytest.mark.parametrize(
    ("source", "offset", "mark"),
    [
        (b"{\n  x", 4, Mark(2, 3, 2)),
        (b"x", 0, Mark(1, 1, 0)),
        (b"{\n", 2, Mark(2, 1, 0)),
        (b"{", 1, Mark(1, 2, 1)),
        # Before it stand an escape and a tab, which are longer on the screen.
        (b"\x1b\tx", 2, Mark(1, 3, 6)),
        (b"ab\r\nc", 2, Mark(1, 3, 2)),
    ],
)
def test_the_fault_is_marked_by_line_and_column(source: bytes, offset: int, mark: Mark) -> None:
    assert lay_out(source, Fault(byte_offset=offset)).mark == mark


def test_a_fault_that_is_not_found_has_no_mark() -> None:
    assert lay_out(b"{", Fault(byte_offset=9)).mark is None


def test_a_source_as_long_as_what_is_kept_may_go_on() -> None:
    assert lay_out(b"x" * (SOURCE_BYTES - 1), Fault()).is_whole
    assert not lay_out(b"x" * SOURCE_BYTES, Fault()).is_whole


def a_source(text: str, byte_offset: int | None = None) -> SourceText:
    return lay_out(text.encode(), Fault(byte_offset=byte_offset))


def test_long_lines_are_cut_and_numbered_once() -> None:
    assert list(iter_pieces(a_source("abcdefgh\nx"), 3)) == [
        (1, "abc", None),
        (0, "def", None),
        (0, "gh", None),
        (2, "x", None),
    ]


@pytest.mark.parametrize(
    ("offset", "marked"), [(0, [0, None]), (3, [None, 0]), (5, [None, 2]), (6, [None, 3])]
)
def test_the_fault_is_in_one_piece_alone(offset: int, marked: list[int | None]) -> None:
    assert [at for _, _, at in iter_pieces(a_source("abcdef", offset), 3)] == marked


def test_wide_letters_are_cut_by_the_cells_they_take() -> None:
    assert [text for _, text, _ in iter_pieces(a_source("山田太郎"), 5)] == ["山田", "太郎"]


def test_an_empty_line_takes_a_line() -> None:
    assert [text for _, text, _ in iter_pieces(a_source("a\n\nb"), 5)] == ["a", "", "b"]
