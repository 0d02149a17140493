"""The base of all dialogs, and those that several screens use: confirm, facts, choose."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widget import Widget

from resumes.store.store import Store
from tui import clipboard
from tui.keys import Place, bindings, shown_key
from tui.session import UiSession
from tui.store_calls import Failure, call, store_work
from tui.text import joined, safe, show_message
from tui.widgets.bars import ErrorLine, KeyLine, Note
from tui.widgets.forms import SafeInput, TextButton
from tui.widgets.paged_list import ListColumn, PagedList, text_cell
from tui.widgets.text_pane import Paragraph, TextPane

T = TypeVar("T")


class Dialog(ModalScreen[T | None], Generic[T]):
    """A box with a title, fields and buttons. Give a result, or None when it was canceled.

    A dialog sets VERB, passes its fields to `__init__`, and defines `find_problem` and `submit`, which
    ends with `self.dismiss(result)`. One that saves first sets `is_saving` in `submit` and starts a
    method under `@store_work()`, which dismisses; `show_failure` shows why it could not.

    A screen opens it with `await self.app.push_screen_wait(dialog)` in an action under
    `@store_work()`. After any other `await`, the screen looks at `self.is_active` before it opens one:
    the user may have left it.
    """

    BINDINGS = bindings(Place.DIALOG)
    VERB: ClassVar[str] = ""
    """What the button says that submits; empty: the dialog has no buttons."""

    LABELS: ClassVar[Mapping[str, str]] = {}
    """What keys are called here, by Textual's action."""

    AUTO_FOCUS = "SafeInput, PagedList, TextPane, Button"
    """The first of these in the dialog has the focus."""

    enter_submits = True
    """Whether enter in a line submits; a form for something new goes to its button instead."""

    is_saving = False
    """Whether what was typed is being saved, which is waited for."""

    main_line: SafeInput | None = None
    """What has the focus when it cannot be submitted."""

    def __init__(self, title: str, *fields: Widget) -> None:
        super().__init__()
        self._title = title
        self._fields = fields

    def buttons(self) -> Iterable[Widget]:
        """Yield the buttons; `submit` and `cancel` are the ids that the dialog listens to."""
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
        line.labels = self.LABELS
        yield line

    def find_problem(self) -> str:
        """Return why what was typed cannot be submitted; empty if it can."""
        return ""

    def show_problem(self, problem: str) -> None:
        """Show what is wrong with what was typed; empty: nothing."""
        if problem:
            show_message(self, problem, "warning")

    def is_ready(self) -> bool:
        """Return whether what was typed can be submitted; if not, say why, and focus it."""
        problem = self.find_problem()
        self.show_problem(problem)
        if problem and self.main_line is not None:
            self.main_line.focus()
        return not problem

    def submit(self) -> object:
        """End with what was typed."""

    def show_failure(self, failure: Failure) -> None:
        """Show why nothing was saved; the dialog stays open."""
        self.is_saving = False
        self.show_problem(f"{failure.message}. Your input was kept. Press enter to retry.")

    @on(TextButton.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """End without a result, unless something is being saved."""
        if self.is_saving:
            show_message(self, "Saving…")
        else:
            self.dismiss(None)

    # Textual calls a decorated method of each class, not the one that overrides it.

    @on(SafeInput.Submitted)
    def _go_on(self) -> None:
        """Submit, or go from a line to the button: a stray line creates nothing."""
        if self.enter_submits:
            self._submit()
        elif self.is_ready():
            self.query_one("#submit").focus()

    @on(TextButton.Pressed, "#submit")
    def _submit(self) -> None:
        if not self.is_saving and self.is_ready():
            self.submit()


class Chooser(Dialog[T]):
    """Gives the chosen row, None when nothing was chosen. `preset` is the key of the first one."""

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
        preset: str | None = None,
    ) -> None:
        self._list: PagedList[T] = PagedList(columns, key, inserts=True)
        super().__init__(title, ErrorLine(), self._list)
        self._store = store
        self._read = read
        self._preset = preset

    @on(PagedList.PageWanted)
    @store_work(exclusive=True)
    async def read(self) -> None:
        rows = await call(self._store, self._read)
        self.query_one(ErrorLine).clear()
        self._list.fill(0, rows, None)
        if self._preset is not None:
            self._list.select(self._preset)
            self._preset = None  # read again, the cursor stays

    @on(ErrorLine.RetryDue)
    def action_reload(self) -> None:
        self._list.refresh_rows()

    def show_failure(self, failure: Failure) -> None:
        self.query_one(ErrorLine).show(failure)
        self._list.fail()

    @on(PagedList.Chosen)
    def choose(self, chosen: PagedList.Chosen) -> None:
        self.dismiss(chosen.row)


Fact = tuple[str, str]
"""What it is called, and what it is."""

LABEL_CELLS = 11


def fact_notes(facts: Iterable[Fact]) -> Iterator[Note]:
    """Yield each fact as a line of a dialog, labels and values each in a column of their own."""
    for label, value in facts:
        yield Note(joined([safe(f"{label:<{LABEL_CELLS}}", "dim"), safe(value)]))


class FactsDialog(Dialog[None]):
    """Shows facts, and under them a remark, until it is closed."""

    LABELS = {"cancel": "Close"}

    def __init__(self, title: str, facts: Sequence[Fact], *, remark: str = "") -> None:
        super().__init__(title, *fact_notes(facts), *([Note(safe(remark))] if remark else []))

    def buttons(self) -> Iterable[Widget]:
        yield TextButton(safe("Close"), id="cancel", is_default=True)


class ConfirmDialog(Dialog[bool]):
    """Gives True to do it. Cancel has the focus, or the line to type in, where one is asked.

    With `typed` the answer is yes only when just that was typed.
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
            self.main_line = SafeInput()
            self._fields = *self._fields, ask, self.main_line

    def buttons(self) -> Iterable[Widget]:
        is_typed = self._typed is not None
        yield TextButton(safe("Cancel"), id="cancel", is_default=not is_typed)
        yield TextButton(safe(self._verb), id="submit", variant="error", is_default=is_typed)

    def find_problem(self) -> str:
        if self.main_line is None or self.main_line.value.strip() == self._typed:
            return ""
        return f'Type "{self._typed}" exactly to confirm.'

    def submit(self) -> None:
        self.dismiss(True)


class TextDialog(Dialog[None]):
    """Shows a text until it is closed."""

    LABELS = {"cancel": "Close"}

    def __init__(self, title: str, paragraphs: Sequence[Paragraph] = ()) -> None:
        self.text = TextPane(paragraphs)
        super().__init__(title, self.text)


def no_accounts(session: UiSession) -> Sequence[Content]:
    """Return that there are none, the command that creates one, and the key unless read-only."""
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
    """Ask which to copy, of those that there are; `instead` is what to do if it is too long."""
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
    if (fact := await screen.app.push_screen_wait(chooser)) is not None:
        clipboard.send(screen, fact[1], what=fact[0], instead=instead)
