"""A line of a form: what is asked, and where it is answered."""

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget

from tui.text import safe
from tui.widgets.lines import Note


class LabelledField(Horizontal):
    """A widget with its label before it, on one line."""

    DEFAULT_CSS = """
    LabelledField { height: 1; }
    LabelledField Note { width: 14; }
    LabelledField Input, LabelledField Select { width: 1fr; margin: 0 1; }
    """

    def __init__(self, label: str, widget: Widget) -> None:
        super().__init__()
        self._label = label
        self._widget = widget

    def compose(self) -> ComposeResult:
        yield Note(safe(self._label))
        yield self._widget
