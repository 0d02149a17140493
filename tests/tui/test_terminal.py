"""The real thing in a real terminal: what goes over the wire, how it stops and how it ends."""

import os
import signal

import pytest

from resumes.store.engine import Store
from tests.tui.builders import a_document, a_hostile_document, an_account, stored
from tests.tui.driving import LIMIT_S
from tests.tui.terminals import terminal

CLIPBOARD = b"\x1b]52"
LEAVES_SCREEN = b"\x1b[?1049l"


@pytest.fixture
def hostile_store(store: Store) -> Store:
    stored(store, a_hostile_document())
    return store


def test_a_hostile_resume_puts_no_escape_sequence_of_its_own_on_the_wire(
    hostile_store: Store,
) -> None:
    with terminal(hostile_store) as screen:
        screen.reads_until(b"a[/b]c")
        screen.types(b"\r")
        screen.reads_until(b"created")
        screen.types(b"\t")
        screen.reads_until(b"u001b")
        before_end = len(screen.wire)
        screen.types(b"q")

        assert screen.ends() == 0
        assert CLIPBOARD not in screen.wire
        assert b"\x9b2J" not in screen.wire
        assert LEAVES_SCREEN not in screen.wire[:before_end]
        assert "\u202e".encode() not in screen.wire


def test_a_crash_ends_with_a_code_and_gives_the_terminal_back(hostile_store: Store) -> None:
    with terminal(hostile_store, "crash") as screen:
        assert screen.ends() == 1
        assert LEAVES_SCREEN in screen.wire
        assert b"RuntimeError" in screen.wire
        assert CLIPBOARD not in screen.wire


@pytest.mark.slow
def test_while_it_is_stopped_others_write(hostile_store: Store) -> None:
    with terminal(hostile_store) as screen:
        screen.reads_until(b"a[/b]c")
        screen.types(b"\x1a")
        screen.stops()

        an_account(hostile_store, "while-stopped")

        before = len(screen.wire)
        screen.program.send_signal(signal.SIGCONT)
        screen.reads_until(b"a[/b]c", after=before)
        screen.types(b"q")
        assert screen.ends() == 0


@pytest.mark.parametrize("ending", [b"\x03", b"q"])
def test_keys_that_end_it_give_the_terminal_back(store: Store, ending: bytes) -> None:
    with terminal(store) as screen:
        screen.reads_until(b"holds no resumes yet")
        screen.types(ending)

        assert screen.ends() == 0
        assert LEAVES_SCREEN in screen.wire


@pytest.mark.slow
def test_ctrl_c_ends_it_before_the_store_is_open_too(store: Store) -> None:
    with terminal(store) as screen:
        screen.reads_until(b"Opening the store")
        screen.types(b"\x03")

        assert screen.ends() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_gives_the_terminal_back(store: Store, number: signal.Signals) -> None:
    with terminal(store) as screen:
        screen.reads_until(b"holds no resumes yet")
        screen.program.send_signal(number)

        assert screen.ends() == 128 + number
        assert LEAVES_SCREEN in screen.wire


@pytest.mark.slow
@pytest.mark.parametrize("has_signals", [True, False])
def test_a_terminal_that_is_closed_ends_it(store: Store, has_signals: bool) -> None:
    with terminal(store, has_signals=has_signals) as screen:
        screen.reads_until(b"holds no resumes yet")
        os.dup2(os.open(os.devnull, os.O_RDWR), screen.side)

        screen.program.wait(LIMIT_S)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dumb", ""])
def test_a_terminal_that_cannot_be_drawn_on_is_told_in_one_line(store: Store, kind: str) -> None:
    with terminal(store, kind=kind) as screen:
        assert screen.ends() == 1
        assert b"cannot draw on a terminal" in screen.wire
        assert b"\x1b" not in screen.wire


@pytest.mark.slow
def test_a_deletion_that_is_cut_short_by_the_end_is_told(store: Store) -> None:
    stored(store, a_document(title="First"))
    with terminal(store) as screen:
        screen.reads_until(b"First")
        screen.types(b"d")
        screen.reads_until(b"will be deleted")
        screen.types(b"q")

        assert screen.ends() == 0
        assert b'1 deletion not carried out: "First" stays.' in screen.wire
