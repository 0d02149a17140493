"""Copying a store to another, of any engine: the copy is complete and compared, or does not exist.

The source takes no writes from the beginning on, and after a copy that ended well never again, so
that nobody writes to the wrong one (pitfalls S13). A copy that failed reopens it. One that was killed
leaves it closed, and is started again.
"""

import contextlib
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

from sqlalchemy import Connection, text

from resumes.errors import InvalidArgument, ResumesError
from resumes.output_files import place
from resumes.store import closed, open_store
from resumes.store.addresses import PostgresAddress, parse_address
from resumes.store.schema import metadata
from resumes.store.sqlite.bootstrap import check_place
from resumes.store.sqlite.files import (
    check_room,
    draft,
    exchange,
    exclude_others,
    refuse_stray_logs,
    transaction_in,
)
from resumes.store.store import Store
from resumes.store.transfer.rows import (
    Occupied,
    OnProgress,
    TableDigest,
    digest_tables,
    ignore,
    load,
    refuse_content,
)


def copy(source: Store, url: str, *, on_progress: OnProgress = ignore) -> list[TableDigest]:
    """Copy all rows of the source to a store at the address; return the digest of each table.

    The address is that of a file that is not there, or of a store that holds nothing but plans, which
    are replaced. If it holds the same already, and the source was closed for this, an earlier copy
    was killed after its last step: that is success.

    Raises InvalidArgument for a store and itself; Conflict for a target that holds something else,
    for a source that is being moved elsewhere, and when both turn out to differ; OutcomeUnknown; and
    what reading and writing raise. After an error the source takes writes again, unless it cannot be
    reached, or the copy may be there all the same.
    """
    address = parse_address(url)
    label = address.label
    if source.label == label:
        raise InvalidArgument(f"{label} cannot be copied to itself: choose another target")
    copy_id = secrets.token_hex(8)
    may_be_there = False

    def confirm() -> None:
        nonlocal may_be_there
        closed.check_closed(source, copy_id)
        may_be_there = True

    try:
        with (
            empty_database(address, confirm)
            if isinstance(address, PostgresAddress)
            else _empty_file(address.path, source, confirm)
        ) as target:
            closed.close_store(source, label, copy_id)
            digests = load(source.read, target, label, on_progress)
    except Occupied:
        found = _find_finished_copy(source, url, label)
        if found is None:
            raise
        return found
    except BaseException:
        if not may_be_there:
            with contextlib.suppress(ResumesError):
                closed.reopen(source, copy_id)
        raise
    return digests


def _find_finished_copy(source: Store, url: str, label: str) -> list[TableDigest] | None:
    with source.read() as connection:
        if closed.read_facts(connection).moving_to != label:
            return None
        ours = digest_tables(connection, lambda table, rows: None)
    with open_store(url) as target, target.read() as connection:
        theirs = digest_tables(connection, lambda table, rows: None)
    return theirs if ours == theirs else None


@contextlib.contextmanager
def empty_database(
    address: PostgresAddress, confirm: Callable[[], None] = lambda: None
) -> Iterator[Connection]:
    """Yield a connection to a store that is empty except for plans, in one transaction that is
    committed after the block, unless `confirm`, which is called last, raises. Others can read the
    store meanwhile, and do not write to it.

    Raises Occupied, StoreUnavailable when nothing was done, and OutcomeUnknown.
    """
    from resumes.store.postgresql.store import load_transaction

    open_store(address.url).close()
    with load_transaction(address) as connection:
        names = ", ".join(table.name for table in metadata.sorted_tables)
        connection.execute(text(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE"))
        refuse_content(connection)
        yield connection
        confirm()


@contextlib.contextmanager
def _empty_file(path: Path, source: Store, confirm: Callable[[], None]) -> Iterator[Connection]:
    """Yield a connection to an empty store that is put in the place of the file after the block,
    unless `confirm`, which is called last, raises. Raises Occupied.
    """
    check_place(path)
    if source.path is not None:  # PostgreSQL keeps the same rows in another space
        size = source.measure()
        check_room(path.parent, size.data_bytes + (size.log_bytes or 0))

    def finish(new: Path, path: Path) -> None:
        confirm()
        if path.exists():
            exchange(new, path, new.with_name("replaced.db"))
        else:
            place(new, path)

    with contextlib.ExitStack() as locks, draft(path, finish) as new:
        if path.exists():
            open_store(f"sqlite:///{path}").close()  # it is a store, of this version
        else:
            refuse_stray_logs(path)
        locks.enter_context(exclude_others(path, "copy"))
        if path.exists():
            with transaction_in(path) as connection:
                refuse_content(connection)
        open_store(f"sqlite:///{new}").close()
        with transaction_in(new, shown=path, is_draft=True) as connection:
            yield connection
