"""The table of keys: it agrees with what there is, is explained, and the user's own are refused before they do harm."""

import importlib
import inspect
import pkgutil
import re
import runpy
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Final

import pytest
from click import Command, Context, Group
from textual.binding import Binding
from textual.dom import DOMNode

import tui
from cli.main import resumes
from resumes.errors import InvalidArgument
from resumes.settings import Settings, load_settings
from resumes.store import api_keys
from resumes.store.store import Store
from tests.support.terminal.driving import footer, leads, lines, presses, running, shows, types
from tui.app import ResumesApp
from tui.keys import ACTIONS, BY_ID, Place, check_keymap, is_key, keys_of, meet
from tui.screens.help import GRAMMAR, help_group, help_text
from tui.session import prepare


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


def test_what_has_keys_has_them_from_the_table_and_does_them() -> None:
    for owner, bindings in OWNERS.items():
        for binding in bindings:
            action = BY_ID[binding.id or ""]
            _, of_app, method = action.method.rpartition("app.")
            assert hasattr(ResumesApp if of_app else owner, f"action_{method}"), action


MEANT: Final = {
    # The preview beside these lists never has the focus.
    ("space", "resumes.mark", "text.page_down"),
    ("space", "imports.mark", "text.page_down"),
    # A page goes up one level by more keys, and has no list.
    ("escape", "resume.back", "everywhere.back"),
    ("escape", "file.back", "everywhere.back"),
    ("enter", "file.open_resume", "list.open"),
    # The filter has the focus, and so comes first.
    ("enter", "list.open", "filter.to_list"),
    ("down", "list.down", "filter.to_list"),
    ("down", "text.down", "filter.to_list"),
    ("escape", "filter.clear", "everywhere.back"),
}
"""Keys that two actions have, though their places meet."""


def test_no_two_actions_have_one_name_or_one_key_in_one_place() -> None:
    names = Counter(one.id for one in ACTIONS)
    assert [name for name, times in names.items() if times > 1] == []
    assert all(is_key(key) for one in ACTIONS for key in keys_of(one, {}))
    shared = {
        (key, first.id, other.id)
        for first, other in combinations(ACTIONS, 2)
        if meet(first.place, other.place)
        for key in {*keys_of(first, {})} & {*keys_of(other, {})}
    }
    told = [f'The key "{key}" is that of {one} and {other}' for key, one, other in shared - MEANT]
    assert not told, "\n".join(sorted(told))
    assert shared >= MEANT


def test_what_changes_something_is_a_command_too() -> None:
    for action in ACTIONS:
        if not action.command:
            continue
        command: Command = resumes
        for word in action.command.split()[1:]:
            assert isinstance(command, Group)
            found = command.get_command(Context(resumes), word)
            assert found is not None, (action, word)
            command = found
        assert any("--json" in parameter.opts for parameter in command.params), action


def refusal(keymap: Mapping[str, str]) -> str:
    with pytest.raises(InvalidArgument) as refused:
        check_keymap(keymap, "config.toml")
    assert "config.toml" in refused.value.message
    return refused.value.message


@pytest.mark.parametrize(
    ("keys_given", "told"),
    [
        ("f88", 'Unknown key "f88" for resumes.delete in the keymap of config.toml. Did you mean'),
        ("del", 'Did you mean "delete"?'),
        ("F8", 'Did you mean "f8"?'),
        ("shift+d", 'Unknown key "shift+d"'),
        ("shift+ctrl+left", "Unknown key"),
        ("ctrl+E", "Unknown key"),
        ("", 'Unknown key ""'),
        ("d,,", "slash, comma"),
        ("\x1b]52;c;AAAA\x07", "Unknown key"),
        ("ctrl+i", "terminals send it as tab"),
        ("ctrl+m", "terminals send it as enter"),
        ("ctrl+h", "terminals send it as backspace"),
    ],
)
def test_keys_that_there_are_not_are_named(keys_given: str, told: str) -> None:
    assert told in refusal({"resumes.delete": keys_given})


def test_an_unknown_action_is_named_with_the_nearest() -> None:
    assert (
        'Unknown action "resumes.delet" in the keymap of config.toml. Did you mean "resumes.delete"?'
        in (refusal({"resumes.delet": "d"}))
    )
    assert "Did you mean" not in refusal({"qqqq": "d"})


