"""The terminal UI: its start, its end, and the keys that work on every screen."""

import asyncio
import contextlib
import signal
import traceback
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual import events, on, work
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.message import Message
from textual.screen import Screen

from resumes.errors import ResumesError
from resumes.text import counted
from tui.actions import Place, bindings
from tui.explaining import why_nothing
from tui.looks import DARK, is_colourless, look, next_theme, theme_of
from tui.modes import MODES
from tui.palette import ActionsProvider
from tui.store_client import Reply
from tui.text import safe, safe_lines
from tui.toasts import tell
from tui.widgets.lines import KeyLine, ModeLine, TitleLine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui.screens.accounts.screen import AccountsScreen
    from tui.session import Session

MOST_STEPS_BACK: Final = 50
END_SIGNALS: Final = (signal.SIGHUP, signal.SIGTERM)


class ResumesApp(App[int]):
    """The terminal UI. `open_session` is called in a thread when the first frame is painted."""

    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.EVERYWHERE)
    # `set[Any]`, as Textual declares it.
    COMMANDS: ClassVar = {ActionsProvider}
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - as Textual declares it
        (0, "-narrow"),
        (110, "-wide"),
        (170, "-very-wide"),
    ]

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

    @property
    def session(self) -> "Session":
        """The open session; there is none before the first screen."""
        assert self._session is not None
        return self._session

    @property
    def deletions_left(self) -> list[str]:
        """The titles of the resumes that were not deleted because the app ended."""
        return [one.title for one in self._session.deletions] if self._session else []

    def compose(self) -> ComposeResult:
        """What is seen until the store is open."""
        yield ModeLine(self._first_screen, read_only=self._read_only)
        yield TitleLine(safe("Opening the store…"))
        yield KeyLine()

    def on_mount(self) -> None:
        # Textual repaints what changed, and the terminal shows nothing of what was there before.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        loop = asyncio.get_running_loop()
        for number in END_SIGNALS:
            # In a thread that is not the main one there are no signals to listen to.
            with contextlib.suppress(RuntimeError, ValueError):
                loop.add_signal_handler(number, self.exit, None, 128 + number)
        self.call_after_refresh(self._open)

    @work(thread=True, group="open", exit_on_error=False)
    def _open(self) -> None:
        try:
            session = self._open_session()
            for mode in MODES:
                mode.load()
        except ResumesError as error:
            self.failure = error
            self.call_from_thread(self.exit, None, 1)
        except Exception as error:  # the edge of the thread: it becomes the app's crash
            self.call_from_thread(self._handle_exception, error)
        else:
            self.post_message(self.Opened(session))

    @on(Opened)
    def start(self, opened: Opened) -> None:
        """The first screen is shown."""
        from tui.carrying_out import DeletionRounds

        self._session = opened.session
        self.theme = theme_of(opened.session.settings.theme)
        self.set_keymap(opened.session.keymap)
        for mode in MODES:
            self.add_mode(mode.name, partial(mode.load(), opened.session))
        self._rounds = DeletionRounds(self, opened.session)
        self.switch_mode(self._first_screen)

    @on(Reply)
    def deliver(self, reply: Reply) -> None:
        """A deletion was carried out, or was not."""
        self._rounds.client.deliver(reply)

    def action_go(self, mode: str) -> None:
        """The screen of that mode is shown, as it was left."""
        if self._session is not None and mode != self.current_mode:
            self._been = [*self._been[-MOST_STEPS_BACK:], self.current_mode]
            self.switch_mode(mode)

    def on_accounts_screen_account_opened(self, opened: "AccountsScreen.AccountOpened") -> None:
        """The list of that mode is shown, over whatever was open there."""
        self.action_go(opened.mode)
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def action_help(self) -> None:
        """All keys are shown."""
        from tui.screens.help import HelpScreen

        self.push_screen(HelpScreen(self.screen, self.session.keymap if self._session else {}))

    async def action_back(self) -> None:
        """A layer of this screen is gone, or the screen of before is shown; q is how to leave."""
        from tui.screens.list_screen import ListScreen

        if isinstance(self.screen, ListScreen) and self.screen.peel():
            return
        if self._been:
            self.switch_mode(self._been.pop())
            return
        tell(self, "This is the first screen. q quits.")

    def action_undo(self) -> None:
        """The deletion that was asked for last is taken back."""
        kept = self.session.deletions.undo() if self._session else None
        if kept is None:
            tell(self, "There is nothing to undo: no resume is about to be deleted.")
        else:
            tell(self, f'"{kept.title}" stays.')
            for listed in self.screen.query("PagedList"):
                listed.refresh()

    def action_change_theme(self) -> None:
        """The next set of colours is used."""
        if self.no_color:
            tell(self, "NO_COLOR is set: there are no colours to change.")
            return
        self.theme = next_theme(self.theme)
        tell(self, f"Colours: {look(self.theme)}.")

    async def action_suspend(self) -> None:
        """The shell has the terminal until the program is continued."""
        from tui.suspending import suspend

        if self._session is not None:
            await suspend(self, self._session.store)

    def get_system_commands(self, screen: Screen[object]) -> "Iterable[SystemCommand]":
        """None of Textual's own: one saves pictures, and a screen may show a new key."""
        return ()

    def on_key(self, event: events.Key) -> None:
        """A key that does nothing here says why."""
        if event.is_printable and event.key not in self.screen.active_bindings:
            tell(self, self._why_nothing(event.key))

    def _why_nothing(self, key: str) -> str:
        keymap = self._session.keymap if self._session else {}
        return why_nothing(key, self.screen, keymap, read_only=self._read_only)

    def _fatal_error(self) -> None:
        """Textual's own report prints local variables, keys and resumes among them."""
        self.bell()
        lines = "\n".join(safe_lines(traceback.format_exc()))
        self.panic(Text(f"The terminal UI failed.\n{lines}"))
