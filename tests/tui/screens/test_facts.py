"""What is known of one thing."""

import pytest

from resumes.store.engine import Store
from tests.tui.driving import presses, running, shows, until
from tui.screens.facts import FactsDialog, fact_line

pytestmark = pytest.mark.anyio


def test_values_stand_below_one_another() -> None:
    lines = [fact_line(("Name", "one")).plain, fact_line(("Created", "two")).plain]

    assert lines[0].index("one") == lines[1].index("two")


@pytest.mark.parametrize("key", ["escape", "enter"])
async def test_it_shows_and_closes(store: Store, key: str) -> None:
    async with running(store) as pilot:
        below = pilot.app.screen
        pilot.app.push_screen(FactsDialog("A thing", [("Name", "one")], remark="That is all."))
        await shows(pilot.app, "A thing", "Name       one", "That is all.")

        await presses(pilot, key)
        await until(lambda: pilot.app.screen is below)
