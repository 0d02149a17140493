"""Deleting in the real app: ten seconds, undo, and the end of the program."""

import pytest
from textual.pilot import Pilot

from resumes.store import accounts, listing
from resumes.store.engine import Store
from tests.tui.builders import a_document, stored
from tests.tui.driving import presses, running, shows, until
from tui import deletions
from tui.app import ResumesApp

pytestmark = pytest.mark.anyio


def titles(store: Store) -> list[str]:
    account = accounts.get_account(store, "ana")
    return [entry.shown_title for entry in listing.list_page(store, account.id).entries]


def app_of(pilot: Pilot[int]) -> ResumesApp:
    assert isinstance(pilot.app, ResumesApp)
    return pilot.app


async def test_a_deletion_waits_and_is_then_carried_out(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(store, a_document(title="First"), a_document(title="Second"))
    async with running(store) as pilot:
        await shows(pilot.app, "Second")
        monkeypatch.setattr(deletions.Deletions, "left_s", lambda *_: 10.0)

        await presses(pilot, "d")

        await shows(pilot.app, "deleted in 10 s, u keeps it First")
        assert titles(store) == ["First", "Second"]
        monkeypatch.setattr(deletions.Deletions, "left_s", lambda *_: 0.0)
        await until(lambda: titles(store) == ["Second"])
        await shows(pilot.app, "(deleted)", '"First" is deleted.', "1 of 1")


async def test_undo_keeps_the_resume(store: Store) -> None:
    stored(store, a_document(title="First"))
    async with running(store) as pilot:
        await shows(pilot.app, "First")
        await presses(pilot, "d")
        await shows(pilot.app, "u keeps it First")

        await presses(pilot, "u")

        await shows(pilot.app, '"First" stays.')
        assert not len(app_of(pilot).session.deletions)
        await presses(pilot, "u")
        await shows(pilot.app, "There is nothing to undo")
    assert titles(store) == ["First"]


async def test_the_end_of_the_program_keeps_what_was_not_deleted_yet(store: Store) -> None:
    stored(store, a_document(title="First"))
    async with running(store) as pilot:
        await shows(pilot.app, "First")
        await presses(pilot, "d", "q")
        app = app_of(pilot)
    assert app.deletions_left == ["First"]
    assert titles(store) == ["First"]


async def test_a_resume_deleted_elsewhere_meanwhile_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    (resume_id,) = stored(store, a_document(title="First"))
    async with running(store) as pilot:
        await shows(pilot.app, "First")
        await presses(pilot, "d")
        listing.delete_resume(store, accounts.get_account(store, "ana").id, resume_id)
        monkeypatch.setattr(deletions.Deletions, "left_s", lambda *_: 0.0)

        await shows(pilot.app, '"First" was not deleted: Resume not found')


async def test_read_only_there_is_no_deleting(store: Store) -> None:
    stored(store, a_document(title="First"))
    async with running(store, read_only=True) as pilot:
        await shows(pilot.app, "First")
        await presses(pilot, "d")
        await shows(pilot.app, "Read-only: start without --read-only")
        assert not len(app_of(pilot).session.deletions)
