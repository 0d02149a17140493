"""The terminal UI: its start, its end, and the keys that work on every screen."""

import asyncio
import gc
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on, work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.message import Message

from resumes.errors import ResumesError
from tui.actions import Place, bindings
from tui.ending import crash_report
from tui.explaining import why_nothing
from tui.key_order import KeyOrder
from tui.keymap import shown_key
from tui.looks import BREAKPOINTS, DARK, LEGIBLE, change_theme, is_colourless, theme_of
from tui.messages import ModeAsked
from tui.modes import MODES
from tui.palette import ActionsProvider
from tui.store_client import STORE_THREADS, Reply
from tui.text import safe
from tui.toasts import tell, tell_once
from tui.widgets.key_line import KeyLine
from tui.widgets.lines import ModeLine, TitleLine

if TYPE_CHECKING:
    from tui.session import Session

MOST_STEPS_BACK: Final = 50


class ResumesApp(App[int]):
    """The terminal UI. `open_session` is called in a thread when the first frame is painted."""

    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.EVERYWHERE)
    # None of Textual's own: one saves pictures, and a screen may show a new key.
    COMMANDS: ClassVar = {ActionsProvider}
    HORIZONTAL_BREAKPOINTS = BREAKPOINTS

    class Opened(Message):
        """The session is there, and every screen is imported."""

        def __init__(self, session: "Session") -> None:
            super().__init__()
            self.session = session

    def __init__(
        self,
        open_session: "Callable[[], Session]",
        *,
        screen: str = "resumes",
        read_only: bool = False,
    ) -> None:
        # As the terminal's own, colours can be left out; ours would only become greys.
        super().__init__(ansi_color=True if is_colourless() else None)
        self.theme = DARK
        self.failure: ResumesError | None = None
        """Why the session could not be opened, once the app has ended."""
        self._open_session = open_session
        self._session: Session | None = None
        self._read_only = read_only
        self._first_screen = screen
        self._been: list[str] = []
        self._order = KeyOrder(self, super().on_event)

    @property
    def session(self) -> "Session":
        """The open session; there is none before the first screen."""
        assert self._session is not None
        return self._session

    @property
    def deletions_left(self) -> list[str]:
        """The titles of the resumes that were not deleted because the app ended."""
        return [one.title for one in self._session.deletions] if self._session else []

    @property
    def _keys(self) -> Mapping[str, str]:
        return self._session.keymap if self._session else {}

    def get_css_variables(self) -> dict[str, str]:
        """The theme's, but for those that could not be read."""
        return {**super().get_css_variables(), **LEGIBLE.get(self.theme, {})}

    def compose(self) -> ComposeResult:
        """What is seen until the store is open."""
        yield ModeLine(self._first_screen, read_only=self._read_only)
        yield TitleLine(safe("Opening the store…"))
        yield KeyLine()

    def on_mount(self) -> None:
        # Textual repaints what changed, and the terminal shows nothing of what was there before.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(STORE_THREADS))
        self.call_after_refresh(self._open)

    @work(thread=True, group="open")
    def _open(self) -> None:
        try:
            session = self._open_session()
        except ResumesError as error:
            self.failure = error
            self.call_from_thread(self.exit, None, 1)
            return
        for mode in MODES:
            mode.load()
        self.post_message(self.Opened(session))

    @on(Opened)
    def start(self, opened: Opened) -> None:
        """The first screen is shown."""
        from tui.carrying_out import DeletionRounds

        # Looking through all that is loaded by now would hold up keys for a tenth of a second.
        gc.freeze()
        self._session = opened.session
        self.theme = theme_of(opened.session.settings.theme)
        self.set_keymap(opened.session.keymap)
        for mode in MODES:
            self.add_mode(mode.name, partial(mode.load(), opened.session))
        self._rounds = DeletionRounds(self, opened.session)
        self.switch_mode(self._first_screen)

    def on_app_focus(self) -> None:
        """The keys are the list's, also where the screen was built before the page had them."""
        if self.screen.focused is None:
            self.screen.focus_next()

    async def on_unmount(self) -> None:
        """Nothing of the session is left behind."""
        if self._session is not None:
            await asyncio.to_thread(self._session.close)

    @on(Reply)
    def deliver(self, reply: Reply) -> None:
        """A deletion was carried out, or was not."""
        self._rounds.client.deliver(reply)

    def action_go(self, mode: str) -> None:
        """The screen of that mode is shown, as it was left."""
        if self._session is not None and mode != self.current_mode:
            self._been = [*self._been[-MOST_STEPS_BACK:], self.current_mode]
            self.switch_mode(mode)

    @on(ModeAsked)
    def show_list(self, asked: ModeAsked) -> None:
        """The list of that mode is shown, over whatever was open there."""
        self.action_go(asked.mode)
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def action_help(self) -> None:
        """All keys are shown."""
        from tui.screens.help import HelpScreen

        self.push_screen(HelpScreen(self.screen, self._keys))

    async def action_back(self) -> None:
        """A layer of this screen is gone, or the screen of before is shown; q is how to leave."""
        from tui.screens.list_screen import ListScreen

        if isinstance(self.screen, ListScreen) and self.screen.peel():
            return
        if self._been:
            self.switch_mode(self._been.pop())
            return
        tell(self, f"This is the first screen. {shown_key('everywhere.quit', self._keys)} quits.")

    def action_undo(self) -> None:
        """The deletion that was asked for last is taken back."""
        if self._session is not None:
            self._rounds.undo()

    def action_change_theme(self) -> None:
        """The next set of colours is used."""
        tell(self, change_theme(self))

    async def action_suspend(self) -> None:
        """The shell has the terminal until the program is continued."""
        from tui.suspending import suspend

        if self._session is not None:
            await suspend(self, self._session)

    async def on_event(self, event: events.Event) -> None:
        """A key waits for the one before it; all else is at once what it is."""
        if isinstance(event, events.Key) and not event.is_forwarded:
            await self._order.take(event)
        else:
            await super().on_event(event)
            if isinstance(event, events.Key):
                self._order.end(event)

    def on_key(self, event: events.Key) -> None:
        """A key that does nothing here says why."""
        if event.is_printable and event.key not in self.screen.active_bindings:
            told = why_nothing(event.key, self.screen, self._keys, read_only=self._read_only)
            tell_once(self, told)

    def _fatal_error(self) -> None:
        """A crash is told without anything that the store holds."""
        self.bell()
        self.panic(crash_report())
