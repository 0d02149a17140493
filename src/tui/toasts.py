"""Short messages that need no answer. Never a secret: they can be read long after."""

from textual.app import App
from textual.notifications import SeverityLevel
from textual.widget import Widget

from tui.text import safe_text

SHOWN_S = 4.0


def tell(teller: Widget | App[int], message: str, severity: SeverityLevel = "information") -> None:
    """The message is on the screen for a few seconds, in place of the one before."""
    teller.app.clear_notifications()
    teller.notify(safe_text(message), severity=severity, markup=False, timeout=SHOWN_S)


def tell_once(teller: Widget | App[int], message: str) -> None:
    """As `tell`, but a message that is on the screen stays as it is."""
    shown = [one.message for one in teller.app._notifications]
    if shown != [safe_text(message)]:
        tell(teller, message)
