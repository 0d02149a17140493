"""The table of keys agrees with what there is."""

from collections import Counter

import pytest

from tui.actions import ACTIONS, Action, Place, bindings, changes_store, find_actions
from tui.app import ResumesApp
from tui.screens.accounts.chooser import AccountChooser
from tui.screens.accounts.screen import AccountsScreen
from tui.screens.help import HelpScreen
from tui.screens.keys.creating import CreateKeyDialog
from tui.screens.keys.dialogs import KeyDialog, RevokeDialog
from tui.screens.keys.new_key import NewKeyScreen
from tui.screens.keys.screen import KeysScreen
from tui.screens.resumes.detail import DetailScreen
from tui.screens.resumes.screen import ResumesScreen
from tui.widgets.paged_list import PagedList
from tui.widgets.text_pane import TextPane

OWNERS: dict[Place, tuple[type, ...]] = {
    Place.EVERYWHERE: (ResumesApp,),
    Place.LIST: (PagedList,),
    Place.TEXT: (TextPane,),
    Place.RESUMES: (ResumesScreen,),
    Place.RESUME: (DetailScreen,),
    Place.ACCOUNTS: (AccountsScreen,),
    Place.KEYS: (KeysScreen,),
    Place.NEW_KEY: (NewKeyScreen,),
    Place.DIALOG: (AccountChooser, HelpScreen, CreateKeyDialog, RevokeDialog, KeyDialog),
}


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: f"{action.place}-{action.name}")
def test_every_action_is_found_where_it_works(action: Action) -> None:
    for owner in OWNERS[action.place]:
        assert hasattr(owner, f"action_{action.method}")


@pytest.mark.parametrize("place", Place)
def test_every_place_binds_its_keys(place: Place) -> None:
    for owner in OWNERS[place]:
        assert set(bindings(place)) <= set(owner.__dict__["BINDINGS"])


@pytest.mark.parametrize("place", Place)
def test_no_key_does_two_things_in_one_place(place: Place) -> None:
    keys = Counter(key for action in ACTIONS if action.place is place for key in action.key_names)

    assert [key for key, times in keys.items() if times > 1] == []


def test_what_writes_to_the_store_is_marked() -> None:
    assert changes_store("create_key")
    assert changes_store("revoke_key")
    assert not changes_store("reload")


def test_a_key_leads_to_its_actions() -> None:
    assert [action.name for action in find_actions("n")] == ["create_key"]
    assert find_actions("Z") == []
