"""Open a store in a file; exactly one of the processes that need it creates or upgrades it."""

import contextlib
import errno
import os
import time
from pathlib import Path

from sqlalchemy import Connection, Engine, text

from resumes.clock import Clock
from resumes.errors import StoreIncompatible, StoreUnavailable
from resumes.filesystems import HOST, SHARED, find_kind
from resumes.output_files import check_name
from resumes.store import migrations
from resumes.store.locks import FileLock
from resumes.store.sqlite.store import (
    APPLICATION_ID,
    CACHE_BYTES,
    SqliteStore,
    explain,
    refuse_mount_point,
    refuse_second_name,
    refuse_special_files,
    sqlite_engine,
)
from resumes.store.sqlite.writer import DRIVER_ERRORS
from resumes.store.statements import driver


def create_private(path: Path) -> None:
    """Create an empty file that only its owner may read. Raises FileExistsError.

    Call it before SQLite creates the file, which obeys the umask.
    """
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def upgrade_file(engine: Engine, path: Path) -> None:
    """Bring the store to the newest revision; on any error it is as it was.

    The caller holds the store exclusively. A store that is not empty is backed up first, as
    `<name>.before-<revision>`, next to it.
    """
    with engine.connect() as connection:
        older = migrations.find_state(connection, str(path)) == "older"
        connection.rollback()
        if older:
            backup = path.with_name(f"{path.name}.before-{migrations.list_revisions()[-1]}")
            backup.unlink(missing_ok=True)
            create_private(backup)
            driver(connection).execute("VACUUM INTO ?", [str(backup)])
        driver(connection).execute("PRAGMA foreign_keys=OFF")
        with connection.begin():
            before = _row_counts(connection)
            migrations.run(connection)
            _check(connection, before, path)


def _row_counts(connection: Connection) -> dict[str, int]:
    tables = connection.execute(
        # Not the tables inside a virtual one: their rows are derived from others.
        text(
            "SELECT name FROM pragma_table_list"
            " WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
    ).scalars()
    return {
        name: connection.execute(text(f'SELECT count(*) FROM "{name}"')).scalar_one()
        for name in list(tables)
        if name != "alembic_version"
    }


def _check(connection: Connection, before: dict[str, int], path: Path) -> None:
    broken = connection.execute(text("PRAGMA foreign_key_check")).first()
    after = _row_counts(connection)
    lost = [name for name, count in before.items() if after.get(name, count) < count]
    if broken or lost:
        raise StoreIncompatible(
            f"The upgrade of {path} was undone: it would have lost rows of "
            f"{', '.join(lost) or broken}. Please report this"
        )


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
    `timeout_s` seconds for another process that creates it, or has it open and is in the way.

    Raises StoreIncompatible and StoreUnavailable.
    """
    check_place(path)
    if not upgrade and not path.exists():
        raise StoreUnavailable(f"Database not found: {path}. Create one with `resumes up`")
    refuse_second_name(path)  # before SQLite opens it, which would apply a log that is out of date
    _refuse_strangers(path)
    try:
        life = FileLock(path.with_name(path.name + ".lock"))
    except OSError as error:
        remedy = "" if error.errno != errno.EROFS else ". `mount` shows how it is mounted"
        raise StoreUnavailable(
            f"Cannot write to {path.parent}: {error.strerror}{remedy}"
        ) from error
    try:
        _prepare(path, life, upgrade=upgrade, timeout_s=timeout_s)
        cache_bytes = read_cache_bytes or CACHE_BYTES
        return SqliteStore(path, life=life, clock=clock, read_cache_bytes=cache_bytes)
    except DRIVER_ERRORS as error:
        life.close()
        raise explain(error, path) from error
    except OSError as error:
        life.close()
        raise StoreUnavailable(f"Cannot open {path}: {error.strerror}") from error
    except BaseException:
        life.close()
        raise


def check_place(path: Path) -> None:
    """Raise StoreUnavailable unless a store can be in this place, and Conflict for a name that
    belongs to another database."""
    if not path.parent.is_dir():
        raise StoreUnavailable(
            f"Folder not found: {path.parent}. Create it, or choose another database"
        )
    if path.is_dir():
        raise StoreUnavailable(f"The database {path} is a folder; use a file")
    if path.exists() and not path.is_file():
        raise StoreUnavailable(f"The database {path} is a pipe or a device; use a file")
    refuse_special_files(path)
    check_name(path)
    _refuse_shared(path)
    refuse_mount_point(path)


def _refuse_shared(path: Path) -> None:
    """Raise StoreUnavailable if other machines can open the file, or its log, too.

    The users of a file coordinate through shared memory, which belongs to one machine: two machines
    would damage the file (SQLite's "Write-Ahead Logging", 1). A folder shared by a host is allowed,
    though doctor mentions it: containers may have nothing else, and the host does not use it.
    """
    for place in (path, path.parent):
        kind = find_kind(place)
        if kind is not None and SHARED.get(kind, HOST) is not HOST:
            raise StoreUnavailable(
                f"The database {path} is on {kind}, {SHARED[kind].nature}, where SQLite can "
                "damage it. Use a file on a local disk, or a PostgreSQL database"
            )


def _refuse_strangers(path: Path) -> None:
    """Raise StoreIncompatible for a file that is not a store, before lock files are created next to it.

    Without the lock another process may be creating the store: other errors are left to the look
    inside the lock.
    """
    if not path.exists() or path.stat().st_size == 0:
        return
    try:
        _state(sqlite_engine(path, transactions=False), path)
    except DRIVER_ERRORS as error:
        explained = explain(error, path)
        if isinstance(explained, StoreIncompatible):
            raise explained from error


def _prepare(path: Path, life: FileLock, *, upgrade: bool, timeout_s: float) -> None:
    ends_at = time.monotonic() + timeout_s
    while not _is_prepared(path, life, upgrade=upgrade, timeout_s=timeout_s):
        # Someone else holds it: perhaps another new process that wants the same. Let go, so
        # that one of us gets it.
        holders = life.holders()
        life.release()
        if time.monotonic() > ends_at:
            pids = ", ".join(map(str, holders)) or "unknown"
            raise StoreUnavailable(
                f"The store {path} must be upgraded, but is in use by process {pids}. Stop it first"
            )
        time.sleep(RETRY_DELAY_S)


def _is_prepared(path: Path, life: FileLock, *, upgrade: bool, timeout_s: float) -> bool:
    """Return True once the file is current, by this call if need be, and `life` held shared; False if
    somebody else has the store open."""
    if not life.acquire(shared=True, timeout_s=timeout_s):
        raise StoreUnavailable(f"The store {path} is being migrated or restored; try again later")
    engine = sqlite_engine(path, transactions=False)
    is_file = path.exists() and path.stat().st_size > 0
    state = _state(engine, path) if is_file else "empty"
    if state == "current":
        return True
    if not upgrade:
        what = "empty" if state == "empty" else "older than this program"
        raise StoreIncompatible(f"The store {path} is {what}. Run `resumes db upgrade`")
    if not life.acquire(timeout_s=0):
        return False
    if state == "empty":
        with contextlib.suppress(FileExistsError):
            create_private(path)
        path.chmod(0o600)
    if _state(engine, path) != "current":
        with engine.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
            connection.exec_driver_sql("PRAGMA journal_mode=WAL").fetchall()
        upgrade_file(sqlite_engine(path, transactions=True), path)
    life.acquire(shared=True, timeout_s=0)
    return True


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
