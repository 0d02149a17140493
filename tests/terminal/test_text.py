"""Text from data draws itself and does nothing, whichever way it takes to people; numbers, instants and spans as they read them."""

import base64
import json
import subprocess
import sys
import time
import unicodedata
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from resumes.clock import later, minute, system_clock, timestamp
from resumes.durations import parse_expiry, parse_span
from resumes.import_reasons import Reason, find_hint, plain_words
from resumes.store.store import Store
from resumes.text import escaped, escaped_json, is_harmless
from tests.support.terminal.builders import a_document, stored
from tests.support.terminal.console import Picture
from tests.support.terminal.driving import copied, leads, running
from tui.clipboard import request
from tui.text import joined, quota_bar, safe, safe_lines, safe_text
from tui.widths import aligned

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
     "Prix\u00a0: 5", "全\u3000角", "a\\b", "a[/b]c [@click=app.quit]x[/]", ""],
)  # fmt: skip
def test_every_script_is_harmless_and_stays(text: str) -> None:
    assert is_harmless(text)
    assert escaped(text) == escaped_json(text) == safe_text(text) == text


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
    ("text", "as_escaped", "as_shown"),
    [
        ("\x1b]52;c;AAAA\x07", "\\x1b]52;c;AAAA\\x07", "\ufffd]52;c;AAAA"),
        ("\x9b2J\x90q\x9d0;t", "\\x9b2J\\x90q\\x9d0;t", "\ufffd2J\ufffdq\ufffd0;t"),
        ("one\ntwo\u2028three", "one\\ntwo\\u2028three", "one⏎two⏎three"),
        ("\ta\r", "\\ta\\r", " a"),
        ("\u202egnp.exe\u2066\u200e\u061c", "\\u202egnp.exe\\u2066\\u200e\\u061c", "gnp.exe"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff", "zerowidth"),
        ("\ud800", "\\ud800", "\ufffd"),
        ("tag\U000e0041", "tag\\U000e0041", "tag"),
        ("soft\xadhyphen", "soft\\xadhyphen", "softhyphen"),
        ("private\ue000", "private\\ue000", "private\ufffd"),
    ],
)
def test_what_terminals_act_upon_is_escaped_or_on_the_screen_dropped_or_made_visible(
    text: str, as_escaped: str, as_shown: str
) -> None:
    assert (escaped(text), safe_text(text)) == (as_escaped, as_shown)


@given(ANYTHING)
def test_any_text_is_harmless_once_it_is_escaped_or_made_safe(text: str) -> None:
    for make in (escaped, safe_text):
        shown = make(text)
        assert is_harmless(shown)
        assert make(shown) == shown
        shown.encode()


@given(ANYTHING)
def test_escaped_json_is_the_same_json(text: str) -> None:
    shown = escaped_json(json.dumps({text: [text]}, ensure_ascii=False, indent=2))

    assert json.loads(shown) == json.loads(json.dumps({text: [text]}))
    assert is_harmless(shown.replace("\n", ""))


# Instants and spans


def test_a_timestamp_is_cut_to_milliseconds_and_compares_as_text() -> None:
    moments = [0, 999_999, 1_000_000, 10**15, 1_769_850_000_000_000, 2 * 10**15]
    texts = [timestamp(moment) for moment in moments]
    assert texts == sorted(texts)
    assert (texts[1], texts[4]) == ("1970-01-01T00:00:00.999Z", "2026-01-31T09:00:00.000Z")
    assert later(0, timedelta(minutes=1)) == "1970-01-01T00:01:00.000Z"
    assert later(60_000_000, timedelta(minutes=-1)) == "1970-01-01T00:00:00.000Z"
    before_us = time.time_ns() // 1_000
    assert before_us <= system_clock() <= time.time_ns() // 1_000
    assert minute("2026-01-31T09:05:59.999Z") == "2026-01-31 09:05"


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("30d", timedelta(days=30)),
        ("12h", timedelta(hours=12)),
        ("90m", timedelta(minutes=90)),
        ("0", timedelta(0)),
        *((text, None) for text in ("", "3", "d", "3 d", "3w", "-3d", "1234567d", "٣d")),
    ],
)
def test_a_span_is_a_number_and_a_unit(text: str, span: timedelta | None) -> None:
    assert parse_span(text) == span
    if span is not None:
        assert parse_expiry(text) == span
    else:
        with pytest.raises(ValueError, match="is not a valid expiry: use 30d, 12h or 2027-01-31"):
            parse_expiry(text)


# Reasons why a file is not simply done


def test_every_reason_has_words_of_its_own_that_fit_into_a_column_and_a_hint() -> None:
    words = [plain_words(reason.value) for reason in Reason]
    assert len(set(words)) == len(words)
    for reason, said in zip(Reason, words, strict=True):
        assert said != reason.value
        assert len(said) <= 20
        assert (find_hint(reason.value) or "").endswith(".")
    # One that is not known is said as it is.
    assert plain_words("eaten_by_a_dog") == "eaten_by_a_dog"
    assert find_hint("eaten_by_a_dog") is None


