"""What forms are made of. Texts arrive as `Content`, and what is typed is made safe."""

from collections.abc import Sequence
from typing import Literal

from textual.containers import Horizontal
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Button, Input, Select

from tui.text import SafeText, joined, safe, safe_text
from tui.widgets.bars import Note

MAX_CHARS = 200


class SafeInput(Input):
    """A line to type in. Control characters that are pasted into it do not enter."""

    def __init__(self, *, max_length: int = MAX_CHARS, disabled: bool = False) -> None:
        super().__init__(max_length=max_length, compact=True, disabled=disabled)

    def validate_value(self, value: str) -> SafeText:
        return safe_text(value)


class TextButton(Button):
    """A button."""

    def __init__(
        self,
        label: Content,
        *,
        id: str,  # noqa: A002 - Textual's name
        variant: Literal["default", "primary", "error"] = "default",
        is_default: bool = False,
    ) -> None:
        """Create a button; `is_default`: enter presses it from the other fields."""
        if is_default:
            label = joined([label, safe("↵")], by=" ")
        super().__init__(label, id=id, variant=variant, compact=True)
        self.active_effect_duration = 0  # during it, enter would be lost


class Choices(Select[str]):
    """One of several texts. Enter opens the list; what is typed there finds one."""

    def __init__(self, texts: Sequence[str], preset: str) -> None:
        # Option prompts take markup in a str and none in Content.
        options = [(safe(text), text) for text in texts]
        super().__init__(options, value=preset, allow_blank=False, compact=True)

    @property
    def chosen(self) -> str:
        """The text that is chosen."""
        return str(self.value)


class LabelledField(Horizontal):
    """A widget with its label before it, on one line."""

    DEFAULT_CSS = """
    LabelledField { height: 1; }
    LabelledField Note { width: 14; }
    LabelledField Input, LabelledField Select { width: 1fr; margin: 0 1; }
    """

    def __init__(self, label: str, widget: Widget) -> None:
        super().__init__(Note(safe(label)), widget)
