"""Everything that is named leads to where it can be seen, and esc leads back."""

import json
from pathlib import Path

import pytest

from resumes.settings import Settings
from resumes.store import import_history, import_requests
from resumes.store.import_ledger import FileOutcome
from resumes.store.store import Store
from tests.support.terminal.builders import (
    AnImporter,
    a_document,
    a_file,
    an_account,
    an_id,
    stored,
)
from tests.support.terminal.driving import at_rest, leads, presses, running, shows, tells, types

pytestmark = pytest.mark.anyio


async def test_esc_goes_up_the_way_that_links_led_down_and_a_digit_begins_at_the_top(
    store: Store,
) -> None:
    an_account(store, "zoe")
    stored(store, a_document(title="Nurse"), account="zoe")
    async with running(store, "Accounts · 2 accounts", screen="accounts") as pilot:
        await leads(pilot, "G enter", "Accounts › zoe › Resumes · 1 of 1")
        await leads(pilot, "enter", "Accounts › zoe › Resumes › Nurse · ")
        await leads(pilot, "escape", "Accounts › zoe › Resumes · 1 of 1")
        await leads(pilot, "escape", "Accounts · 2 accounts")
        await leads(pilot, "enter", "Accounts › zoe › Resumes")
        await leads(pilot, "4 1", "zoe · 1 of 1")
        await presses(pilot, "escape")
        await at_rest(pilot)
        assert pilot.app.current_mode == "resumes"


async def test_a_file_leads_to_its_resume_and_back_and_a_resume_to_its_file(
    store: Store, importer: AnImporter
) -> None:
    importer.drop("ana/nurse.json", json.dumps(a_document(title="Nurse")).encode())
    await importer.round()
    async with running(store, "1 of 1", "nurse.json", screen="imports") as pilot:
        await leads(pilot, "enter", "Imports › ana/nurse.json · ✓ done")
        await leads(pilot, "o", "Imports › ana/nurse.json › Nurse")
        await leads(pilot, "escape", "Imports › ana/nurse.json · ✓ done")
        await leads(pilot, "escape", "all accounts · failed first · 1 of 1")

        await leads(pilot, "1", "ana · 1 of 1")
        await leads(pilot, "enter", "Resumes › ana › Nurse")
        await leads(pilot, "f", "Resumes › ana › Nurse › ana/nurse.json · ✓ done")
        await leads(pilot, "escape", "Resumes › ana › Nurse · ")
        await leads(pilot, "escape f", "ana/nurse.json · ✓ done")
        await leads(pilot, "escape", "ana · 1 of 1")


async def test_next_to_what_a_link_led_to_is_what_is_next_to_it_in_the_list(
    store: Store, importer: AnImporter
) -> None:
    for name in ("Ada", "Bea", "Cleo", "Dora"):
        importer.drop(f"ana/{name}.json", json.dumps(a_document(title=name)).encode())
        await importer.round()
    async with running(store, "ana · 1 of 4") as pilot:
        await leads(pilot, "j j enter", "Resumes › ana › Cleo")
        await leads(pilot, "f", "Resumes › ana › Cleo › ana/Cleo.json · ✓ done")
        await at_rest(pilot)
        await leads(pilot, "n", "ana/Bea.json · ✓ done")
        await leads(pilot, "o", "Resumes › ana › Bea · ")
        await at_rest(pilot)
        await leads(pilot, "p", "Resumes › ana › Ada · ")
        await leads(pilot, "p", "First resume in the list.")


async def test_a_resume_that_came_from_no_file_says_so(store: Store) -> None:
    stored(store, a_document())
    async with running(store, "1 of 1") as pilot:
        await presses(pilot, "f")
        await tells(
            pilot.app,
            "No source file is known: it came through the API or `resumes import`, or its file was replaced.",
        )


async def test_a_resume_of_a_dismissed_file_says_where_the_file_is(
    store: Store, importer: AnImporter, tmp_path: Path
) -> None:
    bundle = b"\n".join([json.dumps(a_document(title="Ada")).encode(), b"{"])
    importer.drop("ana/several.ndjson", bundle)
    await importer.round()
    [file] = import_history.list_files(store)
    import_requests.dismiss_files(store, [file])
    async with running(store, "1 of 1", settings=Settings(home=tmp_path)) as pilot:
        await leads(pilot, "f", "Its file was dismissed. It is still at")
        await leads(pilot, "enter tab tab", "Its file was dismissed.", '"title": "Ada"')


async def test_a_finding_leads_to_the_failed_files(store: Store) -> None:
    a_file(store, an_id("1"))
    a_file(store, an_id("2"), FileOutcome.DONE)
    async with running(store, "1 failed file", screen="health") as pilot:
        await types(pilot, "/failed\n", '"failed"')
        await at_rest(pilot)
        await presses(pilot, "enter")
        await shows(pilot.app, "Health › Imports › all accounts · only failed", "1 of 1", "cv-1")
        await leads(pilot, "escape", "Health · ")
