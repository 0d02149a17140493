"""The app: start, modes, the keys that work on every screen, the command palette, Ctrl+Z."""

import asyncio
import gc
import os
import traceback
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual import events, on, work
from textual.app import App, ComposeResult
from textual.command import CommandInput, DiscoveryHit, Hit, Hits, Provider
from textual.reactive import reactive

from resumes.errors import ResumesError
from tui.key_queue import KeyOrPaste, KeyQueue
from tui.keys import MODES, Action, Place, active_actions, bindings, why_nothing
from tui.store_calls import STORE_THREADS, Failure, call, is_running
from tui.text import StatusMessage, safe, safe_lines, show_message, toast
from tui.themes import BREAKPOINTS, THEMES, VERTICAL_BREAKPOINTS
from tui.widgets.bars import Glance, HeaderLine, KeyLine, Note

if TYPE_CHECKING:
    from resumes.store.sqlite.first_rows import FirstRows
    from tui.deletions import Deletion
    from tui.session import UiSession

PAINT_S = 0.05
"""The time for painting the first rows before imports use the CPU."""

WAIT_S = 2.0
"""How long suspending waits for a write in progress."""

GC_THRESHOLD = 5_000
"""The number of new objects that triggers a garbage collection of the youngest generation."""

WAKE_S = 0.05
WAKES = 20

MAX_TYPED: Final = 60
"""The longest query. Descriptions are hardly longer, and each character slows the search down."""

TYPEABLE: Final = "[ -~]*"
"""The characters allowed in a query: printable ASCII, as in descriptions."""

EXACT: Final = 1_000.0
"""The score of the exact name of a screen or global action; higher than that of a fuzzy match."""


class ActionsProvider(Provider):
    """Offers the actions that work on the current screen."""

    async def startup(self) -> None:
        for line in self.app.screen.query(CommandInput):
            line.restrict = TYPEABLE
            line.max_length = MAX_TYPED

    async def discover(self) -> Hits:
        for text, _, run in self._offers():
            yield DiscoveryHit(safe(text), run, text)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for text, action, run in self._offers():
            score = max(matcher.match(text), matcher.match(f"{action.label} {action.name}"))
            if action.id == f"everywhere.{query.strip().lower()}":
                score = EXACT
            if score:
                # Highlight only the description: this parses markup, and a key may be `[`.
                rest = text.removeprefix(action.description)
                yield Hit(score, matcher.highlight(action.description) + safe(rest), run, text)

    def _offers(self) -> Iterator[tuple[str, Action, Callable[[], Awaitable[bool]]]]:
        """Yield the entry of each action that works here, the action, and a function to run it."""
        for action, [active, *_] in active_actions(self.screen).items():
            is_move = action.place in (Place.LIST, Place.TEXT) and action.id != "list.open"
            if not is_move and action.name not in ("palette", "back"):
                key = self.app.get_key_display(active.binding)
                run = partial(self.app.run_action, action.action, active.node)
                yield f"{action.description}  ({key})", action, run


KEYS: Final = "keys"
"""The group of the worker that hands on keys while the app runs."""

REFRESH_S: Final = 5.0
"""The interval at which the header is refreshed."""

DUE_CHECK_S: Final = 0.25
"""The interval at which the app checks, on any screen, whether a deletion is due."""


