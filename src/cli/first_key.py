"""An account's first key, made for somebody who has not asked for one (pitfalls S16)."""

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from resumes import output_files
from resumes.errors import Conflict

if TYPE_CHECKING:
    from resumes.store import Store
    from resumes.store.api_keys import NewKey

NAME = "first key"
MAX_KEY_BYTES = 1_024
"""More than any key, with the white space of an editor around it."""


def make_first_key(store: "Store", account: str) -> "NewKey | None":
    """A new key when the account never had one, or had a first key that nobody has seen.

    The unseen one is revoked. None: there is a key that somebody knows, or knew.
    """
    from resumes.store import api_keys

    unseen = []
    for key in api_keys.list_keys(store, account=account):
        if key.name == NAME and key.shown_at is None:
            unseen.append(key)
        else:
            return None
    for key in unseen:
        api_keys.revoke_key(store, key.id)
    return api_keys.create_key(store, account, name=NAME)


def write_key(path: Path, secret: str) -> None:
    """Write the key to a file that only its owner can read, in the place of an earlier key.

    Raises OSError, and Conflict if anything else has the path.
    """
    if os.path.lexists(path) and not _holds_key_at_most(path):
        raise Conflict(
            f"The new key could not be written, so it was revoked: {path} is there, and is neither an "
            "earlier key nor an empty file. Move it away, then try again"
        )
    with output_files.drafted(path, output_files.replace) as file:
        file.write(f"{secret}\n".encode("ascii"))


def _holds_key_at_most(path: Path) -> bool:
    """Whether this is a regular file with nothing in it, or nothing but a key."""
    from resumes.store import api_keys

    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with path.open("rb") as file:
            content = file.read(MAX_KEY_BYTES).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return False
    return content == "" or api_keys.FORM.fullmatch(content) is not None
