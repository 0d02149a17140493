"""The command palette: whatever can be done here, by its sentence, and the way to each screen."""

from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

from textual.command import CommandInput, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.dom import DOMNode
from textual.fuzzy import Matcher

from tui.actions import Action, Place, find_action
from tui.modes import MODES
from tui.text import safe

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
