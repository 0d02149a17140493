"""The question before something that cannot be undone."""

import pytest

from resumes.store.engine import Store
from tests.tui.builders import HOSTILE
from tests.tui.driving import presses, running, shows, until
from tui.screens.confirming import ConfirmDialog

pytestmark = pytest.mark.anyio


def a_question(typed: str | None = None, name: str = "ana") -> ConfirmDialog:
    return ConfirmDialog(
        "Do it?", [("Account", name)], consequence="It cannot be undone.", verb="Do", typed=typed
    )


async def test_enter_alone_changes_nothing(store: Store) -> None:
    answers: list[bool | None] = []
    async with running(store) as pilot:
        pilot.app.push_screen(a_question(), answers.append)
        await shows(pilot.app, "Do it?", "Account    ana", "It cannot be undone.")

        await presses(pilot, "enter")
        await until(lambda: answers == [False])


async def test_the_other_button_does_it(store: Store) -> None:
    answers: list[bool | None] = []
    async with running(store) as pilot:
        pilot.app.push_screen(a_question(), answers.append)
        await shows(pilot.app, "Do it?")

        await presses(pilot, "tab", "enter")
        await until(lambda: answers == [True])


async def test_what_has_to_be_typed_has_to_be_typed(store: Store) -> None:
    answers: list[bool | None] = []
    async with running(store) as pilot:
        pilot.app.push_screen(a_question(typed="ana"), answers.append)
        await shows(pilot.app, "Type ana to do:")

        await presses(pilot, "a", "n", "enter")
        await shows(pilot.app, "until you type ana exactly")
        assert answers == []

        await presses(pilot, "a", "enter")
        await until(lambda: answers == [True])


async def test_hostile_names_are_drawn_as_text(store: Store) -> None:
    async with running(store) as pilot:
        pilot.app.push_screen(a_question(typed=HOSTILE, name=HOSTILE))
        await shows(pilot.app, "a[/b]c")
