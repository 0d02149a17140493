"""API keys: made, shown once, checked on every request, revoked, rotated.

A key is `enh_live_` and 64 characters: 58 random base62 and a checksum of 6 (docs/accounts.md,
Keys). With 345 random bits it needs no slow hash: the store keeps its SHA-256, and finds it by
that. The checksum only tells a typo early; keys of others need none.
"""

import hashlib
import re
import secrets
import string
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, bindparam, delete, insert, select, update

from resumes.clock import later, timestamp
from resumes.errors import Conflict, InvalidArgument, InvalidKey, NotFound
from resumes.store import identifiers
from resumes.store.accounts import lock_open_account, unknown_account
from resumes.store.schema import accounts, api_keys, key_directory, plans
from resumes.store.statements import Prepared
from resumes.store.store import Row, Store, each
from resumes.text import is_harmless

PREFIX = "enh_live_"
FORM = re.compile(r"enh_live_[A-Za-z0-9]{64}")
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_CHARACTERS = 58
CHECKSUM_CHARACTERS = 6
MASKED_CHARACTERS = 3
MASKED = re.compile(rf"enh_live_[A-Za-z0-9]{{{MASKED_CHARACTERS}}}…")
MAX_NAME_CHARS = 100
DEFAULT_GRACE = timedelta(hours=24)
MAX_GRACE = timedelta(days=7)
USED_EVERY = timedelta(minutes=1)
"""The last use is written at most this often."""

AHEAD = timedelta(days=1)
"""A last use that lies further ahead was written by a clock that was wrong, and is written anew."""


PlanRates = tuple[int | None, int | None, int | None]
"""How many requests a plan allows a key: a minute, an hour, a day.

None: as the settings say; 0: unlimited.
"""


class KeyHolder(NamedTuple):
    """Who a request comes from: what its key says, and the plan of its account."""

    account_id: str
    key_id: str
    api_listing: bool
    rates: PlanRates = (None, None, None)


class KeyState(StrEnum):
    """Whether a key counts, and if not, why."""

    ACTIVE = "active"
    REVOKED = "revoked"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key as it is listed."""

    id: str
    account: str
    name: str
    masked: str
    created_at: str
    shown_at: str | None
    last_used_at: str | None
    expires_at: str | None
    revoked_at: str | None
    state: KeyState


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made: the only time its `secret` is known."""

    id: str
    secret: str

    def __repr__(self) -> str:
        return f"NewKey(id={self.id!r}, secret=…)"


def new_secret() -> str:
    """A new key in full."""
    body = "".join(secrets.choice(BASE62) for _ in range(RANDOM_CHARACTERS))
    return f"{PREFIX}{body}{checksum(body)}"


def checksum(body: str) -> str:
    """The CRC-32 of a key's random part, in 6 characters of base62."""
    number = zlib.crc32(body.encode("ascii"))
    digits = ""
    for _ in range(CHECKSUM_CHARACTERS):
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    return digits


def mask(secret: str) -> str:
    """How a key is shown after its first time: `enh_live_abc…`."""
    return f"{secret[: len(PREFIX) + MASKED_CHARACTERS]}…"


def hash_key(secret: str) -> bytes:
    """The SHA-256 that the store finds a key by."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


HOLDER = Prepared(
    select(
        api_keys.c.account_id,
        api_keys.c.id,
        plans.c.api_listing,
        api_keys.c.expires_at,
        api_keys.c.last_used_at,
        plans.c.requests_per_minute,
        plans.c.requests_per_hour,
        plans.c.requests_per_day,
    )
    .select_from(key_directory)
    .join(
        api_keys,
        (api_keys.c.account_id == key_directory.c.account_id)
        & (api_keys.c.id == key_directory.c.key_id),
    )
    .join(accounts, accounts.c.id == api_keys.c.account_id)
    .join(plans, plans.c.name == accounts.c.plan)
    .where(
        key_directory.c.key_hash == bindparam("key_hash"),
        api_keys.c.revoked_at.is_(None),
        accounts.c.closed_at.is_(None),
    )
)


class Authenticated(NamedTuple):
    """What a key is good for now."""

    holder: KeyHolder
    is_due: bool
    """Whether its use is to be written (`mark_used_async`)."""

    expires_at: str | None


def authenticate(store: Store, secret: str) -> Authenticated:
    """Look a key up, as the store has it now (pitfalls R3).

    Raises InvalidKey, the same for unknown, revoked and expired.
    """
    with store.read() as connection:
        rows = HOLDER.run(connection, key_hash=hash_key(secret)).fetchall()
    return _holder(store, rows)


async def authenticate_async(store: Store, secret: str) -> Authenticated:
    """`authenticate` for coroutines."""
    return _holder(store, await store.fetch_async(HOLDER, key_hash=hash_key(secret)))


def _holder(store: Store, rows: Sequence[Row]) -> Authenticated:
    if not rows:
        raise InvalidKey
    account_id, key_id, api_listing, expires_at, last_used_at, minute, hour, day = rows[0]
    now_us = store.clock()
    if expires_at is not None and expires_at <= timestamp(now_us):
        raise InvalidKey
    is_due = last_used_at is None or not (
        later(now_us, -USED_EVERY) <= last_used_at <= later(now_us, AHEAD)
    )
    holder = KeyHolder(account_id, key_id, bool(api_listing), (minute, hour, day))
    return Authenticated(holder, is_due, expires_at)


@dataclass(frozen=True, slots=True)
class _Use:
    account_id: str
    key_id: str
    now: str
    unless_after: str
    unless_before: str


def _use(store: Store, holder: KeyHolder) -> _Use:
    now_us = store.clock()
    return _Use(
        holder.account_id,
        holder.key_id,
        timestamp(now_us),
        unless_after=later(now_us, -USED_EVERY),
        unless_before=later(now_us, AHEAD),
    )


async def mark_used_async(store: Store, holder: KeyHolder) -> None:
    """The key's last use is now, unless another process wrote so within the minute."""
    await store.write_batched_async(_mark_used, _use(store, holder))


