"""The lines above a list."""

import pytest

from resumes.store.engine import Store
from tests.tui.driving import running, shows
from tui.notices import Failure
from tui.widgets.lines import ErrorLine

pytestmark = pytest.mark.anyio


async def test_the_first_line_names_the_screens(store: Store) -> None:
    async with running(store) as pilot:
        await shows(
            pilot.app, "1 Resumes", "2 Imports", "3 Accounts", "4 Plans", "5 Keys", "6 Health"
        )


async def test_it_says_when_nothing_can_be_changed(store: Store) -> None:
    async with running(store, read_only=True) as pilot:
        await shows(pilot.app, "read-only")


async def test_an_error_takes_room_only_while_there_is_one(store: Store) -> None:
    async with running(store) as pilot:
        await shows(pilot.app, "ana holds no resumes yet")
        line = pilot.app.screen.query_one(ErrorLine)
        assert not line.display

        line.show(Failure("The store is [busy]", "r tries again."))
        await shows(pilot.app, "! The store is [busy]. r tries again.")

        line.clear()
        assert not line.display
