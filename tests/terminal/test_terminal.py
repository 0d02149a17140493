"""The real thing in a real terminal: what goes over the wire, how it stops and how it ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from sqlalchemy import Connection
from sqlmodel import Session

from resumes.errors import InvalidArgument, StoreUnavailable
from resumes.store import plans
from resumes.store.store import Store
from tests.support.programs import command
from tests.support.stores import open_home
from tests.support.terminal.builders import (
    a_document,
    a_hostile_document,
    an_account,
    stored,
    stored_many,
)
from tests.support.terminal.console import console, terminal
from tests.support.terminal.driving import LIMIT_S, leads, running, until
from tui.run import finish_writes, run
from tui.session import UiSession

CLIPBOARD = b"\x1b]52"
LEAVES_SCREEN = b"\x1b[?1049l"


@pytest.fixture
def hostile_store(store: Store) -> Store:
    stored(store, a_hostile_document())
    return store


@pytest.mark.parametrize("ending", [b"q", pytest.param(b"\x03", marks=pytest.mark.slow)])
def test_keys_that_end_it_give_the_terminal_back(hostile_store: Store, ending: bytes) -> None:
    with terminal(hostile_store) as screen:
        screen.reads_until(b"a[/b]c")
        before_end = len(screen.wire)
        screen.types(ending)

        assert screen.ends() == 0
        assert LEAVES_SCREEN in screen.wire[before_end:]
        assert LEAVES_SCREEN not in screen.wire[:before_end]
        assert CLIPBOARD not in screen.wire


@pytest.mark.slow
def test_ctrl_c_ends_it_before_the_store_is_open_too(store: Store) -> None:
    with terminal(store) as screen:
        screen.reads_until(b"Opening the store")
        screen.types(b"\x03")

        assert screen.ends() == 0


@pytest.mark.timing
def test_a_read_that_hangs_keeps_it_a_few_seconds_at_most(store: Store) -> None:
    with terminal(store, "hang") as screen:
        screen.reads_until(b"loading")
        began_s = time.monotonic()
        screen.types(b"q")
        assert screen.ends() == 0
        assert time.monotonic() - began_s < 5
        _, _, after = screen.wire.partition(LEAVES_SCREEN)
        assert b"The read hangs" in after


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_gives_the_terminal_back(store: Store, number: signal.Signals) -> None:
    with terminal(store) as screen:
        screen.reads_until(b"has no resumes yet")
        screen.program.send_signal(number)

        assert screen.ends() == 128 + number
        assert LEAVES_SCREEN in screen.wire


@pytest.mark.slow
@pytest.mark.parametrize("has_signals", [True, False])
def test_a_terminal_that_is_closed_ends_it(store: Store, has_signals: bool) -> None:
    with terminal(store, has_signals=has_signals) as screen:
        screen.reads_until(b"has no resumes yet")
        os.dup2(os.open(os.devnull, os.O_RDWR), screen.side)

        screen.program.wait(LIMIT_S)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dumb", ""])
def test_a_terminal_that_cannot_be_drawn_on_is_told_in_one_line(store: Store, kind: str) -> None:
    with terminal(store, kind=kind) as screen:
        assert screen.ends() == 1
        assert b"cannot run with TERM" in screen.wire
        assert b"\x1b" not in screen.wire


@pytest.mark.slow
def test_a_deletion_that_is_cut_short_by_the_end_is_told(store: Store) -> None:
    stored(store, a_document(title="First"))
    with terminal(store) as screen:
        screen.reads_until(b"First")
        screen.types(b"d")
        screen.reads_until(b"Press u to undo")
        screen.types(b"q")

        assert screen.ends() == 0
        assert b'1 pending deletion canceled: "First"' in screen.wire


def test_a_person_is_erased_once_the_user_has_seen_what_and_agreed(
    store: Store, tmp_path: Path
) -> None:
    for name in ("Ada", "Bo"):
        header = {"name": name, "email": f"{name}@example.org"}
        stored(store, a_document(title=f"Of {name}") | {"header": header})
    with console(command(tmp_path, "tui")) as screen:
        screen.shows("Of Bo", "1 of 2")
        screen.types(b"F")
        screen.shows("Erase all of this for good?")
        screen.types(b"n\n")
        screen.shows("Canceled: nothing was done.", "go back")
        assert b"Internal error" not in screen.wire
        screen.types(b" ")
        screen.shows("1 of 2")
        screen.types(b"F")
        screen.shows("Erase all of this for good?")
        screen.types(b"y\n")
        screen.shows("Erased 1 resume")
        screen.types(b" ")
        screen.shows("Of Bo", "1 of 1")


# What a terminal may send besides keys.


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise", [b"\xff", b"caf\xe9 menu", b"\x1b[99999999999999999999A", b"\x1b[200~\xe9\x1b[201~"]
)
def test_what_cannot_be_read_is_dropped(store: Store, noise: bytes) -> None:
    stored(store, a_document(title="First"), a_document(title="Second"))
    with terminal(store) as screen:
        screen.reads_until(b"1 of 2")
        screen.types(noise)
        # What came in one piece with the noise is dropped with it, so the key comes by itself.
        while b"Keyboard shortcuts" not in screen.wire:
            screen.reads_for(0.2)
            screen.types(b"?")
        screen.types(b"\x03")

        assert screen.ends() == 0


# What is refused before anything is drawn.


def never() -> UiSession:
    raise AssertionError("nothing is opened")


def test_without_a_terminal_or_with_an_unknown_screen_it_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(InvalidArgument, match="needs a terminal"):
        run(never)
    with pytest.raises(InvalidArgument, match="resumes, imports, accounts, plans, keys, health"):
        run(never, screen="bills")
    assert capsys.readouterr() == ("", "")


def test_what_comes_before_the_first_frame_does_not_need_the_store() -> None:
    program = "import sys, tui.run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    heavy = {"resumes.store", "resumes.settings", "sqlalchemy", "sqlmodel", "pydantic"}
    assert heavy.isdisjoint(done.stdout.decode().split())


# Stopping.


@pytest.mark.anyio
@pytest.mark.parametrize("ends_first", [False, True])
async def test_a_write_that_takes_long_is_not_stopped_in_the_middle(
    store: Store, ends_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.app.WAIT_S", 0.1)
    begun, go = threading.Event(), threading.Event()

    def slow(_: Connection) -> None:
        begun.set()
        assert go.wait(LIMIT_S)

    writer = threading.Thread(target=store.write, args=(slow,))
    async with running(store, "no resumes") as pilot:
        writer.start()
        await until(begun.is_set)
        await leads(pilot, "ctrl+z", "A write is in progress.")
        if not ends_first:
            go.set()
            writer.join(LIMIT_S)
    threading.Timer(0.5, go.set).start()  # once nobody waits for the pause any more


# Ending.


def test_a_call_of_several_writes_is_not_cut_off_between_two(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go, committed = threading.Event(), threading.Event(), threading.Event()
    written: list[str] = []

    def first(_: Session) -> None:
        begun.set()
        assert go.wait(LIMIT_S)

    def call() -> None:
        store.write(first)
        store.write(lambda _: written.append("second"))
        store.write(lambda _: written.append("third"))

    caller = threading.Thread(target=call)
    # Not by time: however slow this machine is, the next write comes before the wait is over.
    monkeypatch.setattr(committed, "wait", lambda _: caller.join(LIMIT_S))
    store.write_queue.observe = lambda *_: committed.set()
    caller.start()
    assert begun.wait(LIMIT_S)
    ending = threading.Thread(target=finish_writes, args=(store.write_queue, committed))
    ending.start()
    go.set()
    ending.join(LIMIT_S)

    assert written == ["second", "third"]
    with pytest.raises(StoreUnavailable, match="closed"):
        store.write(first)


# In the middle of a write.


@pytest.mark.timing
def test_s9_a_terminal_ui_that_is_stopped_while_it_writes_keeps_nobody_waiting(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with open_home(home) as store:
        plans.set_plan_limits(store, plans.PlanChange("business", None))
        an_account(store, "ana")
        stored_many(store, 3_000)
        with console(command(home, "tui")) as screen:
            # It writes the index for all of them, slice by slice.
            screen.shows("Number 0")
            screen.types(b"\x1a")
            screen.stops()

            begin_s = time.monotonic()
            an_account(store, "while-stopped")
            assert time.monotonic() - begin_s < 5

            screen.program.send_signal(signal.SIGCONT)
            screen.types(b"3")
            screen.shows("while-stopped")
            screen.types(b"q")
            assert screen.ends() == 0
