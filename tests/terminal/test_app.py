"""The app: its screens, the keys that work everywhere, the palette, messages, and its end."""

import asyncio
import contextlib
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from textual import events
from textual.app import ComposeResult
from textual.command import CommandInput, CommandPalette
from textual.pilot import Pilot

from resumes.errors import NotFound, OutcomeUnknown
from resumes.settings import Settings
from resumes.store import api_keys, import_requests, importers
from resumes.store.import_ledger import FileOutcome
from resumes.store.sqlite.first_rows import read_first_rows
from resumes.store.store import Store
from tests.support.store.builders import path_of
from tests.support.terminal.builders import (
    HOSTILE,
    a_document,
    a_file,
    an_account,
    an_id,
    an_importer,
    stored,
)
from tests.support.terminal.driving import (
    LARGE,
    NEVER_S,
    SMALL,
    footer,
    leads,
    lines,
    presses,
    running,
    sends,
    shows,
    shows_no,
    tells,
    toasts,
    until,
)
from tui.app import MAX_TYPED, ResumesApp
from tui.keys import ACTIONS, BY_ID, FORM_S, MODES, Place, keys_of
from tui.screens.accounts import CreateAccountDialog
from tui.screens.base import RowScreen
from tui.session import UiSession, find_owner, prepare
from tui.store_calls import failure
from tui.text import StatusMessage, safe_text
from tui.widgets.bars import KeyLine
from tui.widgets.filter_bar import FilterInput
from tui.widgets.paged_list import PagedList

pytestmark = pytest.mark.anyio

READ_ONLY = "Read-only mode. Restart without --read-only to make changes."


def an_app_that_opens_late(
    store: Store, read_first: Callable[[], tuple[str, Any]] = lambda: ("dark", None)
) -> tuple[ResumesApp, threading.Event]:
    """An app, and what its store is open after."""
    may_open = threading.Event()

    def open_session() -> UiSession:
        assert may_open.wait(60)
        return prepare(store)

    return ResumesApp(open_session, read_first=read_first), may_open


async def test_until_the_store_is_open_its_first_rows_are_shown_and_keys_wait(store: Store) -> None:
    stored(store, a_document(name="Ada Lovelace"), a_document(name="Grace Hopper"))
    first = read_first_rows(path_of(store), None, 10)
    app, may_open = an_app_that_opens_late(store, lambda: ("dark", first))
    async with app.run_test(size=LARGE) as pilot:
        await shows(app, "Resumes › ana", "Ada Lovelace", "Grace Hopper")
        stored(store, a_document(name="Alan Turing"))
        await pilot.press("j", "enter")
        assert app.session is None
        may_open.set()
        await shows(app, "Resumes › ana › Grace Hopper Resume")
        await leads(pilot, "escape", "Resumes › ana · 2 of 3", "Alan Turing")


@pytest.mark.parametrize(("keys", "ends"), [("j q", True), ("slash q", False)])
async def test_q_quits_while_the_store_is_being_opened_but_not_where_it_is_typed(
    store: Store, keys: str, ends: bool
) -> None:
    app, may_open = an_app_that_opens_late(store)
    async with app.run_test(size=SMALL) as pilot:
        await shows(app, "Opening the store")
        await pilot.press(*keys.split())
        if ends:
            await until(lambda: app.return_code == 0)
        may_open.set()
        if not ends:
            await shows(app, "/ q")


async def test_escape_neither_quits_nor_leaves_a_screen_and_q_quits(store: Store) -> None:
    async with running(store) as pilot:
        await leads(pilot, "3 escape escape", "1 account")
        assert (pilot.app.current_mode, toasts(pilot.app)) == ("accounts", [])

        await presses(pilot, "q")
        await until(lambda: pilot.app.return_code == 0)
    # Of a call that ends when there is no screen anymore.
    assert isinstance(pilot.app, ResumesApp)
    pilot.app.show_message(StatusMessage(safe_text("Late"), "information", None))


