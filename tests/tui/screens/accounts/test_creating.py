"""The form for a new account."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot

from resumes.errors import Conflict, StoreUnavailable
from resumes.settings import Settings
from resumes.store import accounts, plans
from resumes.store.engine import Store
from tests.tui.driving import LIMIT_S, SMALL, lines, presses, shows, until
from tui.screens.accounts.creating import RULE, CreateAccountDialog, Made, make
from tui.session import Session

pytestmark = pytest.mark.anyio

Form = tuple[Pilot[int], list[Made | None]]


@asynccontextmanager
async def opened(store: Store, home: Path) -> AsyncIterator[Form]:
    """The form is open, and ana is taken."""
    session = Session(store, settings=Settings(home=home))
    answers: list[Made | None] = []
    app: App[int] = App()
    async with app.run_test(size=SMALL) as pilot:
        dialog = CreateAccountDialog(session, plans.list_plans(store), {"ana"})
        await app.push_screen(dialog, answers.append)
        await pilot.pause()
        yield pilot, answers


async def test_an_account_is_made_on_the_first_plan_with_its_inbox(
    store: Store, tmp_path: Path
) -> None:
    async with opened(store, tmp_path) as (pilot, answers):
        await shows(pilot.app, RULE, "It allows 5 resumes, without API listing.")
        await presses(pilot, *"zoe", "enter")
        await until(lambda: answers)

    assert answers == [Made(accounts.get_account(store, "zoe"), tmp_path / "inbox" / "zoe")]
    assert accounts.get_account(store, "zoe").plan == "free"
    assert (tmp_path / "inbox" / "zoe").is_dir()


async def test_another_plan_is_chosen_by_what_it_allows(store: Store, tmp_path: Path) -> None:
    async with opened(store, tmp_path) as (pilot, answers):
        await presses(pilot, *"zoe", "tab", "enter", "down", "down", "enter")
        await shows(pilot.app, "It allows 1,000 resumes, with API listing.")
        await presses(pilot, "tab", "enter")
        await until(lambda: answers)

    assert accounts.get_account(store, "zoe").plan == "business"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Zoe", '! "Zoe" is no name. A name is 1 to 63'),
        ("-zoe", '! "-zoe" is no name.'),
        ("ana", '! Account "ana" exists already.'),
    ],
)
async def test_a_bad_name_is_said_as_it_is_typed_and_is_not_lost(
    store: Store, tmp_path: Path, name: str, problem: str
) -> None:
    async with opened(store, tmp_path) as (pilot, answers):
        await presses(pilot, *name)
        await shows(pilot.app, problem)
        await presses(pilot, "enter")

        await shows(pilot.app, problem, f"Name          {name}")
        assert not answers

        await presses(pilot, "ctrl+u")
        await until(lambda: not any("! " in line for line in lines(pilot.app)))
    assert [account.name for account in accounts.list_accounts(store)] == ["ana"]


async def test_no_name_is_no_name(store: Store, tmp_path: Path) -> None:
    async with opened(store, tmp_path) as (pilot, answers):
        await presses(pilot, "enter")
        await shows(pilot.app, '! "" is no name.')
        await presses(pilot, "escape")
        await until(lambda: answers)
    assert answers == [None]


async def test_what_the_store_refuses_is_said_and_can_be_tried_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = accounts.create_account

    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable("The store is away")

    async with opened(store, tmp_path) as (pilot, answers):
        monkeypatch.setattr(accounts, "create_account", fail)
        await presses(pilot, *"zoe", "enter")
        await shows(pilot.app, "! The store is away. What you typed is kept;", "zoe")

        monkeypatch.setattr(accounts, "create_account", really)
        await presses(pilot, "enter")
        await until(lambda: answers)
    assert accounts.find_account(store, "zoe") is not None


async def test_what_is_being_made_cannot_be_cancelled_and_is_told(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, may_go_on = accounts.create_account, Event()

    def slowly(*arguments: Any, **named: Any) -> accounts.AccountInfo:
        assert may_go_on.wait(LIMIT_S)
        return really(*arguments, **named)

    monkeypatch.setattr(accounts, "create_account", slowly)
    async with opened(store, tmp_path) as (pilot, answers):
        await presses(pilot, *"zoe", "enter", "escape")
        await until(
            lambda: [toast.message for toast in pilot.app._notifications] == ["It is being saved."]
        )
        assert not answers

        may_go_on.set()
        await until(lambda: answers)

    assert answers == [Made(accounts.get_account(store, "zoe"), tmp_path / "inbox" / "zoe")]


def test_an_inbox_that_cannot_be_made_leaves_the_account_and_says_why(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / "inbox").write_text("in the way")

    made = make(store, name="zoe", plan="pro", inboxes=tmp_path / "inbox")

    assert made.account == accounts.get_account(store, "zoe")
    assert made.problem == "Not a directory"
    with pytest.raises(Conflict):
        make(store, name="zoe", plan="pro", inboxes=tmp_path)