class ResumesApp(App[int]):
    """The terminal UI. After the first frame, a thread calls `read_first`, then `open_session`."""

    CSS_PATH = "app.tcss"
    BINDINGS = bindings(Place.EVERYWHERE)
    # Omit Textual's own commands: one saves a screenshot, which may show a new key.
    COMMANDS: ClassVar = {ActionsProvider}
    HORIZONTAL_BREAKPOINTS = BREAKPOINTS
    VERTICAL_BREAKPOINTS = VERTICAL_BREAKPOINTS

    glance: reactive[Glance] = reactive(Glance())
    """What the header of every screen shows."""

    def __init__(
        self,
        open_session: "Callable[[], UiSession]",
        *,
        read_first: "Callable[[], tuple[str, FirstRows | None]]" = lambda: ("dark", None),
        screen: str = "resumes",
        read_only: bool = False,
    ) -> None:
        # With NO_COLOR (no-color.org), use ANSI colors, which can be omitted. Textual would turn
        # theme colors into grays, which are still sent as colors.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = "dark"
        self.animation_level = "none"  # each step would be sent, possibly over a slow connection
        self.failure: ResumesError | None = None
        """Why the session could not be opened; to be raised after the app has ended."""
        self._open_session = open_session
        self._read_first = read_first
        self.session: UiSession | None = None
        """None until the store is open."""
        self._read_only = read_only
        self._first_screen = screen
        self._keys = KeyQueue(self, self._hand_on)

    def compose(self) -> ComposeResult:
        """Yield the widgets shown until the store is open."""
        yield HeaderLine(self._first_screen, read_only=self._read_only)
        yield Note(safe("Opening the store…"))
        yield KeyLine()

    def on_mount(self) -> None:
        # After a suspend the terminal is blank, but Textual would repaint only what has changed.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(STORE_THREADS))
        self.call_after_refresh(self._open)

    @work
    async def _open(self) -> None:
        """Open the session, then show the first screen unless the app has already ended."""
        try:
            self.theme, first = await asyncio.to_thread(self._read_first)
            if first is not None:
                await self._show_first(first)
            session = await asyncio.to_thread(self._open_session)
            first_mode = next(mode for mode in MODES if mode.name == self._first_screen)
            await asyncio.to_thread(first_mode.load)
        except ResumesError as error:
            self.failure = error
            self.exit(None, 1)
        else:
            self.session, session.first = session, first
            self.theme = session.settings.theme.value
            self.call_later(self._start, session)  # does not run if the app ends

    async def _show_first(self, first: "FirstRows") -> None:
        """Until the store is open, show the rows in the position of the list that replaces them."""
        from tui.screens.resume_list import FirstRowsView

        self.query_one(HeaderLine).account = first.account
        await self.query_one(Note).remove()
        await self.mount(FirstRowsView(first), before=self.query_one(KeyLine))
        await asyncio.sleep(PAINT_S)

    def _start(self, session: "UiSession") -> None:
        # Garbage collection of everything loaded so far would delay keys by a tenth of a second.
        # Painting a list creates thousands of objects, which reference counting alone frees.
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)
        gc.enable()
        self.set_keymap(session.settings.keymap)
        for mode in MODES:  # each module is imported when its mode is first shown
            self.add_mode(mode.name, partial(lambda mode: mode.load()(session), mode))
        self.switch_mode(self._first_screen)
        self.run_worker(self._keys.run(), group=KEYS, description="")
        self._refresh_glance(session)
        self.set_interval(session.refresh_s or REFRESH_S, partial(self._refresh_glance, session))
        self.set_interval(DUE_CHECK_S, partial(self._delete_due, session))

    def _refresh_glance(self, session: "UiSession") -> None:
        if not is_running(self, self._read_glance):
            self._read_glance(session)

    @work(description="")
    async def _read_glance(self, session: "UiSession") -> None:
        from tui.screens.health import read_glance

        # The current screen reports failures.
        with suppress(Failure):
            self.glance = await call(session.store, read_glance, session=session)

    def on_app_focus(self) -> None:
        """Focus the list if the screen was built while the terminal did not have the focus."""
        if self.screen.focused is None:
            self.screen.focus_next()

    def on_unmount(self) -> None:
        # Do not use the thread pool, whose threads may all be waiting for the store.
        if self.session is not None:
            self.session.pdfs.close()

    def action_go(self, mode: str) -> None:
        if self.session is not None and mode != self.current_mode:
            self.session.trail.clear()
            self.switch_mode(mode)

    def action_help(self) -> None:
        from tui.screens.help import HelpScreen

        if self.session is not None:
            self.push_screen(HelpScreen(self.screen, self.session))

    async def action_back(self) -> None:
        """Clear the filter or the marks, or else go up one level, but never quit."""
        from tui.screens.base import ModeScreen

        screen = self.screen
        if isinstance(screen, ModeScreen) and not screen.close_top_layer() and screen.session.trail:
            self.switch_mode(screen.session.trail.pop().mode)

    def action_undo(self) -> None:
        from tui.deletions import named
        from tui.widgets.paged_list import PagedList

        if self.session is None:
            return
        if kept := self.session.deletions.undo():
            show_message(self, f"Undid the deletion of {named(kept)}.")
            for listed in self.screen.query(PagedList):
                listed.refresh()
        else:
            show_message(self, "Nothing to undo.")

    def _delete_due(self, session: "UiSession") -> None:
        if not is_running(self, self._delete) and (due := session.deletions.begin_due()):
            self._delete(session, due)

    @work(description="")
    async def _delete(self, session: "UiSession", due: "Deletion | None") -> None:
        """Carry out this and all other due deletions; show the result on the current screen."""
        from tui.deletions import carry_out, named
        from tui.widgets.paged_list import PagedList

        deleted, failed, why = list["Deletion"](), list["Deletion"](), ""
        while due is not None:
            try:
                await call(session.store, carry_out, due)
                session.deletions.gone.add(due.key)
                deleted.append(due)
            except Failure as failure:
                failed.append(due)
                why = failure.message
            due = session.deletions.begin_due()
        if deleted:
            toast(self, f"Deleted {named(deleted)}.")
        if failed:
            toast(self, f"Could not delete {named(failed)}: {why}", "error")
        for listed in self.screen.query(PagedList):
            listed.refresh_rows()

    def action_change_theme(self) -> None:
        """Switch to the next theme, unless colors are off."""
        if self.no_color:
            show_message(self, "Colors are off because NO_COLOR is set.")
            return
        names = [*THEMES]
        self.theme = names[(names.index(self.theme) + 1) % len(names)]
        show_message(self, f"Theme: {self.theme}.")

    async def action_suspend(self) -> None:
        """Suspend the process while no write is in progress; return when it is continued."""
        if (session := self.session) is None:
            return
        loop, pause = asyncio.get_running_loop(), ExitStack()
        paused = loop.run_in_executor(None, pause.enter_context, session.store.write_queue.paused())
        try:
            await asyncio.wait([paused], timeout=WAIT_S)
            if not paused.done():
                show_message(self, "A write is in progress. Try again in a moment.", "warning")
                return
            self.action_suspend_process()
            session.deletions.restart_grace()
            # The kernel may deliver SIGCONT to any thread, but the handler that takes the terminal
            # back runs only in this thread, and not while this thread waits for events. Python
            # checks for signals whenever a callback runs, even if the callback does nothing.
            self.set_interval(WAKE_S, lambda: None, repeat=WAKES)
        finally:
            # If the pause begins only after the timeout, end it immediately.
            paused.add_done_callback(lambda _: pause.close())

    async def on_event(self, event: events.Event) -> None:
        """Put keys and pastes into the key queue; handle other events immediately."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self._keys.put(event)
        else:
            await super().on_event(event)

    def on_key(self, event: events.Key) -> None:
        """Show why the key does nothing here."""
        self.call_later(self._keys.note_handled, event)  # after Textual has run the key's action
        if self.session is None or not event.is_printable:
            return
        if event.key not in self.screen.active_bindings:
            keymap, read_only = self.session.settings.keymap, self.session.read_only
            show_message(self, why_nothing(event.key, self.screen, keymap, read_only=read_only))

    @on(StatusMessage)
    def show_message(self, message: StatusMessage) -> None:
        """Show the message in the key line, or as a toast if its screen is not on top."""
        if not self.screen_stack:
            return  # the app is closing
        lines = self.screen.query(KeyLine)
        if lines and message.screen in (None, self.screen):
            lines.first().message = message
        else:
            toast(self, message.text, message.severity)

    async def _hand_on(self, key: KeyOrPaste) -> None:
        """Clear the message of the previous key, then let Textual handle this key."""
        for line in self.screen.query(KeyLine):
            line.message = None
        await super().on_event(key)

    def _fatal_error(self) -> None:
        """Report a crash without showing any data from the store.

        Textual's own report prints local variables, which may contain keys and resumes.
        """
        self.bell()
        lines = "\n".join(safe_lines(traceback.format_exc()))
        self.panic(Text(f"The terminal UI crashed.\n{lines}"))
