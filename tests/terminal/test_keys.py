"""The keys: listed, made, shown once, replaced, revoked."""

import logging

import pytest
from textual.pilot import Pilot

from resumes.errors import InvalidKey
from resumes.store import accounts, api_keys
from resumes.store.store import Store
from tests.support.terminal.builders import an_account
from tests.support.terminal.driving import (
    LARGE,
    SMALL,
    copied,
    leads,
    lines,
    presses,
    running,
    shows,
    shows_no,
    toasts,
    types,
    until,
)
from tests.support.terminal.outages import UnsteadyStore

pytestmark = pytest.mark.anyio


def a_key(store: Store, name: str = "website", *, account: str = "ana") -> api_keys.NewKey:
    """A key that was shown."""
    new = api_keys.create_key(store, account, name=name)
    api_keys.mark_shown(store, new.id)
    return new


def shown_secret(pilot: Pilot[int]) -> str:
    (secret,) = [line.strip() for line in lines(pilot.app) if api_keys.FORM.search(line)]
    return secret


async def test_a_new_key_is_shown_once_and_is_nowhere_but_on_its_screen(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with running(store, "No keys yet.", "Press n to create one.", screen="keys") as pilot:
        await leads(pilot, "n", "Expires")
        await types(pilot, "web\n\n", "I've saved it", "enh_live_")
        secret = shown_secret(pilot)
        holder = api_keys.authenticate(store, secret)
        assert api_keys.get_key(store, holder.key_id).shown_at is None

        keys = "c escape q enter colon ctrl+p question_mark 5 1 T"
        await leads(pilot, keys, "I've saved it")
        assert secret not in repr(pilot.app.screen) + repr(vars(pilot.app.screen))
        await presses(pilot, "s")

        await until(lambda: api_keys.get_key(store, holder.key_id).shown_at is not None)
        await shows(pilot.app, "✓ active", "web")
        await shows_no(pilot.app, secret)
        picture = pilot.app.export_screenshot()
        told = "".join(toasts(pilot.app))
        assert secret not in picture + told + caplog.text + pilot.app.clipboard

        # Who leaves without a word has not stored it.
        await leads(pilot, "n", "Expires")
        await leads(pilot, "enter enter", "I've saved it")
        await presses(pilot, "ctrl+q")
    assert [key.shown_at is None for key in api_keys.list_keys(store)].count(True) == 1


async def test_a_key_is_rotated_and_the_old_one_counts_a_while(store: Store) -> None:
    old = a_key(store)
    async with running(store, "website", screen="keys", size=SMALL) as pilot:
        await leads(pilot, "R", "24h")
        await leads(pilot, "enter", "I've saved it", f"The old key {old.id} expires ")
        secret = shown_secret(pilot)
        await leads(pilot, "s", "~ rotated, ends ", "✓ active")
        assert api_keys.authenticate(store, secret)
        assert api_keys.authenticate(store, old.secret)


async def test_only_a_key_that_counts_is_rotated_or_revoked(store: Store) -> None:
    new = a_key(store)
    async with running(store, "✓ active", screen="keys") as pilot:
        await leads(pilot, "R", "24h")
        api_keys.revoke_key(store, new.id)
        await leads(pilot, "enter", f"The key {new.id} is revoked;", "✗ revoked")

        await leads(pilot, "R", "website is revoked. Press n to create a new key.")
        await leads(pilot, "D", "website is already revoked.")


async def test_a_key_is_revoked_by_typing_its_name(store: Store) -> None:
    new = a_key(store, "my site")
    async with running(store, "my site", screen="keys") as pilot:
        await leads(pilot, "D", "Revoke this key?")
        await shows(pilot.app, "Revoke this key?", new.id, "Last used  never", 'Type "my site"')
        await leads(pilot, "m y enter", "Revoke this key?")
        assert api_keys.get_key(store, new.id).state == "active"
        await types(pilot, " site\n", "✗ revoked")
        with pytest.raises(InvalidKey):
            api_keys.authenticate(store, new.secret)


async def test_one_key_alone_does_not_revoke_and_a_key_without_a_name_goes_by_its_id(
    store: Store,
) -> None:
    new = a_key(store, "")
    async with running(store, "✓ active", screen="keys") as pilot:
        for answer in ("enter", "escape"):
            await leads(pilot, "D", f'Type "{new.id}" to confirm:')
            await presses(pilot, answer)
            assert api_keys.get_key(store, new.id).state == "active"
        await presses(pilot, "escape")
        await leads(pilot, "D", f'Type "{new.id}" to confirm:')
        api_keys.revoke_key(store, new.id)
        await types(pilot, f"{new.id}\n", f'"{new.id}" was already revoked at ')


async def test_without_a_key_or_an_account_it_says_so(store: Store) -> None:
    async with running(store, "No keys yet.", screen="keys") as pilot:
        for key, verb in (("D", "revoke"), ("R", "rotate")):
            await leads(pilot, key, f"No key to {verb}.")
        accounts.delete_account(store, "ana")
        await leads(pilot, "n", "No accounts yet. Create one with `resumes accounts create NAME`")


# The list.


async def test_the_keys_of_one_account_take_the_place_of_those_shown_before(store: Store) -> None:
    an_account(store, "zoe")
    api_keys.create_key(store, "ana", name="of ana")
    api_keys.create_key(store, "zoe", name="of zoe")
    unsteady = UnsteadyStore(store)
    async with running(unsteady, "all accounts · 2 keys", "of ana", screen="keys") as pilot:
        await leads(pilot, "a", "(all accounts)", "zoe")
        await leads(pilot, "G enter", "zoe · 1 key", "of zoe")
        await shows_no(pilot.app, "of ana")

        await leads(pilot, "3", "2 accounts")
        with unsteady.held_reads():
            await leads(pilot, "K", "ana › Keys · ")
            await shows_no(pilot.app, "of zoe")
            await leads(pilot, "D", "No key to revoke.")
        await shows(pilot.app, "ana › Keys · 1 key", "of ana")


# The forms.


async def test_a_key_is_made_for_the_account_the_time_and_the_access_that_were_chosen(
    store: Store,
) -> None:
    an_account(store, "zoe")
    async with running(store, "No keys yet.", screen="keys", size=LARGE) as pilot:
        await leads(pilot, "n", "Expires", "Never expires.", "Access", "full")
        await presses(pilot, "shift+tab", "enter", "down", "enter")
        await presses(pilot, "tab", "tab", "enter", "down", "enter", "tab")
        await types(pilot, "3x\n", '! "3x" is not a valid expiry')
        await leads(pilot, "backspace d", "Expires 2")
        await leads(pilot, "enter enter", "I've saved it")
        await leads(pilot, "s", "~ expires", "ACCESS", "read-only")
        await leads(pilot, "enter", "Access     read-only")
    (key,) = api_keys.list_keys(store)
    assert (key.account, key.name, key.is_read_only) == ("zoe", "", True)
    assert key.expires_at is not None


async def test_a_key_that_cannot_be_made_keeps_the_form_open(store: Store) -> None:
    async with running(store, "No keys yet.", screen="keys") as pilot:
        await leads(pilot, "n", "Expires")
        accounts.delete_account(store, "ana")
        await types(pilot, "web\n\n", 'Account not found: "ana"', "input was kept.", "web")
        await leads(pilot, "escape", "No accounts yet.")


async def test_a_grace_that_cannot_be_used_keeps_the_question_open(store: Store) -> None:
    old = a_key(store)
    async with running(store, "website", screen="keys") as pilot:
        await leads(pilot, "R", "24h", "expires ")
        await leads(pilot, "end backspace", '! "24" is not a valid duration')
        await types(pilot, "d\n", "! The maximum is 7d.")
        await presses(pilot, *["backspace"] * 3, "0")
        await shows(pilot.app, "The old key stops working immediately.")
        await leads(pilot, "enter", f"The old key {old.id} no longer works.")
        with pytest.raises(InvalidKey):
            api_keys.authenticate(store, old.secret)


async def test_the_key_has_a_line_of_its_own_and_is_copied_through_tmux(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(store, "No keys yet.", screen="keys") as pilot:
        await leads(pilot, "n", "Expires")
        await leads(pilot, "enter enter", "I've saved it", "enh_live_")
        secret = shown_secret(pilot)
        texts = copied(pilot.app, monkeypatch)
        monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
        await presses(pilot, "c")
        await until(lambda: secret in texts)
        await shows(pilot.app, "Sent the key to the clipboard through tmux")