@each
def _mark_used(connection: Connection, use: _Use) -> None:
    connection.execute(
        update(api_keys)
        .where(
            api_keys.c.account_id == use.account_id,
            api_keys.c.id == use.key_id,
            api_keys.c.last_used_at.is_(None)
            | ~api_keys.c.last_used_at.between(use.unless_after, use.unless_before),
        )
        .values(last_used_at=use.now)
    )


@dataclass(frozen=True, slots=True)
class _Registration:
    account: str
    key_id: str
    name: str
    secret: str = field(repr=False)
    now: str
    expires_at: str | None
    shown_at: str | None = None
    replaces: str | None = None
    """The key that lives only until `replaced_until` from now on."""
    replaced_until: str | None = None
    replaced_expires_at: str | None = None
    """Until when that key was to live before."""


def create_key(
    store: Store, account: str, *, name: str = "", lifetime: timedelta | None = None
) -> NewKey:
    """A new key of the account, which has not been shown yet: show it, then `mark_shown`.

    `lifetime` None never expires. Raises NotFound for the account and InvalidArgument.
    """
    now_us = store.clock()
    if lifetime is not None and lifetime <= timedelta(0):
        raise InvalidArgument("Invalid expiry: it must lie in the future")
    new = NewKey(identifiers.key_id(), new_secret())
    store.write_batched(
        _register,
        _Registration(
            account=account,
            key_id=new.id,
            name=_check_key_name(name),
            secret=new.secret,
            now=timestamp(now_us),
            expires_at=None if lifetime is None else later(now_us, lifetime),
        ),
    )
    return new


def import_key(store: Store, account: str, secret: str, *, name: str = "") -> str:
    """A key made elsewhere counts from now on; its id. It is never shown, having been known.

    Raises InvalidArgument unless it has the form of a key, Conflict when it is known already.
    """
    if not FORM.fullmatch(secret):
        raise InvalidArgument("Invalid key: use enh_live_ and 64 letters and digits")
    key_id = identifiers.key_id()
    now = timestamp(store.clock())
    store.write_batched(
        _register,
        _Registration(account, key_id, _check_key_name(name), secret, now, None, shown_at=now),
    )
    return key_id


def _check_key_name(name: str) -> str:
    if len(name) > MAX_NAME_CHARS or not is_harmless(name):
        raise InvalidArgument(
            f"Invalid key name {name[:80]!r}: use at most {MAX_NAME_CHARS} printable characters"
        )
    return name


@each
def _register(connection: Connection, new: _Registration) -> None:
    account_id = lock_open_account(connection, new.account)
    if new.replaces is not None:
        _check_replaced(connection, account_id, new)
    _add_key(connection, account_id, new)
    if new.replaces is not None:
        connection.execute(
            update(api_keys)
            .where(
                api_keys.c.account_id == account_id,
                api_keys.c.id == new.replaces,
                api_keys.c.expires_at.is_(None) | (api_keys.c.expires_at > new.replaced_until),
            )
            .values(expires_at=new.replaced_until)
        )


def _add_key(connection: Connection, account_id: str, new: _Registration) -> None:
    key_hash = hash_key(new.secret)
    if connection.execute(
        select(key_directory.c.key_id).where(key_directory.c.key_hash == key_hash)
    ).first():
        raise Conflict("This key is registered already")
    connection.execute(
        insert(api_keys).values(
            account_id=account_id,
            id=new.key_id,
            name=new.name,
            masked=mask(new.secret),
            created_at=new.now,
            shown_at=new.shown_at,
            expires_at=new.expires_at,
        )
    )
    connection.execute(
        insert(key_directory).values(key_hash=key_hash, account_id=account_id, key_id=new.key_id)
    )


def _check_replaced(connection: Connection, account_id: str, new: _Registration) -> None:
    """Raises Conflict unless the key is as it was when its replacing was thought of."""
    row = connection.execute(
        select(api_keys.c.revoked_at, api_keys.c.expires_at).where(
            api_keys.c.account_id == account_id, api_keys.c.id == new.replaces
        )
    ).first()
    if row is None or row.revoked_at is not None or row.expires_at != new.replaced_expires_at:
        raise Conflict(
            f"The key {new.replaces} was changed by somebody else meanwhile. "
            "`resumes keys list` shows how it is now"
        )