@pytest.mark.usefixtures("header")
async def test_the_first_line_says_on_every_screen_how_things_are(store: Store) -> None:
    a_file(store, an_id("1"))
    importers.register(store, an_importer(root="/srv/inbox", waiting=1))
    for size, states in (
        (SMALL, ()),
        (LARGE, ("ana  ● importer running  ", r"(! \d+ warning|✗ \d+ error)s?$")),
    ):
        async with running(store, size=size, account="ana") as pilot:
            for mode in MODES:
                await presses(pilot, mode.key)
                await shows(pilot.app, f" {mode.key} {mode.title} ")
                await until(lambda: "2 Imports (1)" in lines(pilot.app)[0])
            assert all(re.search(state, lines(pilot.app)[0]) for state in states)
            await shows(pilot.app, "1 running, 1 file waiting")


async def test_a_message_stays_until_the_next_one_or_the_next_key(store: Store) -> None:
    async with running(store) as pilot:
        await presses(pilot, "d", "x", "y")
        await tells(pilot.app, "No resume to copy.")
        await until(lambda: footer(pilot.app).strip() == "No resume to copy.")
        await presses(pilot, "j")
        await until(lambda: "q Quit" in footer(pilot.app))
        assert toasts(pilot.app) == []


async def test_the_last_line_offers_only_what_works_here(store: Store) -> None:
    async with running(store, "no resumes", "a Account") as pilot:
        assert not any(key in footer(pilot.app) for key in ("Open", "View", "Export", "Delete"))
        stored(store, a_document())
        await leads(pilot, "r", "enter Open", "d Delete")
        assert "View" not in footer(pilot.app)  # there is no preview
        await pilot.resize_terminal(*LARGE)
        await shows(pilot.app, "tab View")
        a_file(store, outcome=FileOutcome.DONE)
        await leads(pilot, "2", "✓ done")
        await until(lambda: "enter Open" in footer(pilot.app))
        assert not any(key in footer(pilot.app) for key in ("Retry", "Release"))
        await leads(pilot, "a", "enter Choose", "esc Cancel")


async def test_a_key_that_does_nothing_says_why(store: Store) -> None:
    async with running(store) as pilot:
        for keys, told in (
            ("Z", "No action is assigned to this key. Press ? for all keys."),
            ("l", "l is not available here (only in Imports, Imported file)."),
            ("a l", "Close the dialog first (esc)."),
        ):
            await presses(pilot, *keys.split())
            await tells(pilot.app, told)


CHANGED = [place for place in Place if any(one.command for one in ACTIONS if one.place is place)]
OPENED = {Place.RESUME: "resumes", Place.FILE: "imports"}
"""The pages of a row, by the list that `enter` leads there from."""


@pytest.mark.parametrize("place", CHANGED)
async def test_read_only_no_key_changes_anything(store: Store, place: Place) -> None:
    stored(store, a_document(title="First"))
    a_file(store)
    api_keys.create_key(store, "ana", name="website")
    mode = OPENED.get(place, place.name.lower())
    async with running(store, screen=mode, read_only=True, size=LARGE) as pilot:
        await until(lambda: pilot.app.screen.query_one(PagedList).current is not None)
        if place in OPENED:
            await presses(pilot, "enter")
            await until(lambda: isinstance(pilot.app.screen, RowScreen))
        await shows(pilot.app, "? Help")
        shown = footer(pilot.app)
        for action in ACTIONS:
            if action.place is place and action.command:
                assert not action.label or action.label not in shown
                await presses(pilot, keys_of(action, {})[0])
                await tells(pilot.app, READ_ONLY)
                await presses(pilot, "up")
        await leads(pilot, "question_mark", "Keyboard shortcuts", "Filter the list")
        await shows_no(pilot.app, *(one.description for one in ACTIONS if one.command))
    assert import_requests.list_requests(store) == []


async def test_a_crash_ends_with_a_code_and_without_values(store: Store) -> None:
    app = ResumesApp(lambda: UiSession(store))

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


# From the command line to a session.


def test_a_resume_is_found_in_whichever_account_holds_it_and_none_that_is_unknown(
    store: Store,
) -> None:
    an_account(store, "zoe")
    (resume_id,) = stored(store, a_document(), account="zoe")

    assert find_owner(store, resume_id, None) == "zoe"
    with pytest.raises(NotFound, match='account "ana"'):
        find_owner(store, resume_id, "ana")
    assert prepare(store, open_id=resume_id).accounts["resumes"] == "zoe"
    named = prepare(store, account="ana").accounts
    assert named == {"resumes": "ana", "imports": "ana", "keys": "ana"}
    with pytest.raises(NotFound, match="nobody"):
        prepare(store, account="nobody")
    for unknown in ("0" * 24, "\x1b]52;c;AAAA\x07"):
        with pytest.raises(NotFound, match="any account"):
            prepare(store, open_id=unknown)


