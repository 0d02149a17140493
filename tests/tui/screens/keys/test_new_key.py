"""The one time that a key is shown."""

import pytest
from textual.app import App

from resumes.store.keys import NewKey, new_secret
from tests.tui.driving import SMALL, lines, presses, until
from tui.screens.keys.new_key import NewKeyScreen

pytestmark = pytest.mark.anyio


async def test_the_key_has_a_line_of_its_own_and_can_be_copied() -> None:
    new = NewKey("key_0123456789ab", new_secret())
    app: App[int] = App()
    async with app.run_test(size=SMALL) as pilot:
        await app.push_screen(NewKeyScreen("ana", new))
        await pilot.pause()
        assert new.secret in [line.strip() for line in lines(app)]

        await presses(pilot, "c")

        assert app.clipboard == new.secret
        assert new.secret not in "".join(toast.message for toast in app._notifications)


async def test_it_ends_by_saying_that_the_key_was_stored() -> None:
    ended: list[None] = []
    app: App[int] = App()
    async with app.run_test(size=SMALL) as pilot:
        await app.push_screen(NewKeyScreen("ana", NewKey("key_0", new_secret())), ended.append)
        await pilot.pause()
        await presses(pilot, "enter", "escape", "q")
        assert ended == []

        await presses(pilot, "tab", "enter")

        await until(lambda: ended)
