"""What an importer before 0.1.0 left in ROOT/.work: files that it claimed by moving them there.

It is looked for once, when an importer begins to lead. This module can go after 1.0.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from importer import files
from importer.batch import Candidate
from importer.claims import CLAIM_ID, Claim
from importer.files import escaped_before
from resumes.store.identifiers import ACCOUNT_ID
from resumes.watched_names import WORK

MAX_BYTES = 64 * 1024 * 1024


def find_claimed(root: Path) -> list[Candidate]:
    """Return the claimed files of importers that are gone, in the order in which they came, and
    remove folders that hold none. Raises OSError."""
    found: list[Candidate] = []
    with contextlib.suppress(FileNotFoundError):
        for workspace in sorted((root / WORK).iterdir()):
            if workspace.is_dir() and not workspace.is_symlink() and not _is_locked(workspace):
                claimed = [*_iter_claimed(root, workspace)]
                found += claimed
                if not claimed:
                    _remove(workspace)
        with contextlib.suppress(OSError):  # not empty
            (root / WORK).rmdir()
    return sorted(found, key=lambda one: one.claim.id)


def _is_locked(workspace: Path) -> bool:
    try:
        descriptor = os.open(workspace / "lease", os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _iter_claimed(root: Path, workspace: Path) -> Iterator[Candidate]:
    names = _names(workspace)
    for folder in workspace.iterdir():
        if not ACCOUNT_ID.fullmatch(folder.name) or not folder.is_dir():
            continue
        for path in folder.iterdir():
            if CLAIM_ID.fullmatch(path.name):
                account, name = names.get(path.name, ("", path.name))
                claim = Claim(
                    id=path.name,
                    account_id=folder.name,
                    account=account,
                    name=name,
                    source=str(path.relative_to(root)),
                    claimed_at_us=int(path.name[:16], 16),
                    is_return=True,
                )
                yield Candidate(claim, is_alone=True)


def _names(workspace: Path) -> dict[str, tuple[str, str]]:
    """Return by claim, the account's name and the file's, as journals have them."""
    found = {}
    for journal in workspace.glob("*.journal"):
        with contextlib.suppress(OSError):
            for line in files.load(journal, MAX_BYTES).body.splitlines():
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    fields: dict[str, Any] = orjson.loads(line)
                    names = (str(fields["account"]), str(fields["name"]))
                    found[str(fields["id"])] = (escaped_before(names[0]), escaped_before(names[1]))
    return found


def _remove(workspace: Path) -> None:
    """Remove a folder without claims, unless something else is in it."""
    for path in [*workspace.glob("*.journal"), workspace / "lease"]:
        with contextlib.suppress(OSError):
            path.unlink()
    for path in [*workspace.iterdir(), workspace]:
        with contextlib.suppress(OSError):
            path.rmdir()