def test_lines_end_where_any_system_ends_them() -> None:
    assert safe_lines("a\r\nb\nc\rd\u2029e") == ["a", "b", "c", "d", "e"]
    assert safe_lines("") == [""]


def test_content_knows_no_markup_and_parts_keep_their_styles() -> None:
    content = safe("[bold]x[/bold] [@click=app.quit]y[/]")
    assert content.plain == "[bold]x[/bold] [@click=app.quit]y[/]"
    assert content.spans == []

    both = joined([safe("a", "bold"), safe("b")], by=" · ")
    assert both.plain == "a · b"
    assert [(span.start, span.end) for span in both.spans] == [(0, 1)]


# How full, in text.


@pytest.mark.parametrize(
    ("used", "maximum", "expected"),
    [
        (0, 50, "░░░░░░░░ 0/50 0%"),
        (812, 1000, "██████░░ 812/1,000 81% !"),
        (790, 1000, "██████░░ 790/1,000 79%"),
        (999, 1000, "███████░ 999/1,000 99% !"),
        (5, 5, "████████ 5/5 100% full"),
        (7, 5, "████████ 7/5 140% over"),
        (0, 0, "████████ 0/0 100% full"),
        (3118, None, "········ 3,118, unlimited"),
    ],
)
def test_the_bar_says_it_in_text_too(used: int, maximum: int | None, expected: str) -> None:
    assert quota_bar(used, maximum).plain == expected


# How far a text goes.


def test_rich_alone_counts_no_cell_for_a_spacing_mark() -> None:
    """Once this fails, `tui/widths.py` need not correct Rich's table."""
    program = "from rich.cells import cell_len; print(cell_len('\N{DEVANAGARI SIGN VISARGA}'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"0\n"


def test_a_spacing_mark_has_a_cell_as_in_most_terminals() -> None:
    marks = [char for char in map(chr, range(0x20000)) if unicodedata.category(char) == "Mc"]

    assert {cell_len(mark) for mark in marks} == {1}
    assert [cell_len(name) for name in ("क्षितिज", "தமிழ்", "မြန်မာ")] == [6, 4, 5]
    assert [cell_len(name) for name in ("Zoe\u0301", "李小龙", "สุข")] == [3, 6, 2]


@pytest.mark.parametrize("mark_cells", [0, 1, 2])
@pytest.mark.parametrize(
    "name", ["प्रियंका शर्मा", "क्षितिज", "தமிழ்", "မြန်မာ", "ශ්\u200dරී", "👩\u200d💻", "Zoë", "李小龙"]
)
def test_what_follows_a_text_is_where_it_was_counted_in_any_terminal(
    name: str, mark_cells: int
) -> None:
    def measure(char: str) -> int:
        return mark_cells if unicodedata.category(char) == "Mc" else cell_len(char)

    picture = Picture(30, 1, measure)
    picture.feed(("?" * 30 + "\x1b[1;1H" + aligned(f"\x1b[1m{name}\x1b[0m│")).encode())

    assert picture.column_of("│") == cell_len(name)
    assert "?" not in picture.lines[0].partition("│")[0]


# The terminal's clipboard.


PLAIN = f"\x1b]52;c;{base64.b64encode(b'secret').decode()}\x07"
TMUX = {"TMUX": "/tmp/tmux-0/default,1,0"}
SCREEN = {"STY": "1.tty"}


@pytest.mark.parametrize(
    ("environment", "sequence", "where"),
    [
        ({}, PLAIN, "the clipboard (OSC 52)"),
        ({"TMUX": ""}, PLAIN, "the clipboard (OSC 52)"),
        # In both forms that it may let through.
        (TMUX, f"\x1bPtmux;\x1b{PLAIN}\x1b\\{PLAIN}", "the clipboard through tmux"),
        (SCREEN, f"\x1bP{PLAIN}\x1b\\", "the clipboard through screen"),
    ],
)
def test_the_environment_says_what_stands_between(
    environment: dict[str, str], sequence: str, where: str
) -> None:
    sent, told = request("secret", environment)

    assert sent == sequence
    assert told.startswith(where)
    assert "\x07;\x1b" not in request("\x07;\x1b", environment)[0]  # which would end it early


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "told"),
    [
        *((text, "Not copied: the name contains") for text in ("ls\n", "a\x1b[201~b", "a\u202eb")),
        ("Ada", "Sent the name to the clipboard (OSC 52)."),
    ],
)
async def test_what_acts_when_it_is_pasted_is_not_sent_and_the_program_itself_keeps_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    stored(store, a_document(name=text))
    async with running(store, "1 of 1") as pilot:
        texts = copied(pilot.app, monkeypatch)
        await leads(pilot, "y", "─ Copy ─", "name")
        await leads(pilot, "j enter", told)
        assert texts == ([text] if told.startswith("Sent") else [])
        assert pilot.app.clipboard == ""
