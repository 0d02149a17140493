"""The app: modes, the keys that always work, and its end."""

import contextlib

import pytest
from textual.pilot import Pilot

from resumes.store.engine import Store
from tests.tui.builders import an_account, stored_many
from tests.tui.driving import presses, running, shows, until
from tui.app import ResumesApp
from tui.screens.accounts.screen import AccountsScreen
from tui.screens.help import HelpScreen
from tui.screens.keys.screen import KeysScreen
from tui.screens.resumes.screen import ResumesScreen
from tui.session import Session

pytestmark = pytest.mark.anyio


def toasts(pilot: Pilot[int]) -> list[str]:
    return [toast.message for toast in pilot.app._notifications]


async def test_digits_lead_to_the_screens(store: Store) -> None:
    async with running(store) as pilot:
        for key, screen in (("3", AccountsScreen), ("5", KeysScreen), ("1", ResumesScreen)):
            await presses(pilot, key)
            await until(lambda screen=screen: isinstance(pilot.app.screen, screen))  # type: ignore[misc]


async def test_it_starts_on_the_screen_asked_for(store: Store) -> None:
    async with running(store, screen="keys") as pilot:
        await until(lambda: isinstance(pilot.app.screen, KeysScreen))


async def test_escape_goes_back_to_the_screen_of_before(store: Store) -> None:
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "ana")
        await presses(pilot, "enter")
        await until(lambda: isinstance(pilot.app.screen, ResumesScreen))
        await presses(pilot, "escape")
        await until(lambda: isinstance(pilot.app.screen, AccountsScreen))


async def test_escape_never_quits_and_q_does(store: Store) -> None:
    async with running(store) as pilot:
        await presses(pilot, "escape", "escape")
        assert pilot.app.is_running
        assert toasts(pilot) == ["This is the first screen. q quits."]

        await presses(pilot, "q")
        assert pilot.app.return_code == 0


async def test_a_key_that_does_nothing_says_why(store: Store) -> None:
    async with running(store) as pilot:
        await presses(pilot, "Z")
        await until(lambda: toasts(pilot) == ["This key does nothing. ? shows all keys."])

        await presses(pilot, "l")
        await until(
            lambda: (
                toasts(pilot) == ["l does nothing here. It works in: imports, an imported file."]
            )
        )


async def test_the_question_mark_shows_all_keys(store: Store) -> None:
    async with running(store) as pilot:
        await presses(pilot, "question_mark")
        await until(lambda: isinstance(pilot.app.screen, HelpScreen))
        await shows(pilot.app, "Keys that work here", "Find resumes by words")

        await presses(pilot, "escape")
        assert isinstance(pilot.app.screen, ResumesScreen)


async def test_an_account_opens_its_resumes(store: Store) -> None:
    an_account(store, "zoe")
    stored_many(store, 3, account="zoe")
    async with running(store, account="ana") as pilot:
        await shows(pilot.app, "ana holds no resumes yet")
        await presses(pilot, "3")
        await shows(pilot.app, "zoe")

        await presses(pilot, "j", "enter")

        await shows(pilot.app, "zoe · 1 of 3", "Number 2")


async def test_an_account_opens_over_a_resume_that_was_left_open(store: Store) -> None:
    an_account(store, "zoe")
    stored_many(store, 1)
    async with running(store) as pilot:
        await shows(pilot.app, "Number 0")
        await presses(pilot, "enter", "3")
        await shows(pilot.app, "zoe")

        await presses(pilot, "j", "enter")

        await shows(pilot.app, "zoe holds no resumes yet")


async def test_a_crash_ends_with_a_code_and_without_values(store: Store) -> None:
    app = ResumesApp(lambda: Session(store))

    def crash() -> None:
        values = "".join(["pri", "vate"])
        raise RuntimeError(f"\x1b]52;c;AAAA\x07 {len(values)}")

    told: list[object] = []
    app.panic = told.append  # type: ignore[method-assign,assignment]  # heard, not shown
    with contextlib.suppress(RuntimeError):
        async with app.run_test():
            app.call_later(crash)
            await until(lambda: told)

    report = str(told[0])
    assert app.return_code == 1
    assert "RuntimeError" in report
    assert "\x1b" not in report
    assert "private" not in report