# Errors.


def test_an_unknown_outcome_does_not_talk_of_idempotency_keys() -> None:
    assert "Idempotency" not in failure(OutcomeUnknown()).content.plain


# The palette: what can be done here, by name, and nothing else.


TALL = (100, 60)


async def opened(pilot: Pilot[int], key: str = "colon") -> None:
    await presses(pilot, key)
    await until(lambda: isinstance(pilot.app.screen, CommandPalette))
    await shows(pilot.app, "Keyboard shortcuts")


@pytest.mark.parametrize("key", ["colon", "ctrl+p"])
async def test_it_offers_what_works_here_and_the_screens(store: Store, key: str) -> None:
    api_keys.create_key(store, "ana", name="website")
    async with running(store, "website", screen="keys", size=TALL) as pilot:
        await opened(pilot, key)

        here = [one for one in ACTIONS if one.place is Place.KEYS]
        await shows(pilot.app, *(one.description for one in here), "Show Health  (6)")
        screen = "\n".join(lines(pilot.app))
        assert "Open as PDF" not in screen
        assert "Move down" not in screen


async def test_what_is_chosen_is_done_and_the_name_of_a_screen_goes_there(store: Store) -> None:
    async with running(store, "No keys yet.", screen="keys", size=TALL) as pilot:
        for typed, there in (
            ("accounts", "1 account"),
            ("keys", "all accounts"),
            ("create key", "Expires"),
        ):
            await opened(pilot)
            await presses(pilot, *typed)
            await shows_no(pilot.app, "Show Health")
            await leads(pilot, "enter", there)


@pytest.mark.slow
@pytest.mark.parametrize("pasted", [HOSTILE, "x" * 20_000, "[/b][@click=app.quit]", "\x1b[2J"])
async def test_what_is_pasted_into_it_does_nothing(store: Store, pasted: str) -> None:
    async with running(store, "No keys yet.", screen="keys", size=TALL) as pilot:
        await opened(pilot)
        line = pilot.app.screen.query_one(CommandInput)

        line.post_message(events.Paste(pasted))
        await presses(pilot, "end", "z", "z")

        await until(lambda: line.value.endswith("zz"))
        assert line.value.isascii()
        assert line.value.isprintable()
        assert len(line.value) <= MAX_TYPED
        await shows(pilot.app, "No matches found")
        await leads(pilot, "escape", "all accounts")


# Keys that arrive together: those after one that opens a line are for that line.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "keymap", "typed", "shown"),
    [
        ("slash", {}, "quick", 'ana · "quick"'),
        ("slash", {}, "dad", 'ana · "dad"'),
        ("ctrl+p", {}, "dad", "dad"),
        ("f8", {"everywhere.palette": "f8"}, "dad", "dad"),
        ("f8", {"resumes.filter": "f8"}, "dad", 'ana · "dad"'),
    ],
)
async def test_what_follows_a_key_that_opens_a_line_is_text_however_slow_the_list_is(
    store: Store, key: str, keymap: dict[str, str], typed: str, shown: str
) -> None:
    stored(store, a_document(title="Mine"))
    async with running(store, "Mine", settings=Settings(keymap=keymap)) as pilot:
        pilot.app.screen.query_one(PagedList).call_later(asyncio.sleep, 2 * FORM_S)
        pilot.app.simulate_key(key)
        sends(pilot.app, typed[0], typed[1:-1], typed[-1])

        await shows(pilot.app, shown)
        await shows_no(pilot.app, "Deleting")


async def test_a_held_key_moves_as_often_as_it_came(store: Store) -> None:
    stored(store, *(a_document(title=f"Number {n}") for n in range(60)))
    async with running(store, "ana · 1 of 60") as pilot:
        for _ in range(50):
            pilot.app.simulate_key("down")

        await shows(pilot.app, "ana · 51 of 60")


