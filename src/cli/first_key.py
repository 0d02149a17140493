"""An account's first key, made for somebody who has not asked for one (pitfalls S16)."""

from pathlib import Path
from typing import TYPE_CHECKING

from resumes import output_files

if TYPE_CHECKING:
    from resumes.store import Store
    from resumes.store.keys import NewKey

NAME = "first key"


def make_first_key(store: "Store", account: str) -> "NewKey | None":
    """A new key when the account never had one, or had a first key that nobody has seen.

    The unseen one is revoked. None: there is a key that somebody knows, or knew.
    """
    from resumes.store import keys

    unseen = []
    for key in keys.list_keys(store, account=account):
        if key.name == NAME and key.shown_at is None:
            unseen.append(key)
        else:
            return None
    for key in unseen:
        keys.revoke_key(store, key.id)
    return keys.create_key(store, account, name=NAME)


def write_key(path: Path, secret: str) -> None:
    """The key is in a file that only its owner can read, in place of an earlier one."""
    with output_files.drafted(path, output_files.replace) as file:
        file.write(f"{secret}\n".encode("ascii"))
