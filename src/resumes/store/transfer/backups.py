"""Creating and restoring backups. A backup is a file with a snapshot of a store that may be in use.

For every engine, a backup is a SQLite store. It can be restored to any engine: into the file of a
store that is not in use, or into an empty database. After a restore, new IDs are greater than all
IDs that the backup's store and the replaced store ever assigned, so that a client that continues
after the last ID that it saw misses no resume (pitfalls S4).
"""

import contextlib
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, delete, select, update

from resumes.clock import Clock, system_clock, timestamp
from resumes.errors import Conflict, InvalidArgument, StoreIncompatible, StoreUnavailable
from resumes.output_files import SIDE_FILES, check_free, place
from resumes.store import open_store
from resumes.store.addresses import PostgresAddress, SqliteAddress, parse_address
from resumes.store.forgetting import forget_returned
from resumes.store.forgotten import Memory, add_memory, read_memory
from resumes.store.schema import account_usage, import_requests, importers, resumes
from resumes.store.sqlite.files import (
    check_room,
    create_private,
    examine,
    exchange,
    exclude_others,
    is_closed,
    refuse_stray_logs,
    scratch_in,
    transaction_in,
    upgrade_file,
    vacuum_into,
)
from resumes.store.sqlite.place import check_place, refuse_second_name
from resumes.store.sqlite.store import explain, sqlite_engine
from resumes.store.sqlite.writer import DRIVER_ERRORS
from resumes.store.statements import pk_equals
from resumes.store.store import Store, read_fact, session_on, set_facts
from resumes.store.transfer.copies import (
    TABLES,
    CopyProgress,
    OnProgress,
    Stage,
    count_rows,
    empty_database,
    ignore,
    iter_rows,
    load,
)

MAGIC: Final = b"SQLite format 3\0"
"""The first bytes of a SQLite file."""

OUR_NAME: Final = re.compile(r"resumes-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.db")
"""The names of backups in a folder. Sorting the names sorts the backups by time."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A verified backup. `removed` contains the older backups that were removed."""

    path: Path
    size_bytes: int
    removed: Sequence[Path]


def stamp(now_us: int) -> str:
    """Return the time in a form for file names: `2026-01-31T09-00-00.000Z`."""
    return timestamp(now_us).replace(":", "-")


def back_up(
    store: Store,
    destination: Path,
    *,
    keep: int | None = None,
    on_progress: OnProgress = ignore,
    clock: Clock = system_clock,
) -> Backup:
    """Write a snapshot of the store to a new file; in a folder, the file's name is the time.

    After the backup is verified, keep only the `keep` newest backups in the folder, including this
    one; None keeps all. Raises Conflict if the file exists or an older backup cannot be removed;
    InvalidArgument if `keep` is given without a folder, or the folder does not exist or is not
    writable; StoreIncompatible if the store is damaged; and StoreUnavailable.
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
    with scratch_in(path.parent, refused=InvalidArgument) as folder:
        new = folder / "resumes.db"
        _take(store, new, path, on_progress)
        examine(new, path)
        size_bytes = new.stat().st_size
        place(new, path)
    removed = [] if keep is None else _prune(path, keep)
    return Backup(path, size_bytes, removed)


def _take(store: Store, new: Path, path: Path, on_progress: OnProgress) -> None:
    if store.path is None:
        open_store(f"sqlite:///{new}").close()
        with store.snapshot() as source, transaction_in(new, draft_of=path) as target:
            load(lambda: nullcontext(source), target, f"sqlite:///{path}", on_progress)
        return
    size = store.measure()
    total = size.data_bytes + (size.log_bytes or 0)
    check_room(path.parent, total)
    vacuum_into(
        store.path,
        new,
        lambda done: on_progress(CopyProgress(Stage.BACKING_UP, new.name, min(done, total), total)),
    )


def _prune(made: Path, keep: int) -> list[Path]:
    """Remove the oldest backups with their logs and journals, and return the removed backups.

    Backups with later times than the new one, from a clock that was ahead, may be of any age: they
    are neither removed nor counted.
    """
    older = sorted(
        path
        for path in made.parent.iterdir()
        if path < made and OUR_NAME.fullmatch(path.name) and _may_be_backup(path)
    )
    old = older[: max(0, len(older) - keep + 1)]
    for path in old:
        try:
            path.unlink(missing_ok=True)
            for ending in SIDE_FILES:
                path.with_name(path.name + ending).unlink(missing_ok=True)
        except OSError as error:
            raise Conflict(
                f"{made} was made and verified, but {path} cannot be removed: {error.strerror}. "
                "Remove it manually"
            ) from error
    return old


def _may_be_backup(path: Path) -> bool:
    """Return False for a folder, a link, an empty file, or a file that no longer exists."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0


