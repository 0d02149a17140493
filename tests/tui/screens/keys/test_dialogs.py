"""Dialogs about a key."""

import pytest
from textual.app import App

from resumes.store.keys import KeyInfo, KeyState
from tests.tui.builders import HOSTILE
from tests.tui.driving import lines, presses, until
from tui.screens.keys.dialogs import KeyDialog, RevokeDialog

pytestmark = pytest.mark.anyio

KEY = KeyInfo(
    id="key_0123456789ab",
    account="ana",
    name=HOSTILE,
    masked="enh_live_abc…",
    created_at="2026-01-31T09:00:00.000Z",
    shown_at=None,
    last_used_at="2026-02-01T10:30:00.000Z",
    expires_at=None,
    revoked_at=None,
    state=KeyState.ACTIVE,
)


async def test_a_key_is_told_by_what_is_known_of_it() -> None:
    app: App[int] = App()
    async with app.run_test() as pilot:
        await app.push_screen(KeyDialog(KEY))
        await pilot.pause()
        screen = "\n".join(lines(app))

    assert "enh_live_abc…  (key_0123456789ab)" in screen
    assert "Last used  2026-02-01 10:30" in screen


@pytest.mark.parametrize(
    ("keys", "is_sure"),
    [(("enter",), False), (("escape",), False), (("tab", "enter"), True)],
)
async def test_only_an_explicit_yes_revokes(keys: tuple[str, ...], is_sure: bool) -> None:
    app: App[int] = App()
    answers: list[bool | None] = []
    async with app.run_test() as pilot:
        await app.push_screen(RevokeDialog(KEY), answers.append)
        await pilot.pause()
        await presses(pilot, *keys)
        await until(lambda: answers)

    assert answers == [is_sure]
