"""How the terminal UI draws for a browser: as packets, through the pipe to the server."""

import contextlib
import os
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from textual import events, messages
from textual.drivers.web_driver import WebDriver

from tui import WEB_DRIVER
from tui.text import aligned

FOCUS: Final = {"focus": events.AppFocus, "blur": events.AppBlur}


class BrowserDriver(WebDriver):
    """Textual's driver for the web; the terminal UI also ends when nobody is at the other end."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Parts of a file are sent from the thread that reads: packets must not get into each other.
        self._write = partial(_write_whole, self.fileno, threading.Lock())

    def write(self, data: str) -> None:
        super().write(aligned(data))

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """Do what the page asks for besides typing."""
        if packet_type in FOCUS:
            # The page has the focus before this process runs. So it is posted as Textual posts the
            # blur of its start, to come after it.
            self._app.call_later(self._app.post_message, FOCUS[packet_type]())
        else:
            super().on_meta(packet_type, payload)

    def run_input_thread(self) -> None:
        """Read until told to stop; end the terminal UI if the pipe ended."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            self._app.post_message(messages.ExitApp())


def _write_whole(descriptor: int, turn: threading.Lock, packet: bytes) -> int:
    """Write all of the bytes, or none if nobody reads them."""
    left = packet
    with turn, contextlib.suppress(BrokenPipeError):
        while left:
            left = left[os.write(descriptor, left) :]
    return len(packet)


_VARIABLE: Final = "TEXTUAL_DRIVER"


def is_behind_a_page(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process draws for a browser, so that it needs no terminal."""
    return environment.get(_VARIABLE) == WEB_DRIVER


def environment_of(
    width: int, height: int, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the environment of a process that draws for a page of this size in cells."""
    return {
        **environment,
        _VARIABLE: WEB_DRIVER,
        "TEXTUAL_COLOR_SYSTEM": "truecolor",
        "COLUMNS": str(width),
        "ROWS": str(height),
    }
