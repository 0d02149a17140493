"""What every screen with a list does, seen on the resumes."""

from typing import Any

import pytest

from resumes.errors import StoreUnavailable
from resumes.store import listing
from resumes.store.engine import Store
from resumes.store.listing import Page
from tests.tui.builders import a_document, stored
from tests.tui.driving import lines, presses, running, shows, until
from tui.screens.list_screen import ListScreen

pytestmark = pytest.mark.anyio


async def test_a_failure_stands_above_the_list_until_r_reads_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(store, a_document(title="Mine"))
    really, failures = listing.list_page, iter([True])

    def fail_once(*args: Any, **kwargs: Any) -> Page:
        if next(failures, False):
            raise StoreUnavailable("The store is away")
        return really(*args, **kwargs)

    monkeypatch.setattr(listing, "list_page", fail_once)
    async with running(store) as pilot:
        await shows(pilot.app, "! The store is away", "r tries again")
        await presses(pilot, "r")
        await shows(pilot.app, "Mine")
        await until(lambda: not any("The store is away" in line for line in lines(pilot.app)))


async def test_reloading_shows_what_came_in_meanwhile(store: Store) -> None:
    stored(store, a_document(title="First"))
    async with running(store) as pilot:
        await shows(pilot.app, "First")
        stored(store, a_document(title="Second"))
        await presses(pilot, "r")
        await shows(pilot.app, "First", "Second")


@pytest.mark.parametrize("screen", ["resumes", "accounts", "keys"])
async def test_read_only_is_said_on_every_screen(store: Store, screen: str) -> None:
    async with running(store, screen=screen, read_only=True) as pilot:
        await shows(pilot.app, "read-only")


async def test_while_the_store_is_away_it_counts_down_and_comes_back_by_itself(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(store, a_document(title="First"))
    really, is_away = listing.list_page, False

    def perhaps(*args: Any, **kwargs: Any) -> Page:
        if is_away:
            raise StoreUnavailable("The store is away")
        return really(*args, **kwargs)

    monkeypatch.setattr(listing, "list_page", perhaps)
    async with running(store) as pilot:
        await shows(pilot.app, "First")
        is_away = True
        await presses(pilot, "r")
        await shows(pilot.app, "! The store is away", "Trying again in 1 s", "First")
        screen = pilot.app.screen
        assert isinstance(screen, ListScreen)
        assert screen.list.is_stale
        await shows(pilot.app, "Trying again in 2 s")

        stored(store, a_document(title="Second"))
        is_away = False

        await shows(pilot.app, "Second")
        await until(lambda: not any("The store is away" in line for line in lines(pilot.app)))
        assert not screen.list.is_stale


async def test_what_comes_in_is_seen_without_a_key(store: Store) -> None:
    stored(store, a_document(title="First"))
    async with running(store) as pilot:
        await shows(pilot.app, "First")
        stored(store, a_document(title="Second"))
        await shows(pilot.app, "Second", "1 of 2")