def list_keys(store: Store, *, account: str | None = None) -> list[KeyInfo]:
    """All keys, or an account's, oldest first within their account. Raises NotFound."""
    if account is None:
        return _read_keys(store, SELECT_KEYS)
    with store.read() as connection:
        owner = connection.execute(
            select(accounts.c.id).where(accounts.c.name == account)
        ).scalar_one_or_none()
    if owner is None:
        raise unknown_account(account)
    return _read_keys(store, SELECT_KEYS.where(api_keys.c.account_id == owner))


SELECT_KEYS = (
    select(
        api_keys.c.id, accounts.c.name.label("account"), api_keys.c.name, api_keys.c.masked,
        api_keys.c.created_at, api_keys.c.shown_at, api_keys.c.last_used_at,
        api_keys.c.expires_at, api_keys.c.revoked_at,
    )
    .join(accounts, accounts.c.id == api_keys.c.account_id)
    .where(accounts.c.closed_at.is_(None))
    .order_by(accounts.c.name, api_keys.c.created_at, api_keys.c.id)
)  # fmt: skip


def _read_keys(store: Store, statement: Select[Any]) -> list[KeyInfo]:
    now = timestamp(store.clock())
    with store.read() as connection:
        rows = connection.execute(statement).mappings().all()
    return [KeyInfo(**row, state=_state(row["revoked_at"], row["expires_at"], now)) for row in rows]


def _state(revoked_at: str | None, expires_at: str | None, now: str) -> KeyState:
    if revoked_at is not None:
        return KeyState.REVOKED
    if expires_at is not None and expires_at <= now:
        return KeyState.EXPIRED
    return KeyState.ACTIVE


def get_key(store: Store, key_id: str) -> KeyInfo:
    """The key of this id. Raises NotFound.

    Where it was revoked, and came back with an account that was imported, it is the one that counts.
    """
    found = _read_keys(store, SELECT_KEYS.where(api_keys.c.id == key_id))
    if found:
        return min(found, key=lambda key: key.revoked_at is not None)
    raise NotFound(f'Key not found: "{key_id[:80]}". `resumes keys list` shows all')


def _find_owner(store: Store, key_id: str) -> str | None:
    """The id of the account whose key this is, by the directory; None unless it is to count."""
    with store.read() as connection:
        return connection.execute(
            select(key_directory.c.account_id).where(key_directory.c.key_id == key_id)
        ).scalar()


@dataclass(frozen=True, slots=True)
class _Stamp:
    account_id: str
    key_id: str
    now: str


def mark_shown(store: Store, key_id: str) -> None:
    """The key has reached its owner's eyes, and will not be replaced for want of that.

    Nothing is done for one that does not count any more.
    """
    owner = _find_owner(store, key_id)
    if owner is not None:
        store.write_batched(_mark_shown, _Stamp(owner, key_id, timestamp(store.clock())))


@each
def _mark_shown(connection: Connection, stamp: _Stamp) -> None:
    connection.execute(
        update(api_keys)
        .where(api_keys.c.account_id == stamp.account_id, api_keys.c.id == stamp.key_id)
        .values(shown_at=stamp.now)
    )


def revoke_key(store: Store, key_id: str) -> None:
    """The key does not count any more, in every process. Revoking twice is no error.

    Raises NotFound.
    """
    owner = _find_owner(store, key_id)
    if owner is None:
        get_key(store, key_id)  # revoked before, or never there
        return
    store.write_batched(_revoke, _Stamp(owner, key_id, timestamp(store.clock())))


@each
def _revoke(connection: Connection, stamp: _Stamp) -> None:
    connection.execute(
        update(api_keys)
        .where(
            api_keys.c.account_id == stamp.account_id,
            api_keys.c.id == stamp.key_id,
            api_keys.c.revoked_at.is_(None),
        )
        .values(revoked_at=stamp.now)
    )
    connection.execute(
        delete(key_directory).where(
            key_directory.c.account_id == stamp.account_id,
            key_directory.c.key_id == stamp.key_id,
        )
    )


def rotate_key(store: Store, key_id: str, *, grace: timedelta = DEFAULT_GRACE) -> NewKey:
    """A new key of the same name; the old one counts for `grace` more, 0 to 7 days.

    Raises NotFound, InvalidArgument for the grace, Conflict for a key that no longer counts.
    """
    if not timedelta(0) <= grace <= MAX_GRACE:
        raise InvalidArgument("Invalid grace: use 0 to 7 days")
    old = get_key(store, key_id)
    if old.state is not KeyState.ACTIVE:
        raise Conflict(f"The key {key_id} is {old.state}; create a new one instead")
    now_us = store.clock()
    new = NewKey(identifiers.key_id(), new_secret())
    store.write_batched(
        _register,
        _Registration(
            account=old.account,
            key_id=new.id,
            name=old.name,
            secret=new.secret,
            now=timestamp(now_us),
            expires_at=None,
            replaces=key_id,
            replaced_until=later(now_us, grace),
            replaced_expires_at=old.expires_at,
        ),
    )
    return new
