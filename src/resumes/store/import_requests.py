"""Requests about filed files: to retry a failed file or release a held one; and dismissals.

A request is a row. The importer of the file's folder handles it, on whatever machine it was made; if
no importer watches that folder, any importer that finds the file in its own folder does, because the
folder may have been moved. A request has no result of its own: the file's row in the ledger has it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from sqlalchemy import bindparam, delete, func, select, update
from sqlmodel import Session

from resumes.clock import timestamp
from resumes.errors import Conflict
from resumes.store.import_history import NOT_DONE, FileRow, find_owners
from resumes.store.import_ledger import FileOutcome
from resumes.store.importers import list_importers
from resumes.store.schema import BinaryText, import_requests, imported_files
from resumes.store.statements import Prepared, params_equal, pk_equals, replace_on_conflict, upsert
from resumes.store.store import Store


class RequestKind(StrEnum):
    """What can be requested: to import a failed file again, or a held one if it fits."""

    RETRY = "retry"
    RELEASE = "release"


FITS = {RequestKind.RETRY: FileOutcome.FAILED, RequestKind.RELEASE: FileOutcome.HELD}
"""The outcome of the files that an action applies to."""

PAST = {RequestKind.RETRY: "retried", RequestKind.RELEASE: "released"}
STATES = {
    FileOutcome.HELD: "is held",
    FileOutcome.FAILED: "failed",
    FileOutcome.DUPLICATE: "is a duplicate",
    FileOutcome.DONE: "is already imported",
}


@dataclass(frozen=True, slots=True)
class RequestedFile:
    """A request about a file. `root` is its watched folder; None if unknown."""

    account_id: str
    claim_id: str
    action: RequestKind
    requested_at: str
    root: str | None


def list_requests(
    store: Store, *, root: str | None = None, limit: int = 1_000
) -> list[RequestedFile]:
    """Return the requests, by account, in the order of the files' arrival. Cheap if there are none.

    With a `root`, only those about files of that watched folder, or of an unknown one.
    """
    statement = select(import_requests).order_by(*import_requests.primary_key).limit(limit)
    if root is not None:
        of_root = import_requests.c.root
        statement = statement.where(of_root.is_(None) | (of_root == root))
    return [_request(row) for row in store.fetch(statement)]


def find_oldest(store: Store) -> str | None:
    """Return when the oldest request was made; None if there is none."""
    ((oldest,),) = store.fetch(select(func.min(import_requests.c.requested_at)))
    return str(oldest) if oldest else None


def find_request(store: Store, account_id: str, claim_id: str) -> RequestedFile | None:
    """Return the request about this file, if any."""
    this = pk_equals(import_requests, account_id, claim_id)
    rows = store.fetch(select(import_requests).where(this))
    return _request(rows[0]) if rows else None


def _request(row: Sequence[Any]) -> RequestedFile:
    account_id, claim_id, action, requested_at, root = row
    return RequestedFile(account_id, claim_id, RequestKind(action), requested_at, root)


# Making requests

SLICE_REQUESTS = 500
"""How many requests one transaction makes, so that others can write."""

_FITTING = (pk_equals(imported_files), params_equal(imported_files.c.outcome))
# Selects nothing for a file that has another outcome by now.
WANTED = select(
    imported_files.c.account_id,
    imported_files.c.claim_id,
    bindparam("action", type_=BinaryText),
    bindparam("requested_at", type_=BinaryText),
    imported_files.c.root,
).where(*_FITTING)


ADD_REQUEST = Prepared(
    lambda dialect: replace_on_conflict(
        upsert(import_requests, dialect).from_select(import_requests.columns.keys(), WANTED),
        import_requests,
    )
)


def request_files(store: Store, files: Sequence[FileRow], action: RequestKind) -> None:
    """Request the action for all of the files, or for none.

    A request that is made again while an importer handles it is handled again. Retrying a held file
    releases it. Raises Conflict for a file that the action does not apply to.
    """
    now = timestamp(store.clock())
    wanted = [(file.account_id, file.claim_id, _fitting(file, action)) for file in files]

    def change(session: Session) -> None:
        for account_id, claim_id, fitting_action in wanted:
            if not _add(session, account_id, claim_id, fitting_action, now):
                raise Conflict(
                    f"Cannot {fitting_action} {claim_id}: its outcome has just changed. "
                    f"See `resumes imports show {claim_id}`"
                )

    store.write(change)


def _fitting(file: FileRow, action: RequestKind) -> RequestKind:
    """Return the action for this file. Raises Conflict if the action does not apply to it."""
    if file.outcome is FileOutcome.HELD:
        return RequestKind.RELEASE
    if file.outcome is FITS[action]:
        return action
    way = (
        f"Retry it with `resumes imports retry {file.claim_id}`"
        if file.outcome is FileOutcome.FAILED
        else f"Only {'held' if action is RequestKind.RELEASE else 'failed or held'} files can be {PAST[action]}"
    )
    raise Conflict(f"Cannot {action} {file.claim_id}: it {STATES[file.outcome]}. {way}")


def request_all_files(
    store: Store, action: RequestKind, *, account_id: str | None = None, reason: str | None = None
) -> int:
    """Request the action for every file that it applies to, of an account and a reason or of all.

    Return how many. This takes more than one transaction, so that others can write.
    """
    now = timestamp(store.clock())
    add = partial(_add, action=action, now=now)
    return _for_all_files(store, action, account_id, reason, add)


def _for_all_files(
    store: Store,
    action: RequestKind,
    account_id: str | None,
    reason: str | None,
    change: Callable[[Session, str, str], int],
) -> int:
    """Run the change for each file that the action applies to, with its account and claim; return the
    sum of the results."""

    def change_slice(owner: str, claim_ids: Sequence[str], session: Session) -> int:
        return sum(change(session, owner, claim_id) for claim_id in claim_ids)

    return sum(
        store.write(partial(change_slice, owner, claim_ids))
        for owner, claim_ids in iter_files_for(store, action, account_id, reason)
    )


def _add(session: Session, account_id: str, claim_id: str, action: RequestKind, now: str) -> int:
    """Add a request; return 1, or 0 if the action does not apply to the file's present outcome."""
    added = ADD_REQUEST.run(
        session.connection(),
        account_id=account_id,
        claim_id=claim_id,
        action=action.value,
        outcome=FITS[action].value,
        requested_at=now,
    )
    return int(added.rowcount)


