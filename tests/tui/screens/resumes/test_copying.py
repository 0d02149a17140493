"""What of a resume can be copied."""

import json

import pytest

from resumes.store.engine import Store
from resumes.text import is_harmless
from tests.tui.builders import HOSTILE, a_document, stored
from tests.tui.clipboards import copied
from tests.tui.driving import presses, running, shows, until
from tui.screens.resumes.copying import copyables
from tui.screens.resumes.views import View, show

pytestmark = pytest.mark.anyio


def test_what_it_does_not_have_is_not_offered(store: Store) -> None:
    (resume_id,) = stored(store, a_document(name="Ada"))
    shown = show(store, account="ana", resume_id=resume_id, view=View.TEXT)

    offered = {one.what: one.text for one in copyables(shown)}

    assert offered["id"] == resume_id
    assert offered["name"] == "Ada"
    assert "e-mail" not in offered


def test_json_is_offered_without_anything_that_acts_when_it_is_pasted(store: Store) -> None:
    (resume_id,) = stored(store, a_document(name="Ada", title=HOSTILE))
    shown = show(store, account="ana", resume_id=resume_id, view=View.TEXT)

    (text,) = [one.text for one in copyables(shown) if one.what == "JSON"]

    assert is_harmless(text)
    assert json.loads(text) == json.loads(shown.document)


async def test_the_chosen_text_reaches_the_clipboard(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    (resume_id,) = stored(store, a_document(name="Ada"))
    async with running(store) as pilot:
        await shows(pilot.app, "Ada Resume")
        await presses(pilot, "y")
        await shows(pilot.app, "Copy what?", "file name")

        texts = copied(pilot.app, monkeypatch)
        await presses(pilot, "enter")
        await until(lambda: texts == [resume_id])


async def test_what_is_too_long_for_a_terminal_is_refused(store: Store) -> None:
    stored(store, a_document(header={"name": "Ada"}, notes=["x" * 19_000] * 4))
    async with running(store) as pilot:
        await shows(pilot.app, "Ada Resume")
        await presses(pilot, "y")
        await shows(pilot.app, "Copy what?", "JSON")

        await presses(pilot, "G", "enter")
        await shows(pilot.app, "too long for a terminal's clipboard")
