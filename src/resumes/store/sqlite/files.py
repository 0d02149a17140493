"""Operations on SQLite files: open or create a store, upgrade it, copy a store in use, examine a
file, and replace a file atomically.

If several processes need a store, exactly one of them creates or upgrades it. A process that has a
store open never opens its file directly, since that would drop the store's locks (pitfalls S1). A
file gets its final name only when it is complete and on the disk.
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
"""How long opening a store waits for another process that is creating or upgrading it."""

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
    """Open the store in a file; with `upgrade`, create or upgrade it first if necessary.

    Wait up to `timeout_s` seconds for other processes that are creating the store, or have it open
    when it must be upgraded. Raises StoreIncompatible and StoreUnavailable.
    """
    check_place(path)
    if not upgrade and not path.exists():
        raise StoreUnavailable(f"Database not found: {path}. Create one with `resumes up`")
    refuse_second_name(path)  # before SQLite opens it and may apply an outdated log
    if path.exists() and path.stat().st_size > 0:
        try:
            # Check the file first, so that no lock file is created next to a file that is no store.
            _state(sqlite_engine(path, transactions=False), path)
        except DRIVER_ERRORS as error:
            # Ignore other errors, since another process may be creating the store: the check with
            # the lock held raises them.
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
    """Return the lock that a process holds while it has the store open. Raises StoreUnavailable."""
    try:
        return FileLock(path.with_name(path.name + ".lock"))
    except OSError as error:
        remedy = "" if error.errno != errno.EROFS else ". `mount` shows how it is mounted"
        raise StoreUnavailable(
            f"Cannot write to {path.parent}: {error.strerror}{remedy}"
        ) from error


def _prepare(path: Path, life: FileLock, *, upgrade: bool, timeout_s: float) -> None:
    """Upgrade the file, unless another process does; then hold `life` as a shared lock."""
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
        # Another process holds the lock, and may also be trying to upgrade. Release the lock, so
        # that one of the processes can get it exclusively.
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
    _share(life, path, 0)  # not atomic: another process may replace the store first


def _share(life: FileLock, path: Path, timeout_s: float) -> None:
    if not life.acquire(shared=True, timeout_s=timeout_s):
        raise StoreUnavailable(f"The store {path} is being upgraded or restored; try again later")


def _state(engine: Engine, path: Path) -> str:
    """Return "empty", "older" or "current". Raises StoreIncompatible for all other files."""
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

    Call this before SQLite creates the file, because SQLite uses the permissions of the umask.
    """
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def upgrade_file(path: Path, *, backs_up: bool = True) -> None:
    """Upgrade the store to the newest revision. After any error, it is unchanged.

    The caller must hold the lock exclusively. A store that is not empty is first backed up next to
    it, as `<name>.before-<revision>`. Raises StoreUnavailable if that fails.
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
        # Leave out the search index, which is derived, and tables inside virtual tables.
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
"""The number of SQLite instructions between two reports of progress."""

SCRATCH_PREFIX: Final = ".resumes-"
SCRATCH_SUFFIX: Final = ".scratch"
IN_USE: Final = "in-use"
"""The name of the file in a scratch folder that the folder's process keeps locked."""


@contextlib.contextmanager
def scratch_in(
    parent: Path, *, refused: Callable[[str], ResumesError] = StoreUnavailable
) -> Iterator[Path]:
    """Create a private folder in `parent`, and remove it after the block.

    The folders of killed processes are removed first, because each may contain a complete copy of a
    store. Raises `refused` with a message if the folder cannot be created.
    """
    _remove_abandoned(parent)
    with contextlib.ExitStack() as made:
        try:
            folder = Path(
                tempfile.mkdtemp(prefix=SCRATCH_PREFIX, suffix=SCRATCH_SUFFIX, dir=parent)
            )
            made.callback(shutil.rmtree, folder, ignore_errors=True)
            lock = made.enter_context(contextlib.closing(FileLock(folder / "new")))
            with contextlib.suppress(OSError):  # without locks, abandoned folders are not removed
                lock.acquire(timeout_s=0)
            lock.path.rename(folder / IN_USE)  # locked before other processes can find it
        except OSError as error:
            raise refused(
                f"Cannot write to {parent}: {error.strerror}. Choose another folder"
            ) from error
        yield folder


def _remove_abandoned(parent: Path) -> None:
    """Remove the folders of this user's killed processes, as far as possible."""
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
    """Raise Conflict if the path has a log: SQLite would apply it to a new file (pitfalls S22)."""
    for log in (path.with_name(path.name + ending) for ending in JOURNALS):
        if os.path.lexists(log):
            raise Conflict(
                f"{log} would be mistaken for part of {path}: remove it, or choose another file"
            )


@contextlib.contextmanager
def exclude_others(path: Path, purpose: str) -> Iterator[None]:
    """Prevent other processes from opening the store during the block.

    Raises StoreUnavailable if other processes have it open. The message names them, and the command
    (`purpose`) to repeat.
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
    """Yield a connection to a store that no other process uses, in one transaction.

    The transaction is committed after the block. A draft has no journal, because it is useless
    after an error or a crash; errors name `draft_of`, the file that the draft will become. Raises
    StoreUnavailable and StoreIncompatible.
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
    """Raise StoreUnavailable if the folder does not have enough space for a file of this size."""
    needed_bytes += MIN_FREE_BYTES
    free = free_bytes(folder)
    if free < needed_bytes:
        raise StoreUnavailable(
            f"{folder} has {free / 1e6:,.1f} MB of free space, but {needed_bytes / 1e6:,.1f} MB "
            "is needed. Free up space, or choose another folder"
        )


def vacuum_into(store_path: Path, copy: Path, on_progress: Callable[[int], None]) -> None:
    """Write a compact snapshot of the store; meanwhile, other processes can read and write.

    A page-by-page backup would start again after each write (pitfalls S11). `on_progress` is called
    with the number of bytes written; if it raises an exception, the copy is cancelled and the
    exception is raised here. Raises StoreUnavailable.
    """
    create_private(copy)
    raised: list[BaseException] = []

    # If a callback raises an exception, the driver cancels the statement and drops the exception.
    # Ctrl-C is usually raised when a function is entered, before a `try` in it. A generator is
    # already inside its `try` when it continues after a `yield`.
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
    """Return a description of each trigger and view in the store, and the SQL to remove it.

    Stores of this program have neither.
    """
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
    """Raise StoreIncompatible unless the file is an undamaged store of this program, is not newer
    than the program, and has no triggers and views; set its journal mode to WAL.

    `shown` is the file's path in messages.
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
                found = result.splitlines()[-1]  # the first line may name the database
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
    """Return whether the database file is complete, because there is no log or the log is empty."""
    log = path.with_name(path.name + LOGS[0])
    return not log.exists() or log.stat().st_size == 0


def exchange(new: Path, path: Path, kept: Path) -> bool:
    """Move the new file to `path`, and return whether it replaced an old file there.

    The old file is renamed to `kept`, together with its log or journal, which is renamed even if
    there is no old file. If the process dies meanwhile, the old file is still at `path`, although
    its log may already be at `kept`; on a disk without hard links, `path` may not exist. If the old
    file then has both names, it cannot be opened until one name is removed, which the next exchange
    does.
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
