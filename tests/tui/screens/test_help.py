"""The help."""

import pytest

from tui.actions import ACTIONS, Action
from tui.screens.help import help_text

TEXT = [paragraph.content.plain for paragraph in help_text()]


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: f"{action.place}-{action.name}")
def test_every_key_is_in_it(action: Action) -> None:
    assert any(line.startswith(action.shown) and line.endswith(action.sentence) for line in TEXT)
