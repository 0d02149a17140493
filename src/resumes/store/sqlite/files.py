"""Operations on whole SQLite files: open or create a store, upgrade it, copy a store in use, examine a
file, and put a file into place atomically.

Exactly one of the processes that need a store creates or upgrades it. No store is opened as a file while
this process has it open as a database, since that would drop its locks (pitfalls S1). A file gets its
final name when it is complete and on the disk.
"""

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, text

from resumes.clock import Clock
from resumes.errors import Conflict, ResumesError, StoreIncompatible, StoreUnavailable
from resumes.filesystems import free_bytes
from resumes.output_files import JOURNALS, flush, replace
from resumes.store import migrations
from resumes.store.locks import FileLock, name_processes
from resumes.store.sqlite.place import APPLICATION_ID, LOGS, check_place, refuse_second_name
from resumes.store.sqlite.store import (
    CACHE_BYTES,
    MIN_FREE_BYTES,
    SqliteStore,
    explain,
    sqlite_engine,
)
from resumes.store.sqlite.writer import DRIVER_ERRORS
from resumes.store.statements import driver
from resumes.text import escaped

# Opening

OPEN_TIMEOUT_S = 20.0
"""How long opening waits for another process that is creating or migrating the store."""

RETRY_DELAY_S = 0.02
"""The delay before each retry."""


def open_file(
    path: Path,
    *,
    clock: Clock,
    upgrade: bool,
    read_cache_bytes: int | None = None,
    timeout_s: float = OPEN_TIMEOUT_S,
) -> SqliteStore:
    """Open the store in a file, created or upgraded first when `upgrade` allows. Waits up to
    `timeout_s` seconds for another process that creates it, or has it open.

    Raises StoreIncompatible and StoreUnavailable.
    """
    check_place(path)
    if not upgrade and not path.exists():
        raise StoreUnavailable(f"Database not found: {path}. Create one with `resumes up`")
    refuse_second_name(path)  # before SQLite opens it and applies a log that is out of date
    if path.exists() and path.stat().st_size > 0:
        try:
            # Check it before a lock file is created next to a file that is not a store.
            _state(sqlite_engine(path, transactions=False), path)
        except DRIVER_ERRORS as error:
            # Another process may be creating the store: other errors are raised by the check in the lock.
            explained = explain(error, path)
            if isinstance(explained, StoreIncompatible):
                raise explained from error
    life = _life_lock(path)
    try:
        _prepare(path, life, upgrade=upgrade, timeout_s=timeout_s)
        cache_bytes = read_cache_bytes or CACHE_BYTES
        return SqliteStore(path, life=life, clock=clock, read_cache_bytes=cache_bytes)
    except BaseException as error:
        life.close()
        if isinstance(error, DRIVER_ERRORS):
            raise explain(error, path) from error
        if isinstance(error, OSError):
            raise StoreUnavailable(f"Cannot open {path}: {error.strerror}") from error
        raise


def _life_lock(path: Path) -> FileLock:
    """Return the lock that is held as long as a store is open. Raises StoreUnavailable."""
    try:
        return FileLock(path.with_name(path.name + ".lock"))
    except OSError as error:
        remedy = "" if error.errno != errno.EROFS else ". `mount` shows how it is mounted"
        raise StoreUnavailable(
            f"Cannot write to {path.parent}: {error.strerror}{remedy}"
        ) from error


