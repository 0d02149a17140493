"""Which characters are harmless is decided once, for every surface."""

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resumes.text import counted, escaped, escaped_json, is_harmless, number_words, replaced

ANYTHING = st.text(st.characters(exclude_categories=[]))

HARMFUL = (
    *range(0x20),  # C0
    *range(0x7F, 0xA0),  # DEL and C1
    0xAD,
    0x061C,
    0x180E,
    0x200B,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),  # line and paragraph ends, direction embeddings
    *range(0x2060, 0x2070),  # word joiner, direction isolates
    *range(0xD800, 0xE000),  # surrogates
    *range(0xE000, 0xF900, 64),  # private use
    0xFEFF,
    *range(0xFFF9, 0xFFFC),
    0xFFFF,  # never assigned
    *range(0xE0000, 0xE0080),  # tags
)


@pytest.mark.parametrize(
    "text",
    ["Zoë", "e\u0301", "李小龙", "क्\u200dष", "می\u200cروم", "سلمى", "👩\u200d💻", "❤\ufe0f",
     "Prix\u00a0: 5", "全\u3000角", "a\\b", ""],
)  # fmt: skip
def test_every_script_is_harmless_and_stays(text: str) -> None:
    assert is_harmless(text)
    assert escaped(text) == escaped_json(text) == text


def test_what_drives_or_deceives_is_not_harmless() -> None:
    assert [hex(code) for code in HARMFUL if is_harmless(chr(code))] == []


def test_of_what_does_not_print_only_blanks_and_joiners_are_harmless() -> None:
    kinds = {
        unicodedata.category(char)
        for char in map(chr, range(sys.maxunicode + 1))
        if is_harmless(char) and not char.isprintable()
    }

    assert kinds == {"Zs", "Cf"}
    assert [char for char in map(chr, range(sys.maxunicode + 1))
            if is_harmless(char) and unicodedata.category(char) == "Cf"] == ["\u200c", "\u200d"]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\x9b2Jb", "a\\x9b2Jb"),
        ("two\nlines\r\t", "two\\nlines\\r\\t"),
        ("evil\u202egnp.exe", "evil\\u202egnp.exe"),
        ("soft\xadhyphen", "soft\\xadhyphen"),
        ("\udc80", "\\udc80"),
        ("\ue000", "\\ue000"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_the_rest_is_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


@given(ANYTHING)
def test_escaped_text_is_harmless_and_can_be_written(text: str) -> None:
    shown = escaped(text)

    assert is_harmless(shown)
    assert escaped(shown) == shown
    shown.encode()


@given(ANYTHING)
def test_escaped_json_is_the_same_json(text: str) -> None:
    shown = escaped_json(json.dumps({text: [text]}, ensure_ascii=False, indent=2))

    assert json.loads(shown) == json.loads(json.dumps({text: [text]}))
    assert is_harmless(shown.replace("\n", ""))


def test_a_surface_chooses_what_stands_in_its_place() -> None:
    assert replaced("a\x00b\u202e", lambda char: f"<{ord(char):x}>") == "a<0>b<202e>"


def test_nouns_are_counted() -> None:
    assert (counted(1, "file"), counted(0, "file"), counted(1_000, "file")) == (
        "1 file", "0 files", "1,000 files",
    )  # fmt: skip


def test_ranges_are_said_in_words() -> None:
    assert number_words(is_whole=True, least=0, most=65_535) == "a whole number from 0 to 65535"
    assert number_words(is_whole=False, least=0.5) == "a number of 0.5 or more"
    assert number_words(is_whole=True, most=3) == "a whole number of at most 3"
    assert number_words(is_whole=False) == "a number"