@pytest.mark.parametrize(
    ("action_id", "key", "other"),
    [
        ("resumes.export", "d", "resumes.delete"),
        ("resumes.export", "j", "list.down"),
        ("resumes.export", "5", "everywhere.keys"),
        ("keys.create", "q", "everywhere.quit"),
        ("dialog.cancel", "down", "list.down"),
    ],
)
def test_a_key_that_would_do_two_things_at_once_is_refused(
    action_id: str, key: str, other: str
) -> None:
    told = refusal({action_id: key})

    assert f'the key "{key}"' in told
    assert action_id in told
    assert other in told


def test_actions_may_change_their_keys_and_share_them_where_they_never_meet() -> None:
    check_keymap({"resumes.export": "d,delete", "resumes.delete": "x"}, "config.toml")
    check_keymap({"resume.back": "escape,b"}, "config.toml")
    assert not meet(Place.LIST, Place.TEXT)
    assert not meet(Place.NEW_KEY, Place.EVERYWHERE)
    assert meet(Place.KEYS, Place.LIST)


@pytest.mark.parametrize("action_id", ["filter.clear", "dialog.cancel"])
def test_no_key_takes_a_letter_from_what_is_typed(action_id: str) -> None:
    assert "typed as text" in refusal({action_id: "x"})
    assert "typed as text" in refusal({action_id: "space"})


def test_the_settings_are_checked_when_the_session_is_opened(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(keymap={"keys.creat": "c"})
    with pytest.raises(InvalidArgument, match=r"config\.toml"):
        prepare(store, settings=settings)
    monkeypatch.setenv("RESUMES_KEYMAP", '{"keys.creat": "c"}')
    with pytest.raises(InvalidArgument, match="the keymap of RESUMES_KEYMAP"):
        prepare(store, settings=load_settings())


@pytest.mark.anyio
async def test_the_users_keys_work_and_are_shown(store: Store) -> None:
    api_keys.create_key(store, "ana", name="website")
    own = Settings(keymap={"keys.create": "c,f2", "keys.revoke": "n"})
    async with running(store, screen="keys", size=(100, 30), settings=own) as pilot:
        await shows(pilot.app, "website", "c New key", "n Revoke")
        assert "D Revoke" not in footer(pilot.app)

        await leads(pilot, "question_mark", "c f2          Create key")
        await presses(pilot, "escape")
        await types(pilot, ":create", "Create key  (c)")
        await leads(pilot, "escape f2", "Expires")
        await leads(pilot, "escape n", 'Type "website" to confirm:')


@pytest.mark.anyio
async def test_the_help_begins_with_what_works_here(store: Store) -> None:
    async with running(store, screen="keys", size=(120, 50)) as pilot:
        await leads(pilot, "question_mark", "Keyboard shortcuts", "Create key", "Create plan")
        text = "\n".join(lines(pilot.app))
        places = ("│ Keys ", "│ Lists ", "│ Everywhere ")
        assert sorted(map(text.index, places)) == list(map(text.index, places))


def test_no_line_of_the_help_is_cut_off_in_two_columns() -> None:
    actions = [(action.shown, action.description) for action in ACTIONS]
    left = help_text([help_group("Everything", [*GRAMMAR, *actions])], columns=2)
    assert len(left) > len(GRAMMAR) + len(ACTIONS)
    assert not [line for line in left if "…" in line.content.plain]


# The page in the docs.


@pytest.fixture
def page(repository: Path) -> str:
    """What `make keys` writes."""
    written: str = runpy.run_path(str(repository / "docs/pictures/keys_page.py"))["page"]()
    return written


def test_the_page_in_the_docs_is_up_to_date(page: str, repository: Path) -> None:
    assert (repository / "docs" / "keys.md").read_text(encoding="utf-8") == page, "make keys"


def test_the_example_can_be_used(page: str) -> None:
    example = dict(re.findall(r'^"([a-z_.]+)" = "([^"]+)"$', page, re.MULTILINE))

    assert set(example) <= set(BY_ID)
    check_keymap(example, "the example")


@pytest.mark.parametrize(
    "keys_given",
    ["f8", "d,f8", "D", "!", "ctrl+e", "alt+x", "ctrl+shift+left", "shift+f3", "ö", "-"],
)
def test_keys_that_terminals_send_are_taken(keys_given: str) -> None:
    check_keymap({"resumes.delete": keys_given}, "config.toml")
