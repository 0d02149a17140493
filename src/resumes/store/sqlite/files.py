"""SQLite files as a whole: copy them from a store in use, examine them, put them into place atomically.

None is opened as a file while this process has it open as a database: that would drop its locks
(pitfalls S1). Nothing has its final name before it is complete and on the disk.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from resumes.errors import Conflict, ResumesError, StoreIncompatible, StoreUnavailable
from resumes.filesystems import free_bytes
from resumes.output_files import JOURNALS, flush
from resumes.store import migrations
from resumes.store.locks import FileLock, name_processes
from resumes.store.sqlite.bootstrap import create_private
from resumes.store.sqlite.store import APPLICATION_ID, LOGS, MIN_FREE_BYTES, explain, sqlite_engine
from resumes.store.sqlite.writer import DRIVER_ERRORS
from resumes.store.statements import driver
from resumes.text import escaped

MAGIC: Final = b"SQLite format 3\0"

PROGRESS_STEPS: Final = 2_000
"""Steps of SQLite's virtual machine between two reports of progress."""

SCRATCH_PREFIX: Final = ".resumes-"
SCRATCH_SUFFIX: Final = ".scratch"
IN_USE: Final = "in-use"
"""The file in a scratch folder that is locked for as long as its process lives."""


@contextlib.contextmanager
def scratch_in(
    parent: Path, *, refused: Callable[[str], ResumesError] = StoreUnavailable
) -> Iterator[Path]:
    """Make a folder there, for its owner alone, and remove it after the block.

    What killed processes left there is removed first: each may have left a copy of a whole store.
    Raises what `refused` makes of the sentence if no folder can be made.
    """
    _remove_abandoned(parent)
    with contextlib.ExitStack() as made:
        try:
            folder = Path(
                tempfile.mkdtemp(prefix=SCRATCH_PREFIX, suffix=SCRATCH_SUFFIX, dir=parent)
            )
            made.callback(shutil.rmtree, folder, ignore_errors=True)
            lock = made.enter_context(contextlib.closing(FileLock(folder / "new")))
            with contextlib.suppress(OSError):  # a disk without locks, where nothing is removed
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
        for one in parent.glob(f"{SCRATCH_PREFIX}*{SCRATCH_SUFFIX}"):
            found = one.lstat()
            if found.st_uid != os.geteuid() or not (one / IN_USE).is_file():
                continue
            with contextlib.suppress(OSError), contextlib.closing(FileLock(one / IN_USE)) as lock:
                if lock.acquire(timeout_s=0):
                    shutil.rmtree(one, ignore_errors=True)


@contextlib.contextmanager
def draft(
    path: Path,
    finish: Callable[[Path, Path], object],
    *,
    refused: Callable[[str], ResumesError] = StoreUnavailable,
) -> Iterator[Path]:
    """Yield the path of a new store in a scratch folder; after the block `finish(draft, path)` puts it
    in place.

    The draft is examined first. If the block, the examination or `finish` fails, nothing of it is
    left. Raises what `scratch_in` and `examine` raise.
    """
    with scratch_in(path.parent, refused=refused) as folder:
        new = folder / "resumes.db"
        yield new
        examine(new, path)
        finish(new, path)


def refuse_stray_logs(path: Path) -> None:
    """Raise Conflict if there is a log next to the path, which has no file: SQLite would apply it to the
    next one (pitfalls S22)."""
    for log in (path.with_name(path.name + ending) for ending in JOURNALS):
        if os.path.lexists(log):
            raise Conflict(
                f"{log} would be mistaken for a part of {path}: remove it, or choose another file"
            )


@contextlib.contextmanager
def exclude_others(path: Path, purpose: str) -> Iterator[None]:
    """Keep everybody else from opening the store during the block.

    Raises StoreUnavailable, with the process, if somebody has it open. `purpose` is the command that
    can be run again then.
    """
    try:
        life = FileLock(path.with_name(path.name + ".lock"))
    except OSError as error:
        raise StoreUnavailable(f"Cannot write to {path.parent}: {error.strerror}") from error
    try:
        if not life.acquire(timeout_s=0):
            users = name_processes(life.holders())
            raise StoreUnavailable(
                f"The store {path} is in use by process {users}. Stop it, then {purpose}"
            )
        yield
    finally:
        life.close()


