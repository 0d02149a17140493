"""The keys: made, shown once, replaced, revoked."""

import logging
from collections.abc import Callable

import pytest

from resumes.errors import InvalidKey
from resumes.store import accounts, keys
from resumes.store.engine import Store
from resumes.text import is_harmless
from tests.tui.builders import HOSTILE, an_account
from tests.tui.driving import SMALL, lines, presses, running, segments, shows, until
from tests.tui.outages import held_reads
from tui.screens.accounts.screen import AccountsScreen
from tui.screens.confirming import ConfirmDialog
from tui.screens.keys.creating import CreateKeyDialog
from tui.screens.keys.new_key import NewKeyScreen
from tui.screens.keys.registering import RegisterKeyDialog
from tui.screens.keys.rotating import RotateDialog
from tui.screens.keys.screen import KeysScreen

pytestmark = pytest.mark.anyio


def a_key(store: Store, name: str = "website", *, account: str = "ana") -> keys.NewKey:
    """A key that was shown."""
    new = keys.create_key(store, account, name=name)
    keys.mark_shown(store, new.id)
    return new


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

        await presses(pilot, "escape", "q", "enter", "colon", "ctrl+p")
        assert isinstance(pilot.app.screen, NewKeyScreen)
        await presses(pilot, "s")

        await until(lambda: keys.get_key(store, holder.key_id).shown_at is not None)
        await shows(pilot.app, keys.mask(secret), "✓ active", "web")
        assert secret not in "".join(lines(pilot.app))
        assert secret not in "".join(toast.message for toast in pilot.app._notifications)


async def test_a_new_key_is_nowhere_but_on_its_screen(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "There are no keys here yet.")
        await presses(pilot, "n")
        await until(lambda: isinstance(pilot.app.screen, CreateKeyDialog))
        await presses(pilot, "enter")
        await until(lambda: isinstance(pilot.app.screen, NewKeyScreen))
        await shows(pilot.app, "enh_live_")
        (secret,) = [line.strip() for line in lines(pilot.app) if keys.FORM.search(line)]
        await presses(pilot, "c", "colon", "ctrl+p", "question_mark", "5", "1", "T")
        assert isinstance(pilot.app.screen, NewKeyScreen)
        assert secret not in repr(pilot.app.screen) + repr(vars(pilot.app.screen))

        await presses(pilot, "s")
        await shows(pilot.app, "✓ active")

        picture = pilot.app.export_screenshot()
        toasts = "".join(toast.message for toast in pilot.app._notifications)
        assert secret not in picture + toasts + caplog.text + pilot.app.clipboard


@pytest.mark.parametrize("key", ["enter", "R", "D"])
async def test_a_hostile_name_is_text_in_every_dialog(store: Store, key: str) -> None:
    # The store takes printable names only, which leaves markup.
    a_key(store, "".join(filter(str.isprintable, HOSTILE))[:100])
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "a[/b]c")

        await presses(pilot, key)

        await shows(pilot.app, "Account    ana", "[@click=app.quit]x[/]")
        for segment in segments(pilot.app):
            assert is_harmless(segment.text)
            assert segment.style is None or "@click" not in segment.style.meta


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


async def test_a_key_is_rotated_and_the_old_one_counts_a_while(store: Store) -> None:
    old = a_key(store)
    async with running(store, screen="keys", size=SMALL) as pilot:
        await shows(pilot.app, "website")

        await presses(pilot, "R")
        await until(lambda: isinstance(pilot.app.screen, RotateDialog))
        await presses(pilot, "enter")
        await until(lambda: isinstance(pilot.app.screen, NewKeyScreen))
        await shows(pilot.app, f"The old key {old.id} counts until ")
        (secret,) = [line.strip() for line in lines(pilot.app) if keys.FORM.search(line)]
        await presses(pilot, "s")

        await shows(pilot.app, "~ until ", "✓ active", keys.mask(secret))
        assert keys.authenticate(store, secret)
        assert keys.authenticate(store, old.secret)


async def test_only_a_key_that_counts_is_rotated(store: Store) -> None:
    new = a_key(store)
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "✓ active")
        keys.revoke_key(store, new.id)
        await presses(pilot, "r")
        await shows(pilot.app, "✗ revoked")

        await presses(pilot, "R")

        await shows(pilot.app, "website is revoked: n makes a new key.")


async def test_a_key_is_revoked_by_typing_its_name(store: Store) -> None:
    new = a_key(store, "my site")
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "my site")

        await presses(pilot, "D")
        await until(lambda: isinstance(pilot.app.screen, ConfirmDialog))
        await shows(pilot.app, "Revoke this key?", new.id, "Last used  never", "Type my site")
        await presses(pilot, *"my", "enter")
        assert isinstance(pilot.app.screen, ConfirmDialog)
        assert keys.get_key(store, new.id).state == "active"
        await presses(pilot, "space", *"site", "enter")

        await shows(pilot.app, "✗ revoked")
        with pytest.raises(InvalidKey):
            keys.authenticate(store, new.secret)