def _prepare(path: Path, life: FileLock, *, upgrade: bool, timeout_s: float) -> None:
    """Bring the file up to date, unless another process does, and then hold `life` shared."""
    ends_at = time.monotonic() + timeout_s
    engine = sqlite_engine(path, transactions=False)
    while True:
        _share(life, path, timeout_s)
        is_file = path.exists() and path.stat().st_size > 0
        state = _state(engine, path) if is_file else "empty"
        if state == "current":
            return
        if not upgrade:
            what = "empty" if state == "empty" else "older than this program"
            raise StoreIncompatible(f"The store {path} is {what}. Run `resumes db upgrade`")
        if life.acquire(timeout_s=0):
            break
        # Another process holds it, perhaps one that wants to upgrade too. Release it, so that one of
        # them gets it.
        holders = life.holders()
        life.release()
        if time.monotonic() > ends_at:
            raise StoreUnavailable(
                f"The store {path} must be upgraded, but is in use (process {name_processes(holders)}). Stop everything that uses it first"
            )
        time.sleep(RETRY_DELAY_S)
    if state == "empty":
        with contextlib.suppress(FileExistsError):
            create_private(path)
        path.chmod(0o600)
    if _state(engine, path) != "current":
        with engine.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
            connection.exec_driver_sql("PRAGMA journal_mode=WAL").fetchall()
        upgrade_file(path)
    _share(life, path, 0)  # not atomic: another process may be replacing the store now


def _share(life: FileLock, path: Path, timeout_s: float) -> None:
    if not life.acquire(shared=True, timeout_s=timeout_s):
        raise StoreUnavailable(f"The store {path} is being upgraded or restored; try again later")


def _state(engine: Engine, path: Path) -> str:
    """Return "empty", "older" or "current". Raises StoreIncompatible otherwise."""
    with engine.connect() as connection:
        application_id = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
        tables = connection.exec_driver_sql("SELECT count(*) FROM sqlite_schema").scalar_one()
        if application_id == 0 and tables == 0:
            return "empty"
        if application_id != APPLICATION_ID:
            raise StoreIncompatible(
                f"{path} belongs to another program; choose another file with --database"
            )
        return migrations.find_state(connection, str(path))


# Upgrading


def create_private(path: Path) -> None:
    """Create an empty file that only its owner may read. Raises FileExistsError.

    Call it before SQLite creates the file, as SQLite only obeys the umask.
    """
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def upgrade_file(path: Path, *, backs_up: bool = True) -> None:
    """Bring the store to the newest revision; on any error it is unchanged.

    The caller holds the store exclusively. A store that is not empty is backed up first, as
    `<name>.before-<revision>`, next to it. Raises StoreUnavailable if that fails.
    """
    with sqlite_engine(path, transactions=True).connect() as connection:
        state = migrations.find_state(connection, str(path))
        connection.rollback()
        if state == "current":
            return
        if state == "older" and backs_up:
            check_room(path.parent, path.stat().st_size)
            with scratch_in(path.parent) as folder:
                vacuum_into(path, folder / path.name, lambda _: None)
                backup = path.with_name(f"{path.name}.before-{migrations.list_revisions()[-1]}")
                replace(folder / path.name, backup)
        driver(connection).execute("PRAGMA foreign_keys=OFF")
        with connection.begin():
            before = _row_counts(connection)
            migrations.run(connection)
            after = _row_counts(connection)
            lost = [name for name, count in before.items() if after.get(name, count) < count]
            broken = connection.execute(text("PRAGMA foreign_key_check")).first()
            if broken or lost:
                raise StoreIncompatible(
                    f"The upgrade of {path} was undone: it would have lost rows of "
                    f"{', '.join(lost) or broken}. Please report this"
                )


def _row_counts(connection: Connection) -> dict[str, int]:
    tables = connection.execute(
        # Without the search index, whose rows are made from others, and what is inside virtual tables.
        text(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
            " AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'search_%' AND name != 'alembic_version'"
        )
    ).scalars()
    return {
        name: connection.execute(text(f'SELECT count(*) FROM "{name}"')).scalar_one()
        for name in list(tables)
    }


# Copying and examining

PROGRESS_STEPS: Final = 2_000
"""The number of SQLite's steps between two reports of progress."""

SCRATCH_PREFIX: Final = ".resumes-"
SCRATCH_SUFFIX: Final = ".scratch"
IN_USE: Final = "in-use"
"""The file in a scratch folder that is locked for as long as its process lives."""


