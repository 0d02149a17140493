"""A screen asks for another."""

import pytest

from resumes.store.engine import Store
from tests.tui.builders import a_document, stored
from tests.tui.driving import presses, running, shows
from tui.messages import ModeAsked

pytestmark = pytest.mark.anyio


async def test_the_list_is_shown_over_whatever_was_open_there(store: Store) -> None:
    stored(store, a_document(title="Mine"))
    async with running(store) as pilot:
        await shows(pilot.app, "Mine")
        await presses(pilot, "enter")
        await shows(pilot.app, "ana · Mine")
        await presses(pilot, "4")
        await shows(pilot.app, "business")

        pilot.app.screen.post_message(ModeAsked("resumes"))

        await shows(pilot.app, "ana · 1 of 1")
