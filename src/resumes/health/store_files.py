"""A store's file as others see it: who may open it, and whether all have the same one open."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from resumes.health.findings import Finding
from resumes.health.permissions import find_owner, remedy_for
from resumes.output_files import SIDE_FILES
from resumes.store.locks import find_holders
from resumes.store.processes import name_processes

PROCESSES: Final = Path("/proc")
"""Where the system shows what each process has open; elsewhere nothing is found."""


def find_refusal(path: Path) -> Finding | None:
    """The file of the store that this user may not read or write, if any."""
    for one in (path.with_name(path.name + ending) for ending in ("", *SIDE_FILES)):
        try:
            one.lstat()
        except FileNotFoundError:
            continue
        except OSError:
            return Finding("store", f"{one} cannot be seen by this user", remedy_for(path.parent))
        if not os.access(one, os.R_OK | os.W_OK):
            owner = find_owner(one) or "nobody known"
            return Finding("store", f"{one} of {owner} may not be opened", remedy_for(one))
    return None


def find_strays(path: Path, pids: Iterable[int] | None = None) -> Finding | None:
    """Who has a file open that had the path once, and is not the one that has it now.

    `pids` are those who use the store, by default all that the system knows of. Of a process of
    another user it says nothing.
    """
    if pids is None:
        pids = _find_users(path)
    strays = [pid for pid in pids if _has_another_open(pid, path)]
    if not strays:
        return None
    what = "removed" if _identity(path) is None else "replaced"
    return Finding(
        "store",
        f"{path} was {what} while process {name_processes(strays)} had it open, which reads and "
        "writes nothing any more",
        "End that process, put the file back or restore a backup, then start it again",
    )


def _find_users(path: Path) -> set[int]:
    holders = find_holders(path.with_name(f"{path.name}.lock"))
    if holders or _identity(path) is not None:
        return holders
    # The lock's file may have gone with the others.
    try:
        return {int(one.name) for one in PROCESSES.iterdir() if one.name.isdigit()}
    except OSError:
        return set()


def _has_another_open(pid: int, path: Path) -> bool:
    own = {f"{path}{name}{gone}" for name in ("", "-wal") for gone in ("", " (deleted)")}
    identity = _identity(path)
    has_store = False
    try:
        descriptors = list((PROCESSES / str(pid) / "fd").iterdir())
    except OSError:
        return False
    for descriptor in descriptors:
        has_store |= _target(descriptor) in own
        if identity is not None and _identity(descriptor) == identity:
            return False
    return has_store


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