# Restoring


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore.

    `kept` is the replaced store, or None if there was none. If `is_kept_readable` is False, its
    last IDs could not be read, so new IDs begin above the clock. `store_id` is the store ID in the
    backup, and `kept_id` the ID of the replaced store, or empty if unknown. `erased` is the number
    of resumes that were erased again, because the replaced store had erased these people after the
    backup.
    """

    label: str
    resumes: int
    store_id: str
    kept: Path | None
    is_kept_readable: bool = True
    kept_id: str = ""
    erased: int = 0


def restore(
    backup: Path, url: str, *, on_progress: OnProgress = ignore, clock: Clock = system_clock
) -> Restored:
    """Replace the store at the address with the content of the backup.

    The list of importers, and the requests to them, are not restored. A replaced file is kept next
    to the new one. After an error, nothing is changed and no new file is left; only after
    OutcomeUnknown, a database may have been filled. Raises InvalidArgument if the backup does not
    exist or cannot be read, StoreIncompatible if the file is not a backup, is damaged, or is newer
    than this program, StoreUnavailable if the store is in use, and Conflict if a database is not
    empty.
    """
    address = parse_address(url)
    check_file(backup, "Backup")
    if isinstance(address, PostgresAddress):
        return _restore_rows(backup, address, on_progress, clock)
    return _restore_file(backup, address, clock)


def check_file(file: Path, kind: str) -> None:
    """Raise InvalidArgument if the file cannot be read, and StoreIncompatible if it is in use."""
    try:
        if file.is_dir():
            raise InvalidArgument(f"{file} is a folder: choose one file")
        if not file.is_file():
            raise InvalidArgument(f"{kind} not found: {file}")
        file.open("rb").close()
    except OSError as error:
        raise InvalidArgument(f"Cannot read {file}: {error.strerror}") from error
    if not is_closed(file):
        raise StoreIncompatible(
            f"{file} is a store in use, or was not closed cleanly: {file.name}-wal belongs to it. Back it "
            "up with `resumes db backup`"
        )


def copy_privately(file: Path, folder: Path) -> Path:
    """Make a private copy of the file in the folder, so that only the copy is read; return it."""
    copy = folder / "resumes.db"
    check_room(folder.parent, file.stat().st_size)  # users know only the parent
    create_private(copy)
    shutil.copyfile(file, copy)
    return copy


@contextlib.contextmanager
def _opened_copy(backup: Path, folder: Path) -> Iterator[Connection]:
    """Yield a connection to a verified and upgraded copy of the backup.

    Its transaction is committed after the block. The backup itself is not changed.
    """
    copy = copy_privately(backup, folder)
    examine(copy, backup)
    try:
        upgrade_file(copy, backs_up=False)
    except DRIVER_ERRORS as error:
        raise explain(error, backup) from error
    with transaction_in(copy) as connection:
        # The backup's store may be in use elsewhere. Its move, its importers, and the requests to
        # them do not concern the new store.
        set_facts(session_on(connection), closed_for="", copy_id="")
        for table in (importers, import_requests):
            connection.execute(delete(table))
        yield connection


def _restore_file(backup: Path, address: SqliteAddress, clock: Clock) -> Restored:
    path = address.path
    if path.exists() and path.samefile(backup):
        raise InvalidArgument(f"{backup} is the store itself: choose a backup")
    check_place(path)
    with contextlib.ExitStack() as locks, scratch_in(path.parent) as folder:
        # Create a lock file only for a valid backup, so that an invalid one leaves no file behind.
        has_lock = path.with_name(path.name + ".lock").exists()
        if has_lock:
            locks.enter_context(exclude_others(path, "restore"))
        with _opened_copy(backup, folder) as connection:
            if not has_lock:
                locks.enter_context(exclude_others(path, "restore"))
            for table in TABLES:
                for _ in iter_rows(connection, table, foreign=str(backup)):
                    pass
            is_readable, last_ids, kept_id, memory = _read_replaced(path)
            _raise_last_ids(connection, clock(), last_ids)
            stored = count_rows(connection, resumes)
            store_id = read_fact(session_on(connection), "store_id")
            has_returned = add_memory(connection, memory)
        erased = 0
        if has_returned:
            with open_store(f"sqlite:///{folder}/resumes.db") as store:
                erased = forget_returned(store)
        kept = path.with_name(f"{path.name}.before-restore-{stamp(clock())}")
        was_there = exchange(folder / "resumes.db", path, kept)
    kept_path = kept if was_there else None
    return Restored(
        address.label, stored - erased, store_id, kept_path, is_readable, kept_id, erased
    )


def _read_replaced(path: Path) -> tuple[bool, Mapping[str, int], str, Memory | None]:
    """Read the store to be replaced, if there is one, and empty its log.

    Return whether that succeeded, the last ID of each account, the store's ID, and its memory of
    erased people.
    """
    if not path.exists():
        return True, {}, "", None
    unreadable = False, dict[str, int](), "", None
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return unreadable  # SQLite would remove the log of such a file
    try:
        if not is_closed(path):
            refuse_second_name(path)  # or SQLite might apply a log that is older than the file
        with sqlite_engine(path, transactions=False).connect() as connection:
            rows = connection.execute(
                select(account_usage.c.account_id, account_usage.c.last_id_us)
            )
            last_ids = {row.account_id: row.last_id_us for row in rows}
            store_id = read_fact(session_on(connection), "store_id")
            memory = read_memory(connection)
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()
            return True, last_ids, store_id, memory
    except (StoreUnavailable, *DRIVER_ERRORS):
        return unreadable


def _raise_last_ids(connection: Connection, now_us: int, last_ids: Mapping[str, int]) -> None:
    """Make each account's new IDs greater than the clock and than its ID in `last_ids`."""
    last_id = account_usage.c.last_id_us
    lift = update(account_usage)
    connection.execute(lift.where(last_id < now_us).values(last_id_us=now_us))
    for account_id, last_us in last_ids.items():
        if last_us > now_us:
            behind = pk_equals(account_usage, account_id), last_id < last_us
            connection.execute(lift.where(*behind).values(last_id_us=last_us))


def _restore_rows(
    backup: Path, address: PostgresAddress, on_progress: OnProgress, clock: Clock
) -> Restored:
    with (
        scratch_in(Path(tempfile.gettempdir())) as folder,
        _opened_copy(backup, folder) as source,
        empty_database(address) as target,
    ):
        load(lambda: nullcontext(source), target, address.label, on_progress, foreign=str(backup))
        _raise_last_ids(target, clock(), {})
        stored = count_rows(target, resumes)
        store_id = read_fact(session_on(target), "store_id")
    return Restored(address.label, stored, store_id, None)
