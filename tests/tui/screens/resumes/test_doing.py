"""What can be done with a resume, by keys alone."""

from pathlib import Path

import pytest

from resumes.store.engine import Store
from tests.tui.builders import a_document, stored
from tests.tui.driving import presses, running, shows, until

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("opens", [False, True])
async def test_a_resume_is_exported_to_the_folder_that_is_named(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opens: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    stored(store, a_document(title="Mine"))
    async with running(store) as pilot:
        await shows(pilot.app, "Mine")
        if opens:
            await presses(pilot, "enter")
            await shows(pilot.app, "ana · Mine")

        await presses(pilot, "x")
        await shows(pilot.app, "Into which folder?")
        await presses(pilot, "enter")

        await shows(pilot.app, "Exported 1 resume to")
        await until(lambda: len(list((tmp_path / "exported-resumes").iterdir())) == 1)


async def test_a_folder_that_cannot_be_written_is_told_in_its_place(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "exported-resumes").write_text("")
    stored(store, a_document(title="Mine"))
    async with running(store) as pilot:
        await shows(pilot.app, "Mine")
        await presses(pilot, "x")
        await shows(pilot.app, "Into which folder?")
        await presses(pilot, "enter")

        await shows(pilot.app, "! Cannot write to")


async def test_deleting_twice_is_deleting_once(store: Store) -> None:
    stored(store, a_document(title="Mine"))
    async with running(store) as pilot:
        await shows(pilot.app, "Mine")
        await presses(pilot, "d")
        await shows(pilot.app, "will be deleted in 10 s")
        await presses(pilot, "d")
        await shows(pilot.app, "is about to be deleted already")


async def test_where_there_is_nothing_it_says_so(store: Store) -> None:
    async with running(store) as pilot:
        await shows(pilot.app, "ana holds no resumes yet")
        for key, verb in (("d", "delete"), ("x", "export"), ("y", "copy")):
            await presses(pilot, key)
            await shows(pilot.app, f"no resume here to {verb}")