def iter_files_for(
    store: Store,
    action: RequestKind,
    account_id: str | None = None,
    reason: str | None = None,
) -> Iterator[tuple[str, list[str]]]:
    """Yield account ids, each with the claims of its files that the action applies to, in the order of
    arrival."""
    statement = select(imported_files.c.claim_id).where(
        imported_files.c.outcome == FITS[action].value, NOT_DONE
    )
    if reason is not None:
        statement = statement.where(imported_files.c.reason == reason)
    for owner in find_owners(store, account_id):
        of_owner = statement.where(imported_files.c.account_id == owner)
        for page in store.iter_pages(of_owner, imported_files.c.claim_id, rows=SLICE_REQUESTS):
            yield owner, [claim_id for (claim_id,) in page]


# Dismissing

DISMISS = Prepared(delete(imported_files).where(*_FITTING))


def dismiss_files(store: Store, files: Sequence[FileRow]) -> None:
    """Remove these failed or held files from the ledger, all or none. The files stay in their folders,
    and a held file is still imported when there is room.

    Raises Conflict for a file that is neither failed nor held.
    """

    def change(session: Session) -> None:
        for file in files:
            if not _dismiss(session, file.account_id, file.claim_id):
                raise Conflict(
                    f"Cannot dismiss {file.claim_id}: only failed and held files can be dismissed. "
                    f"See `resumes imports show {file.claim_id}`"
                )

    store.write(change)


def dismiss_all_files(
    store: Store, *, account_id: str | None = None, reason: str | None = None
) -> int:
    """Dismiss every failed file of an account and a reason, or of all. Return how many.

    This takes more than one transaction, so that others can write.
    """
    return _for_all_files(store, RequestKind.RETRY, account_id, reason, _dismiss)


def _dismiss(session: Session, account_id: str, claim_id: str) -> int:
    """Remove the file's row and the request about it; return 1, or 0 if it is neither failed nor held."""
    file = {"account_id": account_id, "claim_id": claim_id}
    rows = [
        DISMISS.run(session.connection(), **file, outcome=fit.value).rowcount
        for fit in FITS.values()
    ]
    if any(rows):
        DROP.run(session.connection(), **file)
    return int(sum(rows))


# Requests that an importer handles

DROP = Prepared(delete(import_requests).where(pk_equals(import_requests)))


def list_unwatched_roots(store: Store, *, since: str = "") -> list[str | None]:
    """Return the folders that no live importer watches, but whose files have requests, made `since`
    then.

    None stands for files of an unknown folder, which any live importer looks for.
    """
    made_since = import_requests.c.requested_at >= since
    found = store.fetch(select(import_requests.c.root).where(made_since).distinct())
    roots = [root for (root,) in found]
    if not roots:
        return []
    watched = {seen.root for seen in list_importers(store) if seen.is_live}
    return [
        root
        for root in sorted(roots, key=lambda root: root or "")
        if root not in watched and not (root is None and watched)
    ]


def list_strays(store: Store, *, root: str, limit: int = 1_000) -> list[RequestedFile]:
    """Return requests about files of folders other than `root` that no live importer watches.

    At most `limit` for each such folder, by account, in the order of arrival.
    """
    strays: list[RequestedFile] = []
    for other in list_unwatched_roots(store):
        if other not in (None, root):
            found = list_requests(store, root=other, limit=limit)
            strays += [request for request in found if request.root == other]
    return strays


DROP_ANSWERED = Prepared(
    delete(import_requests).where(
        pk_equals(import_requests), params_equal(import_requests.c.requested_at)
    )
)


def drop_requests(store: Store, requests: Sequence[RequestedFile]) -> None:
    """Remove these requests, in one transaction, except those that were made again since."""
    rows = [
        {
            "account_id": file.account_id,
            "claim_id": file.claim_id,
            "requested_at": file.requested_at,
        }
        for file in requests
    ]
    store.write(lambda session: DROP_ANSWERED.run_many(session.connection(), rows))


def refuse_request(store: Store, account_id: str, claim_id: str, message: str) -> None:
    """Remove the request about the file, and write the message and the time into the file's row.

    The row of a file that is done or a duplicate by now is not changed.
    """
    now = timestamp(store.clock())

    def change(session: Session) -> None:
        DROP.run(session.connection(), account_id=account_id, claim_id=claim_id)
        session.exec(
            update(imported_files)
            .where(
                pk_equals(imported_files, account_id, claim_id),
                imported_files.c.outcome.in_([FileOutcome.FAILED.value, FileOutcome.HELD.value]),
            )
            .values(message=message, finished_at=now)
        )

    store.write(change, account_id=account_id)
