"""Text from data draws itself and does nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.content import Content

from resumes.text import is_harmless
from tests.tui.builders import HOSTILE
from tui.text import joined, safe, safe_lines, safe_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ada Lovelace", "Ada Lovelace"),
        ("a[/b]c [@click=app.quit]x[/]", "a[/b]c [@click=app.quit]x[/]"),
        ("\x1b]52;c;AAAA\x07", "\ufffd]52;c;AAAA"),
        ("\x9b2J\x90q\x9d0;t", "\ufffd2J\ufffdq\ufffd0;t"),
        ("one\ntwo\u2028three", "one⏎two⏎three"),
        ("a\tb", "a b"),
        ("\u202egnp.exe\u2066\u200e\u061c", "gnp.exe"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("\ud800", "\ufffd"),
        ("tag\U000e0041", "tag"),
        ("soft\xadhyphen", "softhyphen"),
        ("private\ue000", "private\ufffd"),
    ],
)
def test_what_terminals_act_upon_is_dropped_or_made_visible(text: str, expected: str) -> None:
    assert safe_text(text) == expected


@pytest.mark.parametrize("name", ["می\u200cروم", "क्\u200dष", "👩\u200d🚀", "山田", "Zoë"])
def test_joiners_that_names_need_stay(name: str) -> None:
    assert safe_text(name) == name


@given(st.text(st.characters(exclude_categories=[])))
def test_whatever_the_text_what_is_shown_is_harmless(text: str) -> None:
    assert is_harmless(safe_text(text))


def test_what_is_safe_stays_as_it_is() -> None:
    once = safe_text(HOSTILE)

    assert safe_text(once) == once


def test_lines_end_where_any_system_ends_them() -> None:
    assert safe_lines("a\r\nb\nc\rd\u2029e") == ["a", "b", "c", "d", "e"]
    assert safe_lines("") == [""]


def test_content_knows_no_markup() -> None:
    content = safe("[bold]x[/bold] [@click=app.quit]y[/]")

    assert content.plain == "[bold]x[/bold] [@click=app.quit]y[/]"
    assert content.spans == []


def test_parts_keep_their_styles() -> None:
    both = joined([safe("a", "bold"), safe("b")], by=" · ")

    assert both.plain == "a · b"
    assert [(span.start, span.end) for span in both.spans] == [(0, 1)]
    assert isinstance(both, Content)
