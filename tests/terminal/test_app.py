"""The app: its screens, the keys that work everywhere, the palette, messages, and its end."""

import asyncio
import contextlib
import gc
import re
import threading

import pytest
from textual import events
from textual.command import CommandInput, CommandPalette
from textual.pilot import Pilot

from resumes.errors import ErrorCode, NotFound, OutcomeUnknown
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
    SMALL,
    SOON_S,
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
from tui.app import MAX_TYPED, ResumesApp, is_offered
from tui.key_queue import LIMIT_S, KeyOrder
from tui.keys import ACTIONS, MODES, Place, keys_of
from tui.screens.base import RowScreen
from tui.session import UiSession, find_owner, prepare
from tui.store_calls import REMEDIES, failure
from tui.text import tell, toast
from tui.widgets.bars import KeyLine
from tui.widgets.paged_list import PagedList

pytestmark = pytest.mark.anyio

READ_ONLY = "Read-only mode. Restart without --read-only to make changes."


async def test_until_the_store_is_open_its_first_rows_are_shown_and_keys_wait(store: Store) -> None:
    stored(store, a_document(name="Ada Lovelace"), a_document(name="Grace Hopper"))
    first, may_open = read_first_rows(path_of(store), None, 10), threading.Event()

    def open_session() -> UiSession:
        assert may_open.wait(60)
        return prepare(store)

    app = ResumesApp(open_session, read_first=lambda: ("dark", first))
    async with app.run_test(size=LARGE) as pilot:
        await shows(app, "Resumes › ana", "Ada Lovelace", "Grace Hopper")
        stored(store, a_document(name="Alan Turing"))
        await pilot.press("j", "enter")
        assert app.session is None
        may_open.set()
        await shows(app, "Resumes › ana › Grace Hopper Resume")
        await leads(pilot, "escape", "Resumes › ana · 2 of 3", "Alan Turing")


async def has_ended(app: ResumesApp) -> None:
    await until(lambda: app.return_code == 0)


async def test_q_quits_while_the_store_is_being_opened_but_not_where_it_is_typed(
    store: Store,
) -> None:
    for keys, ends in (("j q", True), ("slash q", False)):
        may_open = threading.Event()

        def open_session(may_open: threading.Event = may_open) -> UiSession:
            assert may_open.wait(60)
            return prepare(store)

        app = ResumesApp(open_session)
        async with app.run_test(size=SMALL) as pilot:
            await shows(app, "Opening the store")
            await pilot.press(*keys.split())
            if ends:
                await has_ended(app)
            may_open.set()
            if not ends:
                await shows(app, "/ q")


async def test_a_list_built_while_the_terminal_had_no_focus_takes_keys_later(store: Store) -> None:
    stored(store, a_document(name="Ada Lovelace"))
    may_open = threading.Event()

    def open_session() -> UiSession:
        assert may_open.wait(60)
        return prepare(store)

    app = ResumesApp(open_session)
    async with app.run_test(size=LARGE) as pilot:
        await shows(app, "Opening the store")
        app.post_message(events.AppBlur())
        await until(lambda: not app.app_focus)
        may_open.set()
        await shows(app, "Resumes › ana", "Ada Lovelace")
        app.post_message(events.AppFocus())
        await leads(pilot, "enter", "Resumes › ana › Ada Lovelace Resume")


async def test_escape_neither_quits_nor_leaves_a_screen_and_q_quits(store: Store) -> None:
    async with running(store) as pilot:
        await leads(pilot, "3 escape escape", "1 account")
        assert (pilot.app.current_mode, toasts(pilot.app)) == ("accounts", [])

        await presses(pilot, "q")
        await until(lambda: pilot.app.return_code == 0)


@pytest.mark.usefixtures("header")
async def test_the_first_line_says_on_every_screen_how_things_are(store: Store) -> None:
    a_file(store, an_id("1"))
    importers.announce(store, an_importer(root="/srv/inbox", waiting=1))
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


async def test_a_message_stays_until_the_next_key(store: Store) -> None:
    async with running(store) as pilot:
        await presses(pilot, "y")
        await until(lambda: footer(pilot.app).strip() == "No resume to copy.")
        await presses(pilot, "j")
        await until(lambda: "q Quit" in footer(pilot.app))
        assert toasts(pilot.app) == []


