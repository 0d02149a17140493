"""A line in which a span of time is typed, and what is understood of it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from resumes import durations
from resumes.clock import later
from resumes.store.api_keys import MAX_GRACE
from tui.text import safe
from tui.times import minute
from tui.widgets.fields import SafeInput
from tui.widgets.lines import Note

MAX_CHARS = 40


@dataclass(frozen=True, slots=True)
class Understood:
    """What was typed. `words` say it, or why it cannot be used. `span` None: for good."""

    words: str
    span: timedelta | None = None
    is_usable: bool = True


def _refused(words: str) -> Understood:
    return Understood(f"! {words}", is_usable=False)


def understand_expiry(text: str, now_us: int) -> Understood:
    """How long a new key counts; the empty text is for good."""
    if not text:
        return Understood("It does not expire.")
    expiry = durations.parse_expiry(text)
    if expiry is None:
        return _refused(f'"{text}" is no expiry: use 30d, 12h or 2027-01-31.')
    span = durations.until(expiry, now_us=now_us)
    if span <= timedelta(0):
        return _refused("It must lie in the future.")
    return Understood(f"It expires on {minute(later(now_us, span))} UTC.", span)


def understand_grace(text: str, now_us: int) -> Understood:
    """How long a key that is being replaced still counts."""
    span = durations.parse_span(text)
    if span is None:
        return _refused(f'"{text}" is no span: use 24h, 7d, 30m or 0.')
    if span > MAX_GRACE:
        return _refused("The longest is 7d.")
    if not span:
        return Understood("The old key is refused at once.", span)
    return Understood(f"The old key counts until {minute(later(now_us, span))} UTC.", span)


class SpanField(Vertical):
    """A line to type in, under its question and over what is understood of it."""

    DEFAULT_CSS = """
    SpanField { height: auto; }
    """

    def __init__(
        self, question: str, understand: Callable[[str], Understood], *, preset: str = ""
    ) -> None:
        super().__init__()
        self._question = question
        self._understand = understand
        self._preset = preset

    def compose(self) -> ComposeResult:
        yield Note(safe(self._question))
        line = SafeInput(max_length=MAX_CHARS)
        line.value = self._preset
        yield line
        yield Note(safe(self.understood.words), id="understood")

    @property
    def understood(self) -> Understood:
        """What the line says, now."""
        lines = self.query(SafeInput)
        return self._understand(lines.first().value.strip() if lines else self._preset)

    @on(SafeInput.Changed)
    def show_understood(self) -> None:
        """The words below the line are about what is typed in it."""
        self.query_one("#understood", Note).update(safe(self.understood.words))
