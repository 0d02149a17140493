"""API keys: whose they are, how long they count, and that the store keeps none."""

import asyncio
import re
from datetime import timedelta

import pytest
from sqlalchemy import select, text

from resumes.clock import timestamp
from resumes.errors import Conflict, InvalidArgument, InvalidKey, NotFound
from resumes.store import Store, accounts, api_keys, identifiers, open_store
from resumes.store.accounts import AccountInfo
from resumes.store.schema import metadata
from tests.store.conftest import SteppingClock
from tests.support.store.builders import MakeAccount

pytestmark = pytest.mark.engines


def counts(store: Store, secret: str) -> bool:
    """Whether it does, to threads and to event loops alike."""
    try:
        holder = api_keys.authenticate(store, secret)
    except InvalidKey:
        with pytest.raises(InvalidKey):
            asyncio.run(api_keys.authenticate_async(store, secret))
        return False
    assert asyncio.run(api_keys.authenticate_async(store, secret)) == holder
    return True


def test_keys_and_ids_have_their_forms_and_are_random() -> None:
    secret = api_keys.new_secret()
    assert api_keys.FORM.fullmatch(secret)
    body = secret.removeprefix("enh_live_")
    assert body[58:] == api_keys.checksum(body[:58])
    for make, form in (
        (api_keys.new_secret, "enh_live_[A-Za-z0-9]{64}"),
        (identifiers.key_id, "key_[0-9a-f]{12}"),
        (identifiers.account_id, "[0-9a-f]{16}"),
    ):
        made = {make() for _ in range(100)}
        assert len(made) == 100
        assert all(re.fullmatch(form, one) for one in made)
    assert identifiers.KEY_ID.fullmatch(identifiers.key_id())


def test_a_key_says_whose_it_is_and_what_the_plan_allows(
    store: Store, an_account: MakeAccount
) -> None:
    for name, plan, listing in (("ana", "business", True), ("bo", "free", False)):
        account = an_account(name, plan=plan)
        new = api_keys.create_key(store, name)
        holder = api_keys.authenticate(store, new.secret)
        assert holder[:3] == (account.id, new.id, listing)


@pytest.mark.parametrize("secret", ["", "x", "enh_live_" + "a" * 64, "é", "\udc80", "a" * 10_000])
def test_anything_else_is_no_key(store: Store, secret: str) -> None:
    with pytest.raises(InvalidKey, match="Invalid API key"):
        api_keys.authenticate(store, secret)


def test_the_store_keeps_no_key(store: Store, ana: AccountInfo) -> None:
    new = api_keys.create_key(store, "ana", name="integration")
    (key,) = api_keys.list_keys(store)
    assert key.masked == new.secret[:12] + "…"
    assert (key.account, key.name, key.state) == ("ana", "integration", "active")
    assert key.shown_at is None
    with store.read() as connection:
        rows = [connection.execute(select(table)).all() for table in metadata.sorted_tables]
        (kept,) = connection.execute(text("SELECT key_hash FROM key_directory")).scalars()
    store.close()
    files = list(store.path.parent.iterdir()) if store.path else []
    assert kept == api_keys.hash_key(new.secret)
    assert "ana" in repr(rows)
    assert new.secret not in repr(rows) + repr(new)
    assert not any(new.secret.encode() in file.read_bytes() for file in files)


def test_a_revoked_key_or_that_of_a_deleted_account_is_refused_at_once_in_every_process(
    store: Store, ana: AccountInfo, url: str
) -> None:
    new, other_key = (api_keys.create_key(store, "ana") for _ in range(2))
    with open_store(url) as other:
        assert counts(other, new.secret)
        api_keys.revoke_key(store, new.id)
        assert not counts(other, new.secret)
        api_keys.revoke_key(store, new.id)
        assert api_keys.get_key(store, new.id).state == "revoked"
        assert counts(other, other_key.secret)
        accounts.delete_account(store, "ana")
        assert not counts(other, other_key.secret)


def test_a_key_expires(store: Store, ana: AccountInfo, clock: SteppingClock) -> None:
    new = api_keys.create_key(store, "ana", lifetime=timedelta(hours=1))
    clock.advance(3_599)
    assert counts(store, new.secret)
    clock.advance(1)
    assert not counts(store, new.secret)
    assert api_keys.get_key(store, new.id).state == "expired"
    with pytest.raises(InvalidArgument, match="future"):
        api_keys.create_key(store, "ana", lifetime=timedelta(0))


