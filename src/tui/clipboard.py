"""Copying to the clipboard with OSC 52, a request that a terminal may silently ignore."""

import base64
import os
from collections.abc import Mapping
from typing import Any, Final

from textual.screen import Screen

from resumes.text import is_harmless
from tui.text import show_message

MAX_BYTES: Final = 70_000
"""The longest text to send: terminals silently drop longer requests."""


def send(screen: Screen[Any], text: str, *, what: str, instead: str = "") -> None:
    """Send the text to the clipboard, and show where it was sent or why it was not sent.

    `what` names the text in messages; `instead` is advice in case the text is too long. Text with
    control or invisible characters is not sent: pasted into a shell, a control character acts as a
    key, and an invisible character can make two different names look the same.
    """
    if not is_harmless(text):
        show_message(screen, f"Not copied: the {what} contains control characters.", "warning")
    elif len(text.encode()) > MAX_BYTES:
        end = f"; {instead}." if instead else "."
        show_message(
            screen, f"Not copied: the {what} is too long for the clipboard{end}", "warning"
        )
    else:
        sequence, where = request(text)
        # Textual's own method also keeps a copy, which ctrl+v would paste into any input.
        driver = screen.app._driver  # Textual has no public way to write to the terminal
        if driver is not None:
            driver.write(sequence)
        show_message(screen, f"Sent the {what} to {where}.")


def request(text: str, environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """Return an escape sequence that contains the text as base64, and a name for its destination.

    tmux and screen, which set variables in `environment`, need different sequences.
    """
    encoded = base64.b64encode(text.encode()).decode("ascii")
    plain = f"\x1b]52;c;{encoded}\a"
    if environment.get("TMUX"):
        # Depending on its options, tmux forwards one of the two; both set the same text.
        doubled = plain.replace("\x1b", "\x1b\x1b")
        where = "the clipboard through tmux (needs `set-clipboard on` or `allow-passthrough on`)"
        return f"\x1bPtmux;{doubled}\x1b\\{plain}", where
    if environment.get("STY"):
        return f"\x1bP{plain}\x1b\\", "the clipboard through screen (OSC 52)"
    return plain, "the clipboard (OSC 52)"
