"""Requests about filed files: to retry a failed file or release a held one; and dismissals.

A request is a row. The importer of the file's folder handles it, on whatever machine it was made; if
no importer watches that folder, any importer that finds the file in its own folder does, because the
folder may have been moved. A request has no result of its own: the file's row in the ledger has it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import TypeVar

import sqlalchemy
from sqlalchemy import ColumnElement, Table, delete, literal, update
from sqlmodel import Session, col, func, select

from resumes.clock import timestamp
from resumes.errors import Conflict
from resumes.store.import_history import NOT_DONE, FileRow
from resumes.store.import_ledger import FileOutcome
from resumes.store.importers import list_importers
from resumes.store.schema import BinaryText, ImportRequest, import_requests, imported_files
from resumes.store.statements import (
    iter_in_pages,
    params_equal,
    pk_equals,
    replace_on_conflict,
    upsert,
)
from resumes.store.store import Store

K = TypeVar("K")


class RequestKind(StrEnum):
    """What can be requested: to import a failed file again, or a held one if it fits."""

    RETRY = "retry"
    RELEASE = "release"


FITS = {RequestKind.RETRY: FileOutcome.FAILED, RequestKind.RELEASE: FileOutcome.HELD}
"""The outcome of the files that an action applies to."""

_IS_FAILED_OR_HELD = imported_files.c.outcome.in_([fit.value for fit in FITS.values()])

STATES = {
    FileOutcome.FAILED: "failed",
    FileOutcome.DUPLICATE: "is a duplicate",
    FileOutcome.DONE: "is already imported",
}


def list_requests(
    store: Store, *, root: str | None = None, limit: int = 1_000
) -> Sequence[ImportRequest]:
    """Return the requests, by account, in the order of the files' arrival. Cheap if there are none.

    With a `root`, only those about files of that watched folder, or of an unknown one.
    """
    statement = select(ImportRequest).order_by(*import_requests.primary_key).limit(limit)
    if root is not None:
        of_root = col(ImportRequest.root)
        statement = statement.where(of_root.is_(None) | (of_root == root))
    return store.fetch(statement)


def find_oldest(store: Store) -> str | None:
    """Return when the oldest request was made; None if there is none."""
    (oldest,) = store.fetch(select(func.min(ImportRequest.requested_at)))
    return oldest


def find_request(store: Store, account_id: str, claim_id: str) -> ImportRequest | None:
    """Return the request about this file, if any."""
    with store.session() as session:
        return session.get(ImportRequest, (account_id, claim_id))


def find_requests(store: Store, files: Iterable[FileRow]) -> dict[tuple[str, str], ImportRequest]:
    """Return the requests about these files, by account and claim."""
    return {
        (request.account_id, request.claim_id): request
        for account_id, claim_ids in _claims(files, attrgetter("account_id")).items()
        for request in store.fetch(
            select(ImportRequest).where(_are(import_requests, account_id, claim_ids))
        )
    }


def _claims(files: Iterable[FileRow], key: Callable[[FileRow], K]) -> Mapping[K, set[str]]:
    """Return the claims of the files by this key."""
    claims: dict[K, set[str]] = defaultdict(set)
    for file in files:
        claims[key(file)].add(file.claim_id)
    return claims


def _are(table: Table, account_id: str, claim_ids: Collection[str]) -> ColumnElement[bool]:
    """Return the condition for the account's rows about these claims."""
    return (table.c.account_id == account_id) & table.c.claim_id.in_(claim_ids)


# Making requests

SLICE_REQUESTS = 500
"""How many requests one transaction makes, so that others can write."""


def request_files(store: Store, files: Sequence[FileRow], action: RequestKind) -> None:
    """Request the action for all of the files, or for none.

    A request that is made again while an importer handles it is handled again. Retrying a held file
    releases it. Raises Conflict for a file that the action does not apply to.
    """
    now = timestamp(store.clock())
    wanted = _claims(files, lambda file: (file.account_id, _fitting(file, action)))

    def change(session: Session) -> None:
        for (account_id, fitting_action), claim_ids in wanted.items():
            added = _add(session, account_id, claim_ids, fitting_action, now)
            for claim_id in sorted(claim_ids - added):
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
    if file.outcome is FileOutcome.FAILED:
        way = f"Retry it with `resumes imports retry {file.claim_id}`"
    elif action is RequestKind.RELEASE:
        way = "Only held files can be released"
    else:
        way = "Only failed or held files can be retried"
    raise Conflict(f"Cannot {action} {file.claim_id}: it {STATES[file.outcome]}. {way}")


def request_all_files(
    store: Store, action: RequestKind, *, account_id: str | None = None, reason: str | None = None
) -> int:
    """Request the action for every file that it applies to, of an account and a reason or of all.

    Return how many. This takes more than one transaction, so that others can write.
    """
    add = partial(_add, action=action, now=timestamp(store.clock()))
    return _for_all_files(store, action, account_id, reason, add)


