"""What people read and type: harmless text, numbers, instants, spans, reasons."""

import json
import sys
import time
import unicodedata
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resumes.clock import later, minute, system_clock, timestamp
from resumes.durations import parse_expiry, parse_span, until
from resumes.import_reasons import Reason, find_hint, plain_words
from resumes.text import counted, escaped, escaped_json, is_harmless, replaced

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
    assert [counted(number, "file") for number in (0, 1, 1_000)] == [
        "0 files", "1 file", "1,000 files",
    ]  # fmt: skip


# Instants and spans


def test_a_timestamp_is_cut_to_milliseconds_and_compares_as_text() -> None:
    moments = [0, 999_999, 1_000_000, 10**15, 1_769_850_000_000_000, 2 * 10**15]
    texts = [timestamp(moment) for moment in moments]
    assert texts == sorted(texts)
    assert (texts[1], texts[4]) == ("1970-01-01T00:00:00.999Z", "2026-01-31T09:00:00.000Z")
    assert later(0, timedelta(minutes=1)) == "1970-01-01T00:01:00.000Z"
    assert later(60_000_000, timedelta(minutes=-1)) == "1970-01-01T00:00:00.000Z"
    assert abs(system_clock() - time.time() * 1e6) < 1e6


def test_people_read_an_instant_to_the_minute() -> None:
    assert minute("2026-01-31T09:05:59.999Z") == "2026-01-31 09:05"


NOW_US = 1_800_000_000_000_000  # 2027-01-15 08:00 UTC


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("30d", timedelta(days=30)),
        ("12h", timedelta(hours=12)),
        ("90m", timedelta(minutes=90)),
        ("0", timedelta(0)),
    ],
)
def test_a_span_is_a_number_and_a_unit(text: str, span: timedelta) -> None:
    assert parse_span(text) == span
    assert parse_expiry(text) == span


@pytest.mark.parametrize("text", ["", "3", "d", "3 d", "3w", "-3d", "1234567d", "٣d"])
def test_nothing_else_is_one(text: str) -> None:
    assert parse_span(text) is None
    assert parse_expiry(text) is None


def test_an_expiry_may_be_a_date() -> None:
    assert parse_expiry("2027-01-31") == datetime(2027, 1, 31, tzinfo=UTC)
    assert parse_expiry("2027-02-29") is None


def test_the_time_until_an_expiry_is_known() -> None:
    assert until(timedelta(days=1), now_us=NOW_US) == timedelta(days=1)
    assert until(datetime(2027, 1, 16, tzinfo=UTC), now_us=NOW_US) == timedelta(hours=16)
    assert until(datetime(2027, 1, 15, tzinfo=UTC), now_us=NOW_US) == timedelta(hours=-8)


# Reasons why a file is not simply done


def test_every_reason_has_words_of_its_own_that_fit_into_a_column_and_a_hint() -> None:
    words = [plain_words(reason.value) for reason in Reason]
    assert len(set(words)) == len(words)
    for reason, said in zip(Reason, words, strict=True):
        assert said != reason.value
        assert len(said) <= 20
        assert (find_hint(reason.value) or "").endswith(".")


def test_a_reason_that_is_not_known_is_said_as_it_is() -> None:
    assert plain_words("eaten_by_a_dog") == "eaten_by_a_dog"
    assert find_hint("eaten_by_a_dog") is None
