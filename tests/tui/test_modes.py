"""The screens that stand beside one another."""

import pytest

from tui.modes import MODES, Mode
from tui.screens.list_screen import ListScreen


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_every_mode_has_a_screen_that_knows_its_name(mode: Mode) -> None:
    screen = mode.load()

    assert issubclass(screen, ListScreen)
    assert mode.name == screen.MODE


def test_their_keys_are_the_digits_in_order() -> None:
    assert [mode.key for mode in MODES] == ["1", "2", "3", "4", "5", "6"]
