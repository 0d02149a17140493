"""The dialogs that create, register and rotate an API key."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget

from resumes import durations
from resumes.clock import Clock, later
from resumes.store.api_keys import FORM, MAX_GRACE, NewKey, create_key, import_key
from resumes.store.store import Store
from tui.screens.dialogs import Dialog, Fact, fact_notes
from tui.text import minute, safe, tell
from tui.widgets.bars import Note
from tui.widgets.forms import Choices, LabelledField, SafeInput

R = TypeVar("R")

MAX_CHARS = 40


@dataclass(frozen=True, slots=True)
class Understood:
    """What was typed. `words` say it, or why it cannot be used. `span` None: for good."""

    words: str
    span: timedelta | None = None
    is_usable: bool = True


def understand_expiry(text: str, now_us: int) -> Understood:
    """Return the lifetime of a new key; the empty text is for a key that never expires."""
    if not text:
        return Understood("Never expires.")
    expiry = durations.parse_expiry(text)
    if expiry is None:
        words = f'! "{text}" is not a valid expiry: use 30d, 12h or 2027-01-31.'
        return Understood(words, is_usable=False)
    span = durations.until(expiry, now_us=now_us)
    if span <= timedelta(0):
        return Understood("! The expiry must be in the future.", is_usable=False)
    return Understood(f"Expires {minute(later(now_us, span))} UTC.", span)


def understand_grace(text: str, now_us: int) -> Understood:
    """Return how long a rotated key stays valid."""
    span = durations.parse_span(text)
    if span is None:
        words = f'! "{text}" is not a valid duration: use 24h, 7d, 30m or 0.'
        return Understood(words, is_usable=False)
    if span > MAX_GRACE:
        return Understood("! The maximum is 7d.", is_usable=False)
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
        self.line = SafeInput(max_length=MAX_CHARS)
        self.line.value = preset
        self.line.placeholder = "such as 7d or 12h"

    def compose(self) -> ComposeResult:
        yield LabelledField(self._label, self.line)
        yield Note(safe(self.understood.words), id="understood")

    @property
    def understood(self) -> Understood:
        """What is typed now."""
        return self._understand(self.line.value.strip())

    def check(self) -> bool:
        """Return whether it can be used; if not, say why, and focus it."""
        understood = self.understood
        if not understood.is_usable:
            tell(self, understood.words, "warning")
            self.line.focus()
        return understood.is_usable

    @on(SafeInput.Changed)
    def show_understood(self) -> None:
        """Show below the line what is understood of it."""
        self.query_one("#understood", Note).update(safe(self.understood.words))


MAX_NAME_CHARS = 100


class KeyForm(Dialog[tuple[str, Callable[[Store], R]]]):
    """Gives an account and what makes the key for it, None if it was canceled."""

    def __init__(self, title: str, accounts: Sequence[str], preset: str) -> None:
        super().__init__(title)
        self.account = Choices(accounts, preset)
        self.name_line = SafeInput(max_length=MAX_NAME_CHARS)

    def fields(self) -> Iterable[Widget]:
        yield LabelledField("Account", self.account)
        yield LabelledField("Name", self.name_line)


class CreateKeyDialog(KeyForm[NewKey]):
    """A form for a key that is to be made."""

    VERB = "Create"

    def __init__(self, accounts: Sequence[str], preset: str, clock: Clock) -> None:
        super().__init__("New key", accounts, preset)
        self._expiry = SpanField("Expires", lambda text: understand_expiry(text, clock()))

    def fields(self) -> Iterable[Widget]:
        yield from super().fields()
        yield self._expiry

    def is_ready(self) -> bool:
        return self._expiry.check()

    def submit(self) -> None:
        account, name = self.account.chosen, self.name_line.value.strip()
        lifetime = self._expiry.understood.span
        self.dismiss((account, partial(create_key, account=account, name=name, lifetime=lifetime)))


MAX_SECRET_CHARS: Final = 200
NOT_A_KEY: Final = "! Not a valid key: expected enh_live_ followed by 64 letters or digits."


class RegisterKeyDialog(KeyForm[str]):
    """A form for a key that was made elsewhere, of which dots are shown."""

    VERB = "Import"
    AUTO_FOCUS = "#secret"

    def __init__(self, accounts: Sequence[str], preset: str) -> None:
        super().__init__("Import a key", accounts, preset)
        self._secret = SafeInput(max_length=MAX_SECRET_CHARS)
        self._secret.id, self._secret.password = "secret", True

    def fields(self) -> Iterable[Widget]:
        yield from super().fields()
        yield LabelledField("Key (hidden)", self._secret)

    def is_ready(self) -> bool:
        is_ready = FORM.fullmatch(self._secret.value.strip()) is not None
        if not is_ready:
            tell(self, NOT_A_KEY, "warning")
            self._secret.focus()
        return is_ready

    def submit(self) -> None:
        account, name = self.account.chosen, self.name_line.value.strip()
        secret = self._secret.value.strip()
        # Not a partial, which would show the secret wherever it is shown.
        self.dismiss((account, lambda store: import_key(store, account, secret, name=name)))


PRESET = "24h"


class RotateDialog(Dialog[timedelta]):
    """Gives the grace of the old key, None if it was canceled."""

    VERB = "Rotate"

    def __init__(self, facts: Sequence[Fact], clock: Clock) -> None:
        super().__init__("Rotate this key?")
        self._facts = facts
        self._grace = SpanField(
            "Grace period", lambda text: understand_grace(text, clock()), preset=PRESET
        )

    def fields(self) -> Iterable[Widget]:
        yield from fact_notes(self._facts)
        yield self._grace

    def is_ready(self) -> bool:
        return self._grace.check()

    def submit(self) -> None:
        self.dismiss(self._grace.understood.span)
