"""Deleting an account."""

import pytest
from textual.app import App
from textual.worker import Worker

from resumes.store import accounts, keys
from resumes.store.engine import Store
from tests.tui.builders import stored_many
from tests.tui.driving import SMALL, lines, presses, until
from tui.screens.accounts.deleting import DeleteAccountDialog, delete, read_losses

pytestmark = pytest.mark.anyio


async def test_what_goes_is_told_and_the_name_must_be_typed(store: Store) -> None:
    stored_many(store, 3)
    keys.create_key(store, "ana")
    losses = read_losses(store, accounts.get_account(store, "ana"))
    answers: list[bool | None] = []
    app: App[int] = App()
    async with app.run_test(size=SMALL) as pilot:
        await app.push_screen(DeleteAccountDialog(losses), answers.append)
        await pilot.pause()
        screen = "\n".join(lines(app))
        await presses(pilot, *"an", "enter")
        assert not answers
        await presses(pilot, "a", "enter")
        await until(lambda: answers)

    assert "Resumes    3" in screen
    assert "Keys       1, of which 1 active" in screen
    assert "Files      0 files in the history of imports" in screen
    assert answers == [True]


async def test_each_slice_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "SLICE_RESUMES", 2)
    stored_many(store, 5)
    told: list[int] = []
    app: App[int] = App()
    async with app.run_test():
        worker: Worker[int] = app.run_worker(
            lambda: delete(store, name="ana", tell_gone=told.append), thread=True
        )
        await until(lambda: worker.is_finished)

    assert worker.result == 5
    assert told == [2, 4, 5]
    assert accounts.list_accounts(store, closed_too=True) == []


async def test_the_end_of_the_program_ends_it_after_the_slice(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "SLICE_RESUMES", 2)
    stored_many(store, 5)
    app: App[int] = App()
    async with app.run_test():
        workers: list[Worker[int]] = []

        def run() -> int:
            return delete(store, name="ana", tell_gone=lambda _: workers[0].cancel())

        workers.append(app.run_worker(run, thread=True))
        await until(lambda: accounts.find_account(store, "ana") is None)
        await until(lambda: workers[0].is_finished)

    (left,) = accounts.list_accounts(store, closed_too=True)
    assert (left.name, left.is_closed, left.resume_count) == ("ana", True, 3)
