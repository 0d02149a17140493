"""Checks of a store's path before SQLite opens the file. This module does not import SQLAlchemy."""

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

from resumes.errors import StoreUnavailable
from resumes.filesystems import OF_A_HOST, SHARED, find_kind, is_mount_point
from resumes.output_files import SIDE_FILES, check_name
from resumes.text import shell_line

APPLICATION_ID = 0x52534D45
"""The mark of this program's databases in the file header ("RSME")."""

LOGS: Final = ("-wal", "-shm")
"""The suffixes of a database's log and of the log's index. If the database is removed without its
log, SQLite applies the log to the next file with the same name."""

_KINDS: Final = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def check_place(path: Path) -> None:
    """Raise StoreUnavailable if no store can be at this path, and Conflict for a reserved name."""
    if not path.parent.is_dir():
        raise StoreUnavailable(
            f"Folder not found: {path.parent}. Create it, or choose another database"
        )
    refuse_special_files(path)
    check_name(path)
    # Processes coordinate through shared memory of one machine, so two machines would damage the
    # file or its log (section 1 of SQLite's "Write-Ahead Logging"). A folder that a host shares
    # with a container is allowed, although doctor warns about it: the container may have no other
    # disk, and the host does not use the file.
    for place in (path, path.parent):
        kind = find_kind(place)
        if kind is not None and SHARED.get(kind, OF_A_HOST) != OF_A_HOST:
            raise StoreUnavailable(
                f"The database {path} is on {kind}, {SHARED[kind]}, where SQLite can "
                "damage it. Use a file on a local disk, or a PostgreSQL database"
            )
    refuse_mount_point(path)


def refuse_special_files(path: Path) -> None:
    """Raise StoreUnavailable if the store's file, or a file that belongs to it, is a pipe, a folder
    or another special file: SQLite would remove a pipe, or wait forever for its writer."""
    for file in (path, *(path.with_name(path.name + ending) for ending in SIDE_FILES)):
        with contextlib.suppress(OSError):
            mode = file.stat().st_mode
            if not stat.S_ISREG(mode):
                what = _KINDS.get(stat.S_IFMT(mode), "a device")
                raise StoreUnavailable(
                    f"{file} is {what}, but the store {path} needs a file there. Move it elsewhere, or use "
                    "another database"
                )


def refuse_second_name(path: Path) -> None:
    """Raise StoreUnavailable if a store's file or its log can also be opened under another name.

    Such a file has several hard links, for example after a snapshot with `cp -al`. The log is
    checked because SQLite reads any file with the log's name: if two stores share a log, each of
    them reads the other's commits as its own.
    """
    for file in (path, *logs_of(path)):
        # If the file is missing or cannot be accessed, opening it will raise the error.
        with contextlib.suppress(OSError):
            if file.stat().st_nlink > 1:
                raise StoreUnavailable(describe_second_name(file))


def refuse_mount_point(path: Path) -> None:
    """Raise StoreUnavailable if the file itself is a mount point, like a container's single-file
    volume: it then has another name, which this process cannot see."""
    if is_mount_point(path):
        raise StoreUnavailable(
            f"The database {path} is a mount point, so its log is elsewhere and commits can be lost. "
            "Mount the folder that contains the file instead"
        )


def logs_of(path: Path) -> list[Path]:
    """Return the paths of a database's log and the log's index."""
    return [path.with_name(path.name + suffix) for suffix in LOGS]


def describe_second_name(file: Path) -> str:
    """Return the error message for a file that has two names."""
    what = "log" if file.name.endswith(LOGS) else "database"
    others: list[str] = []
    with contextlib.suppress(OSError), os.scandir(file.parent) as entries:
        inode = file.stat().st_ino
        same = (entry for entry in entries if entry.inode() == inode)
        others = [entry.path for entry in same if entry.name != file.name]
    other = f", {others[0]}" if others else ""
    return (
        f"The {what} {file} has another name{other}: programs that use "
        "different names lose each other's commits. Stop those that use the other name and remove it, "
        f"with its -wal and -shm files (`find / -samefile {shell_line(str(file))}` lists all names)"
    )
