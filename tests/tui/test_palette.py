"""The palette: what can be done here, by name, and nothing else."""

import pytest
from textual import events
from textual.command import CommandInput, CommandPalette
from textual.pilot import Pilot

from resumes.store import keys
from resumes.store.engine import Store
from tests.tui.builders import HOSTILE
from tests.tui.driving import lines, presses, running, shows, until
from tui.actions import ACTIONS, Place
from tui.palette import MOST_TYPED, is_offered
from tui.screens.accounts.screen import AccountsScreen
from tui.screens.keys.creating import CreateKeyDialog
from tui.screens.keys.screen import KeysScreen

pytestmark = pytest.mark.anyio

TALL = (100, 60)


async def opened(pilot: Pilot[int], key: str = "colon") -> None:
    await presses(pilot, key)
    await until(lambda: isinstance(pilot.app.screen, CommandPalette))
    await shows(pilot.app, "Show all keys")


@pytest.mark.parametrize("key", ["colon", "ctrl+p"])
async def test_it_offers_what_works_here_and_the_screens(store: Store, key: str) -> None:
    keys.create_key(store, "ana", name="website")
    async with running(store, screen="keys", size=TALL) as pilot:
        await shows(pilot.app, "website")

        await opened(pilot, key)

        here = [one for one in ACTIONS if one.place is Place.KEYS]
        await shows(pilot.app, *(one.sentence.rstrip(".") for one in here), "Show Health  (6)")
        screen = "\n".join(lines(pilot.app))
        assert "Find resumes by words" not in screen
        assert "One row down" not in screen


async def test_the_name_of_a_screen_goes_there(store: Store) -> None:
    async with running(store, screen="keys", size=TALL) as pilot:
        await shows(pilot.app, "There are no keys here yet.")
        await opened(pilot)
        await presses(pilot, *"accounts")
        await until(lambda: "Show Health" not in "\n".join(lines(pilot.app)))
        await presses(pilot, "enter")
        await until(lambda: isinstance(pilot.app.screen, AccountsScreen))

        await opened(pilot)
        await presses(pilot, *"keys")
        await until(lambda: "Show Health" not in "\n".join(lines(pilot.app)))
        await presses(pilot, "enter")
        await until(lambda: isinstance(pilot.app.screen, KeysScreen))


async def test_what_is_chosen_is_done(store: Store) -> None:
    async with running(store, screen="keys", size=TALL) as pilot:
        await shows(pilot.app, "There are no keys here yet.")
        await opened(pilot)
        await presses(pilot, *"make a key")
        await until(lambda: "Show all keys" not in "\n".join(lines(pilot.app)))
        await presses(pilot, "enter")
        await until(lambda: isinstance(pilot.app.screen, CreateKeyDialog))


async def test_read_only_it_offers_nothing_that_changes_something(store: Store) -> None:
    keys.create_key(store, "ana", name="website")
    async with running(store, screen="keys", size=TALL, read_only=True) as pilot:
        await shows(pilot.app, "website")
        await opened(pilot)

        screen = "\n".join(lines(pilot.app))
        for action in ACTIONS:
            if action.changes:
                assert action.sentence.rstrip(".") not in screen
        await presses(pilot, *"make a key")
        await shows(pilot.app, "No matches found")
        await presses(pilot, "enter", "escape")
        await until(lambda: isinstance(pilot.app.screen, KeysScreen))


@pytest.mark.parametrize("pasted", [HOSTILE, "x" * 20_000, "[/b][@click=app.quit]", "\x1b[2J"])
async def test_what_is_pasted_into_it_does_nothing(store: Store, pasted: str) -> None:
    async with running(store, screen="keys", size=TALL) as pilot:
        await shows(pilot.app, "There are no keys here yet.")
        await opened(pilot)
        line = pilot.app.screen.query_one(CommandInput)

        line.post_message(events.Paste(pasted))
        await presses(pilot, "end", "z", "z")

        assert line.value.endswith("zz")
        assert line.value.isascii()
        assert line.value.isprintable()
        assert len(line.value) <= MOST_TYPED
        await shows(pilot.app, "No matches found")
        await presses(pilot, "escape")
        await until(lambda: isinstance(pilot.app.screen, KeysScreen))


def test_moving_about_is_not_offered() -> None:
    offered = {action.id for action in ACTIONS if is_offered(action)}

    assert {"list.open", "keys.create", "everywhere.help"} <= offered
    assert offered.isdisjoint({"list.down", "text.up", "everywhere.palette", "everywhere.back"})
