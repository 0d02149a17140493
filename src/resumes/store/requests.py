"""What people ask of an importer for files that it put away: try again, let in.

A request is a row that the importer of the file's folder takes up, wherever it was asked; and if
nobody watches that folder, whoever finds the file in another one, into which the folder was moved.
It says nothing of the outcome: that is the file's own row in the ledger, as before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, select, update

from resumes.clock import timestamp
from resumes.store.columns import Text
from resumes.store.engine import Store, each
from resumes.store.importers import list_importers
from resumes.store.ledger import FileOutcome
from resumes.store.schema import import_requests, imported_files
from resumes.store.statements import Prepared, at_most


class Action(StrEnum):
    """What can be asked for: a file that failed is tried again, a held one is let in if it fits."""

    RETRY = "retry"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for a file. `root` is its watched folder, None where it is not known."""

    account_id: str
    claim_id: str
    action: Action
    requested_at: str
    root: str | None


ALL_REQUESTS = select(
    import_requests.c.account_id,
    import_requests.c.claim_id,
    import_requests.c.action,
    import_requests.c.requested_at,
    import_requests.c.root,
)
REQUESTS = Prepared(
    ALL_REQUESTS.where(
        bindparam("root", type_=Text).is_(None)
        | import_requests.c.root.is_(None)
        | (import_requests.c.root == bindparam("root", type_=Text))
    )
    .order_by(import_requests.c.account_id, import_requests.c.claim_id)
    .limit(at_most("rows"))
)

REQUEST = Prepared(
    ALL_REQUESTS.where(
        import_requests.c.account_id == bindparam("account_id"),
        import_requests.c.claim_id == bindparam("claim_id"),
    )
)

ROOTS = Prepared(select(import_requests.c.root).distinct())


def list_requests(store: Store, *, root: str | None = None, limit: int = 1_000) -> list[Request]:
    """What is asked for, by account, in the order of arrival. Cheap when that is nothing.

    With a `root`, only for files of that watched folder, and those whose folder is not known.
    """
    with store.read() as connection:
        rows = REQUESTS.run(connection, root=root, rows=limit).fetchall()
    return [_request(row) for row in rows]


def find_oldest(store: Store) -> str | None:
    """When the request was made that waits longest for an importer; None when none waits."""
    with store.read() as connection:
        oldest: str | None = connection.execute(
            select(func.min(import_requests.c.requested_at))
        ).scalar_one()
    return oldest


def find_request(store: Store, account_id: str, claim_id: str) -> Request | None:
    """What is asked for this file, if anything."""
    with store.read() as connection:
        row = REQUEST.run(connection, account_id=account_id, claim_id=claim_id).fetchone()
    return None if row is None else _request(row)


def _request(row: Sequence[Any]) -> Request:
    account_id, claim_id, action, requested_at, root = row
    return Request(account_id, claim_id, Action(action), requested_at, root)


def list_unwatched_roots(store: Store) -> list[str | None]:
    """The folders for whose files something is asked while no live importer watches them.

    None stands for files whose folder is not known, which any live importer looks for.
    """
    with store.read() as connection:
        roots = [root for (root,) in ROOTS.run(connection).fetchall()]
    if not roots:
        return []
    watched = {seen.importer.root for seen in list_importers(store) if seen.is_live}
    return [
        root
        for root in sorted(roots, key=lambda root: root or "")
        if root not in watched and not (root is None and watched)
    ]


def list_strays(store: Store, *, root: str, limit: int = 1_000) -> list[Request]:
    """What is asked for files of folders that are not `root` and that no live importer watches.

    At most `limit` of each such folder, by account, in the order of arrival.
    """
    strays: list[Request] = []
    for other in list_unwatched_roots(store):
        if other not in (None, root):
            asked = list_requests(store, root=other, limit=limit)
            strays += [request for request in asked if request.root == other]
    return strays


def drop_requests(store: Store, requests: Sequence[Request]) -> None:
    """None of these is asked for any more, in one transaction."""
    store.write(_drop, [(request.account_id, request.claim_id) for request in requests])


DROP = Prepared(
    delete(import_requests).where(
        import_requests.c.account_id == bindparam("account_id"),
        import_requests.c.claim_id == bindparam("claim_id"),
    )
)


@each
def _drop(connection: Connection, files: Sequence[tuple[str, str]]) -> None:
    DROP.run_many(
        connection,
        ({"account_id": account_id, "claim_id": claim_id} for account_id, claim_id in files),
    )


@dataclass(frozen=True, slots=True)
class _Refusal:
    account_id: str
    claim_id: str
    message: str
    now: str


def refuse_request(store: Store, account_id: str, claim_id: str, message: str) -> None:
    """Nothing is asked for the file any more, and its row in the ledger says why not, since now.

    The row of a file that has come to another end meanwhile stays as it is.
    """
    store.write(_refuse, _Refusal(account_id, claim_id, message, timestamp(store.clock())))


@each
def _refuse(connection: Connection, refusal: _Refusal) -> None:
    DROP.run(connection, account_id=refusal.account_id, claim_id=refusal.claim_id)
    connection.execute(
        update(imported_files)
        .where(
            imported_files.c.account_id == refusal.account_id,
            imported_files.c.claim_id == refusal.claim_id,
            imported_files.c.outcome.in_([FileOutcome.FAILED.value, FileOutcome.HELD.value]),
        )
        .values(message=refusal.message, finished_at=refusal.now)
    )
