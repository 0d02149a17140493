"""A file on a page of its own."""

import pytest

from resumes.store import requests
from resumes.store.engine import Store
from resumes.store.ledger import FileOutcome
from tests.tui.driving import LARGE, lines, presses, running, shows, until
from tests.tui.screens.imports.builders import a_file, an_id
from tui.screens.imports.detail import FileScreen
from tui.screens.imports.screen import ImportsScreen

pytestmark = pytest.mark.anyio

SOURCE = b'{\n  "header": {"name": "Ada"},\n  "title": 5\n}\n'


def a_refused_file(store: Store) -> None:
    a_file(
        store,
        reason="invalid_resume",
        message="Invalid field title: must be a string",
        path="title",
        source=SOURCE,
    )


@pytest.mark.parametrize("size", [(80, 24), (120, 40), LARGE], ids=str)
async def test_the_source_stands_beside_the_reason_at_the_fault(
    store: Store, size: tuple[int, int]
) -> None:
    a_refused_file(store)
    async with running(store, screen="imports", size=size) as pilot:
        await shows(pilot.app, "not a valid resume")
        await presses(pilot, "enter")
        await until(lambda: isinstance(pilot.app.screen, FileScreen))
        await shows(
            pilot.app,
            "ana/cv-1.json · ✗ failed",
            "must be a string",
            "Mend the fields",
            '3 ▶   "title": 5',
            "line 3, column 3",
        )


async def test_a_retried_file_says_so_and_then_what_became_of_it(store: Store) -> None:
    a_refused_file(store)
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "not a valid resume")
        await presses(pilot, "enter", "t")

        await shows(pilot.app, "↻ failed", "retry asked", "it waits, since no importer")
        (request,) = requests.list_requests(store)
        assert request.action == "retry"

        requests.drop_requests(store, [request])
        a_file(store, outcome=FileOutcome.DONE)

        await shows(pilot.app, "ana/cv-1.json · ✓ done")
        assert "▶" not in "".join(lines(pilot.app))


async def test_n_and_p_go_through_the_list(store: Store) -> None:
    for digit in "123":
        a_file(store, an_id(digit))
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "1 of 3")
        await presses(pilot, "enter")
        await shows(pilot.app, "ana/cv-3.json ·")
        await presses(pilot, "n")
        await shows(pilot.app, "ana/cv-2.json ·")
        await presses(pilot, "n", "n")
        await shows(pilot.app, "ana/cv-1.json ·", "There is no further file")
        await presses(pilot, "p", "escape")
        await until(lambda: isinstance(pilot.app.screen, ImportsScreen))
        await shows(pilot.app, "2 of 3")


async def test_what_cannot_be_done_says_why(store: Store) -> None:
    a_file(store, outcome=FileOutcome.DONE)
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "✓ done")
        await presses(pilot, "enter")
        await until(lambda: isinstance(pilot.app.screen, FileScreen))
        await shows(pilot.app, "_done/")
        for key, why in (
            ("t", "is imported: there is nothing to retry"),
            ("l", "is imported: there is nothing to release"),
            ("y", "has no reason to copy"),
            ("o", "became no resume"),
            ("tab", "There is only this text"),
        ):
            await presses(pilot, key)
            await shows(pilot.app, why)
    assert requests.list_requests(store) == []


async def test_a_file_that_is_gone_says_so_and_stays_readable(store: Store) -> None:
    from resumes.store import accounts

    a_refused_file(store)
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "not a valid resume")
        await presses(pilot, "enter")
        await shows(pilot.app, "Mend the fields")

        accounts.delete_account(store, "ana")

        await shows(pilot.app, "! File not found", "Mend the fields")


async def test_read_only_takes_the_keys_away(store: Store) -> None:
    a_refused_file(store)
    async with running(store, screen="imports", read_only=True) as pilot:
        await shows(pilot.app, "not a valid resume")
        await presses(pilot, "enter")
        await until(lambda: isinstance(pilot.app.screen, FileScreen))
        await shows(pilot.app, "Mend the fields")
        await presses(pilot, "t")
        await shows(pilot.app, "Read-only: start without --read-only")
    assert requests.list_requests(store) == []