@contextlib.contextmanager
def transaction_in(
    path: Path, *, shown: Path | None = None, is_draft: bool = False
) -> Iterator[Connection]:
    """Yield a connection to a store that nobody else uses, in one transaction that is committed
    after the block.

    A draft keeps no log: after an error, or a kill, it is of no use. `shown` is its path in errors.
    Raises StoreUnavailable and StoreIncompatible.
    """
    try:
        with sqlite_engine(path, transactions=True).connect() as connection:
            if is_draft:
                driver(connection).execute("PRAGMA journal_mode=OFF").fetchall()
            with connection.begin():
                yield connection
    except DRIVER_ERRORS as error:
        raise explain(error, shown or path) from error


def check_room(folder: Path, needed_bytes: int) -> None:
    """Raise StoreUnavailable if the folder has no space for a file of this size."""
    needed_bytes += MIN_FREE_BYTES
    free = free_bytes(folder)
    if free < needed_bytes:
        raise StoreUnavailable(
            f"{folder} has {free / 1e6:,.0f} MB of free space, and {needed_bytes / 1e6:,.0f} MB "
            "are needed. Free up space, or choose another folder"
        )


def vacuum_into(store_path: Path, copy: Path, on_progress: Callable[[int], None]) -> None:
    """Write a compact copy of the store of one moment; others can read and write during this.

    A backup page by page would begin again with each write (pitfalls S11). `on_progress` is called
    with the bytes that are written. Raises StoreUnavailable.
    """
    create_private(copy)

    def report() -> int:
        on_progress(copy.stat().st_size)
        return 0

    try:
        with sqlite_engine(store_path, transactions=False).connect() as connection:
            driver(connection).set_progress_handler(report, PROGRESS_STEPS)
            driver(connection).execute("VACUUM INTO ?", [str(copy)])
    except DRIVER_ERRORS as error:
        raise explain(error, store_path) from error


def find_foreign_code(connection: Connection) -> list[tuple[str, str]]:
    """Return the triggers and views of a store, which no store of ours has: what each is, and the
    SQL that removes it."""
    rows = connection.exec_driver_sql(
        "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY type, name"
    ).all()
    found = []
    for kind, name in rows:
        quoted = escaped(name).replace('"', '""')
        what = f"a {kind} that is not this program's, {escaped(name)}"
        found.append((what, f'DROP {kind.upper()} "{quoted}"'))
    return found


def examine(path: Path, shown: Path) -> None:
    """Raise StoreIncompatible unless the file is a store of ours, undamaged, not newer than this
    program, and without foreign triggers and views; have it keep a log as ours do.

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
                    f"{shown} has {what}. Remove it with `{removal}`, or use another backup"
                )
            result = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
            if result != "ok":
                found = result.splitlines()[-1]  # the first may say which database
                raise StoreIncompatible(f"{shown} is damaged: {found}. Use another backup")
            if connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
                raise StoreIncompatible(
                    f"{shown} is damaged: rows refer to others that do not exist"
                )
            connection.exec_driver_sql("PRAGMA journal_mode=WAL").all()
    except DRIVER_ERRORS as error:
        cause = getattr(error, "orig", error)
        raise StoreIncompatible(f"{shown} is not a store, or damaged: {cause}") from error


def is_database(path: Path) -> bool:
    """Return whether the file has the header of a database. Nobody may have it open as one."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def is_closed(path: Path) -> bool:
    """Return whether all of a database is in its file, and nothing in its log."""
    log = path.with_name(path.name + LOGS[0])
    return not log.exists() or log.stat().st_size == 0


def exchange(new: Path, path: Path, kept: Path) -> bool:
    """Put the new file at `path`, and rename what was there to `kept`, with its log if it had
    one. Return whether something was there.

    A process that dies on the way leaves the old file under the path,
    its log perhaps next to `kept` already, or, on a disk without hard links, no file there. If it is
    also still `kept`, it is not opened until one of the two names is gone; another exchange does that.
    """
    flush(new)
    is_replaced = path.exists()
    if is_replaced:
        try:
            os.link(path, kept)
        except FileExistsError:
            raise Conflict(f"{kept} already exists: move it away") from None
        except OSError:  # a disk without hard links
            path.rename(kept)
    for suffix in LOGS:
        log = path.with_name(path.name + suffix)
        if log.exists():
            log.rename(kept.with_name(kept.name + suffix))
    new.replace(path)
    flush(path.parent)
    return is_replaced
