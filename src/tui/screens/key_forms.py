"""The dialogs that create, register and rotate an API key."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget

from resumes import durations
from resumes.clock import Clock, later, system_clock
from resumes.store.api_keys import FORM, MAX_GRACE
from tui.screens.dialogs import Dialog, Fact, fact_notes
from tui.text import minute, safe, tell
from tui.widgets.bars import Note
from tui.widgets.forms import Choices, LabelledField, SafeInput

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
    """Return the lifetime of a new key; the empty text is for a key that never expires."""
    if not text:
        return Understood("Never expires.")
    expiry = durations.parse_expiry(text)
    if expiry is None:
        return _refused(f'"{text}" is not a valid expiry: use 30d, 12h or 2027-01-31.')
    span = durations.until(expiry, now_us=now_us)
    if span <= timedelta(0):
        return _refused("The expiry must be in the future.")
    return Understood(f"Expires {minute(later(now_us, span))} UTC.", span)


def understand_grace(text: str, now_us: int) -> Understood:
    """Return how long a rotated key stays valid."""
    span = durations.parse_span(text)
    if span is None:
        return _refused(f'"{text}" is not a valid duration: use 24h, 7d, 30m or 0.')
    if span > MAX_GRACE:
        return _refused("The maximum is 7d.")
    if not span:
        return Understood("The old key stops working immediately.", span)
    return Understood(f"The old key expires {minute(later(now_us, span))} UTC.", span)


class SpanField(Vertical):
    """A labelled line to type in, and below it what is understood of it."""

    DEFAULT_CSS = """
    SpanField { height: auto; }
    """

    def __init__(
        self, label: str, understand: Callable[[str], Understood], *, preset: str = ""
    ) -> None:
        super().__init__()
        self._label = label
        self._understand = understand
        self._preset = preset

    def compose(self) -> ComposeResult:
        line = SafeInput(max_length=MAX_CHARS)
        line.value = self._preset
        line.placeholder = "such as 7d or 12h"
        yield LabelledField(self._label, line)
        yield Note(safe(self.understood.words), id="understood")

    @property
    def understood(self) -> Understood:
        """What is typed now."""
        lines = self.query(SafeInput)
        return self._understand(lines.first().value.strip() if lines else self._preset)

    def check(self) -> bool:
        """Return whether it can be used; if not, say why, and focus it."""
        understood = self.understood
        if not understood.is_usable:
            tell(self, understood.words, "warning")
            self.query_one(SafeInput).focus()
        return understood.is_usable

    @on(SafeInput.Changed)
    def show_understood(self) -> None:
        """Show below the line what is understood of it."""
        self.query_one("#understood", Note).update(safe(self.understood.words))


MAX_NAME_CHARS = 100


@dataclass(frozen=True, slots=True)
class KeyWish:
    """A key for this account, of this name. `lifetime` None never expires."""

    account: str
    name: str
    lifetime: timedelta | None = None


class NameLine(SafeInput):
    """What the key is for."""

    def __init__(self) -> None:
        super().__init__(max_length=MAX_NAME_CHARS)


class CreateKeyDialog(Dialog[KeyWish]):
    """Gives what is wished for, None if it was canceled."""

    VERB = "Create"

    def __init__(self, accounts: Sequence[str], preset: str, clock: Clock = system_clock) -> None:
        super().__init__("New key")
        self._accounts = accounts
        self._preset = preset
        self._clock = clock

    def fields(self) -> Iterable[Widget]:
        yield LabelledField("Account", Choices(self._accounts, self._preset))
        yield LabelledField("Name", NameLine())
        yield SpanField(
            "Expires",
            lambda text: understand_expiry(text, self._clock()),
        )

    def on_mount(self) -> None:
        self.query_one(NameLine).focus()

    def is_ready(self) -> bool:
        return self.query_one(SpanField).check()

    def submit(self) -> None:
        expiry = self.query_one(SpanField)
        account = self.query_one(Choices).chosen
        name = self.query_one(NameLine).value.strip()
        self.dismiss(KeyWish(account, name, expiry.understood.span))


PRESET = "24h"


class RotateDialog(Dialog[timedelta]):
    """Gives the grace of the old key, None if it was canceled."""

    VERB = "Rotate"

    def __init__(self, facts: Sequence[Fact], clock: Clock = system_clock) -> None:
        super().__init__("Rotate this key?")
        self._facts = facts
        self._clock = clock

    def fields(self) -> Iterable[Widget]:
        yield from fact_notes(self._facts)
        yield SpanField(
            "Grace period",
            lambda text: understand_grace(text, self._clock()),
            preset=PRESET,
        )

    def on_mount(self) -> None:
        self.query_one(SafeInput).focus()

    def is_ready(self) -> bool:
        return self.query_one(SpanField).check()

    def submit(self) -> None:
        self.dismiss(self.query_one(SpanField).understood.span)


MAX_SECRET_CHARS: Final = 200
NOT_A_KEY: Final = "! Not a valid key: expected enh_live_ followed by 64 letters or digits."


@dataclass(frozen=True, slots=True)
class Foreign:
    """A key from elsewhere, for this account."""

    account: str
    name: str
    secret: str = field(repr=False)


class SecretLine(SafeInput):
    """The key itself, of which dots are shown."""

    def __init__(self) -> None:
        super().__init__(max_length=MAX_SECRET_CHARS)
        self.password = True


class RegisterKeyDialog(Dialog[Foreign]):
    """Gives a key to register, None if it was canceled."""

    VERB = "Import"

    def __init__(self, accounts: Sequence[str], preset: str) -> None:
        super().__init__("Import a key")
        self._accounts = accounts
        self._preset = preset

    def fields(self) -> Iterable[Widget]:
        yield LabelledField("Account", Choices(self._accounts, self._preset))
        yield LabelledField("Name", NameLine())
        yield LabelledField("Key (hidden)", SecretLine())

    def on_mount(self) -> None:
        self.query_one(SecretLine).focus()

    def is_ready(self) -> bool:
        line = self.query_one(SecretLine)
        is_ready = FORM.fullmatch(line.value.strip()) is not None
        if not is_ready:
            tell(self, NOT_A_KEY, "warning")
            line.focus()
        return is_ready

    def submit(self) -> None:
        secret = self.query_one(SecretLine).value.strip()
        name = self.query_one(NameLine).value.strip()
        self.dismiss(Foreign(self.query_one(Choices).chosen, name, secret))
