"""A resume, open to read."""

import pytest

from resumes.store import accounts, listing
from resumes.store.engine import Store
from tests.tui.builders import a_document, a_section, stored
from tests.tui.driving import presses, running, shows
from tui.screens.resumes.detail import DetailScreen
from tui.screens.resumes.screen import ResumesScreen

pytestmark = pytest.mark.anyio

DOCUMENT = a_document(
    title="Mine",
    sections=a_section("skills", {"title": "Words", "tags": ["Labels"]}, name="What I can"),
    unknown="kept",
)


async def test_enter_opens_the_resume_and_escape_returns(store: Store) -> None:
    stored(store, DOCUMENT)
    async with running(store) as pilot:
        await shows(pilot.app, "Mine")

        await presses(pilot, "enter")
        await shows(pilot.app, "ana · Mine · ", "Ada Lovelace", "WHAT I CAN", "Labels")

        await presses(pilot, "escape")
        assert isinstance(pilot.app.screen, ResumesScreen)


async def test_the_json_is_the_stored_resume_whole(store: Store) -> None:
    stored(store, DOCUMENT)
    async with running(store) as pilot:
        await shows(pilot.app, "Mine")
        await presses(pilot, "enter")
        await shows(pilot.app, "WHAT I CAN")

        await presses(pilot, "tab")
        await shows(pilot.app, '"name": "What I can",', '"showTags": true')
        await presses(pilot, "G")
        await shows(pilot.app, '"title": "Mine",', '"unknown": "kept"', '"isImported": true')

        await presses(pilot, "shift+tab")
        await shows(pilot.app, "WHAT I CAN")


async def test_it_can_be_opened_at_once(store: Store) -> None:
    _, second = stored(store, a_document(title="First"), DOCUMENT)
    async with running(store, account="ana", open_id=second) as pilot:
        await shows(pilot.app, "ana · Mine · ", "WHAT I CAN")

        await presses(pilot, "escape")
        await shows(pilot.app, "ana · 1 of 2")


async def test_a_resume_deleted_meanwhile_says_so(store: Store) -> None:
    (resume_id,) = stored(store, DOCUMENT)
    async with running(store) as pilot:
        await shows(pilot.app, "Mine")
        listing.delete_resume(store, accounts.get_account(store, "ana").id, resume_id)

        await presses(pilot, "enter")

        await shows(pilot.app, "! Resume not found. It may have been deleted meanwhile")
        assert isinstance(pilot.app.screen, DetailScreen)


async def test_the_views_come_round_again(store: Store) -> None:
    stored(store, DOCUMENT)
    async with running(store) as pilot:
        await shows(pilot.app, "Mine")
        await presses(pilot, "enter", "tab", "tab")
        await shows(pilot.app, "did not come from a file in a watched folder")
        await presses(pilot, "tab")
        await shows(pilot.app, "Created in ana", "1 warning", "! unknown is")
        await presses(pilot, "tab")
        await shows(pilot.app, "WHAT I CAN")


async def test_the_next_and_the_one_before_are_a_key_away(store: Store) -> None:
    stored(store, a_document(title="First"), a_document(title="Second"))
    async with running(store) as pilot:
        await shows(pilot.app, "Second")
        await presses(pilot, "enter")
        await shows(pilot.app, "ana · First")
        await presses(pilot, "n")
        await shows(pilot.app, "ana · Second")
        await presses(pilot, "n")
        await shows(pilot.app, "no further resume")
        await presses(pilot, "p")
        await shows(pilot.app, "ana · First")

        await presses(pilot, "escape")
        await shows(pilot.app, "ana · 1 of 2")
