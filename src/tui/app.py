"""The app: its start, its modes, the keys that work on every screen, the command palette, Ctrl+Z."""

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual import events, on, work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.command import CommandInput, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.dom import DOMNode
from textual.fuzzy import Matcher
from textual.message import Message

from resumes.errors import ResumesError
from tui.key_queue import KeyOrder
from tui.keys import MODES, Action, ModeAsked, Place, bindings, find_action, shown_key, why_nothing
from tui.looks import BREAKPOINTS, DARK, LEGIBLE, change_theme, is_colourless, theme_of
from tui.shutdown import crash_report
from tui.store_calls import STORE_THREADS
from tui.text import safe, tell, tell_once
from tui.widgets.bars import KeyLine, ModeLine, TitleLine

if TYPE_CHECKING:
    from tui.session import UiSession

WAIT_S = 2.0
"""How long a write that is under way is waited for."""

WAKE_S = 0.05
WAKES = 20


class _Pause:
    """Pauses writes in a thread, which lets them go on once nobody waits for that any more."""

    def __init__(self, paused: AbstractContextManager[None]) -> None:
        self._paused = paused
        self._guard = threading.Lock()
        self._has_begun = self._is_given_up = False

    def begin(self) -> None:
        self._paused.__enter__()
        with self._guard:
            self._has_begun = True
            if self._is_given_up:
                self.end()

    def end(self) -> None:
        self._paused.__exit__(None, None, None)

    def stop_waiting(self) -> bool:
        """Return True if writes are paused; otherwise they will not stay so."""
        with self._guard:
            self._is_given_up = not self._has_begun
            return self._has_begun


async def suspend(app: App[int], session: "UiSession") -> None:
    """Stop the process while nothing is written; return once it goes on."""
    pause = _Pause(session.store.write_queue.paused())
    try:
        await asyncio.wait([asyncio.create_task(asyncio.to_thread(pause.begin))], timeout=WAIT_S)
    except asyncio.CancelledError:
        if pause.stop_waiting():
            pause.end()
        raise
    if not pause.stop_waiting():
        tell(app, "Something is being written. Try again in a moment.", "warning")
        return
    try:
        app.action_suspend_process()
    finally:
        pause.end()
        session.deletions.put_off()
        # The kernel may give the signal to continue to any thread, and its handler, which takes
        # the terminal back, runs in this one: but not while this one sleeps waiting for events.
        app.set_interval(WAKE_S, _wake, repeat=WAKES)


def _wake() -> None:
    """Python looks for signals as soon as there is anything to run, be it nothing."""


MOST_TYPED: Final = 60
"""Characters. No sentence is longer by much, and matching takes its time for each."""

TYPEABLE: Final = "[ -~]*"
"""The sentences are ASCII; nothing else need be let in, pasted control characters least."""

MOVES: Final = (Place.LIST, Place.TEXT)
"""Where keys move by a line or a page, which nobody would look for by name."""

EXACT: Final = 1_000.0
"""A score above all that matching gives: the name of a screen, typed in full."""


class Offer(NamedTuple):
    """An action that works here, where Textual finds its method, and the key that does it."""

    action: Action
    owner: DOMNode
    key: str

    @property
    def text(self) -> str:
        """What it is called in the palette."""
        return f"{self.action.sentence.rstrip('.')}  ({self.key})"

    @property
    def mode(self) -> str:
        """The name of the screen that it leads to; empty for most."""
        return next(
            (mode.name for mode in MODES if self.action.id == f"everywhere.{mode.name}"), ""
        )


class ActionsProvider(Provider):
    """The actions that work on the screen that is shown, and no others."""

    async def startup(self) -> None:
        for line in self.app.screen.query(CommandInput):
            line.restrict = TYPEABLE
            line.max_length = MOST_TYPED

    async def discover(self) -> Hits:
        for offer in self._offers():
            yield DiscoveryHit(safe(offer.text), partial(self._run, offer.action), offer.text)

    async def search(self, query: str) -> Hits:
        if len(query) > MOST_TYPED:
            return
        matcher = self.matcher(query)
        for offer in self._offers():
            names = f"{offer.action.label} {offer.action.name}"
            score = max(matcher.match(offer.text), matcher.match(names))
            if query.strip().lower() == offer.mode:
                score = EXACT
            if score:
                shown = highlighted(offer.text, matcher)
                yield Hit(score, shown, partial(self._run, offer.action), offer.text)

    def _offers(self) -> Iterator[Offer]:
        told = set()
        for node, binding, is_enabled, _ in self.screen.active_bindings.values():
            action = find_action(binding.id or "")
            if action is None or not is_enabled or action.id in told or not is_offered(action):
                continue
            told.add(action.id)
            # A key of the user's own comes without the display that the table has for it.
            key = binding.key_display or self.app.get_key_display(binding)
            yield Offer(action, node, key)

    async def _run(self, action: Action) -> None:
        """The action runs, if it still works here: the screen may have changed meanwhile."""
        for offer in self._offers():
            if offer.action == action:
                await self.app.run_action(action.action, offer.owner)
                return


def is_offered(action: Action) -> bool:
    """Whether somebody may look for the action by its sentence."""
    return action.id == "list.open" or (
        action.place not in MOVES and action.method not in ("command_palette", "back")
    )


def highlighted(text: str, matcher: Matcher) -> Content:
    """The text with what was typed marked. Textual's own marking reads brackets as markup."""
    content = safe(text)
    _, offsets = matcher.fuzzy_search.match(matcher.query, text)
    for offset in offsets:
        content = content.stylize(matcher.match_style, offset, offset + 1)
    return content


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

        def __init__(self, session: "UiSession") -> None:
            super().__init__()
            self.session = session

    def __init__(
        self,
        open_session: "Callable[[], UiSession]",
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
        self._session: UiSession | None = None
        self._read_only = read_only
        self._first_screen = screen
        self._been: list[str] = []
        self._order = KeyOrder(self, super().on_event)

    @property
    def session(self) -> "UiSession":
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
        from tui.pending_deletions import DeletionRounds

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
        from tui.screens.dialogs import HelpScreen

        self.push_screen(HelpScreen(self.screen, self._keys))

    async def action_back(self) -> None:
        """A layer of this screen is gone, or the screen of before is shown; q is how to leave."""
        from tui.screens.base import ListScreen

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