@contextlib.contextmanager
def scratch_in(
    parent: Path, *, refused: Callable[[str], ResumesError] = StoreUnavailable
) -> Iterator[Path]:
    """Create a private folder in `parent`, and remove it after the block.

    The folders of killed processes are removed first, since each may have a copy of a whole store.
    Raises `refused` with a sentence if no folder can be created.
    """
    _remove_abandoned(parent)
    with contextlib.ExitStack() as made:
        try:
            folder = Path(
                tempfile.mkdtemp(prefix=SCRATCH_PREFIX, suffix=SCRATCH_SUFFIX, dir=parent)
            )
            made.callback(shutil.rmtree, folder, ignore_errors=True)
            lock = made.enter_context(contextlib.closing(FileLock(folder / "new")))
            with contextlib.suppress(OSError):  # without locks, no abandoned folder is removed
                lock.acquire(timeout_s=0)
            lock.path.rename(folder / IN_USE)  # locked before others can find it
        except OSError as error:
            raise refused(
                f"Cannot write to {parent}: {error.strerror}. Choose another folder"
            ) from error
        yield folder


def _remove_abandoned(parent: Path) -> None:
    """Remove the folders of killed processes of this user; leave what cannot be removed."""
    with contextlib.suppress(OSError):
        for folder in parent.glob(f"{SCRATCH_PREFIX}*{SCRATCH_SUFFIX}"):
            found = folder.lstat()
            if found.st_uid != os.geteuid() or not (folder / IN_USE).is_file():
                continue
            with (
                contextlib.suppress(OSError),
                contextlib.closing(FileLock(folder / IN_USE)) as lock,
            ):
                if lock.acquire(timeout_s=0):
                    shutil.rmtree(folder, ignore_errors=True)


def refuse_stray_logs(path: Path) -> None:
    """Raise Conflict if there is a log for the path but no file: SQLite would apply it to the next file
    (pitfalls S22)."""
    for log in (path.with_name(path.name + ending) for ending in JOURNALS):
        if os.path.lexists(log):
            raise Conflict(
                f"{log} would be mistaken for part of {path}: remove it, or choose another file"
            )


@contextlib.contextmanager
def exclude_others(path: Path, purpose: str) -> Iterator[None]:
    """Prevent other processes from opening the store during the block.

    Raises StoreUnavailable, naming the process, if one has it open. `purpose` is the command to run
    again then.
    """
    with contextlib.closing(_life_lock(path)) as life:
        if not life.acquire(timeout_s=0):
            users = name_processes(life.holders())
            raise StoreUnavailable(
                f"The store {path} is in use (process {users}). Stop everything that uses it, then {purpose}"
            )
        yield


@contextlib.contextmanager
def transaction_in(path: Path, *, draft_of: Path | None = None) -> Iterator[Connection]:
    """Yield a connection to a store that no other process uses, in one transaction that is committed
    after the block.

    A draft keeps no log, since it is useless after an error or a kill; errors name the file that it is
    to become. Raises StoreUnavailable and StoreIncompatible.
    """
    try:
        with sqlite_engine(path, transactions=True).connect() as connection:
            if draft_of is not None:
                driver(connection).execute("PRAGMA journal_mode=OFF").fetchall()
            with connection.begin():
                yield connection
    except DRIVER_ERRORS as error:
        raise explain(error, draft_of or path) from error


def check_room(folder: Path, needed_bytes: int) -> None:
    """Raise StoreUnavailable if the folder has no space for a file of this size."""
    needed_bytes += MIN_FREE_BYTES
    free = free_bytes(folder)
    if free < needed_bytes:
        raise StoreUnavailable(
            f"{folder} has {free / 1e6:,.1f} MB of free space, but {needed_bytes / 1e6:,.1f} MB "
            "is needed. Free up space, or choose another folder"
        )