def test_a_rotated_key_lives_for_its_grace_and_the_new_one_from_now(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    old = api_keys.create_key(store, "ana", name="integration")
    new = api_keys.rotate_key(store, old.id)
    assert api_keys.get_key(store, new.id).name == "integration"
    clock.advance(24 * 3_600 - 1)
    assert (counts(store, old.secret), counts(store, new.secret)) == (True, True)
    clock.advance(1)
    assert (counts(store, old.secret), counts(store, new.secret)) == (False, True)

    short = api_keys.create_key(store, "ana", lifetime=timedelta(hours=1))
    api_keys.rotate_key(store, short.id, grace=timedelta(days=7))
    clock.advance(3_600)
    assert not counts(store, short.secret)  # a grace lengthens no key's life


def test_a_read_only_key_says_so_and_a_rotation_keeps_it(store: Store, ana: AccountInfo) -> None:
    old = api_keys.create_key(store, "ana", is_read_only=True)
    new = api_keys.rotate_key(store, old.id)
    full = api_keys.create_key(store, "ana")
    for key, is_read_only in ((old, True), (new, True), (full, False)):
        holder = asyncio.run(api_keys.authenticate_async(store, key.secret))
        assert holder == api_keys.authenticate(store, key.secret)
        assert holder.is_read_only is api_keys.get_key(store, key.id).is_read_only is is_read_only


def test_a_key_is_found_by_its_text_until_it_is_revoked(store: Store, ana: AccountInfo) -> None:
    new, _ = (api_keys.create_key(store, "ana") for _ in range(2))
    assert api_keys.find_key_id(store, new.secret) == new.id
    api_keys.revoke_key(store, new.id)
    for secret in (new.secret, new.secret[:-1], ""):
        with pytest.raises(NotFound, match="The store has no such key"):
            api_keys.find_key_id(store, secret)


def test_a_key_is_replaced_once(store: Store, ana: AccountInfo, clock: SteppingClock) -> None:
    old = api_keys.create_key(store, "ana", name="integration")
    clock.advance(1)
    new = api_keys.rotate_key(store, old.id)

    with pytest.raises(Conflict, match=f"already replaced by {new.id}. Rotate that one"):
        api_keys.rotate_key(store, old.id)

    assert [key.id for key in api_keys.list_keys(store)] == [old.id, new.id]
    clock.advance(1)
    newer = api_keys.rotate_key(store, new.id)
    api_keys.revoke_key(store, newer.id)
    clock.advance(1)
    api_keys.rotate_key(store, new.id)  # its successor is gone


def test_a_grace_is_0_to_7_days_and_none_ends_the_old_key_at_once(
    store: Store, ana: AccountInfo
) -> None:
    old = api_keys.create_key(store, "ana")
    for grace in (timedelta(seconds=-1), timedelta(days=7, seconds=1)):
        with pytest.raises(InvalidArgument, match="0 to 7 days"):
            api_keys.rotate_key(store, old.id, grace=grace)
    api_keys.rotate_key(store, old.id, grace=timedelta(0))
    assert not counts(store, old.secret)
    with pytest.raises(Conflict, match="expired"):
        api_keys.rotate_key(store, old.id)


def test_a_key_that_is_revoked_while_it_is_rotated_has_no_successor(
    url: str, clock: SteppingClock
) -> None:
    looks: list[int] = []

    def revoking_clock() -> int:
        looks.append(1)
        if len(looks) == 2:  # the key was found active, and the new one is about to be made
            with open_store(url, clock=clock) as other:
                api_keys.revoke_key(other, key.id)
        return clock()

    with open_store(url, clock=clock) as store:
        accounts.create_account(store, "ana")
        key = api_keys.create_key(store, "ana")
    with open_store(url, clock=revoking_clock) as store:
        with pytest.raises(Conflict, match="was changed by someone else"):
            api_keys.rotate_key(store, key.id)
        assert [one.state for one in api_keys.list_keys(store)] == ["revoked"]


def test_s16_a_key_counts_as_not_shown_until_that_is_said_of_one_that_counts(
    store: Store, ana: AccountInfo
) -> None:
    new, revoked = (api_keys.create_key(store, "ana") for _ in range(2))
    api_keys.revoke_key(store, revoked.id)
    for key_id in (new.id, revoked.id, "key_x"):
        api_keys.mark_shown(store, key_id)
    assert api_keys.get_key(store, new.id).shown_at is not None
    assert api_keys.get_key(store, revoked.id).shown_at is None


def test_the_last_use_is_written_at_most_once_a_minute_unless_the_clock_was_ahead(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    new = api_keys.create_key(store, "ana")

    def use(*, is_due: bool) -> None:
        before = api_keys.get_key(store, new.id).last_used_at
        holder = api_keys.authenticate(store, new.secret)
        asyncio.run(api_keys.mark_used_async(store, holder))
        used_at = api_keys.get_key(store, new.id).last_used_at
        assert (holder.is_use_due, used_at) == (is_due, timestamp(clock()) if is_due else before)

    use(is_due=True)
    clock.advance(59)
    use(is_due=False)
    clock.advance(2)
    use(is_due=True)
    clock.advance(-24 * 3_600 - 1)
    use(is_due=True)


def test_unknown_accounts_and_keys_are_not_found(store: Store) -> None:
    for call in (
        lambda: api_keys.create_key(store, "ana"),
        lambda: api_keys.list_keys(store, account="ana"),
        lambda: api_keys.get_key(store, "key_x"),
        lambda: api_keys.revoke_key(store, "key_x"),
        lambda: api_keys.rotate_key(store, "key_x"),
    ):
        with pytest.raises(NotFound):
            call()


def test_a_key_name_is_short_and_printable(store: Store, ana: AccountInfo) -> None:
    for name in ("a" * 101, "a\x1b[2J", "a\nb", "a\u202eb"):
        with pytest.raises(InvalidArgument, match="Invalid key name"):
            api_keys.create_key(store, "ana", name=name)
    api_keys.create_key(store, "ana", name="می\u200cروم")
