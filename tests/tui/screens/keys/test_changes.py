"""What the screen of keys does to the store."""

from datetime import timedelta

import pytest

from resumes.errors import Conflict, InvalidKey, NotFound
from resumes.store import keys
from resumes.store.engine import Store
from tui.screens.keys import changes
from tui.screens.keys.creating import Wish
from tui.screens.keys.registering import Foreign


def test_a_key_is_made_as_wished(store: Store) -> None:
    new = changes.create(store, Wish("ana", "website", timedelta(days=1)))

    key = keys.get_key(store, new.id)
    assert (key.account, key.name, key.shown_at) == ("ana", "website", None)
    assert key.expires_at is not None


def test_a_key_from_elsewhere_counts(store: Store) -> None:
    secret = keys.new_secret()

    key_id = changes.register(store, Foreign("ana", "old", secret))

    assert keys.authenticate(store, secret)[0].key_id == key_id
    with pytest.raises(Conflict):
        changes.register(store, Foreign("ana", "old", secret))


def test_a_rotated_key_counts_for_its_grace(store: Store) -> None:
    old = keys.create_key(store, "ana", name="website")

    new = changes.rotate(store, keys.get_key(store, old.id), timedelta(0))

    assert keys.authenticate(store, new.secret)
    with pytest.raises(InvalidKey):
        keys.authenticate(store, old.secret)


def test_revoking_says_that_somebody_was_faster(store: Store) -> None:
    new = keys.create_key(store, "ana", name="website")
    key = keys.get_key(store, new.id)

    changes.revoke(store, key)

    assert keys.get_key(store, new.id).state == "revoked"
    with pytest.raises(Conflict, match='"website" was revoked already, at 2'):
        changes.revoke(store, key)


def test_revoking_says_that_the_key_is_gone(store: Store) -> None:
    new = keys.create_key(store, "ana")
    key = keys.get_key(store, new.id)
    from resumes.store import accounts

    accounts.delete_account(store, "ana")

    with pytest.raises(NotFound):
        changes.revoke(store, key)


def test_the_fate_of_an_old_key_is_told(store: Store) -> None:
    new = keys.create_key(store, "ana", lifetime=timedelta(hours=1))
    key = keys.get_key(store, new.id)
    now_us = store.clock()
    assert key.expires_at is not None
    expiry = f"{key.expires_at[:10]} {key.expires_at[11:16]}"

    assert (
        changes.fate(key, timedelta(0), now_us) == f"The old key {key.id} does not count any more."
    )
    assert changes.fate(key, timedelta(days=1), now_us) == (
        f"The old key {key.id} counts until {expiry} UTC."
    )
