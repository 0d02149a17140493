"""What the screens share."""

import pytest

from resumes.store import accounts
from resumes.store.engine import Store
from tests.tui.builders import a_document, an_account, stored
from tests.tui.driving import presses, running, shows
from tui.session import Session


def test_a_session_begins_with_the_first_account_and_all_keys(store: Store) -> None:
    session = Session(store)
    assert (session.account, session.keys_account, session.read_only) == (None, None, False)


@pytest.mark.anyio
async def test_the_account_opened_on_one_screen_is_the_one_shown_on_another(store: Store) -> None:
    an_account(store, "zoe")
    stored(store, a_document(title="Hers"), account="zoe")
    assert [account.name for account in accounts.list_accounts(store)] == ["ana", "zoe"]
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "ana", "zoe")
        await presses(pilot, "j", "enter")
        await shows(pilot.app, "zoe · 1 of 1", "Hers")
        await presses(pilot, "2", "1")
        await shows(pilot.app, "zoe · 1 of 1", "Hers")
