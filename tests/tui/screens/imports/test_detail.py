"""A file on a page of its own."""

import pytest
from textual.app import App

from resumes.errors import NotFound
from resumes.store import requests
from resumes.store.engine import Store
from resumes.store.ledger import FileOutcome
from tests.tui.driving import LARGE, lines, presses, running, shows, until
from tests.tui.screens.imports.builders import Gate, a_file, an_id
from tui.screens.imports import detail
from tui.screens.imports.detail import FileScreen
from tui.screens.imports.reading import read_file
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


async def test_what_is_done_is_done_with_the_file_that_is_seen(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for digit in "12":
        a_file(store, an_id(digit))
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "1 of 2")
        await presses(pilot, "enter")
        await shows(pilot.app, "ana/cv-2.json ·")
        gate = Gate(read_file)
        monkeypatch.setattr(detail, "read_file", gate)

        await presses(pilot, "n")
        for key in ("t", "l", "y", "o"):
            pilot.app.clear_notifications()
            await presses(pilot, key)
            await shows(pilot.app, "The next file is being read.", "ana/cv-2.json ·")
        assert requests.list_requests(store) == []

        gate.open()
        await shows(pilot.app, "ana/cv-1.json ·")
        await presses(pilot, "t")
        await shows(pilot.app, "Asked for 1 file")
        assert [one.claim_id for one in requests.list_requests(store)] == [an_id("1")]


async def test_a_file_that_cannot_be_read_is_not_acted_upon(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for digit in "12":
        a_file(store, an_id(digit))
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "1 of 2")
        await presses(pilot, "enter")
        await shows(pilot.app, "ana/cv-2.json ·")
        with monkeypatch.context() as patch:

            def fail(*_: object, **__: object) -> None:
                raise NotFound("File not found")

            patch.setattr(detail, "read_file", fail)
            await presses(pilot, "n")
            await shows(pilot.app, "! File not found", "ana/cv-2.json ·")
            await presses(pilot, "t")
            await shows(pilot.app, "The next file could not be read: r tries again.")

        await presses(pilot, "r")
        await shows(pilot.app, "ana/cv-1.json ·")
        assert requests.list_requests(store) == []


async def test_a_file_that_takes_long_to_read_appears_all_the_same(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_refused_file(store)
    gate = Gate(read_file)
    monkeypatch.setattr(detail, "read_file", gate)
    monkeypatch.setattr(detail, "REFRESH_S", 0.01)
    refreshes = []
    refresh = FileScreen._refresh_file

    def refresh_file(screen: FileScreen) -> None:
        refresh(screen)
        refreshes.append(gate.begun)

    monkeypatch.setattr(FileScreen, "_refresh_file", refresh_file)
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "1 of 1")
        await presses(pilot, "enter")
        await until(lambda: len(refreshes) > 5)
        assert gate.begun == 1

        gate.open()

        await shows(pilot.app, "Mend the fields")
        await until(lambda: gate.begun > 1)


@pytest.mark.parametrize("size", [(80, 24), LARGE], ids=str)
async def test_a_bar_says_which_part_has_the_keys(store: Store, size: tuple[int, int]) -> None:
    def bar(app: App[int]) -> list[tuple[int, int]]:
        rows = enumerate(lines(app))
        return [(row, at) for row, line in rows for at, cell in enumerate(line) if cell == "█"]

    a_refused_file(store)
    async with running(store, screen="imports", size=size) as pilot:
        await shows(pilot.app, "1 of 1")
        await presses(pilot, "enter")
        await shows(pilot.app, "Source as it was read")
        await until(lambda: bar(pilot.app))
        await pilot.pause()  # the other part's place is laid out a frame later
        text = bar(pilot.app)

        await presses(pilot, "tab")
        await until(lambda: bar(pilot.app) and not set(text) & set(bar(pilot.app)))
        await presses(pilot, "tab")
        await until(lambda: bar(pilot.app) == text)

        a_file(store, outcome=FileOutcome.DONE)
        await shows(pilot.app, "✓ done")
        await until(lambda: not bar(pilot.app))


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
