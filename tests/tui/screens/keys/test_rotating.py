"""The question how long an old key still counts."""

from datetime import timedelta

import pytest
from textual.app import App

from tests.tui.builders import HOSTILE
from tests.tui.driving import presses, shows, until
from tui.screens.keys.rotating import RotateDialog

pytestmark = pytest.mark.anyio

NOW_US = 1_800_000_000_000_000  # 2027-01-15 08:00 UTC


@pytest.mark.parametrize(
    ("keys", "grace"),
    [
        (("enter",), timedelta(hours=24)),
        ((*["backspace"] * 3, "0", "enter"), timedelta(0)),
        ((*["backspace"] * 3, "7", "d", "tab", "enter"), timedelta(days=7)),
        (("escape",), None),
        (("tab", "tab", "enter"), None),
    ],
)
async def test_it_gives_the_grace_or_nothing(
    keys: tuple[str, ...], grace: timedelta | None
) -> None:
    app: App[int] = App()
    answers: list[timedelta | None] = []
    async with app.run_test() as pilot:
        dialog = RotateDialog([("Name", HOSTILE)], lambda: NOW_US)
        await app.push_screen(dialog, answers.append)
        await pilot.pause()
        await shows(app, "a[/b]c", "counts until 2027-01-16 08:00 UTC.")

        await presses(pilot, *keys)

        await until(lambda: answers == [grace])


async def test_a_grace_that_cannot_be_used_keeps_it_open() -> None:
    app: App[int] = App()
    answers: list[timedelta | None] = []
    async with app.run_test() as pilot:
        await app.push_screen(RotateDialog([], lambda: NOW_US), answers.append)
        await pilot.pause()

        await presses(pilot, *["backspace"] * 3, "8", "d", "enter")

        await shows(app, "! The longest is 7d.")
        assert answers == []
