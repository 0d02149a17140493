"""The form for a new key."""

import pytest
from textual.app import App

from tests.tui.driving import presses, until
from tui.screens.keys.creating import CreateKeyDialog, Wish

pytestmark = pytest.mark.anyio


async def answer(*keys: str) -> Wish | None:
    """What the form gives after these keys."""
    app: App[int] = App()
    answers: list[Wish | None] = []
    async with app.run_test() as pilot:
        await app.push_screen(CreateKeyDialog(["ana", "zoe"], "zoe"), answers.append)
        await pilot.pause()
        await presses(pilot, *keys)
        await until(lambda: answers)
    return answers[0]


async def test_the_preset_account_and_the_name_typed_are_wished_for() -> None:
    assert await answer(*"web", "enter") == Wish("zoe", "web")


async def test_a_name_may_be_empty() -> None:
    assert await answer("tab", "enter") == Wish("zoe", "")


async def test_another_account_can_be_chosen() -> None:
    assert await answer("shift+tab", "enter", "up", "enter", "tab", "enter") == Wish("ana", "")


@pytest.mark.parametrize("keys", [("escape",), ("tab", "tab", "enter")])
async def test_it_can_be_cancelled(keys: tuple[str, ...]) -> None:
    assert await answer(*keys) is None
