"""Resumes and key names written by an attacker, on every screen."""

import pytest
from textual.pilot import Pilot

from resumes.errors import StoreUnavailable
from resumes.store import accounts, keys, listing
from resumes.store.engine import Store
from resumes.text import is_harmless
from tests.tui.builders import HOSTILE, a_hostile_document, stored
from tests.tui.driving import LARGE, SMALL, lines, presses, running, segments, shows

MOST_CLICKS = 4

pytestmark = pytest.mark.anyio


def assert_harmless(pilot: Pilot[int]) -> None:
    """Nothing on the screen is acted upon by a terminal, or by Textual when it is clicked."""
    for segment in segments(pilot.app):
        assert is_harmless(segment.text), segment
        assert segment.style is None or "@click" not in segment.style.meta, segment
        assert segment.style is None or segment.style.link is None, segment


async def click_on(pilot: Pilot[int], text: str) -> None:
    found = [(row, line) for row, line in enumerate(lines(pilot.app)) if text in line]
    for row, line in found[:MOST_CLICKS]:
        await pilot.click(offset=(line.index(text) + 1, row))


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=str)
async def test_a_hostile_resume_draws_nothing_but_text(store: Store, size: tuple[int, int]) -> None:
    stored(store, a_hostile_document())
    async with running(store, size=size) as pilot:
        await shows(pilot.app, "[@click=app.quit]x[/]")
        assert_harmless(pilot)

        await presses(pilot, "enter")
        await shows(pilot.app, "ana · a[/b]c")
        for key in ("J", "G", "J", "G"):
            await presses(pilot, key)
            assert_harmless(pilot)
        await click_on(pilot, "x[/]")

        assert pilot.app.is_running


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=str)
async def test_a_hostile_key_name_does_neither(store: Store, size: tuple[int, int]) -> None:
    # The store takes printable names only, which leaves markup.
    name = "".join(filter(str.isprintable, HOSTILE))
    keys.create_key(store, "ana", name=name)
    async with running(store, screen="keys", size=size) as pilot:
        await shows(pilot.app, "a[/b]c")
        assert_harmless(pilot)
        for key in ("enter", "x"):
            await presses(pilot, key)
            await shows(pilot.app, "[@click=app.quit]x[/]")
            assert_harmless(pilot)
            await click_on(pilot, "x[/]")
            assert pilot.app.is_running
            await presses(pilot, "escape")


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=str)
@pytest.mark.parametrize("screen", ["resumes", "accounts", "keys"])
async def test_a_hostile_error_does_neither(
    store: Store, screen: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable(HOSTILE)

    monkeypatch.setattr(accounts, "list_accounts", fail)
    monkeypatch.setattr(listing, "list_page", fail)
    async with running(store, screen=screen, size=size) as pilot:
        await shows(pilot.app, "! a[/b]c")
        assert_harmless(pilot)
