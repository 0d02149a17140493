"""API keys: create, check, list, rotate and revoke them.

A key consists of `enh_live_` and 64 base62 characters: 58 random ones and a checksum of 6
(docs/accounts.md, Keys). With 345 random bits, it needs no slow hash: the store looks it up by its
SHA-256. The checksum only serves to detect typos early.
"""

import hashlib
import re
import secrets
import string
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple

import sqlalchemy
from sqlalchemy import ColumnElement, delete, update
from sqlmodel import Session, select

from resumes.clock import later, timestamp
from resumes.errors import Conflict, InvalidArgument, InvalidKey, NotFound
from resumes.store import identifiers
from resumes.store.accounts import IS_OPEN, get_account, lock_open_account
from resumes.store.schema import (
    ApiKey,
    ApiKeyBase,
    KeyDirectory,
    accounts,
    api_keys,
    key_directory,
    plans,
)
from resumes.store.statements import Prepared, pk_equals
from resumes.store.store import Row, Store
from resumes.text import is_harmless

PREFIX = "enh_live_"
FORM = re.compile(r"enh_live_[A-Za-z0-9]{64}")
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_CHARACTERS = 58
CHECKSUM_CHARACTERS = 6
MASKED_CHARACTERS = 3
MASKED = re.compile(rf"enh_live_[A-Za-z0-9]{{{MASKED_CHARACTERS}}}…")
MAX_NAME_CHARS = 100
ACCESS = {False: "full", True: "read-only"}
"""What a key may be used for, in words, by whether it is read-only."""

DEFAULT_GRACE = timedelta(hours=24)
MAX_GRACE = timedelta(days=7)
USED_EVERY = timedelta(minutes=1)
"""The minimum interval between two updates of a key's last use."""

AHEAD = timedelta(days=1)
"""A last use that is further in the future was written with a wrong clock, and is overwritten."""


class KeyHolder(NamedTuple):
    """The sender of a request with a valid key: the account, the key and their rights."""

    account_id: str
    key_id: str
    api_listing: bool
    expires_at: str | None = None
    is_use_due: bool = False
    """Whether the use of the key must be recorded (`mark_used_async`)."""
    is_read_only: bool = False
    first_month: int | None = None
    """The number that the account's analyzer writes for January, if the account sets it."""


class KeyState(StrEnum):
    """Whether a key is valid, or why not."""

    ACTIVE = "active"
    REVOKED = "revoked"
    EXPIRED = "expired"


class KeyInfo(ApiKeyBase):
    """A key in a list. `account` is the name of its account."""

    account: str
    state: KeyState


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key. Its `secret` is known only now."""

    id: str
    secret: str = field(repr=False)
    replaced: KeyInfo | None = None
    """The key that it replaces, as it was before the replacement."""


def new_secret() -> str:
    """Return the text of a new key."""
    body = "".join(secrets.choice(BASE62) for _ in range(RANDOM_CHARACTERS))
    return f"{PREFIX}{body}{checksum(body)}"


def checksum(body: str) -> str:
    """Return the CRC-32 of a key's random part as 6 base62 characters."""
    number = zlib.crc32(body.encode("ascii"))
    digits = ""
    for _ in range(CHECKSUM_CHARACTERS):
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    return digits


def mask(secret: str) -> str:
    """Return the short form of a key that lists show: `enh_live_abc…`."""
    return f"{secret[: len(PREFIX) + MASKED_CHARACTERS]}…"


