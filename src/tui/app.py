"""The app: start, modes, the keys that work on every screen, the command palette, Ctrl+Z."""

import asyncio
import gc
import os
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual import events, on, work
from textual.app import App, ComposeResult
from textual.command import CommandInput, DiscoveryHit, Hit, Hits, Provider
from textual.reactive import reactive

from resumes.errors import ResumesError
from tui.key_queue import KeyQueue
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
"""Time for painting the first rows before imports take the CPU."""

WAIT_S = 2.0
"""How long suspending waits for a write in progress."""

GC_THRESHOLD = 5_000
"""New objects after which the youngest generation is collected."""

WAKE_S = 0.05
WAKES = 20

MAX_TYPED: Final = 60
"""Longest query, in characters: no description is much longer, and each character takes time."""

TYPEABLE: Final = "[ -~]*"
"""Descriptions are ASCII, so nothing else is accepted, such as pasted control characters."""

EXACT: Final = 1_000.0
"""A score above any fuzzy match: an exact name of a screen, or of an action that works on all."""


class ActionsProvider(Provider):
    """The actions that work on the current screen."""

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
                # Textual's own highlighting parses markup.
                marked = safe(text)
                for at in matcher.fuzzy_search.match(matcher.query, text)[1]:
                    marked = marked.stylize(matcher.match_style, at, at + 1)
                yield Hit(score, marked, run, text)

    def _offers(self) -> Iterator[tuple[str, Action, Callable[[], Awaitable[bool]]]]:
        """Yield each action that works here, with its entry and what runs it."""
        offered = set()
        for action, (node, binding, _, _) in active_actions(self.screen):
            if action.id not in offered and is_offered(action):
                offered.add(action.id)
                # A key from the user's keymap has no display text in the table.
                key = binding.key_display or self.app.get_key_display(binding)
                run = partial(self.app.run_action, action.action, node)
                yield f"{action.description}  ({key})", action, run


def is_offered(action: Action) -> bool:
    """Return whether the palette offers the action: scrolling and cursor moves are left out."""
    is_move = action.place in (Place.LIST, Place.TEXT)
    return action.id == "list.open" or not (is_move or action.name in ("palette", "back"))


REFRESH_S: Final = 5.0
"""How often the header is refreshed."""

DUE_CHECK_S: Final = 0.25
"""How often the app checks, on any screen, whether a deletion is due."""


