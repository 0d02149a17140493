"""The table of keys agrees with what there is."""

import importlib
import inspect
import pkgutil
from collections import Counter
from collections.abc import Iterator

import pytest
from click import Command, Context, Group
from textual.binding import Binding
from textual.dom import DOMNode

import tui
from cli.main import resumes
from tui.actions import ACTIONS, Action, Place, changes_store, find_action


def iter_owners() -> Iterator[type[DOMNode]]:
    """Every class of ours that has keys."""
    for module in pkgutil.walk_packages(tui.__path__, "tui."):
        for _, found in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            is_ours = found.__module__ == module.name
            if is_ours and issubclass(found, DOMNode) and found.__dict__.get("BINDINGS"):
                yield found


OWNERS = {
    owner: [binding for binding in owner.__dict__["BINDINGS"] if isinstance(binding, Binding)]
    for owner in iter_owners()
}


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.__name__)
def test_what_has_keys_has_them_from_the_table_and_does_them(owner: type[DOMNode]) -> None:
    for binding in OWNERS[owner]:
        action = find_action(binding.id or "")
        assert action is not None, binding
        assert hasattr(owner, f"action_{action.method}"), action


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_every_action_has_its_keys_somewhere(action: Action) -> None:
    assert any(binding.id == action.id for bindings in OWNERS.values() for binding in bindings)


@pytest.mark.parametrize("place", Place)
def test_no_key_does_two_things_in_one_place(place: Place) -> None:
    keys = Counter(key for action in ACTIONS if action.place is place for key in action.key_names)

    assert [key for key, times in keys.items() if times > 1] == []


def test_no_two_actions_have_one_name() -> None:
    assert [name for name, times in Counter(one.id for one in ACTIONS).items() if times > 1] == []


@pytest.mark.parametrize(
    "action", [one for one in ACTIONS if one.changes], ids=lambda action: action.id
)
def test_what_changes_something_is_a_command_too(action: Action) -> None:
    command: Command = resumes
    context = Context(resumes)
    for word in action.command.split()[1:]:
        assert isinstance(command, Group)
        found = command.get_command(context, word)
        assert found is not None, word
        command = found
    assert any("--json" in parameter.opts for parameter in command.params)


def test_what_writes_to_the_store_is_marked() -> None:
    assert changes_store("create_key")
    assert changes_store("revoke_key")
    assert not changes_store("reload")
