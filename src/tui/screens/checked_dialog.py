"""The base class of the forms for accounts and plans, which shows problems below the fields."""

from typing import Generic

from textual import on
from textual.widget import Widget

from resumes.store.store import Store
from tui.screens.dialogs import Dialog, T
from tui.text import safe
from tui.widgets.bars import Note
from tui.widgets.forms import SafeInput


class CheckedDialog(Dialog[T], Generic[T]):
    """Shows a problem with the input below the fields, even while the user types."""

    DEFAULT_CSS = """
    CheckedDialog .problem { color: $text-error; }
    """

    def __init__(self, store: Store, title: str, *fields: Widget) -> None:
        self.store = store
        self._problem = Note(safe(""))
        self._problem.add_class("problem")
        super().__init__(title, *fields, self._problem)

    @on(SafeInput.Changed)
    def check(self) -> None:
        """Show the first problem, unless its line is empty."""
        problem, line = self.find_problem()
        self.show_problem(problem if line is not None and line.value else "")

    def show_problem(self, problem: str) -> None:
        self._problem.update(safe(f"! {problem}" if problem else ""))