async def test_a_key_without_a_name_is_revoked_by_its_id(store: Store) -> None:
    new = a_key(store, "")
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "✓ active")

        await presses(pilot, "D")
        await shows(pilot.app, f"Type {new.id} to revoke:")
        await presses(pilot, *("underscore" if char == "_" else char for char in new.id), "enter")

        await shows(pilot.app, "✗ revoked")


@pytest.mark.parametrize("answer", ["enter", "escape"])
async def test_one_key_alone_does_not_revoke(store: Store, answer: str) -> None:
    new = a_key(store)
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "website")
        await presses(pilot, "D")
        await until(lambda: isinstance(pilot.app.screen, ConfirmDialog))
        await presses(pilot, answer)

    assert keys.get_key(store, new.id).state == "active"


async def test_what_was_revoked_elsewhere_shows_by_itself(store: Store) -> None:
    new = a_key(store)
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "✓ active")

        keys.revoke_key(store, new.id)

        await shows(pilot.app, "✗ revoked")


async def test_what_was_revoked_elsewhere_meanwhile_is_said(store: Store) -> None:
    new = a_key(store)
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "✓ active")
        await presses(pilot, "D")
        await until(lambda: isinstance(pilot.app.screen, ConfirmDialog))
        keys.revoke_key(store, new.id)

        await presses(pilot, *"website", "enter")

        await shows(pilot.app, '"website" was revoked already, at', "✗ revoked")


async def test_what_was_rotated_away_elsewhere_meanwhile_is_said(store: Store) -> None:
    new = a_key(store)
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "✓ active")
        await presses(pilot, "R")
        await until(lambda: isinstance(pilot.app.screen, RotateDialog))
        keys.revoke_key(store, new.id)

        await presses(pilot, "enter")

        await shows(pilot.app, f"The key {new.id} is revoked;", "✗ revoked")


async def test_a_key_whose_account_went_meanwhile_is_said_to_be_gone(store: Store) -> None:
    an_account(store, "zoe")
    new = a_key(store, account="zoe")
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "✓ active")
        await presses(pilot, "D")
        await until(lambda: isinstance(pilot.app.screen, ConfirmDialog))
        accounts.delete_account(store, "zoe")

        await presses(pilot, *"website", "enter")

        await shows(pilot.app, f'Key not found: "{new.id}"', "There are no keys here yet.")


async def test_a_key_from_elsewhere_is_registered(store: Store) -> None:
    secret = keys.new_secret()
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "There are no keys here yet.")
        await presses(pilot, "i")
        await until(lambda: isinstance(pilot.app.screen, RegisterKeyDialog))
        await presses(pilot, *("underscore" if char == "_" else char for char in secret), "enter")

        await shows(pilot.app, keys.mask(secret), "counts from now on")
        assert keys.authenticate(store, secret)
        assert secret not in "".join(lines(pilot.app))
        assert secret not in "".join(toast.message for toast in pilot.app._notifications)


@pytest.mark.parametrize(("key", "verb"), [("D", "revoke"), ("R", "rotate")])
async def test_without_a_key_it_says_so(store: Store, key: str, verb: str) -> None:
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "There are no keys here yet.")
        await presses(pilot, key)
        await shows(pilot.app, f"There is no key to {verb}.")


async def test_what_is_revoked_is_not_revoked_again(store: Store) -> None:
    new = a_key(store)
    keys.revoke_key(store, new.id)
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "✗ revoked")
        await presses(pilot, "D")
        await shows(pilot.app, "website is revoked already.")


async def test_read_only_has_no_keys_that_change_something(store: Store) -> None:
    keys.create_key(store, "ana", name="website")
    async with running(store, screen="keys", read_only=True) as pilot:
        await shows(pilot.app, "website")
        assert "New key" not in lines(pilot.app)[-1]
        assert "Revoke" not in lines(pilot.app)[-1]

        for key in ("n", "i", "R", "D"):
            await presses(pilot, key)
            assert isinstance(pilot.app.screen, KeysScreen)
        await shows(pilot.app, "Read-only: start without --read-only")


async def test_without_accounts_there_can_be_no_key(empty_store: Store) -> None:
    async with running(empty_store, screen="keys") as pilot:
        await shows(pilot.app, "There are no accounts yet.")

        await presses(pilot, "n")

        await shows(pilot.app, "There are no accounts: `resumes accounts create NAME`")


@pytest.mark.parametrize("key", ["n", "i"])
async def test_no_form_opens_over_the_screen_that_the_reader_went_to(
    store: Store, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "There are no keys here yet.")
        keys_screen = pilot.app.screen
        assert isinstance(keys_screen, KeysScreen)
        answered: list[list[str]] = []
        really = keys_screen._ask

        def ask(opens: Callable[[list[str], str], object], names: list[str]) -> None:
            really(opens, names)
            answered.append(names)

        monkeypatch.setattr(keys_screen, "_ask", ask)
        with held_reads(monkeypatch):
            await presses(pilot, key, "3")
            await until(lambda: isinstance(pilot.app.screen, AccountsScreen))

        await until(lambda: answered)
        await shows(pilot.app, "1 account")
        assert isinstance(pilot.app.screen, AccountsScreen)
