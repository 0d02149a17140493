"""Keys that arrive together act one after the other."""

import pytest

from resumes.store.engine import Store
from tests.tui.builders import a_document, stored
from tests.tui.driving import running, shows, until
from tui.app import ResumesApp
from tui.widgets.fields import SafeInput

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("keys", ["/love", "/dad", "/quick"])
async def test_what_follows_a_slash_is_the_filter(store: Store, keys: str) -> None:
    stored(store, a_document(title="Mine"))
    async with running(store) as pilot:
        await shows(pilot.app, "Mine")
        for key in keys:
            pilot.app.simulate_key({"/": "slash"}.get(key, key))

        await shows(pilot.app, f'ana · "{keys[1:]}"')
        assert isinstance(pilot.app, ResumesApp)
        assert not len(pilot.app.session.deletions)


async def test_a_held_key_moves_as_often_as_it_came(store: Store) -> None:
    stored(store, *(a_document(title=f"Number {n}") for n in range(60)))
    async with running(store) as pilot:
        await shows(pilot.app, "ana · 1 of 60")
        for _ in range(50):
            pilot.app.simulate_key("down")

        await shows(pilot.app, "ana · 51 of 60")


async def test_what_is_typed_into_a_dialog_that_opens_reaches_it(store: Store) -> None:
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "ana")
        for key in ("n", *"zoe"):
            pilot.app.simulate_key(key)

        await until(lambda: [line.value for line in pilot.app.screen.query(SafeInput)] == ["zoe"])


async def test_a_way_out_does_not_wait_for_the_keys_before_it(store: Store) -> None:
    async with running(store) as pilot:
        await shows(pilot.app, "ana holds no resumes yet")
        for key in ["question_mark"] + ["0"] * 500:
            pilot.app.simulate_key(key)
        pilot.app.simulate_key("ctrl+c")

        await until(lambda: pilot.app._exit)
