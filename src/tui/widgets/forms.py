"""Form widgets, whose labels are `Content` and whose input is made safe."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from textual.containers import Horizontal
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Button, Input, Select

from resumes.errors import InvalidArgument
from tui.text import SafeText, joined, safe, safe_text
from tui.widgets.bars import Note

MAX_CHARS = 200


class SafeInput(Input):
    """An input line that drops pasted control characters."""

    def __init__(
        self,
        value: str = "",
        *,
        parse: Callable[[str], Any] = str,
        max_length: int = MAX_CHARS,
        hint: str = "",
    ) -> None:
        """Create a line. `hint` is shown while it is empty; `parse` may raise InvalidArgument."""
        super().__init__(value, placeholder=safe_text(hint), max_length=max_length, compact=True)
        self._parse = parse

    def validate_value(self, value: str) -> SafeText:
        return safe_text(value)

    @property
    def parsed(self) -> Any:
        """The result of parsing the text without surrounding spaces. Raises InvalidArgument."""
        return self._parse(self.value.strip())

    def find_problem(self) -> str:
        """Return why the text is invalid, or an empty string if it is valid."""
        try:
            _ = self.parsed
        except InvalidArgument as error:
            return error.message
        return ""


class TextButton(Button):
    """A button with safe text."""

    def __init__(
        self,
        label: Content,
        *,
        id: str,  # noqa: A002 - Textual's name
        variant: Literal["default", "primary", "error"] = "default",
        is_default: bool = False,
    ) -> None:
        """Create a button; `is_default` adds a sign to the button that enter presses."""
        if is_default:
            label = joined([label, safe("↵")], by=" ")
        super().__init__(label, id=id, variant=variant, compact=True)
        self.active_effect_duration = 0  # enter would be ignored during the effect


class Choices(Select[str]):
    """A drop-down list of texts. Enter opens the list; then typing searches it."""

    def __init__(self, texts: Sequence[str], preset: str) -> None:
        # As the prompt of an option, a str would be parsed as markup, but a Content is not.
        options = [(safe(text), text) for text in texts]
        super().__init__(options, value=preset, allow_blank=False, compact=True)

    @property
    def chosen(self) -> str:
        """The chosen text."""
        return str(self.value)


class LabelledField(Horizontal):
    """A label and a widget on one line."""

    DEFAULT_CSS = """
    LabelledField { height: 1; }
    LabelledField Note { width: 14; }
    LabelledField Input, LabelledField Select { width: 1fr; margin: 0 1; }
    """

    def __init__(self, label: str, widget: Widget) -> None:
        super().__init__(Note(safe(label)), widget)