async def test_after_a_while_messages_are_gone_but_for_errors(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in "tui.text", "tui.widgets.bars":
        monkeypatch.setattr(f"{user}.SHOWN_S", SOON_S)
    async with running(store) as pilot:
        tell(pilot.app, "Done.")
        await tells(pilot.app, "Done.")
        await tells(pilot.app)

        tell(pilot.app, "Failed.", "error")
        await tells(pilot.app, "Failed.")
        toast(pilot.app, "Done elsewhere.")
        await pilot.pause()
        await tells(pilot.app, "Failed.")


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


@pytest.mark.parametrize("size", [SMALL, (120, 40), LARGE], ids=str)
async def test_whose_resume_it_is_comes_first_in_every_width(
    store: Store, size: tuple[int, int]
) -> None:
    stored(store, a_document(name="Ada Lovelace", title="Analyst"))
    async with running(store, "Ada Lovelace", "Analyst", size=size) as pilot:
        row = next(line for line in lines(pilot.app) if "Ada Lovelace" in line)
        assert row.strip("│ ").startswith("Ada Lovelace")


async def test_a_key_that_does_nothing_says_why(store: Store) -> None:
    async with running(store) as pilot:
        await presses(pilot, "Z")
        await until(
            lambda: (
                toasts(pilot.app) == ["No action is assigned to this key. Press ? for all keys."]
            )
        )

        await presses(pilot, "l")
        await until(
            lambda: (
                toasts(pilot.app) == ["l is not available here (only in Imports, Imported file)."]
            )
        )

        await presses(pilot, "a", "l")
        await until(lambda: toasts(pilot.app) == ["Close the dialog first (esc)."])


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
    assert import_requests.list_requests(store) == []


async def test_the_question_mark_shows_all_keys(store: Store) -> None:
    async with running(store) as pilot:
        await leads(pilot, "question_mark", "Keyboard shortcuts", "Filter the list")

        await presses(pilot, "escape")
        await shows_no(pilot.app, "Keyboard shortcuts")


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


async def test_digits_lead_to_the_screens(store: Store) -> None:
    async with running(store, "No keys yet.", screen="keys") as pilot:
        for key, text in (
            ("1", "ana · no resumes"),
            ("2", "failed first"),
            ("3", "1 account"),
            ("4", "3 plans"),
            ("5", "0 keys"),
            ("6", "Health · "),
        ):
            await presses(pilot, key)
            await shows(
                pilot.app, text,
                "1 Resumes", "2 Imports", "3 Accounts", "4 Plans", "5 Keys", "6 Health",
            )  # fmt: skip


async def test_a_list_is_shown_over_whatever_was_open_there(store: Store) -> None:
    stored(store, a_document(title="Mine"))
    async with running(store, "Mine") as pilot:
        await leads(pilot, "enter", "ana › Mine")
        await leads(pilot, "3", "1 account")
        await leads(pilot, "enter", "ana › Resumes · 1 of 1")


async def test_a_long_message_after_a_short_one_is_seen_to_its_end(store: Store) -> None:
    async with running(store) as pilot:
        tell(pilot.app, "Generating the PDF…")
        await shows(pilot.app, "Generating the PDF…")
        tell(pilot.app, f"{'No graphical display. ' * 8}The end.")
        await shows(pilot.app, "The end.")


async def test_a_message_takes_the_place_of_the_one_before(store: Store) -> None:
    async with running(store, "ana · no resumes") as pilot:
        for key in ("d", "x", "y"):
            await presses(pilot, key)
        await tells(pilot.app, "No resume to copy.")


# From the command line to a session.


def test_an_unknown_account_is_refused(store: Store) -> None:
    with pytest.raises(NotFound, match="nobody"):
        prepare(store, account="nobody")


@pytest.mark.parametrize("resume_id", ["0" * 24, "\x1b]52;c;AAAA\x07"])
def test_and_an_unknown_resume(store: Store, resume_id: str) -> None:
    with pytest.raises(NotFound, match="any account"):
        prepare(store, open_id=resume_id)


def test_a_resume_is_found_in_whichever_account_holds_it(store: Store) -> None:
    an_account(store, "zoe")
    (resume_id,) = stored(store, a_document(), account="zoe")

    assert find_owner(store, resume_id, None) == "zoe"
    with pytest.raises(NotFound, match='account "ana"'):
        find_owner(store, resume_id, "ana")
    assert prepare(store, open_id=resume_id).accounts["resumes"] == "zoe"


def test_an_account_is_that_of_each_screen_that_shows_one(store: Store) -> None:
    session = prepare(store, account="ana", read_only=True)

    assert session.accounts == {"resumes": "ana", "imports": "ana", "keys": "ana"}
    assert session.read_only


# Errors.


def test_every_error_code_has_a_notice() -> None:
    assert set(REMEDIES) == set(ErrorCode)


@pytest.mark.parametrize("code", ErrorCode)
def test_a_notice_says_what_to_do(code: ErrorCode) -> None:
    assert REMEDIES[code].endswith(".")


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


async def test_the_name_of_a_screen_goes_there(store: Store) -> None:
    async with running(store, "No keys yet.", screen="keys", size=TALL) as pilot:
        await opened(pilot)
        await presses(pilot, *"accounts")
        await until(lambda: "Show Health" not in "\n".join(lines(pilot.app)))
        await leads(pilot, "enter", "1 account")

        await opened(pilot)
        await presses(pilot, *"keys")
        await until(lambda: "Show Health" not in "\n".join(lines(pilot.app)))
        await leads(pilot, "enter", "all accounts")


async def test_what_is_chosen_is_done(store: Store) -> None:
    async with running(store, "No keys yet.", screen="keys", size=TALL) as pilot:
        await opened(pilot)
        await presses(pilot, *"create key")
        await until(lambda: "Keyboard shortcuts" not in "\n".join(lines(pilot.app)))
        await leads(pilot, "enter", "Expires")


async def test_read_only_it_offers_nothing_that_changes_something(store: Store) -> None:
    api_keys.create_key(store, "ana", name="website")
    async with running(store, "website", screen="keys", size=TALL, read_only=True) as pilot:
        await opened(pilot)

        screen = "\n".join(lines(pilot.app))
        for action in ACTIONS:
            if action.command:
                assert action.description not in screen
        await presses(pilot, *"create key")
        await shows(pilot.app, "No matches found")
        await leads(pilot, "enter escape", "all accounts")


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


def test_moving_about_is_not_offered() -> None:
    offered = {action.id for action in ACTIONS if is_offered(action)}

    assert {"list.open", "keys.create", "everywhere.help"} <= offered
    assert offered.isdisjoint({"list.down", "text.up", "everywhere.palette", "everywhere.back"})


# Keys that arrive together act one after the other.


@pytest.mark.parametrize("keys", ["/love", "/dad", "/quick"])
async def test_what_follows_a_slash_is_the_filter(store: Store, keys: str) -> None:
    stored(store, a_document(title="Mine"))
    async with running(store, "Mine") as pilot:
        for key in keys:
            pilot.app.simulate_key({"/": "slash"}.get(key, key))

        await shows(pilot.app, f'ana · "{keys[1:]}"')
        await shows_no(pilot.app, "Deleting in")


async def test_what_follows_a_slash_is_the_filter_even_if_the_list_is_slow(store: Store) -> None:
    stored(store, a_document(title="Mine"))
    async with running(store, "Mine") as pilot:
        pilot.app.screen.query_one(PagedList).call_later(asyncio.sleep, 2 * LIMIT_S)
        sends(pilot.app, "/dad")

        await shows(pilot.app, 'ana · "dad"')
        await shows_no(pilot.app, "Deleting in")


@pytest.mark.parametrize(
    ("key", "keymap", "typed"),
    [
        ("ctrl+p", {}, "dad"),
        ("f8", {"everywhere.palette": "f8"}, "dad"),
        ("f8", {"resumes.filter": "f8"}, 'ana · "dad"'),
    ],
)
async def test_so_is_what_follows_any_other_key_that_opens_a_line(
    store: Store, key: str, keymap: dict[str, str], typed: str
) -> None:
    stored(store, a_document(title="Mine"))
    async with running(store, "Mine", settings=Settings(keymap=keymap)) as pilot:
        pilot.app.screen.query_one(PagedList).call_later(asyncio.sleep, 2 * LIMIT_S)
        pilot.app.simulate_key(key)
        sends(pilot.app, "dad")

        await shows(pilot.app, typed)
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


async def test_what_is_typed_into_a_dialog_that_opens_reaches_it(store: Store) -> None:
    async with running(store, "1 account", screen="accounts") as pilot:
        sends(pilot.app, "nzoe")
        await shows(pilot.app, "Name          zoe")


async def test_keys_beyond_a_thousand_are_dropped(store: Store) -> None:
    handled: list[events.Key] = []
    is_slow = True

    async def handle(key: events.Key) -> None:
        handled.append(key)
        if not is_slow:
            order.end(key)

    async with running(store, "ana has no resumes yet") as pilot:
        order = KeyOrder(pilot.app, handle)
        order.start({})
        keys = [events.Key("down", None) for _ in range(1_100)]
        for key in keys:
            await order.take(key)
        is_slow = False
        order.end(keys[0])
        await until(lambda: len(handled) > 1_000)
        await pilot.pause()

        assert handled == keys[:1_001]


# The line of keys.


async def test_it_names_the_keys_of_the_screen_and_then_those_of_all(store: Store) -> None:
    async with running(store, "/ Filter", size=LARGE) as pilot:
        assert lines(pilot.app)[-1].endswith("? Help  q Quit")


@pytest.mark.parametrize("width", [20, 40, 60])
async def test_in_a_narrow_terminal_help_and_quit_stay(store: Store, width: int) -> None:
    async with running(store, "? Help", size=(width, 24)) as pilot:
        assert len(lines(pilot.app)[-1]) <= width


async def test_a_click_does_what_the_key_does(store: Store) -> None:
    async with running(store, "? Help", size=SMALL) as pilot:
        at = lines(pilot.app)[-1].index("? Help")
        await pilot.click(KeyLine, offset=(at + 2, 0))
        await presses(pilot, "escape")
        at = lines(pilot.app)[-1].index("/ Filter")
        await pilot.click(KeyLine, offset=(at + 1, 0))
        await shows(pilot.app, "Results")


async def test_changing_keys_leaves_nothing_behind(store: Store) -> None:
    def count() -> int:
        gc.collect()
        return len(gc.get_objects())

    async def turn(times: int) -> None:
        for _ in range(times):
            await presses(pilot, "slash", "escape")
            await pilot.pause()

    async with running(store, "/ Filter") as pilot:
        await turn(5)
        before = count()
        await turn(10)
        assert count() - before < 1_000
