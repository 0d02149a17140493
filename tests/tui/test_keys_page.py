"""The page of keys is the one that the table of actions makes."""

import re
from pathlib import Path

import pytest

from tui.actions import ACTIONS, Action, find_action
from tui.keymap import check_keymap
from tui.keys_page import page


def test_the_page_in_the_docs_is_up_to_date(repository: Path) -> None:
    written = (repository / "docs" / "keys.md").read_text(encoding="utf-8")
    assert written == page(), "make keys"


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_every_action_has_its_row(action: Action) -> None:
    (row,) = [line for line in page().splitlines() if f"| `{action.id}` |" in line]
    assert action.sentence in row
    assert f"`{action.keys}`" in row
    assert action.command in row


def test_the_example_can_be_used() -> None:
    example = dict(re.findall(r'^"([a-z_.]+)" = "([^"]+)"$', page(), re.MULTILINE))

    assert all(find_action(action_id) for action_id in example)
    check_keymap(example, "the example")
