"""The terminal's clipboard: a request (OSC 52) that terminals grant or ignore, and never answer."""

import base64
import os
from collections.abc import Mapping
from typing import Any, Final

from textual.screen import Screen

from resumes.text import is_harmless
from tui.text import show_message

MAX_BYTES: Final = 70_000
"""Terminals throw away longer requests, and say nothing."""


def send(teller: Screen[Any], text: str, *, what: str, instead: str = "") -> None:
    """Send the text to the clipboard and say how, or why it was not sent.

    `what` is what the text is called, `instead` what to do where it is too long. What acts when
    it is pasted is not sent: a control character would be typed into a shell, and an invisible
    one makes another name look the same.
    """
    if not is_harmless(text):
        show_message(teller, f"Not copied: the {what} contains control characters.", "warning")
    elif len(text.encode()) > MAX_BYTES:
        end = f"; {instead}." if instead else "."
        show_message(
            teller, f"Not copied: the {what} is too long for the clipboard{end}", "warning"
        )
    else:
        sequence, where = request(text)
        # Unlike Textual's own copying this keeps no copy, which ctrl+v would type somewhere else.
        driver = teller.app._driver  # Textual gives no other way to write to the terminal
        if driver is not None:
            driver.write(sequence)
        show_message(teller, f"Sent the {what} to {where}.")


def request(text: str, environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """Return what to write to the terminal, the text in it as base64 only, and where that goes.

    What stands between here and the terminal is seen in the environment.
    """
    encoded = base64.b64encode(text.encode()).decode("ascii")
    plain = f"\x1b]52;c;{encoded}\a"
    if environment.get("TMUX"):
        # Which of the two tmux lets through depends on its options; both set the same text.
        doubled = plain.replace("\x1b", "\x1b\x1b")
        where = "the clipboard through tmux (needs `set-clipboard on` or `allow-passthrough on`)"
        return f"\x1bPtmux;{doubled}\x1b\\{plain}", where
    if environment.get("STY"):
        return f"\x1bP{plain}\x1b\\", "the clipboard through screen (OSC 52)"
    return plain, "the clipboard (OSC 52)"