def hash_key(secret: str) -> bytes:
    """Return the SHA-256 of a key, by which the store looks it up."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


IS_SAME_KEY = (key_directory.c.account_id == api_keys.c.account_id) & (
    key_directory.c.key_id == api_keys.c.id
)
HOLDER = Prepared(
    sqlalchemy.select(
        api_keys.c.account_id,
        api_keys.c.id,
        plans.c.api_listing,
        api_keys.c.expires_at,
        api_keys.c.last_used_at,
        api_keys.c.is_read_only,
        accounts.c.first_month,
    )
    .select_from(key_directory)
    .join(api_keys, IS_SAME_KEY)
    .join(accounts, accounts.c.id == api_keys.c.account_id)
    .join(plans, plans.c.name == accounts.c.plan)
    .where(
        pk_equals(key_directory), api_keys.c.revoked_at.is_(None), accounts.c.closed_at.is_(None)
    )
)


def authenticate(store: Store, secret: str) -> KeyHolder:
    """Return the holder of the key, which is looked up in the store without a cache (pitfalls R3).

    Raises the same InvalidKey for unknown, revoked and expired keys.
    """
    with store.read() as connection:  # faster than `fetch`, which matters for every request
        rows = HOLDER.run(connection, key_hash=hash_key(secret)).fetchall()
    return _holder(store, rows)


async def authenticate_async(store: Store, secret: str) -> KeyHolder:
    """Return the holder of the key like `authenticate`, but without blocking the event loop."""
    return _holder(store, await store.fetch_async(HOLDER, key_hash=hash_key(secret)))


def _holder(store: Store, rows: Sequence[Row]) -> KeyHolder:
    if not rows:
        raise InvalidKey
    account_id, key_id, api_listing, expires_at, last_used_at, is_read_only, first_month = rows[0]
    now_us = store.clock()
    if expires_at is not None and expires_at <= timestamp(now_us):
        raise InvalidKey
    is_use_due = last_used_at is None or not (
        later(now_us, -USED_EVERY) <= last_used_at <= later(now_us, AHEAD)
    )
    listing, read_only = bool(api_listing), bool(is_read_only)
    return KeyHolder(account_id, key_id, listing, expires_at, is_use_due, read_only, first_month)


async def mark_used_async(store: Store, holder: KeyHolder) -> None:
    """Record that the key was used now, unless another process did so during the last minute."""
    now_us = store.clock()
    is_recent = api_keys.c.last_used_at.between(later(now_us, -USED_EVERY), later(now_us, AHEAD))
    statement = (
        update(api_keys)
        .where(
            pk_equals(api_keys, holder.account_id, holder.key_id),
            api_keys.c.last_used_at.is_(None) | ~is_recent,
        )
        .values(last_used_at=timestamp(now_us))
    )
    await store.write_async(lambda session: session.exec(statement), account_id=holder.account_id)


# Creating


def create_key(
    store: Store,
    account: str,
    *,
    name: str = "",
    lifetime: timedelta | None = None,
    is_read_only: bool = False,
) -> NewKey:
    """Create a key for the account. Show it to its owner, then call `mark_shown`.

    If `lifetime` is None, the key never expires. Raises InvalidArgument, and NotFound if the
    account does not exist.
    """
    now_us = store.clock()
    if lifetime is not None and lifetime <= timedelta(0):
        raise InvalidArgument("Invalid expiry: it must be in the future")
    if len(name) > MAX_NAME_CHARS or not is_harmless(name):
        raise InvalidArgument(
            f"Invalid key name {name[:80]!r}: use at most {MAX_NAME_CHARS} printable characters"
        )
    new = NewKey(identifiers.key_id(), new_secret())
    options = {
        "name": name,
        "created_at": timestamp(now_us),
        "expires_at": None if lifetime is None else later(now_us, lifetime),
        "is_read_only": is_read_only,
    }
    store.write(lambda session: _add_key(session, account, new, **options))
    return new


def rotate_key(store: Store, key_id: str, *, grace: timedelta = DEFAULT_GRACE) -> NewKey:
    """Create a key with the same name and access; the old key stays valid for the `grace` period.

    Raises NotFound, InvalidArgument if the grace period is not 0 to 7 days, and Conflict if the key
    is no longer valid or already has a valid successor.
    """
    if not timedelta(0) <= grace <= MAX_GRACE:
        raise InvalidArgument("Invalid grace period: use 0 to 7 days")
    old = get_key(store, key_id)
    if old.state is not KeyState.ACTIVE:
        raise Conflict(f"The key {key_id} is {old.state}; create a new one instead")
    successors = _read_keys(store, api_keys.c.id == old.replaced_by)
    if any(key.state is KeyState.ACTIVE for key in successors):
        raise Conflict(
            f"The key {key_id} was already replaced by {old.replaced_by}. Rotate that one, or create "
            f"another with `resumes keys create {old.account}`"
        )
    now_us = store.clock()
    ends_at = later(now_us, grace)
    new = NewKey(identifiers.key_id(), new_secret(), replaced=old)

    def change(session: Session) -> None:
        kept = {"name": old.name, "is_read_only": old.is_read_only}
        account_id = _add_key(session, old.account, new, created_at=timestamp(now_us), **kept)
        key = session.get(ApiKey, (account_id, key_id))
        seen = None, old.expires_at, old.replaced_by
        if key is None or (key.revoked_at, key.expires_at, key.replaced_by) != seen:
            raise Conflict(
                f"The key {old.id} was changed by someone else in the meantime. "
                "See its state with `resumes keys list`"
            )
        key.replaced_by, key.expires_at = new.id, min(old.expires_at or ends_at, ends_at)

    store.write(change)
    return new


def _add_key(session: Session, account: str, new: NewKey, **options: Any) -> str:
    """Lock the account, add the key with these options, and return the account's ID."""
    account_id = lock_open_account(session, account).id
    session.add(ApiKey(account_id=account_id, id=new.id, masked=mask(new.secret), **options))
    session.add(KeyDirectory(key_hash=hash_key(new.secret), account_id=account_id, key_id=new.id))
    return account_id


