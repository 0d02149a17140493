"""The form for a new key."""

from datetime import timedelta

import pytest
from textual.app import App

from tests.tui.driving import presses, shows, until
from tui.screens.keys.creating import CreateKeyDialog, Wish

pytestmark = pytest.mark.anyio

NOW_US = 1_800_000_000_000_000  # 2027-01-15 08:00 UTC


async def answer(*keys: str) -> Wish | None:
    """What the form gives after these keys."""
    app: App[int] = App()
    answers: list[Wish | None] = []
    async with app.run_test() as pilot:
        dialog = CreateKeyDialog(["ana", "zoe"], "zoe", lambda: NOW_US)
        await app.push_screen(dialog, answers.append)
        await pilot.pause()
        await presses(pilot, *keys)
        await until(lambda: answers)
    return answers[0]


async def test_the_preset_account_and_the_name_typed_are_wished_for() -> None:
    assert await answer(*"web", "enter") == Wish("zoe", "web", None)


async def test_a_name_may_be_empty() -> None:
    assert await answer("tab", "enter") == Wish("zoe", "", None)


async def test_it_may_expire() -> None:
    assert await answer("tab", *"30d", "enter") == Wish("zoe", "", timedelta(days=30))
    assert await answer("tab", *"2027-01-16", "enter") == Wish("zoe", "", timedelta(hours=16))


async def test_another_account_can_be_chosen() -> None:
    assert await answer("shift+tab", "enter", "up", "enter", "tab", "enter") == Wish("ana", "")


@pytest.mark.parametrize("keys", [("escape",), ("tab", "tab", "tab", "enter")])
async def test_it_can_be_cancelled(keys: tuple[str, ...]) -> None:
    assert await answer(*keys) is None


async def test_an_expiry_that_cannot_be_used_keeps_it_open() -> None:
    app: App[int] = App()
    answers: list[Wish | None] = []
    async with app.run_test() as pilot:
        dialog = CreateKeyDialog(["ana"], "ana", lambda: NOW_US)
        await app.push_screen(dialog, answers.append)
        await pilot.pause()

        await presses(pilot, "tab", *"3x", "shift+tab", "enter")

        await shows(app, '! "3x" is no expiry')
        assert answers == []
        await presses(pilot, *"3d", "enter")
        await until(lambda: answers == [Wish("ana", "", timedelta(days=3))])
