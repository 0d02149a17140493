"""The dialogs that create, register and rotate an API key."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen

from resumes import durations
from resumes.clock import Clock, later, system_clock
from resumes.store.api_keys import FORM, MAX_GRACE
from tui.keys import Place, bindings
from tui.screens.dialogs import Fact, fact_line
from tui.text import minute, safe, tell
from tui.widgets.bars import KeyLine, Note, TitleLine
from tui.widgets.forms import Choices, SafeInput, TextButton

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


MAX_NAME_CHARS = 100


@dataclass(frozen=True, slots=True)
class Wish:
    """A key for this account, of this name. `lifetime` None never expires."""

    account: str
    name: str
    lifetime: timedelta | None = None


class NameLine(SafeInput):
    """What the key is for."""

    def __init__(self) -> None:
        super().__init__(max_length=MAX_NAME_CHARS)


class CreateKeyDialog(ModalScreen[Wish | None]):
    """Gives what is wished for, None when it was cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG)

    def __init__(self, accounts: Sequence[str], preset: str, clock: Clock = system_clock) -> None:
        super().__init__()
        self._accounts = accounts
        self._preset = preset
        self._clock = clock

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield TitleLine(safe("A new key", "bold"))
            yield Note(safe("For which account?"))
            yield Choices(self._accounts, self._preset)
            yield Note(safe("What is it for? A name tells keys apart; it may be empty."))
            yield NameLine()
            yield SpanField(
                "When does it expire? 30d, 12h or a date; it may be empty.",
                lambda text: understand_expiry(text, self._clock()),
            )
            with Horizontal(classes="buttons"):
                yield TextButton(safe("Create"), id="create", variant="primary")
                yield TextButton(safe("Cancel"), id="cancel")
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(NameLine).focus()

    @on(SafeInput.Submitted)
    @on(TextButton.Pressed, "#create")
    def create(self) -> None:
        """The dialog ends with the wish, if the expiry can be used."""
        expiry = self.query_one(SpanField)
        if not expiry.understood.is_usable:
            tell(self, expiry.understood.words, "warning")
            expiry.query_one(SafeInput).focus()
            return
        account = self.query_one(Choices).chosen
        name = self.query_one(NameLine).value.strip()
        self.dismiss(Wish(account, name, expiry.understood.span))

    @on(TextButton.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """The dialog ends without one."""
        self.dismiss(None)


PRESET = "24h"


class RotateDialog(ModalScreen[timedelta | None]):
    """Gives the grace of the old key, None when it was cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG)

    def __init__(self, facts: Sequence[Fact], clock: Clock = system_clock) -> None:
        super().__init__()
        self._facts = facts
        self._clock = clock

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield TitleLine(safe("Replace this key by a new one?", "bold"))
            for fact in self._facts:
                yield Note(fact_line(fact))
            yield SpanField(
                "How long does the old key still count? 0 to 7d.",
                lambda text: understand_grace(text, self._clock()),
                preset=PRESET,
            )
            with Horizontal(classes="buttons"):
                yield TextButton(safe("Rotate"), id="rotate", variant="primary")
                yield TextButton(safe("Cancel"), id="cancel")
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(SafeInput).focus()

    @on(SafeInput.Submitted)
    @on(TextButton.Pressed, "#rotate")
    def rotate(self) -> None:
        """The dialog ends with the grace, if it can be used."""
        grace = self.query_one(SpanField).understood
        if not grace.is_usable:
            tell(self, grace.words, "warning")
            self.query_one(SafeInput).focus()
            return
        self.dismiss(grace.span)

    @on(TextButton.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """The dialog ends without one."""
        self.dismiss(None)


MAX_SECRET_CHARS: Final = 200
NOT_A_KEY: Final = "! That is no key: enh_live_ and 64 letters and digits."


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


class RegisterKeyDialog(ModalScreen[Foreign | None]):
    """Gives a key to register, None when it was cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG)

    def __init__(self, accounts: Sequence[str], preset: str) -> None:
        super().__init__()
        self._accounts = accounts
        self._preset = preset

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield TitleLine(safe("A key that was made elsewhere", "bold"))
            yield Note(safe("For which account?"))
            yield Choices(self._accounts, self._preset)
            yield Note(safe("What is it for? A name tells keys apart; it may be empty."))
            yield NameLine()
            yield Note(safe("The key in full. Dots are shown in its place."))
            yield SecretLine()
            with Horizontal(classes="buttons"):
                yield TextButton(safe("Register"), id="register", variant="primary")
                yield TextButton(safe("Cancel"), id="cancel")
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(SecretLine).focus()

    @on(SafeInput.Submitted)
    @on(TextButton.Pressed, "#register")
    def register(self) -> None:
        """The dialog ends with the key, if it has the form of one."""
        line = self.query_one(SecretLine)
        secret = line.value.strip()
        if not FORM.fullmatch(secret):
            tell(self, NOT_A_KEY, "warning")
            line.focus()
            return
        name = self.query_one(NameLine).value.strip()
        self.dismiss(Foreign(self.query_one(Choices).chosen, name, secret))

    @on(TextButton.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """The dialog ends without one."""
        self.dismiss(None)