class ResumesApp(App[int]):
    """The terminal UI. After the first frame a thread calls `read_first`, then `open_session`."""

    CSS_PATH = "app.tcss"
    BINDINGS = bindings(Place.EVERYWHERE)
    # Textual's own commands are left out: one saves screenshots, and a screen may show a new key.
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
        # NO_COLOR (no-color.org) needs ANSI colors, which can be omitted. Textual would turn theme
        # colors into grays, which are still sent as colors.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = "dark"
        self.failure: ResumesError | None = None
        """Why the session could not be opened; read after the app has ended."""
        self._open_session = open_session
        self._read_first = read_first
        self.session: UiSession | None = None
        """None until the store is open."""
        self._own_keys: Mapping[str, str] = {}
        self._read_only = read_only
        self._first_screen = screen
        self._keys = KeyQueue(self, self._hand_on)

    def compose(self) -> ComposeResult:
        """Yield the widgets shown until the store is open."""
        yield HeaderLine(self._first_screen, read_only=self._read_only)
        yield Note(safe("Opening the store…"))
        yield KeyLine()

    def on_mount(self) -> None:
        # Textual repaints only what changed, and after a suspend the terminal is blank.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(STORE_THREADS))
        self.call_after_refresh(self._open)

    @work
    async def _open(self) -> None:
        """Open the session, then show the first screen unless the app has ended meanwhile."""
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
        """Show the rows until the store is open, at the position of the list that replaces them."""
        from tui.screens.resume_list import FirstRowsView

        self.query_one(HeaderLine).account = first.account
        await self.query_one(Note).remove()
        await self.mount(FirstRowsView(first), before=self.query_one(KeyLine))
        await asyncio.sleep(PAINT_S)

    def _start(self, session: "UiSession") -> None:
        # Scanning everything loaded by now would delay keys by a tenth of a second; and painting a
        # list creates thousands of objects that reference counting alone frees.
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)
        gc.enable()
        self._own_keys = session.settings.keymap
        self.set_keymap(self._own_keys)
        for mode in MODES:  # each module is imported when its mode is first shown
            self.add_mode(mode.name, partial(lambda mode: mode.load()(session), mode))
        self.switch_mode(self._first_screen)
        self._keys.start()
        self._refresh_glance(session)
        self.set_interval(session.refresh_s or REFRESH_S, partial(self._refresh_glance, session))
        self.set_interval(DUE_CHECK_S, partial(self._delete_due, session))

    def _refresh_glance(self, session: "UiSession") -> None:
        if not is_running(self, self._read_glance):
            self._read_glance(session)

    @work(description="")
    async def _read_glance(self, session: "UiSession") -> None:
        from tui.screens.health import read_glance

        # The screen reports failures.
        with suppress(Failure):
            self.glance = await call(session.store, read_glance, session=session)

    def on_app_focus(self) -> None:
        """Focus the list, even if the screen was built while the terminal had no focus."""
        if self.screen.focused is None:
            self.screen.focus_next()

    def on_unmount(self) -> None:
        # Not in the thread pool, whose threads may all be waiting for the store.
        if self.session is not None:
            self.session.pdfs.close()

    def action_go(self, mode: str) -> None:
        if self.session is not None and mode != self.current_mode:
            self.session.trail.clear()
            self.switch_mode(mode)

    def action_help(self) -> None:
        from tui.screens.help import HelpScreen

        self.push_screen(HelpScreen(self.screen, self._own_keys, read_only=self._read_only))

    async def action_back(self) -> None:
        """Clear the filter or the marks, otherwise go up one level; never quit."""
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
        """Carry out the deletion and all that are due after it; report the result on the current
        screen."""
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
        """Stop the process while no write is in progress; return once it continues."""
        if (session := self.session) is None:
            return
        loop, is_paused, is_over = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def pause_writes() -> None:
            with session.store.write_queue.paused():
                loop.call_soon_threadsafe(is_paused.set)
                is_over.wait()

        loop.run_in_executor(None, pause_writes)
        try:
            async with asyncio.timeout(WAIT_S):
                await is_paused.wait()
        except TimeoutError:
            show_message(self, "A write is in progress. Try again in a moment.", "warning")
        else:
            self.action_suspend_process()
            session.deletions.restart_grace()
            # The kernel may deliver SIGCONT to any thread, but its handler, which takes the terminal
            # back, runs in this one, and not while this one waits for events. Python checks for
            # signals whenever a callback runs, even an empty one.
            self.set_interval(WAKE_S, lambda: None, repeat=WAKES)
        finally:
            # A pause that takes effect only now ends immediately.
            is_over.set()

    async def on_event(self, event: events.Event) -> None:
        """Queue keys behind one that opens a line; handle other events immediately."""
        if isinstance(event, events.Key) and not event.is_forwarded:
            await self._keys.put(event)
        else:
            await super().on_event(event)

    def on_key(self, event: events.Key) -> None:
        """Show why the key does nothing here."""
        if event.is_printable and event.key not in self.screen.active_bindings:
            reason = why_nothing(event.key, self.screen, self._own_keys, read_only=self._read_only)
            show_message(self, reason)

    @on(StatusMessage)
    def show_message(self, message: StatusMessage) -> None:
        """Show the message in the key line, or as a toast if its screen is not on top."""
        if not self.screen_stack:
            return  # the app is being closed
        lines = self.screen.query(KeyLine)
        if lines and message.screen in (None, self.screen):
            lines.first().say(message)
        else:
            toast(self, message.text, message.severity)

    async def _hand_on(self, key: events.Key) -> None:
        """Clear the message of the previous key, then let Textual handle this one."""
        for line in self.screen.query(KeyLine):
            line.clear()
        await super().on_event(key)

    def _fatal_error(self) -> None:
        """Report a crash without showing any data from the store.

        Textual's own report prints local variables, which include keys and resumes.
        """
        self.bell()
        lines = "\n".join(safe_lines(traceback.format_exc()))
        self.panic(Text(f"The terminal UI crashed.\n{lines}"))
