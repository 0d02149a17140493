"""A source as lines that are harmless."""

import pytest

from resumes.store.ledger import SOURCE_BYTES
from resumes.text import is_harmless
from tests.tui.builders import HOSTILE
from tui.screens.imports.faults import Fault
from tui.screens.imports.source_text import Mark, lay_out

NOTHING = Fault()


def test_what_is_no_text_is_written_as_escapes() -> None:
    assert lay_out(b"a\xffb\x1b[2J\xc2\x9b", NOTHING).lines == ("a\\xffb\\x1b[2J\\x9b",)


def test_lines_end_with_the_file_s_own_line_ends() -> None:
    assert lay_out(b"{\r\n\t1\r\n}", NOTHING).lines == ("{", "  1", "}")
    assert lay_out(b"", NOTHING).lines == ("",)


@pytest.mark.parametrize("text", [HOSTILE, "\x00\x08\x7f\x9d", "\u2028\u202e\u2066\u200b"])
def test_no_line_holds_what_a_terminal_acts_upon(text: str) -> None:
    assert all(map(is_harmless, lay_out(text.encode(), NOTHING).lines))


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
    assert lay_out(b"x" * (SOURCE_BYTES - 1), NOTHING).is_whole
    assert not lay_out(b"x" * SOURCE_BYTES, NOTHING).is_whole
