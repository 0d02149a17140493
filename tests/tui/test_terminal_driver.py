"""What a terminal may send besides keys; with a real terminal."""

import pytest
from textual.driver import Driver
from textual.drivers.headless_driver import HeadlessDriver
from textual.drivers.linux_driver import LinuxDriver

from resumes.store.engine import Store
from tests.tui.builders import a_document, stored
from tests.tui.terminals import terminal
from tui.terminal_driver import TerminalDriver, tolerant


@pytest.mark.parametrize(
    "noise", [b"\xff", b"caf\xe9 menu", b"\x1b[99999999999999999999A", b"\x1b[200~\xe9\x1b[201~"]
)
def test_what_cannot_be_read_is_dropped(store: Store, noise: bytes) -> None:
    stored(store, a_document(title="First"), a_document(title="Second"))
    with terminal(store) as screen:
        screen.reads_until(b"1 of 2")
        screen.types(noise)
        # What came in one piece with the noise is dropped with it, so the key comes by itself.
        while b"Keys that work here" not in screen.wire:
            screen.reads_for(0.2)
            screen.types(b"?")
        screen.types(b"\x03")

        assert screen.ends() == 0


@pytest.mark.parametrize(
    ("driver", "used"), [(LinuxDriver, TerminalDriver), (HeadlessDriver, HeadlessDriver)]
)
def test_only_the_terminals_driver_is_another(driver: type[Driver], used: type[Driver]) -> None:
    assert tolerant(driver) is used