def vacuum_into(store_path: Path, copy: Path, on_progress: Callable[[int], None]) -> None:
    """Write a compact copy of the store at one moment; others can read and write during this.

    A page-by-page backup would begin again after each write (pitfalls S11). `on_progress` is called with
    the number of bytes written; its exceptions end the copy. Raises StoreUnavailable.
    """
    create_private(copy)
    raised: list[BaseException] = []

    # The driver drops its callback's exception, and ends the statement. Ctrl-C would mostly be raised
    # as a function is entered, before any `try` in it; a generator at its `yield` is inside its `try`.
    def report() -> Iterator[int]:
        try:
            while True:
                yield 0
                on_progress(copy.stat().st_size)
        except BaseException as error:  # noqa: BLE001  (raised below)
            raised.append(error)

    try:
        with sqlite_engine(store_path, transactions=False).connect() as connection:
            reports = report()
            next(reports)
            driver(connection).set_progress_handler(reports.__next__, PROGRESS_STEPS)
            driver(connection).execute("VACUUM INTO ?", [str(copy)])
    except DRIVER_ERRORS as error:
        if raised:
            raise raised[0] from None
        raise explain(error, store_path) from error


def find_foreign_code(connection: Connection) -> list[tuple[str, str]]:
    """Return the triggers and views of a store, which no store of ours has: a description of each, and
    the SQL that removes it."""
    rows = connection.exec_driver_sql(
        "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY type, name"
    ).all()
    found = []
    for kind, name in rows:
        quoted = escaped(name).replace('"', '""')
        what = f"a {kind} that this program did not create, {escaped(name)}"
        found.append((what, f'DROP {kind.upper()} "{quoted}"'))
    return found


def examine(path: Path, shown: Path) -> None:
    """Raise StoreIncompatible unless the file is a store of ours, undamaged, not newer than this
    program, and without foreign triggers and views; set its journal mode to WAL.

    `shown` is its path in errors.
    """
    try:
        with sqlite_engine(path, transactions=False).connect() as connection:
            if connection.exec_driver_sql("PRAGMA application_id").scalar_one() != APPLICATION_ID:
                raise StoreIncompatible(f"{shown} is not a store of this program")
            if migrations.find_state(connection, str(shown)) == "empty":
                raise StoreIncompatible(f"{shown} is an empty store")
            for what, removal in find_foreign_code(connection):
                raise StoreIncompatible(
                    f"{shown} has {what}. Remove it with `{removal}`, or use another file"
                )
            result = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
            if result != "ok":
                found = result.splitlines()[-1]  # the first may say which database
                raise StoreIncompatible(f"{shown} is damaged: {found}. Use another file")
            if connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
                raise StoreIncompatible(
                    f"{shown} is damaged: rows refer to rows that do not exist. Use another file"
                )
            connection.exec_driver_sql("PRAGMA journal_mode=WAL").all()
    except DRIVER_ERRORS as error:
        cause = getattr(error, "orig", error)
        raise StoreIncompatible(f"{shown} is not a store, or is damaged: {cause}") from error


def is_closed(path: Path) -> bool:
    """Return whether the whole database is in its file, and nothing in its log."""
    log = path.with_name(path.name + LOGS[0])
    return not log.exists() or log.stat().st_size == 0


def exchange(new: Path, path: Path, kept: Path) -> bool:
    """Put the new file at `path`, and rename the old file to `kept`, with its log or journal, even if
    that was left there without a file. Return whether there was a file.

    A process that dies during this leaves the old file at `path`, perhaps with its log already at
    `kept`, or, on a disk without hard links, no file there. If the old file also has the name `kept`,
    it is not opened until one of the names is gone; another exchange does that.
    """
    flush(new)
    is_replaced = path.exists()
    if is_replaced:
        try:
            os.link(path, kept)
        except FileExistsError:
            raise Conflict(f"{kept} already exists: move it elsewhere") from None
        except OSError:  # a disk without hard links
            path.rename(kept)
    for suffix in JOURNALS:
        log = path.with_name(path.name + suffix)
        if log.exists():
            log.rename(kept.with_name(kept.name + suffix))
    new.replace(path)
    flush(path.parent)
    return is_replaced
