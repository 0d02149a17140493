"""What strangers can write, wherever strangers can write, and that none of it does anything."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from rich.cells import cell_len
from textual.pilot import Pilot

from resumes.store import api_keys, importers
from resumes.store.import_ledger import FileOutcome, Items, Problem
from resumes.store.importers import ImporterFinding, ImporterState
from resumes.store.store import Store
from resumes.text import escaped, is_harmless
from tests.support.terminal.builders import (
    HOSTILE,
    a_file,
    a_section,
    an_account,
    an_id,
    an_importer,
    stored,
)
from tests.support.terminal.driving import is_busy, presses, segments, until
from tui.widgets.paged_list import GAP_CELLS, PagedList

CLICK: Final = "[@click=app.quit]x[/]"

LONG: Final = 20_000

WORST: Final = (
    HOSTILE,
    f"{CLICK}[bold][/bold][/][[link=file:///etc/passwd]l[/link] [on red",
    "\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x1b\\\x1bPq\x1b\\\x1b[2J\x1b[?1049l\x1bc\x1b#8",
    "\x90q\x9c\x9b31m\x9d0;title\x9c\x98\x9e\x9f\x85\x84\x8d",
    "\u202eRLO\u202a\u202b\u202d\u202c\u2066LRI\u2067\u2068\u2069\u200e\u200f\u061c",
    "\u200bzero\u2060width\ufeff\u00ad\u2028line\u2029paragraph\U000e0041\U000e007f",
    "李小明数据分析师" * 12,
    "\u0301\u0301alone" + "z" + "\u0336\u0489" * 60,
    "👩‍👩‍👧‍👦👨🏿‍🚀🏳️‍🌈🇫🇷🇩" * 8,
    "\ufe0f\u20e3\u200d\u200c\ufffc\uffff\U0010ffff\ue000",
    "A" * LONG,
    f"{CLICK}\n\r\n\t\x0b\x0c\x00\x7f\b\b\b\a" * 50,
)
"""Strings that each break something: terminals, markup, measuring, or time limits."""

FRAGMENTS: Final = st.one_of(
    st.sampled_from(WORST).map(lambda text: text[:200]),
    st.sampled_from(
        ["[", "]", "[/", "[@click=", "\\[", "$x", "{}", "%s", "\x1b", "\x9b", "\u202e"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)

TEXTS: Final = st.lists(FRAGMENTS, min_size=1, max_size=6).map("".join)


def fill(store: Store, texts: Sequence[str]) -> None:
    """An account in which each text stands wherever a stranger could have written it."""
    an_account(store, "ana")
    stored(store, *map(a_resume, texts))
    for number, text in enumerate(texts[:12], 1):
        name = "".join(char for char in text if is_harmless(char))[:100]
        new = api_keys.create_key(store, "ana", name=name)
        api_keys.mark_shown(store, new.id)
        outcomes = [FileOutcome.FAILED, FileOutcome.HELD, FileOutcome.DUPLICATE]
        # The importer escapes names and folders; bytes that are no UTF-8 it writes as \xff.
        a_file(
            store,
            an_id(f"{number:x}"),
            outcomes[number % 3],
            name=f"ana/{escaped(text)[:200]}\\xff",
            message=text[:2_000],
            path=text[:200],
            byte_offset=number,
            source=text.encode() + b"\xff\xfe\x1b]0;x\x07",
            items=several(text) if number % 2 else None,
            root=escaped(text)[:200],
        )
    finding = ImporterFinding("key", ImporterState.DEGRADED, texts[-1][:500])
    root = escaped(texts[0])[:200]
    importers.register(
        store, an_importer(root=root, waiting=30, state=ImporterState.DEGRADED, findings=(finding,))
    )


def several(text: str) -> Items:
    """A file of two resumes, one of which failed for a reason that has the text in it."""
    problem = Problem(2, "line 2", FileOutcome.FAILED, "invalid_resume", text[:500], text[:200])
    return Items(2, 1, 0, 0, 1, (problem,))


def a_resume(text: str) -> dict[str, Any]:
    """A resume that has the text in every place that takes one, and as a name of fields."""
    text = text.replace("\0", "")  # which no JSON is taken with
    short = text[:2_000]
    experience = {
        "workplace": short,
        "position": short,
        "link": short,
        "description": text,
        "bullets": [short, short],
        short[:60]: short,
    }
    return {
        "title": short,
        "header": dict.fromkeys(
            ("name", "title", "email", "phone", "location", "website"), short[:300]
        ),
        "sections": {
            **a_section("experiences", experience, name=short),
            **a_section("skills", {"title": short, "tags": [short, short]}),
            **a_section("quotes", {"quote": short, "author": short}),
            **a_section("mytime", {"data": [{"title": short, "value": 1}]}),
        },
        f"x{short[:60]}": {short[:40]: [short]},
    }


def assert_harmless(pilot: Pilot[int]) -> None:
    """Nothing on the screen is acted upon by a terminal, or by Textual when it is clicked."""
    for segment in segments(pilot.app):
        assert is_harmless(segment.text), segment
        assert segment.style is None or "@click" not in segment.style.meta, segment
        assert segment.style is None or segment.style.link is None, segment


def assert_in_columns(pilot: Pilot[int]) -> None:
    """No cell of a list is wider than its column."""
    for found in lists_on(pilot):
        widths = [width for _, width in found._fitted]
        for y in range(found.size.height):
            strip = found.render_line(y)
            assert strip.cell_length == cell_len(strip.text) == found.size.width, strip.text
            number = found.scroll_offset.y + y - 1
            if not 0 <= number < found.window.count:
                continue
            at = 0
            for width in widths[:-1]:
                at += width
                assert _is_blank(strip.text, at), (number, strip.text)
                at += GAP_CELLS


def _is_blank(text: str, at: int) -> bool:
    """Whether there is a gap at this cell, or nothing any more. (`Strip.crop` cuts joined emoji in
    the wrong place.)"""
    places = (place for place in range(len(text)) if cell_len(text[:place]) == at)
    is_gap = any(not text[place : place + GAP_CELLS].strip() for place in places)
    return is_gap or at >= cell_len(text)


# A walk through everything.


Stops = tuple[str, ...]

WALK: Final[tuple[Stops, ...]] = (
    ("1", "j", "k", "tab", "tab", "tab", "tab"),
    ("1", "enter", "G", "tab", "G", "tab", "tab", "y", "escape", "x", "escape", "escape"),
    ("1", "d", "u", "slash", "z", "escape", "a", "escape", "A", "L", "escape", "escape"),
    ("2", "enter", "tab", "G", "n", "n", "escape", "t", "l", "R", "escape", "o", "o", "escape"),
    ("3", "p", "escape", "D", "escape", "n", "escape"),
    ("4", "enter", "escape"),
    ("5", "enter", "escape", "R", "escape", "D", "escape", "i", "escape"),
    ("6", "G", "enter", "escape"),
    ("colon", "s", "escape", "question_mark", "G", "escape"),
)


async def walk(pilot: Pilot[int], parts: Sequence[Stops] = WALK) -> AsyncIterator[str]:
    """Each key that was pressed, once all that it asks for is on the screen. Each part may come
    first."""
    for stops in parts:
        for at, key in enumerate(stops):
            await presses(pilot, key)
            await until(lambda: not is_busy(pilot.app))
            await pilot.pause()
            yield " ".join(stops[: at + 1])


def lists_on(pilot: Pilot[int]) -> list[PagedList[Any]]:
    """The lists of the screen, or the dialog, that is shown."""
    return [found for found in pilot.app.screen.query(PagedList) if found.size]
