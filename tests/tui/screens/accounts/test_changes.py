"""What the accounts screen changes; each change is driven by its keys in test_screen."""

import pytest

from resumes.store.engine import Store
from tests.tui.builders import an_account
from tests.tui.driving import at_rest, presses, running, shows, until
from tui.screens.accounts.changes import Going, SliceGone
from tui.screens.accounts.deleting import DeleteAccountDialog
from tui.screens.accounts.screen import AccountsScreen

pytestmark = pytest.mark.anyio


async def test_progress_of_what_is_not_being_deleted_any_more_is_not_shown(store: Store) -> None:
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "1 account")
        screen = pilot.app.screen
        assert isinstance(screen, AccountsScreen)
        changes = screen._changes
        changes.going["ana"] = Going(0, 10)

        changes.note_progress(SliceGone("ana", 4))
        changes.note_progress(SliceGone("zoe", 4))

        assert changes.going == {"ana": Going(4, 10)}
        await shows(pilot.app, "deleting ana: 4 of 10 resumes")


async def test_nothing_is_asked_once_the_reader_is_elsewhere(store: Store) -> None:
    an_account(store, "zoe")
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "2 accounts")
        pilot.app.screen.action_delete_account()  # type: ignore[attr-defined]
        pilot.app.action_go("plans")  # type: ignore[attr-defined]
        await shows(pilot.app, "3 plans")
        await at_rest(pilot)
        await pilot.pause()
        await presses(pilot, "3")
        await shows(pilot.app, "2 accounts")
        await until(lambda: pilot.app.screen.is_current)
        assert not isinstance(pilot.app.screen, DeleteAccountDialog)
