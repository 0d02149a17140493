"""The help is made from the table of actions."""

from tui.actions import ACTIONS, Place
from tui.screens.help import help_text, shown_keys

TEXT = [paragraph.content.plain for paragraph in help_text([Place.KEYS, Place.LIST], {})]


def test_every_action_is_explained() -> None:
    for action in ACTIONS:
        assert any(action.sentence in line and action.shown in line for line in TEXT), action


def test_what_works_here_comes_first() -> None:
    assert TEXT.index("Keys") < TEXT.index("In a list") < TEXT.index("Elsewhere")
    assert TEXT.index("Elsewhere") < TEXT.index("Resumes")


def test_the_users_own_keys_are_shown() -> None:
    action = next(action for action in ACTIONS if action.id == "keys.create")

    assert shown_keys(action, {"keys.create": "c,f2"}) == "c f2"
