"""Text from data cannot drive a terminal, and is measured as a terminal shows it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.text import cut, pad, safe_json, safe_text, width
from resumes.text import is_harmless

HOSTILE = [
    ("\x1b[31mred", "\\x1b[31mred"),
    ("a\x9b2Jb", "a\\x9b2Jb"),
    ("\x07\x7f", "\\x07\\x7f"),
    ("two\nlines\r\t", "two\\nlines\\r\\t"),
    ("evil\u202egnp.exe", "evil\\u202egnp.exe"),
    ("\u2066\u200f\u061c", "\\u2066\\u200f\\u061c"),
    ("\u2028\u2029", "\\u2028\\u2029"),
    ("\udc80", "\\udc80"),
    ("\U000e0041", "\\U000e0041"),
]


@pytest.mark.parametrize(("given_text", "shown"), HOSTILE)
def test_what_could_drive_a_terminal_is_escaped(given_text: str, shown: str) -> None:
    assert safe_text(given_text) == shown


@pytest.mark.parametrize("text", ["Zoë", "李小龙", "क्‍ष", "Prix\u00a0: 5", "سلمى", "👩‍💻"])
def test_every_script_stays_as_it_is(text: str) -> None:
    assert safe_text(text) == text


@given(st.text(st.characters(exclude_categories=[])))
def test_whatever_the_text_what_is_shown_is_harmless(text: str) -> None:
    assert is_harmless(safe_text(text))


def test_json_stays_json() -> None:
    assert safe_json('{\n"a\u202e": "\x7f"}') == '{\n"a\\u202e": "\\u007f"}'


def test_width_counts_cells() -> None:
    assert (width("abc"), width("日本"), width("é"), width("e\u0301")) == (3, 4, 1, 1)


def test_cut_fits_and_says_that_it_cut() -> None:
    assert cut("abc", 3) == "abc"
    assert cut("abcd", 3) == "ab…"
    assert cut("日本語", 4) == "日…"


@given(st.text(), st.integers(1, 30))
def test_cut_never_takes_more_cells_than_there_are(text: str, cells: int) -> None:
    assert width(cut(safe_text(text), cells)) <= cells


def test_pad_fills_either_side() -> None:
    assert pad("日", 4) == "日  "
    assert pad("7", 3, to_the_right=True) == "  7"
    assert pad("long", 2) == "long"
