"""Backups: one file each, of one moment, taken while the store is in use.

Whatever engine keeps the store, a backup is a SQLite store: it can be opened, and restored to any
engine.
"""

import contextlib
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from resumes.clock import Clock, system_clock, timestamp
from resumes.errors import Conflict, InvalidArgument
from resumes.output_files import SIDE_FILES, check_free, place
from resumes.store import open_store
from resumes.store.sqlite.files import (
    check_room,
    draft,
    refuse_stray_logs,
    transaction_in,
    vacuum_into,
)
from resumes.store.store import Store
from resumes.store.transfer.rows import CopyProgress, OnProgress, Stage, ignore, load

OUR_NAME: Final = re.compile(r"resumes-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.db")
"""How backups in a folder are called; in the order of their names they are in that of time."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was made and verified. `removed`: older ones beyond those to be kept."""

    path: Path
    size_bytes: int
    removed: Sequence[Path]


def stamp(now_us: int) -> str:
    """Return an instant as a part of a file's name: `2026-01-31T09-00-00.000Z`."""
    return timestamp(now_us).replace(":", "-")


def back_up(
    store: Store,
    destination: Path,
    *,
    keep: int | None = None,
    on_progress: OnProgress = ignore,
    clock: Clock = system_clock,
) -> Backup:
    """Copy the store of one moment to a new file; in a folder, it is named by the time.

    `keep` so many of the folder's newest backups, this one included, when it is verified; None
    keeps all. Raises Conflict for a file that exists, and for an older one that cannot be removed;
    InvalidArgument for `keep` without a folder, and for a folder that is not there or cannot be
    written in; StoreIncompatible for a store that turns out to be damaged; StoreUnavailable.
    """
    path = destination
    if destination.is_dir():
        path = destination / f"resumes-{stamp(clock())}.db"
    elif keep is not None:
        raise InvalidArgument(f"{destination} is not a folder: --keep needs a folder of backups")
    check_free(path, "choose another file, or a folder")
    refuse_stray_logs(path)
    if not path.parent.is_dir():
        raise InvalidArgument(f"Folder not found: {path.parent}. Create it, or choose another")
    with draft(path, place, refused=InvalidArgument) as new:
        _take(store, new, path, on_progress)
    size_bytes = path.stat().st_size
    removed = [] if keep is None else _prune(path, keep)
    return Backup(path, size_bytes, removed)


def _take(store: Store, new: Path, path: Path, on_progress: OnProgress) -> None:
    if store.path is None:
        _take_rows(store, new, path, on_progress)
        return
    size = store.measure()
    total = size.data_bytes + (size.log_bytes or 0)
    check_room(path.parent, total)
    vacuum_into(
        store.path,
        new,
        lambda done: on_progress(CopyProgress(Stage.BACKING_UP, new.name, min(done, total), total)),
    )


def _take_rows(store: Store, new: Path, path: Path, on_progress: OnProgress) -> None:
    """Copy all rows of a moment, while others write: from a transaction that sees only that."""
    from resumes.store.postgresql.store import snapshot_of

    open_store(f"sqlite:///{new}").close()
    with (
        snapshot_of(store.url) as source,
        transaction_in(new, shown=path, is_draft=True) as target,
    ):
        load(lambda: contextlib.nullcontext(source), target, f"sqlite:///{path}", on_progress)


def find_newest(folder: Path, *, clock: Clock = system_clock) -> Path | None:
    """Return the folder's backup whose name is of the latest time; None where there is none.

    One that is named by a time to come may be of any age, and is passed over.
    """
    now = folder / f"resumes-{stamp(clock())}.db"
    return max((path for path in folder.iterdir() if path <= now and _is_ours(path)), default=None)


def _prune(made: Path, keep: int) -> list[Path]:
    """Remove older backups that are too many, with what lies beside them; return which those were.

    What is named by a time to come, after a clock that was ahead, may be of any age: it is left, and
    takes no place.
    """
    older = sorted(path for path in made.parent.iterdir() if path < made and _is_ours(path))
    old = older[: max(0, len(older) - keep + 1)]
    for path in old:
        try:
            path.unlink(missing_ok=True)
            for ending in SIDE_FILES:
                path.with_name(path.name + ending).unlink(missing_ok=True)
        except OSError as error:
            raise Conflict(
                f"{made} was made and verified, but {path} cannot be removed: {error.strerror}. "
                "Remove it yourself"
            ) from error
    return old


def _is_ours(path: Path) -> bool:
    """Return whether it is a file that a backup can be: neither a folder or a link of such a name, nor empty."""
    if OUR_NAME.fullmatch(path.name) is None:
        return False
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_size > 0
