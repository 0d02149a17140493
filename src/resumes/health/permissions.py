"""What to do about a file or folder that may not be used: whose it is, and who is looking."""

import os
import pwd
import shlex
import stat
from pathlib import Path
from typing import Final

OWN_RIGHTS: Final = stat.S_IRUSR | stat.S_IWUSR


def find_owner(path: Path) -> str | None:
    """The name of the user whose it is, or the number of one without a name; None: it cannot be seen."""
    try:
        return _name(path.stat().st_uid)
    except OSError:
        return None


def remedy_for(path: Path, user_id: int | None = None) -> str:
    """What gives this user, or `user_id`, the use of what is there.

    Whoever is not the owner is more likely the wrong user than the owner is; only a folder may have
    been made by somebody else for this user.
    """
    user_id = os.getuid() if user_id is None else user_id
    try:
        found = path.stat()
    except OSError:
        return f"Give user {_name(user_id)} the right to look into its folder"
    if found.st_uid != user_id and user_id != 0:
        way = f"Run this as its owner, {_name(found.st_uid)}"
        return f"{way}, or chown it to {_name(user_id)}" if stat.S_ISDIR(found.st_mode) else way
    if found.st_mode & OWN_RIGHTS != OWN_RIGHTS:
        return shlex.join(["chmod", "u+rwX", str(path)])
    return "See why its file system takes no writes: mount says how it is mounted"


def _name(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)
