"""How a new key reaches its owner: shown once, and worthless if it could not be (pitfalls S16)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from cli.failures import Failed

if TYPE_CHECKING:
    from resumes.store import Store
    from resumes.store.api_keys import NewKey


def hand_over(store: "Store", new: "NewKey", show: Callable[[str], None]) -> None:
    """The key was shown and is marked so; or it is revoked, and Failed is raised.

    The key is in the store already. `show` gets its text, and returns when it has been written
    through, not merely buffered.
    """
    from resumes.store import api_keys

    try:
        show(new.secret)
    except OSError as error:
        api_keys.revoke_key(store, new.id)
        raise Failed(
            f"The new key could not be shown ({error.strerror or error}), so it was revoked; "
            "try again"
        ) from error
    except BaseException:
        api_keys.revoke_key(store, new.id)
        raise
    api_keys.mark_shown(store, new.id)
