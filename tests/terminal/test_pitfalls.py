"""The scenarios of docs/pitfalls.md that the terminal UI is about, each test named after its row."""

import signal
import time
from pathlib import Path

import pytest
from sqlalchemy import text

from resumes.store import accounts, plans, stored_resumes
from resumes.store.search_index import Indexer
from resumes.store.store import Store
from tests.support.programs import command
from tests.support.stores import open_home
from tests.support.terminal.builders import a_document, an_account, stored, stored_many
from tests.support.terminal.console import console
from tests.support.terminal.driving import HandClock, leads, presses, running, types, until

pytestmark = pytest.mark.anyio

MANY = 3_000
SOON_S = 5.0


def listed(store: Store) -> list[str]:
    """The titles that the API lists."""
    account = accounts.get_account(store, "ana")
    return [entry.shown_title for entry in stored_resumes.list_page(store, account.id).entries]


def entries(store: Store) -> int:
    """How many resumes the index has."""
    with store.read() as connection:
        return int(connection.execute(text("SELECT count(*) FROM search_entries")).scalar_one())


@pytest.mark.timing
def test_s9_a_terminal_ui_that_is_stopped_while_it_writes_keeps_nobody_waiting(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with open_home(home) as store:
        plans.set_plan_limits(store, plans.PlanChange("business", None))
        an_account(store, "ana")
        stored_many(store, MANY)
        with console(command(home, "tui")) as screen:
            # It writes the index for all of them, slice by slice.
            screen.shows("Number 0")
            screen.types(b"\x1a")
            screen.stops()

            begin = time.monotonic()
            an_account(store, "while-stopped")
            assert time.monotonic() - begin < SOON_S

            screen.program.send_signal(signal.SIGCONT)
            screen.types(b"3")
            screen.shows("while-stopped")
            screen.types(b"q")
            assert screen.ends() == 0


async def test_r4_until_its_ten_seconds_end_a_deletion_has_not_happened(store: Store) -> None:
    clock = HandClock()
    plans.set_plan_limits(store, plans.PlanChange("business", 1))
    stored(store, a_document(title="First"))
    async with running(store, "First", clock=clock) as pilot:
        await leads(pilot, "d", "Deleting in 10 s")

        assert listed(store) == ["First"]
        assert stored(store, a_document(title="Slips in")) == []
        await leads(pilot, "u", 'Undid the deletion of "First".')

        await presses(pilot, "d")
        clock.now_s += 10
        await until(lambda: listed(store) == [])
        assert stored(store, a_document(title="Second"))

    assert listed(store) == ["Second"]


async def test_r5_what_no_index_has_yet_is_found_and_what_is_deleted_is_not(store: Store) -> None:
    (first, _) = stored(store, a_document(title="Analyst"), a_document(title="Analyst too"))
    assert entries(store) == 0
    async with running(store, "1 of 2") as pilot:
        await types(pilot, "/nalys", '"nalys" · 1 of 2', "Analyst too")

        with Indexer(store):
            await until(lambda: entries(store) == 2)
        stored_resumes.delete_resume(store, accounts.get_account(store, "ana").id, first)
        assert entries(store) == 1

        await presses(pilot, "escape")
        await types(pilot, "/nalys", '"nalys" · 1 of 1', "Analyst too")