def _for_all_files(
    store: Store,
    action: RequestKind,
    account_id: str | None,
    reason: str | None,
    change: Callable[..., Collection[str]],
) -> int:
    """Run the change for the files that the action applies to, by account, in the order of arrival.

    Return how many it changed.
    """
    file = imported_files.c
    fitting = [file.outcome == FITS[action].value, NOT_DONE]
    if account_id is not None:
        fitting.append(file.account_id == account_id)
    if reason is not None:
        fitting.append(file.reason == reason)
    count = 0
    owners = select(file.account_id).where(*fitting).distinct().order_by(file.account_id)
    for owner in store.fetch(owners):
        of_owner = sqlalchemy.select(file.claim_id).where(file.account_id == owner, *fitting)
        rows = iter_in_pages(store.fetch, of_owner, [file.claim_id], page_rows=SLICE_REQUESTS)
        while these := [row.claim_id for row in islice(rows, SLICE_REQUESTS)]:
            count += len(store.write(partial(change, account_id=owner, claim_ids=these)))
    return count


def _add(
    session: Session, account_id: str, claim_ids: Collection[str], action: RequestKind, now: str
) -> set[str]:
    """Add requests for the files; return the claims of those whose present outcome it applies to."""
    file = imported_files.c
    wanted = sqlalchemy.select(
        file.account_id,
        file.claim_id,
        literal(action.value, BinaryText),
        literal(now, BinaryText),
        file.root,
    ).where(_are(imported_files, account_id, claim_ids), file.outcome == FITS[action].value)
    insert = upsert(import_requests, session.get_bind().dialect)
    new = insert.from_select(import_requests.columns.keys(), wanted)
    statement = replace_on_conflict(new, import_requests).returning(import_requests.c.claim_id)
    return {*session.exec(statement).scalars()}


# Dismissing


def dismiss_files(store: Store, files: Sequence[FileRow]) -> None:
    """Remove these failed or held files from the ledger, all or none. The files stay in their folders,
    and a held file is still imported when there is room.

    Raises Conflict for a file that is neither failed nor held.
    """

    def change(session: Session) -> None:
        for account_id, claim_ids in _claims(files, attrgetter("account_id")).items():
            for claim_id in sorted(claim_ids - dismiss(session, account_id, claim_ids)):
                raise Conflict(
                    f"Cannot dismiss {claim_id}: only failed and held files can be dismissed. "
                    f"See `resumes imports show {claim_id}`"
                )

    store.write(change)


def dismiss_all_files(
    store: Store, *, account_id: str | None = None, reason: str | None = None
) -> int:
    """Dismiss every failed file of an account and a reason, or of all. Return how many.

    This takes more than one transaction, so that others can write.
    """
    return _for_all_files(store, RequestKind.RETRY, account_id, reason, dismiss)


def dismiss(session: Session, account_id: str, claim_ids: Collection[str]) -> set[str]:
    """Remove the rows of the failed and held ones of these files, and the requests about them; return
    their claims."""
    these = _are(imported_files, account_id, claim_ids), _IS_FAILED_OR_HELD
    dismissing = delete(imported_files).where(*these).returning(imported_files.c.claim_id)
    dismissed = {*session.exec(dismissing).scalars()}
    session.exec(delete(import_requests).where(_are(import_requests, account_id, dismissed)))
    return dismissed


# Requests that an importer handles


def list_unwatched_roots(store: Store, *, since: str = "") -> list[str | None]:
    """Return the folders that no live importer watches, but whose files have requests, made `since`
    then.

    None stands for files of an unknown folder, which any live importer looks for.
    """
    made_since = ImportRequest.requested_at >= since
    roots = store.fetch(select(ImportRequest.root).where(made_since).distinct())
    if not roots:
        return []
    watched = {seen.root for seen in list_importers(store) if seen.is_live}
    return [
        root
        for root in sorted(roots, key=lambda root: root or "")
        if root not in watched and not (root is None and watched)
    ]


def list_strays(store: Store, *, root: str, limit: int = 1_000) -> list[ImportRequest]:
    """Return requests about files of folders other than `root` that no live importer watches.

    At most `limit` for each such folder, by account, in the order of arrival.
    """
    strays: list[ImportRequest] = []
    for other in list_unwatched_roots(store):
        if other not in (None, root):
            found = list_requests(store, root=other, limit=limit)
            strays += [request for request in found if request.root == other]
    return strays


def drop_requests(store: Store, requests: Sequence[ImportRequest]) -> None:
    """Remove these requests, at least one, in one transaction; not those that were made again since."""
    table = import_requests
    same = delete(table).where(pk_equals(table), params_equal(table.c.requested_at))
    rows = [request.model_dump() for request in requests]
    store.write(lambda session: session.connection().execute(same, rows))


def refuse_request(store: Store, account_id: str, claim_id: str, message: str) -> None:
    """Remove the request about the file, and write the message and the time into the file's row.

    The row of a file that is done or a duplicate by now is not changed.
    """
    now = timestamp(store.clock())

    def change(session: Session) -> None:
        session.exec(
            delete(import_requests).where(pk_equals(import_requests, account_id, claim_id))
        )
        session.exec(
            update(imported_files)
            .where(pk_equals(imported_files, account_id, claim_id), _IS_FAILED_OR_HELD)
            .values(message=message, finished_at=now)
        )

    store.write(change, account_id=account_id)
