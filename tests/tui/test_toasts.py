"""Short messages."""

import pytest

from resumes.store.engine import Store
from tests.tui.builders import HOSTILE
from tests.tui.driving import running, segments, shows
from tui.toasts import tell

pytestmark = pytest.mark.anyio


async def test_a_message_is_shown_as_text(store: Store) -> None:
    async with running(store) as pilot:
        tell(pilot.app, HOSTILE)

        await shows(pilot.app, "[@click=app.quit]x[/]")
        assert all(segment.text.isprintable() for segment in segments(pilot.app))


async def test_a_new_message_takes_the_place_of_the_old_one(store: Store) -> None:
    async with running(store) as pilot:
        for message in ("first", "second"):
            tell(pilot.app, message)
            await shows(pilot.app, message)

        assert [toast.message for toast in pilot.app._notifications] == ["second"]
