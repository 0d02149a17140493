"""The form for a key that was made elsewhere."""

import pytest
from textual.app import App

from resumes.store.keys import new_secret
from tests.tui.driving import lines, presses, until
from tui.screens.keys.registering import NOT_A_KEY, Foreign, RegisterKeyDialog

pytestmark = pytest.mark.anyio


async def test_a_key_is_given_and_never_drawn() -> None:
    secret = new_secret()
    app: App[int] = App()
    answers: list[Foreign | None] = []
    async with app.run_test() as pilot:
        await app.push_screen(RegisterKeyDialog(["ana", "zoe"], "zoe"), answers.append)
        await pilot.pause()

        await presses(pilot, *secret.replace("_", "~"), "enter")
        assert answers == []
        assert [toast.message for toast in app._notifications] == [NOT_A_KEY]
        await presses(pilot, *["backspace"] * len(secret))
        await presses(pilot, *("underscore" if char == "_" else char for char in secret))
        assert secret[:12] not in "".join(lines(app))
        await presses(pilot, "shift+tab", *"old", "enter")

        await until(lambda: answers == [Foreign("zoe", "old", secret)])
    assert secret not in repr(answers)


async def test_it_can_be_cancelled() -> None:
    app: App[int] = App()
    answers: list[Foreign | None] = []
    async with app.run_test() as pilot:
        await app.push_screen(RegisterKeyDialog(["ana"], "ana"), answers.append)
        await pilot.pause()

        await presses(pilot, "escape")

        await until(lambda: answers == [None])
