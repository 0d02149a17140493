"""The list of keys."""

import pytest

from resumes.store import keys
from resumes.store.engine import Store
from tests.tui.builders import an_account
from tests.tui.driving import LARGE, lines, presses, running, shows, until
from tests.tui.outages import held_reads
from tui.screens.facts import FactsDialog

pytestmark = pytest.mark.anyio


async def test_keys_are_listed_masked_with_their_state(store: Store) -> None:
    an_account(store, "zoe")
    new = keys.create_key(store, "ana", name="website")
    keys.mark_shown(store, new.id)
    keys.create_key(store, "zoe", name="lost")
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "all accounts · 2 keys", keys.mask(new.secret), "website", "active")
        await shows(pilot.app, "never shown")
        assert new.secret not in "".join(lines(pilot.app))


async def test_wide_terminals_show_more(store: Store) -> None:
    new = keys.create_key(store, "ana")
    async with running(store, screen="keys", size=LARGE) as pilot:
        await shows(pilot.app, "EXPIRES (UTC)", "CREATED (UTC)", new.id)


async def test_the_list_can_be_one_accounts(store: Store) -> None:
    an_account(store, "zoe")
    keys.create_key(store, "ana", name="one of ana")
    keys.create_key(store, "zoe", name="one of zoe")
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "2 keys")

        await presses(pilot, "a")
        await shows(pilot.app, "(all accounts)", "zoe")
        await presses(pilot, "G", "enter")

        await shows(pilot.app, "zoe · 1 key", "one of zoe")
        assert "one of ana" not in "".join(lines(pilot.app))


async def test_the_keys_asked_for_elsewhere_take_the_place_of_those_shown_before(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    an_account(store, "zoe")
    keys.create_key(store, "ana", name="one of ana")
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "all accounts · 1 key", "one of ana")
        await presses(pilot, "3")
        await shows(pilot.app, "2 accounts")
        with held_reads(monkeypatch):
            await presses(pilot, "j", "K")
            await shows(pilot.app, "zoe · ")
            assert "one of ana" not in "".join(lines(pilot.app))
            await presses(pilot, "D")
            await shows(pilot.app, "There is no key to revoke.")

        await shows(pilot.app, "zoe · 0 keys")


async def test_enter_shows_what_is_known_of_a_key(store: Store) -> None:
    new = keys.create_key(store, "ana", name="website")
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "website")

        await presses(pilot, "enter")

        await until(lambda: isinstance(pilot.app.screen, FactsDialog))
        await shows(pilot.app, new.id, "website")
