"""The keys: made, shown once, revoked."""

import pytest

from resumes.errors import InvalidKey
from resumes.store import keys
from resumes.store.engine import Store
from tests.tui.builders import an_account
from tests.tui.driving import LARGE, lines, presses, running, shows, until
from tui.screens.keys.creating import CreateKeyDialog
from tui.screens.keys.dialogs import KeyDialog, RevokeDialog
from tui.screens.keys.new_key import NewKeyScreen
from tui.screens.keys.screen import KeysScreen

pytestmark = pytest.mark.anyio


async def test_keys_are_listed_masked_with_their_state(store: Store) -> None:
    an_account(store, "zoe")
    new = keys.create_key(store, "ana", name="website")
    keys.mark_shown(store, new.id)
    keys.create_key(store, "zoe", name="lost")
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "all accounts · 2 keys", keys.mask(new.secret), "website", "active")
        await shows(pilot.app, "never shown")
        assert new.secret not in "".join(lines(pilot.app))


async def test_wide_terminals_show_more(store: Store) -> None:
    new = keys.create_key(store, "ana")
    async with running(store, screen="keys", size=LARGE) as pilot:
        await shows(pilot.app, "EXPIRES", "CREATED (UTC)", new.id)


async def test_the_list_can_be_one_accounts(store: Store) -> None:
    an_account(store, "zoe")
    keys.create_key(store, "ana", name="one of ana")
    keys.create_key(store, "zoe", name="one of zoe")
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "2 keys")

        await presses(pilot, "a")
        await shows(pilot.app, "(all accounts)", "zoe")
        await presses(pilot, "G", "enter")

        await shows(pilot.app, "zoe · 1 key", "one of zoe")
        assert "one of ana" not in "".join(lines(pilot.app))


async def test_enter_shows_what_is_known_of_a_key(store: Store) -> None:
    new = keys.create_key(store, "ana", name="website")
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "website")

        await presses(pilot, "enter")

        await until(lambda: isinstance(pilot.app.screen, KeyDialog))
        await shows(pilot.app, new.id, "website")


async def test_a_new_key_is_shown_once_and_then_masked(store: Store) -> None:
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "There are no keys here yet.", "n makes one.")

        await presses(pilot, "n")
        await until(lambda: isinstance(pilot.app.screen, CreateKeyDialog))
        await presses(pilot, *"web", "enter")
        await until(lambda: isinstance(pilot.app.screen, NewKeyScreen))
        await shows(pilot.app, "enh_live_")
        (secret,) = [line.strip() for line in lines(pilot.app) if keys.FORM.search(line)]
        holder, _ = keys.authenticate(store, secret)
        assert keys.get_key(store, holder.key_id).shown_at is None

        await presses(pilot, "escape", "q", "enter")
        assert isinstance(pilot.app.screen, NewKeyScreen)
        await presses(pilot, "s")

        await until(lambda: keys.get_key(store, holder.key_id).shown_at is not None)
        await shows(pilot.app, keys.mask(secret), "active", "web")
        assert secret not in "".join(lines(pilot.app))
        assert secret not in "".join(toast.message for toast in pilot.app._notifications)


async def test_leaving_the_app_leaves_the_key_not_shown(store: Store) -> None:
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "There are no keys here yet.")
        await presses(pilot, "n")
        await until(lambda: isinstance(pilot.app.screen, CreateKeyDialog))
        await presses(pilot, "enter")
        await until(lambda: isinstance(pilot.app.screen, NewKeyScreen))

        await presses(pilot, "ctrl+q")

    (key,) = keys.list_keys(store)
    assert (key.state, key.shown_at) == ("active", None)


async def test_a_key_is_revoked_after_an_explicit_yes(store: Store) -> None:
    new = keys.create_key(store, "ana", name="website")
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "website")

        await presses(pilot, "x")
        await until(lambda: isinstance(pilot.app.screen, RevokeDialog))
        await shows(pilot.app, "Revoke this key?", new.id)
        await presses(pilot, "tab", "enter")

        await shows(pilot.app, "revoked")
        await until(lambda: keys.get_key(store, new.id).state == "revoked")
        with pytest.raises(InvalidKey):
            keys.authenticate(store, new.secret)


async def test_enter_alone_does_not_revoke(store: Store) -> None:
    new = keys.create_key(store, "ana", name="website")
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "website")
        for answer in ("enter", "escape"):
            await presses(pilot, "x")
            await until(lambda: isinstance(pilot.app.screen, RevokeDialog))
            await presses(pilot, answer)
            await until(lambda: isinstance(pilot.app.screen, KeysScreen))

    assert keys.get_key(store, new.id).state == "active"


async def test_what_cannot_be_revoked_says_why(store: Store) -> None:
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "There are no keys here yet.")
        await presses(pilot, "x")
        await shows(pilot.app, "There is no key to revoke.")

        new = keys.create_key(store, "ana", name="website")
        keys.revoke_key(store, new.id)
        await presses(pilot, "r")
        await shows(pilot.app, "website")
        await presses(pilot, "x")
        await shows(pilot.app, "is revoked already")


async def test_read_only_has_no_keys_that_change_something(store: Store) -> None:
    keys.create_key(store, "ana", name="website")
    async with running(store, screen="keys", read_only=True) as pilot:
        await shows(pilot.app, "website")
        assert "New key" not in lines(pilot.app)[-1]
        assert "Revoke" not in lines(pilot.app)[-1]

        for key in ("n", "x", "D"):
            await presses(pilot, key)
            assert isinstance(pilot.app.screen, KeysScreen)
        await shows(pilot.app, "Read-only: start without --read-only")


async def test_without_accounts_there_can_be_no_key(empty_store: Store) -> None:
    async with running(empty_store, screen="keys") as pilot:
        await shows(pilot.app, "There are no accounts yet.")

        await presses(pilot, "n")

        await shows(pilot.app, "There are no accounts: `resumes accounts create NAME`")
