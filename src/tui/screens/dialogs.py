"""The base of all dialogs, and the dialogs that screens share: confirm, facts, choose."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen, Screen
from textual.widget import Widget

from resumes.errors import InvalidArgument
from resumes.store.store import Store
from tui import clipboard
from tui.keys import Place, bindings, shown_key
from tui.session import UiSession
from tui.store_calls import Failure, call, is_running, store_work
from tui.text import joined, safe, show_message
from tui.widgets.bars import ErrorLine, KeyLine, Note
from tui.widgets.forms import SafeInput, TextButton
from tui.widgets.paged_list import ListColumn, PagedList, text_cell
from tui.widgets.text_pane import Paragraph, TextPane
from tui.widgets.window import PageRead

T = TypeVar("T")


class Dialog(ModalScreen[T | None], Generic[T]):
    """A box with a title, fields and buttons. Its result is None if it is canceled.

    A subclass sets VERB, passes its fields to `__init__`, and defines `submit`, which ends with
    `self.dismiss(result)` or `self.save(…)`. `submit` is called only if all input can be parsed.
    Problems are shown in the key line; `CheckedDialog` shows them below the fields instead.

    A screen opens a dialog with `await ask(self, dialog)` in a worker (`@work` or `@store_work()`).
    """

    BINDINGS = bindings(Place.DIALOG)
    VERB: ClassVar[str] = ""
    """The label of the submit button; if it is empty, the dialog has no buttons."""

    LABELS: ClassVar[Mapping[str, str]] = {}
    """Labels of keys in this dialog's key line, by Textual's action."""

    AUTO_FOCUS = "SafeInput, PagedList, TextPane, Button"
    """The first of these widgets in the dialog gets the focus."""

    enter_submits = True
    """Whether enter in an input line submits; in forms for new items, it focuses the button."""

    def __init__(self, title: str, *fields: Widget) -> None:
        super().__init__()
        self._title = title
        self._fields = fields

    def buttons(self) -> Iterable[Widget]:
        """Yield the buttons; the dialog handles those with the IDs `submit` and `cancel`."""
        if self.VERB:
            yield TextButton(safe(self.VERB), id="submit", variant="primary", is_default=True)
            yield TextButton(safe("Cancel"), id="cancel")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = safe(self._title, "bold")
            yield from self._fields
            if buttons := list(self.buttons()):
                yield Horizontal(*buttons, classes="buttons")
        line = KeyLine()
        line.labels = self.LABELS if buttons else {"focus_next": "", **self.LABELS}
        yield line

    def find_problem(self) -> tuple[str, SafeInput | None]:
        """Return the first problem of an input line, and the line; ("", None) if there is none."""
        problems = ((line.find_problem(), line) for line in self.query(SafeInput))
        return next(((problem, line) for problem, line in problems if problem), ("", None))

    def show_problem(self, problem: str) -> None:
        """Show the problem with the input; an empty string means that there is none."""
        if problem:
            show_message(self, problem, "warning")

    def submit(self) -> object:
        """Dismiss the dialog with the input, or begin to save it."""

    @store_work()
    async def save(self, store: Store, write: Callable[[Store], T]) -> None:
        """Write in a thread, then dismiss the dialog with the result."""
        self.dismiss(await call(store, write))

    def show_failure(self, failure: Failure) -> None:
        """Show why saving failed; the dialog stays open."""
        self.show_problem(f"{failure.message}. Your input was kept. Press enter to retry.")

    def action_focus_next(self) -> None:
        """Focus the next field or button."""
        self.focus_next()

    @on(TextButton.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """Dismiss the dialog without a result, unless it is saving."""
        if is_running(self, self.save):
            show_message(self, "Saving…")
        else:
            self.dismiss(None)

    # Textual calls such a decorated method of a base class even if a subclass overrides it.

    @on(SafeInput.Submitted)
    @on(TextButton.Pressed, "#submit")
    def _go_on(self, event: Message) -> None:
        """Submit, or move from a line to the button, so that a stray enter creates nothing.

        If the input is invalid, show why and focus the line.
        """
        problem, line = self.find_problem()
        self.show_problem(problem)
        if line is not None:
            line.focus()
        elif isinstance(event, SafeInput.Submitted) and not self.enter_submits:
            self.query_one("#submit").focus()
        elif not is_running(self, self.save):
            self.submit()


async def ask(screen: Screen[Any], dialog: Dialog[T]) -> T | None:
    """Show the dialog and return its result. If the user has left the screen, just return None."""
    return await screen.app.push_screen_wait(dialog) if screen.is_active else None


class Chooser(Dialog[T]):
    """Asks for a row, which is the result. The cursor begins at the row with the key `preset`."""

    BINDINGS = bindings(Place.CHOOSER)
    LABELS = {"choose": "Choose"}

    def __init__(
        self,
        store: Store,
        *,
        title: str,
        columns: Sequence[ListColumn[T]],
        key: Callable[[T], str],
        read: Callable[[Store], Sequence[T]],
        preset: str = "",
    ) -> None:
        async def read_rows(cursor: str) -> PageRead[T]:
            return PageRead(await call(store, read))

        self._list: PagedList[T] = PagedList(columns, key, read_rows)
        self._list.select(preset)
        super().__init__(title, ErrorLine(), self._list)

    def on_mount(self) -> None:
        self.watch(self._list, "failure", self.query_one(ErrorLine).show)

    @on(ErrorLine.RetryDue)
    def action_reload(self) -> None:
        self._list.refresh_rows()

    @on(PagedList.Chosen)
    def choose(self, chosen: PagedList.Chosen) -> None:
        self.dismiss(chosen.row)


Fact = tuple[str, str]
"""A label and its value."""

LABEL_CELLS = 11


def fact_notes(facts: Iterable[Fact]) -> Iterator[Note]:
    """Yield a dialog line for each fact, with labels and values in two columns."""
    for label, value in facts:
        yield Note(joined([safe(f"{label:<{LABEL_CELLS}}", "dim"), safe(value)]))


class FactsDialog(Dialog[None]):
    """Shows facts, with a remark below, until it is closed."""

    LABELS = {"cancel": "Close"}

    def __init__(self, title: str, facts: Sequence[Fact], *, remark: str = "") -> None:
        super().__init__(title, *fact_notes(facts), *([Note(safe(remark))] if remark else []))

    def buttons(self) -> Iterable[Widget]:
        yield TextButton(safe("Close"), id="cancel", is_default=True)


class ConfirmDialog(Dialog[bool]):
    """Asks for confirmation; the result is True for yes. Cancel or the input line has the focus.

    If `typed` is given, the user must type exactly this text to confirm.
    """

    def __init__(
        self,
        question: str,
        facts: Sequence[Fact],
        *,
        consequence: str,
        verb: str,
        typed: str | None = None,
    ) -> None:
        super().__init__(question, *fact_notes(facts), Note(safe(consequence, "bold")))
        self._verb = verb
        self._typed = typed
        if typed is not None:
            ask = Note(safe(f'Type "{typed}" to confirm:'))
            self._fields = *self._fields, ask, SafeInput(parse=self._check_typed)

    def buttons(self) -> Iterable[Widget]:
        is_typed = self._typed is not None
        yield TextButton(safe("Cancel"), id="cancel", is_default=not is_typed)
        yield TextButton(safe(self._verb), id="submit", variant="error", is_default=is_typed)

    def _check_typed(self, text: str) -> None:
        if text != self._typed:
            raise InvalidArgument(f'Type "{self._typed}" exactly to confirm.')

    def submit(self) -> None:
        self.dismiss(True)


class TextDialog(Dialog[None]):
    """Shows a text until it is closed."""

    LABELS = {"cancel": "Close"}

    def __init__(self, title: str, paragraphs: Sequence[Paragraph] = ()) -> None:
        self.text = TextPane(paragraphs)
        super().__init__(title, self.text)


def no_accounts(session: UiSession) -> Sequence[Content]:
    """Return the lines of an empty list: there are no accounts, and how to create one."""
    there_are_none = safe("No accounts yet.")
    command = f"`{session.program} accounts create NAME`"
    if session.read_only:
        return there_are_none, safe(f"Create one with {command}.")
    screen = shown_key("everywhere.accounts", session.settings.keymap)
    key = shown_key("accounts.create", session.settings.keymap)
    return there_are_none, safe(f"Press {screen} then {key}, or run"), safe(command)


async def copy_one(
    screen: Screen[None], store: Store, facts: Iterable[Fact], *, instead: str = ""
) -> None:
    """Ask which fact to copy, and copy it. `instead` is advice in case the text is too long."""
    found = [fact for fact in facts if fact[1]]
    chooser = Chooser(
        store,
        title="Copy",
        columns=(
            ListColumn("WHAT", 10, lambda fact: safe(fact[0])),
            ListColumn("", 0, lambda fact: text_cell(fact[1])),
        ),
        key=lambda fact: fact[0],
        read=lambda _: found,
    )
    if (fact := await ask(screen, chooser)) is not None:
        clipboard.send(screen, fact[1], what=fact[0], instead=instead)
