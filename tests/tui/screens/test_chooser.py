"""Choosing one of several things."""

import pytest

from resumes.errors import StoreUnavailable
from resumes.store.engine import Store
from tests.tui.driving import lines, presses, running, shows, until
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


async def test_it_tries_again_by_itself_when_the_store_was_away(store: Store) -> None:
    answers = iter([True])

    def read(_: Store) -> list[str]:
        if next(answers, False):
            raise StoreUnavailable("The store is away")
        return ["one"]

    chooser: Chooser[str] = Chooser(
        store, question="Which?", columns=(Column("TEXT", 0, safe),), key=str, read=read
    )
    async with running(store) as pilot:
        pilot.app.push_screen(chooser)
        await shows(pilot.app, "! The store is away")
        await shows(pilot.app, "one")
        await until(lambda: "The store is away" not in "\n".join(lines(pilot.app)))
