"""From a file to its resumes."""

import pytest

from resumes.store import accounts, creating
from resumes.store.creating import Created
from resumes.store.engine import Store
from resumes.store.ledger import Claim
from tests.resumes.builders import a_resume
from tests.tui.driving import presses, running, shows, until
from tests.tui.screens.imports.builders import an_id
from tui.screens.imports.becoming import ResumeChooser, list_resumes
from tui.screens.imports.detail import FileScreen

pytestmark = pytest.mark.anyio


def imported(store: Store, *names: str) -> list[str]:
    """A file of these resumes is done; their ids."""
    account = accounts.get_account(store, "ana")
    claim = Claim(an_id("1"), "ana/many.ndjson", 9, "2027-01-15T08:00:00.000Z", lambda: b"")
    new = [a_resume(name, item=item) for item, name in enumerate(names)]
    outcomes = creating.create(store, account.id, new, claim=claim)
    return [one.id for one in outcomes if isinstance(one, Created)]


def test_the_resumes_of_a_file_are_those_of_its_claim(store: Store) -> None:
    ids = imported(store, "Ada", "Bea")
    account_id = accounts.get_account(store, "ana").id
    found = list_resumes(store, account_id=account_id, claim_id=an_id("1"))
    assert [item.resume_id for item in found] == ids


async def test_the_one_resume_of_a_file_is_opened_at_once(store: Store) -> None:
    imported(store, "Ada Example")
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "✓ done")
        await presses(pilot, "enter")
        await until(lambda: isinstance(pilot.app.screen, FileScreen))
        await shows(pilot.app, "Became")

        await presses(pilot, "o")

        await shows(pilot.app, "Ada Example", "Builds things that last.")


async def test_of_several_one_is_chosen(store: Store) -> None:
    imported(store, "Ada Example", "Bea Example")
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "✓ done")
        await presses(pilot, "enter")
        await shows(pilot.app, "Became")

        await presses(pilot, "enter")
        await until(lambda: isinstance(pilot.app.screen, ResumeChooser))
        await shows(pilot.app, "Which of its resumes?", "1  done")
        await presses(pilot, "j", "enter")

        await shows(pilot.app, "Bea Example", "Builds things that last.")
