"""Choosing one of several things."""

import pytest

from resumes.store.engine import Store
from tests.tui.driving import presses, running, shows, until
from tui.screens.chooser import Chooser
from tui.text import safe
from tui.widgets.columns import Column

pytestmark = pytest.mark.anyio


def a_chooser(store: Store, *texts: str, preset: str | None = None) -> Chooser[str]:
    return Chooser(
        store,
        question="Which?",
        columns=(Column("TEXT", 0, safe),),
        key=str,
        read=lambda _: texts,
        preset=preset,
    )


async def test_enter_chooses_the_row_at_the_cursor(store: Store) -> None:
    chosen: list[str | None] = []
    async with running(store) as pilot:
        pilot.app.push_screen(a_chooser(store, "one", "two", preset="two"), chosen.append)
        await shows(pilot.app, "Which?", "one", "two")

        await presses(pilot, "enter")
        await until(lambda: chosen == ["two"])


async def test_escape_chooses_nothing(store: Store) -> None:
    chosen: list[str | None] = []
    async with running(store) as pilot:
        pilot.app.push_screen(a_chooser(store, "one"), chosen.append)
        await shows(pilot.app, "one")

        await presses(pilot, "escape")
        await until(lambda: chosen == [None])
