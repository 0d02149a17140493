"""What is understood of a span of time, as it is typed."""

from datetime import timedelta

import pytest
from textual.app import App, ComposeResult

from tests.tui.driving import presses, shows
from tui.screens.keys.typed_spans import (
    SpanField,
    Understood,
    understand_expiry,
    understand_grace,
)

NOW_US = 1_800_000_000_000_000  # 2027-01-15 08:00 UTC


@pytest.mark.parametrize(
    ("text", "words", "span"),
    [
        ("", "It does not expire.", None),
        ("12h", "It expires on 2027-01-15 20:00 UTC.", timedelta(hours=12)),
        ("2027-01-16", "It expires on 2027-01-16 00:00 UTC.", timedelta(hours=16)),
    ],
)
def test_an_expiry_is_a_span_a_date_or_none(text: str, words: str, span: timedelta | None) -> None:
    assert understand_expiry(text, NOW_US) == Understood(words, span)


@pytest.mark.parametrize("text", ["x", "3", "3x", "2027-13-01", "[/b]", "0", "2027-01-15"])
def test_any_other_expiry_cannot_be_used(text: str) -> None:
    understood = understand_expiry(text, NOW_US)

    assert not understood.is_usable
    assert understood.words.startswith("! ")


@pytest.mark.parametrize(
    ("text", "span"),
    [("0", timedelta(0)), ("24h", timedelta(days=1)), ("7d", timedelta(days=7))],
)
def test_a_grace_is_a_span_of_seven_days_at_most(text: str, span: timedelta) -> None:
    assert understand_grace(text, NOW_US).span == span


@pytest.mark.parametrize("text", ["", "8d", "169h", "2027-01-16", "-1d"])
def test_any_other_grace_cannot_be_used(text: str) -> None:
    assert not understand_grace(text, NOW_US).is_usable


@pytest.mark.anyio
async def test_the_words_follow_what_is_typed() -> None:
    class Form(App[int]):
        def compose(self) -> ComposeResult:
            yield SpanField("How long?", lambda text: understand_grace(text, NOW_US), preset="24h")

    app = Form()
    async with app.run_test() as pilot:
        await shows(app, "How long?", "counts until 2027-01-16 08:00 UTC.")
        await presses(pilot, "end", "backspace")
        await shows(app, '! "24" is no span')
        await presses(pilot, "d")
        await shows(app, "! The longest is 7d.")
        await presses(pilot, *("backspace",) * 3, *"0")
        await shows(app, "The old key is refused at once.")
        assert app.query_one(SpanField).understood.span == timedelta(0)
