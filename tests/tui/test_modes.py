"""The screens side by side."""

from tui.app import SCREENS
from tui.modes import MODES


def test_every_mode_has_its_screen() -> None:
    assert [mode.name for mode in MODES] == list(SCREENS)
    assert all(mode.name == SCREENS[mode.name].MODE for mode in MODES)


def test_their_keys_count_from_one() -> None:
    assert [mode.key for mode in MODES] == [str(number + 1) for number in range(len(MODES))]
