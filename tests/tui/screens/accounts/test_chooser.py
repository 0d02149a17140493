"""Choosing an account."""

import pytest

from resumes.store.engine import Store
from tests.tui.builders import an_account, stored_many
from tests.tui.driving import presses, running, shows
from tui.screens.resumes.screen import ResumesScreen

pytestmark = pytest.mark.anyio


async def test_another_accounts_resumes_are_shown(store: Store) -> None:
    an_account(store, "zoe")
    stored_many(store, 2, account="zoe")
    async with running(store, account="ana") as pilot:
        await shows(pilot.app, "ana · no resumes")

        await presses(pilot, "a")
        await shows(pilot.app, "Which account?", "zoe")
        await presses(pilot, "j", "enter")

        await shows(pilot.app, "zoe · 1 of 2", "Number 1")


async def test_escape_changes_nothing(store: Store) -> None:
    async with running(store) as pilot:
        await shows(pilot.app, "ana · no resumes")
        await presses(pilot, "a")
        await shows(pilot.app, "Which account?")

        await presses(pilot, "escape")

        assert isinstance(pilot.app.screen, ResumesScreen)
        await shows(pilot.app, "ana · no resumes")


async def test_without_accounts_there_is_nothing_to_choose(empty_store: Store) -> None:
    async with running(empty_store) as pilot:
        await presses(pilot, "a", "enter", "escape")

        await shows(pilot.app, "There are no accounts yet.")
