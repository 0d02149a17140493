"""What the screen of keys does to the store, each in a thread."""

from datetime import timedelta

from resumes.clock import later, minute
from resumes.errors import Conflict
from resumes.store import api_keys
from resumes.store.api_keys import KeyInfo, KeyState, NewKey
from resumes.store.store import Store
from tui.screens.keys.creating import Wish
from tui.screens.keys.registering import Foreign
from tui.screens.keys.rows import label


def create(store: Store, wish: Wish) -> NewKey:
    """A new key, not yet shown. Raises NotFound and InvalidArgument."""
    return api_keys.create_key(store, wish.account, name=wish.name, lifetime=wish.lifetime)


def register(store: Store, foreign: Foreign) -> str:
    """The id of a key from elsewhere, which counts. Raises NotFound, Conflict, InvalidArgument."""
    return api_keys.import_key(store, foreign.account, foreign.secret, name=foreign.name)


def rotate(store: Store, key: KeyInfo, grace: timedelta) -> NewKey:
    """A new key in place of the old one. Raises NotFound, and Conflict if that does not count."""
    return api_keys.rotate_key(store, key.id, grace=grace)


def revoke(store: Store, key: KeyInfo) -> None:
    """The key does not count any more. Raises NotFound, and Conflict if somebody was faster."""
    found = api_keys.get_key(store, key.id)
    if found.state is KeyState.REVOKED and found.revoked_at is not None:
        raise Conflict(f'"{label(key)}" was revoked already, at {minute(found.revoked_at)} UTC')
    api_keys.revoke_key(store, key.id)


def fate(old: KeyInfo, grace: timedelta, now_us: int) -> str:
    """Until when a key that is replaced now still counts, in a sentence."""
    if not grace:
        return f"The old key {old.id} does not count any more."
    ends = min(later(now_us, grace), old.expires_at or "9")
    return f"The old key {old.id} counts until {minute(ends)} UTC."
