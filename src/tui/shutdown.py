"""How the terminal UI ends when nobody pressed q: by a signal, or by a crash."""

import asyncio
import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Final

from rich.text import Text
from textual.app import App

from tui.text import safe_lines

END_SIGNALS: Final = (signal.SIGHUP, signal.SIGTERM)

END_TIMEOUT_S: Final = 3.0
"""A closed terminal can block the end, because nobody reads what is drawn."""


def end_soon(code: int) -> None:
    """End the process within a few seconds, whatever it waits for."""
    last_resort = threading.Timer(END_TIMEOUT_S, os._exit, [code])
    last_resort.daemon = True
    last_resort.start()


@contextlib.contextmanager
def ended_by_signals(app: App[int]) -> Iterator[None]:
    """Restore the terminal during the block before a signal ends the process.

    The process ends within a few seconds in any case. Its exit code says which signal it was.
    """

    def end(number: int, _: FrameType | None) -> None:
        code = 128 + number
        end_soon(code)
        try:
            asyncio.get_running_loop().call_soon_threadsafe(app.exit, None, code)
        except RuntimeError:  # before or after the app
            sys.exit(code)

    # Handlers of the system, not of the event loop: that may be the one who waits.
    before = {number: signal.signal(number, end) for number in END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def crash_report() -> Text:
    """Return the report of the exception being handled.

    Textual's own report prints local variables, keys and resumes among them.
    """
    lines = "\n".join(safe_lines(traceback.format_exc()))
    return Text(f"The terminal UI crashed.\n{lines}")
