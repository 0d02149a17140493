"""Where in a source the fault is."""

import json
from typing import Any

import pytest

from resumes.store.engine import Store
from resumes.store.items import Items, Problem
from tests.tui.screens.imports.builders import a_file
from tui.screens.imports.faults import Fault, decoded, fault_of, find_fault

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


def test_of_a_file_of_several_it_is_the_first_problem(store: Store) -> None:
    problem = Problem(2, "line 2", "failed", "invalid_json", "no", "header", 7)
    items = Items(total=2, done=1, duplicate=0, held=0, failed=1, problems=(problem,))
    assert fault_of(a_file(store, items=items)) == Fault("header", 7, "line 2")
    assert fault_of(a_file(store, path="title", byte_offset=3)) == Fault("title", 3)