async def test_a_way_out_does_not_wait_for_the_keys_before_it(store: Store) -> None:
    async with running(store, "ana has no resumes yet") as pilot:
        for key in ["question_mark"] + ["0"] * 500:
            pilot.app.simulate_key(key)
        pilot.app.simulate_key("ctrl+c")

        await until(lambda: pilot.app.return_code == 0)


@pytest.mark.parametrize(
    ("sent", "slow"), [("nzoe", "list"), ("nzoe", "form"), ("jjjnzoe", "keys"), ("Nzoe", "nothing")]
)
async def test_what_is_typed_into_a_dialog_that_opens_reaches_it_however_slow_that_is(
    store: Store, sent: str, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compose = CreateAccountDialog.compose

    def compose_late(dialog: CreateAccountDialog) -> ComposeResult:
        time.sleep(2 * FORM_S)
        yield from compose(dialog)

    async def move_late(_: PagedList[Any], by: int) -> None:
        await asyncio.sleep(by * FORM_S)

    async with running(store, "1 account", screen="accounts") as pilot:
        if slow == "form":
            monkeypatch.setattr(CreateAccountDialog, "compose", compose_late)
        elif slow == "keys":
            monkeypatch.setattr(PagedList, "action_move", move_late)
        elif slow == "list":
            pilot.app.screen.query_one(PagedList).call_later(asyncio.sleep, 2 * FORM_S)
        sends(pilot.app, sent)

        await shows(pilot.app, "New key" if sent[0] == "N" else "New account", "Name          zoe")


async def test_a_filter_after_the_key_of_another_screen_gets_its_text(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = replace(BY_ID["accounts.filter"], line_wait_s=NEVER_S)
    monkeypatch.setitem(BY_ID, late.id, late)
    monkeypatch.setattr("tui.key_queue.LINE_S", NEVER_S)
    async with running(store, "1 account", screen="accounts") as pilot:
        pilot.app.simulate_key("5")
        pilot.app.simulate_key("slash")
        sends(pilot.app, "zoe")

        await shows(pilot.app, "/ zoe")


@pytest.mark.parametrize(("leaving", "shown"), [("enter", 'ana · "mine"'), ("escape", "ana · 1")])
async def test_what_follows_the_end_of_a_filter_is_not_its_text(
    store: Store, leaving: str, shown: str
) -> None:
    stored(store, a_document(title="Mine"))
    async with running(store, "ana · 1 of 1") as pilot:
        pilot.app.simulate_key("slash")
        sends(pilot.app, "mine")
        await shows(pilot.app, 'ana · "mine"')
        pilot.app.screen.query_one(FilterInput).call_later(asyncio.sleep, 2 * FORM_S)
        for key in (leaving, "T"):
            pilot.app.simulate_key(key)

        await shows(pilot.app, "Theme: ", shown)


# The line of keys.


async def test_it_names_the_keys_of_the_screen_and_then_those_of_all(store: Store) -> None:
    async with running(store, "/ Filter", size=LARGE) as pilot:
        assert footer(pilot.app).endswith("? Help  q Quit")
        for width in (60, 40, 20):
            await pilot.resize_terminal(width, 24)
            await until(lambda width=width: len(footer(pilot.app)) <= width)  # type: ignore[misc]
            await shows(pilot.app, "? Help")


async def test_a_click_does_what_the_key_does(store: Store) -> None:
    async with running(store, "? Help", size=SMALL) as pilot:
        at = lines(pilot.app)[-1].index("? Help")
        await pilot.click(KeyLine, offset=(at + 2, 0))
        await presses(pilot, "escape")
        at = lines(pilot.app)[-1].index("/ Filter")
        await pilot.click(KeyLine, offset=(at + 1, 0))
        await shows(pilot.app, "Results")


async def test_a_list_built_while_the_terminal_had_no_focus_takes_keys_later(store: Store) -> None:
    stored(store, a_document(name="Ada Lovelace"))
    app, may_open = an_app_that_opens_late(store)
    async with app.run_test(size=LARGE) as pilot:
        await shows(app, "Opening the store")
        app.post_message(events.AppBlur())
        await until(lambda: not app.app_focus)
        may_open.set()
        await shows(app, "Resumes › ana", "Ada Lovelace")
        app.post_message(events.AppFocus())
        await leads(pilot, "enter", "Resumes › ana › Ada Lovelace Resume")
