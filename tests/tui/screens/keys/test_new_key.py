"""The one time that a key is shown."""

import pytest
from textual.app import App

from resumes.store.keys import NewKey, new_secret
from tests.tui.driving import SMALL, lines, presses, shows, until
from tui.clipboard import Way, request
from tui.screens.keys.new_key import NewKeyScreen

pytestmark = pytest.mark.anyio


async def test_the_key_has_a_line_of_its_own_and_can_be_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    new = NewKey("key_0123456789ab", new_secret())
    app: App[int] = App()
    written: list[str] = []
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    async with app.run_test(size=SMALL) as pilot:
        await app.push_screen(NewKeyScreen("ana", new))
        await pilot.pause()
        assert new.secret in [line.strip() for line in lines(app)]
        assert app._driver is not None
        monkeypatch.setattr(app._driver, "write", written.append)

        await presses(pilot, "c")

        assert request(new.secret, Way.TMUX) in written
        (told,) = [toast.message for toast in app._notifications]
        assert told.startswith("Sent the key through tmux")
        assert new.secret not in told


async def test_it_ends_by_saying_that_the_key_was_stored() -> None:
    ended: list[None] = []
    app: App[int] = App()
    async with app.run_test(size=SMALL) as pilot:
        await app.push_screen(NewKeyScreen("ana", NewKey("key_0", new_secret())), ended.append)
        await pilot.pause()
        await presses(pilot, "enter", "escape", "q")
        assert isinstance(app.screen, NewKeyScreen)
        assert ended == []

        await presses(pilot, "tab", "enter")

        await until(lambda: ended)


async def test_it_names_the_keys_that_the_user_has_for_it() -> None:
    app: App[int] = App()
    own = {"new_key.copy": "f2", "new_key.stored": "f8"}
    app.set_keymap(own)
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        await app.push_screen(NewKeyScreen("ana", NewKey("key_0", new_secret()), keymap=own))
        await shows(app, "f2 copies it", "I stored it (f8)")
        await presses(pilot, "escape")
        await shows(app, "Press f8 once")


async def test_what_it_replaces_is_told() -> None:
    app: App[int] = App()
    async with app.run_test(size=SMALL):
        await app.push_screen(NewKeyScreen("ana", NewKey("key_0", new_secret()), remark="It ends."))
        await shows(app, "It ends.")
