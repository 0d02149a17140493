"""Copying a store to another, of whatever engines, and proving that both hold the same.

The source takes no writes from the beginning on, and after a copy that ended well never again, so
that nobody writes to the wrong one (pitfalls S13). A copy that was killed leaves both marked, and
goes on when it is called again. One that failed gives the source back.
"""

import contextlib

from resumes.errors import InvalidArgument, OutcomeUnknown, ResumesError
from resumes.store.addresses import SqliteAddress, parse_address
from resumes.store.engine import Store
from resumes.store.moving import filling, marking
from resumes.store.moving.marking import Move
from resumes.store.moving.proving import TableDigest
from resumes.store.moving.transferring import Watcher, nobody, transfer
from resumes.store.sqlite.database import TRUNCATE_BYTES
from resumes.store.sqlite.files import check_room


def check_target(source: Store, url: str) -> None:
    """There is room at the address for what the store holds, as far as that can be known.

    Known is how large a file becomes that is copied to a file: PostgreSQL keeps the same rows in
    another space, and its machine's disk is not ours to look at. Raises StoreUnavailable.
    """
    address = parse_address(url)
    if source.path is None or not isinstance(address, SqliteAddress):
        return
    if not address.path.parent.is_dir():
        return  # opening it says so
    size = source.database.measure()
    there_bytes = address.path.stat().st_size if address.path.exists() else 0
    missing_bytes = max(0, size.data_bytes + (size.log_bytes or 0) - there_bytes)
    # What is written passes through the new store's log, which is cut when it is so long.
    check_room(address.path.parent, missing_bytes + min(missing_bytes, TRUNCATE_BYTES))


def copy(source: Store, target: Store, *, watcher: Watcher = nobody) -> list[TableDigest]:
    """The target holds what the source holds, which is proved; what each table holds.

    Raises InvalidArgument for a store and itself; Conflict for a target that holds something else,
    for a source that is being moved elsewhere, and when both turn out to differ; and what reading
    and writing raise. After an error the source takes writes again, unless it cannot be reached.
    """
    if source.label == target.label:
        raise InvalidArgument(f"{source.label} cannot be copied to itself: name another target")
    move = marking.plan_move(source, target.label)
    filling.begin(target, move)
    is_ending = False
    try:
        marking.depart(source, move)
        with source.read() as connection:
            digests = transfer(connection, target, watcher)
        marking.check_departed(source, move)
        is_ending = True
        filling.finish(target)
    except OutcomeUnknown:
        # The target may turn out to be usable: the source stays closed until somebody has looked.
        if not is_ending:
            _give_back(source, move)
        raise
    except BaseException:
        if not _has_ended(target, if_unknown=is_ending):
            _give_back(source, move)
        raise
    return digests


def _give_back(source: Store, move: Move) -> None:
    with contextlib.suppress(ResumesError):
        marking.give_back(source, move.name)


def _has_ended(target: Store, *, if_unknown: bool) -> bool:
    """Whether the target can be used, by whatever copy: never may both be written to."""
    try:
        with target.read() as connection:
            return not marking.read_marks(connection).filled_from
    except ResumesError:
        return if_unknown
