"""What people ask of an importer for files that it put away: try again, let in.

A request is a row that the importer of the file's folder takes up, wherever it was asked; and if
nobody watches that folder, whoever finds the file in another one, into which the folder was moved.
It says nothing of the outcome: that is the file's own row in the ledger, as before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Executable, bindparam, delete, func, select, update

from resumes.clock import timestamp
from resumes.errors import Conflict
from resumes.store.import_ledger import NOT_DONE, FileOutcome, FileRow, find_owners
from resumes.store.importers import list_importers
from resumes.store.schema import Text, import_requests, imported_files
from resumes.store.statements import Insert, Prepared, at_most, next_page, replace_on_conflict
from resumes.store.store import Store, each


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
    store.write_batched(_drop, [(request.account_id, request.claim_id) for request in requests])


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
    store.write_batched(_refuse, _Refusal(account_id, claim_id, message, timestamp(store.clock())))


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


SLICE_REQUESTS = 500
"""Requests that are made in one transaction, so that others get their turn."""

FITS = {Action.RETRY: FileOutcome.FAILED, Action.RELEASE: FileOutcome.HELD}
"""The outcome of the files that an action is for."""

PAST = {Action.RETRY: "retried", Action.RELEASE: "released"}
STATES = {
    FileOutcome.HELD: "is held",
    FileOutcome.FAILED: "failed",
    FileOutcome.DUPLICATE: "is a duplicate",
    FileOutcome.DONE: "is done",
}

# A file that has come to another end meanwhile is not asked for.
WANTED = select(
    imported_files.c.account_id,
    imported_files.c.claim_id,
    bindparam("action", type_=Text),
    bindparam("requested_at", type_=Text),
    imported_files.c.root,
).where(
    imported_files.c.account_id == bindparam("account_id"),
    imported_files.c.claim_id == bindparam("claim_id"),
    imported_files.c.outcome == bindparam("outcome"),
)


def _add_request(insert: Insert) -> Executable:
    names = ["account_id", "claim_id", "action", "requested_at", "root"]
    return replace_on_conflict(
        insert(import_requests).from_select(names, WANTED),
        import_requests,
        ["account_id", "claim_id"],
    )


ADD_REQUEST = Prepared(_add_request)


@dataclass(frozen=True, slots=True)
class _Asking:
    files: Sequence[tuple[str, str, Action]]
    """Account, claim and action, the one that fits the file."""

    now: str
    is_all_or_nothing: bool


def ask(store: Store, files: Sequence[FileRow], action: Action) -> None:
    """The action is asked for all of the files, or for none. To ask twice is to ask once.

    To retry a held file is to release it. Raises Conflict for a file that it does not fit.
    """
    wanted = [(file.account_id, file.claim_id, fitting(file, action)) for file in files]
    store.write_batched(_ask, _Asking(wanted, timestamp(store.clock()), is_all_or_nothing=True))


def fitting(file: FileRow, action: Action) -> Action:
    """The action as it is meant for this file. Raises Conflict when it does not fit."""
    if file.outcome is FileOutcome.HELD:
        return Action.RELEASE
    if file.outcome is FITS[action]:
        return action
    way = (
        f"`resumes imports retry {file.claim_id}` tries it again"
        if file.outcome is FileOutcome.FAILED
        else f"Only files that failed or are held can be {PAST[action]}"
    )
    raise Conflict(f"Cannot {action} {file.claim_id}: it {STATES[file.outcome]}. {way}")


@each
def _ask(connection: Connection, asking: _Asking) -> int:
    asked = 0
    for account_id, claim_id, action in asking.files:
        added = ADD_REQUEST.run(
            connection,
            account_id=account_id,
            claim_id=claim_id,
            action=action.value,
            outcome=FITS[action].value,
            requested_at=asking.now,
        )
        if added.rowcount == 0 and asking.is_all_or_nothing:
            raise Conflict(
                f"Cannot {action} {claim_id}: it came to another end just now. "
                f"`resumes imports show {claim_id}` says which"
            )
        asked += added.rowcount
    return asked


def ask_all(
    store: Store, action: Action, *, account_id: str | None = None, reason: str | None = None
) -> int:
    """The action is asked for every file that it is for, of an account and a reason or of any.

    Returns how many. Not one transaction: others write in between.
    """
    now = timestamp(store.clock())
    return sum(
        store.write_batched(_ask, _Asking(files, now, is_all_or_nothing=False))
        for files in _iter_slices(store, action, account_id, reason)
    )


IDS_AFTER = next_page(
    select(imported_files.c.claim_id).where(
        imported_files.c.account_id == bindparam("account_id"),
        imported_files.c.outcome == bindparam("outcome"),
        NOT_DONE,
    ),
    imported_files.c.claim_id,
)
OF_ANY_REASON = Prepared(IDS_AFTER)
OF_REASON = Prepared(IDS_AFTER.where(imported_files.c.reason == bindparam("reason")))


def _iter_slices(
    store: Store, action: Action, account_id: str | None, reason: str | None
) -> Iterator[list[tuple[str, str, Action]]]:
    """The files that an action is for, in the order of arrival in each account."""
    statement = OF_ANY_REASON if reason is None else OF_REASON
    with store.read() as connection:
        owners = list(find_owners(connection, account_id))
    for owner in owners:
        last = ""
        while True:
            with store.read() as connection:
                rows = statement.run(
                    connection,
                    account_id=owner,
                    outcome=FITS[action].value,
                    reason=reason,
                    after_claim_id=last,
                    rows=SLICE_REQUESTS,
                ).fetchall()
            if not rows:
                break
            last = rows[-1][0]
            yield [(owner, claim_id, action) for (claim_id,) in rows]
