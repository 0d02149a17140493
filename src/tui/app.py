"""The terminal UI: which screens there are, and the keys that work on all of them."""

import traceback
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import events, on
from textual.app import App
from textual.binding import BindingType

from tui.actions import Place, bindings, find_actions
from tui.modes import MODES
from tui.screens.accounts.screen import AccountsScreen
from tui.screens.help import HelpScreen
from tui.screens.keys.screen import KeysScreen
from tui.screens.list_screen import ListScreen
from tui.screens.resumes.screen import ResumesScreen
from tui.session import Session
from tui.suspending import suspend
from tui.text import safe_lines
from tui.toasts import tell

SCREENS: Final[Mapping[str, type[ListScreen[Any]]]] = {
    "resumes": ResumesScreen,
    "accounts": AccountsScreen,
    "keys": KeysScreen,
}
"""The screen of each mode."""


MOST_STEPS_BACK = 50


class ResumesApp(App[int]):
    """The terminal UI over an open store."""

    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.EVERYWHERE)
    # Its commands save screenshots, and a screen may show a new key.
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, session: Session, *, screen: str = "resumes") -> None:
        super().__init__()
        self.session = session
        self._first_screen = screen
        self._been: list[str] = []
        for mode in MODES:
            self.add_mode(mode.name, partial(SCREENS[mode.name], session))

    def on_mount(self) -> None:
        # Textual repaints what changed, and the terminal shows nothing of what was there before.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        self.switch_mode(self._first_screen)

    @on(AccountsScreen.AccountOpened)
    def show_account(self, opened: AccountsScreen.AccountOpened) -> None:
        """The account's resumes are shown."""
        self.session.account = opened.name
        self.action_go("resumes")
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def action_go(self, mode: str) -> None:
        """The screen of that mode is shown, as it was left."""
        if mode != self.current_mode:
            self._been = [*self._been[-MOST_STEPS_BACK:], self.current_mode]
            self.switch_mode(mode)

    def action_help(self) -> None:
        """All keys are shown."""
        self.push_screen(HelpScreen())

    async def action_back(self) -> None:
        """The screen of before is shown; on the first one, q is how to leave."""
        if self._been:
            self.switch_mode(self._been.pop())
            return
        tell(self, "This is the first screen. q quits.")

    async def action_suspend(self) -> None:
        """The shell has the terminal until the program is continued."""
        await suspend(self, self.session.store)

    def on_key(self, event: events.Key) -> None:
        """A key that does nothing here says why."""
        if event.is_printable and event.key not in self.screen.active_bindings:
            tell(self, self._why_nothing(event.key))

    def _why_nothing(self, key: str) -> str:
        actions = find_actions(key)
        if self.session.read_only and any(action.changes for action in actions):
            return "Read-only: start without --read-only to change something."
        if actions:
            places = ", ".join(dict.fromkeys(action.place.lower() for action in actions))
            return f"{actions[0].shown} does nothing here. It works in: {places}."
        return "This key does nothing. ? shows all keys."

    def _fatal_error(self) -> None:
        """Textual's own report prints local variables, keys and resumes among them."""
        self.bell()
        lines = "\n".join(safe_lines(traceback.format_exc()))
        self.panic(Text(f"The terminal UI failed.\n{lines}"))