# Lists


def list_keys(store: Store, *, account: str | None = None) -> list[KeyInfo]:
    """Return all keys, or one account's keys, oldest first in each account. Raises NotFound."""
    if account is None:
        return _read_keys(store)
    owner = get_account(store, account, include_closed=True)
    return _read_keys(store, api_keys.c.account_id == owner.id)


def get_key(store: Store, key_id: str) -> KeyInfo:
    """Return the key with this ID. Raises NotFound.

    If the key was revoked, but is valid in an account that was imported later, return the valid
    key.
    """
    found = _read_keys(store, api_keys.c.id == key_id)
    if found:
        return min(found, key=lambda key: key.revoked_at is not None)
    # If a user enters a key instead of its ID, it must not appear in a log.
    shown = mask(key_id) if key_id.startswith(PREFIX) else key_id[:80]
    raise NotFound(f'No key has the ID "{shown}". `resumes keys list` shows the IDs')


def find_key_id(store: Store, secret: str) -> str:
    """Return the ID of the key with this text. Raises NotFound, also if the key was revoked."""
    same = KeyDirectory.key_hash == hash_key(secret)
    for key_id in store.fetch(select(KeyDirectory.key_id).where(same)):
        return str(key_id)
    raise NotFound(
        "The store has no such key. Check that the key is complete; it may also have been revoked, or be "
        "from another store"
    )


def _read_keys(store: Store, *conditions: ColumnElement[bool]) -> list[KeyInfo]:
    now = timestamp(store.clock())
    statement = (
        sqlalchemy.select(*api_keys.columns, accounts.c.name.label("account"))
        .join(accounts)
        .where(IS_OPEN, *conditions)
        .order_by(accounts.c.name, api_keys.c.created_at, api_keys.c.id)
    )
    return [
        KeyInfo(**row._mapping, state=_state(row.revoked_at, row.expires_at, now))
        for row in store.fetch(statement)
    ]


def _state(revoked_at: str | None, expires_at: str | None, now: str) -> KeyState:
    if revoked_at is not None:
        return KeyState.REVOKED
    if expires_at is not None and expires_at <= now:
        return KeyState.EXPIRED
    return KeyState.ACTIVE


def describe_state(key: KeyInfo, shown: Callable[[str], str]) -> str:
    """Return the state in words, of a valid key that expires with the time, as `shown` writes it."""
    if key.state is not KeyState.ACTIVE or key.expires_at is None:
        return key.state
    ends = "expires" if key.replaced_by is None else "rotated, ends"
    return f"{ends} {shown(key.expires_at)}"


# Marking as shown, revoking


def mark_shown(store: Store, key_id: str) -> None:
    """Record that the key was shown to its owner, so that it is not replaced.

    Do nothing if the key was revoked.
    """
    shown_at = timestamp(store.clock())

    def show(key: ApiKey, _: Session) -> None:
        key.shown_at = shown_at

    _change_key(store, key_id, show)


def revoke_key(store: Store, key_id: str) -> None:
    """Revoke the key immediately in all processes. Raises NotFound.

    It is not an error if the key is already revoked.
    """
    now = timestamp(store.clock())

    def revoke(key: ApiKey, session: Session) -> None:
        key.revoked_at = key.revoked_at or now
        this = key_directory.c.account_id == key.account_id, key_directory.c.key_id == key.id
        session.exec(delete(key_directory).where(*this))

    if not _change_key(store, key_id, revoke):
        get_key(store, key_id)  # raises NotFound unless the key was already revoked


def revoke_unshown_key(store: Store, new: NewKey) -> None:
    """Revoke a key that was not shown to its owner, and restore the key that it replaces."""
    revoke_key(store, new.id)
    if (old := new.replaced) is None:
        return

    def restore(key: ApiKey, _: Session) -> None:
        if key.replaced_by == new.id:
            key.replaced_by, key.expires_at = old.replaced_by, old.expires_at

    _change_key(store, old.id, restore)


def _change_key(store: Store, key_id: str, change: Callable[[ApiKey, Session], None]) -> bool:
    """Change the key while its account is locked; return False if it is revoked or unknown."""
    owners = store.fetch(select(KeyDirectory.account_id).where(KeyDirectory.key_id == key_id))
    if not owners:
        return False

    def write(session: Session) -> None:
        key = session.get(ApiKey, (owners[0], key_id))
        if key is not None:
            change(key, session)

    store.write(write, account_id=owners[0])
    return True
