"""Requests to retry failed files or to release held files, and dismissals of files.

A request is a row. It may be created on any machine; the importer that watches the file's folder
handles it. If no importer watches this folder, any importer that finds the file in its own folder
handles it, because the folder may have been moved. The result is recorded in the file's row in the
ledger.
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
from resumes.text import counted

K = TypeVar("K")


class RequestKind(StrEnum):
    """The kinds of requests: import a failed file again, or a held file if the quota allows it."""

    RETRY = "retry"
    RELEASE = "release"


FITS = {RequestKind.RETRY: FileOutcome.FAILED, RequestKind.RELEASE: FileOutcome.HELD}
"""The outcome that a file must have for an action."""

_IS_FAILED_OR_HELD = imported_files.c.outcome.in_([fit.value for fit in FITS.values()])

STATES = {
    FileOutcome.FAILED: "failed",
    FileOutcome.DUPLICATE: "is a duplicate",
    FileOutcome.DONE: "is already imported",
}


def list_requests(
    store: Store, *, root: str | None = None, limit: int = 1_000
) -> Sequence[ImportRequest]:
    """Return the requests by account, in the order of the files' arrival.

    With a `root`, return only requests about files of this watched folder or of an unknown folder.
    This is cheap if there are no requests.
    """
    statement = select(ImportRequest).order_by(*import_requests.primary_key).limit(limit)
    if root is not None:
        of_root = col(ImportRequest.root)
        statement = statement.where(of_root.is_(None) | (of_root == root))
    return store.fetch(statement)


def find_oldest(store: Store) -> str | None:
    """Return the time of the oldest request, or None if there are no requests."""
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
    """Group the claims of the files by this key."""
    claims: dict[K, set[str]] = defaultdict(set)
    for file in files:
        claims[key(file)].add(file.claim_id)
    return claims


def _are(table: Table, account_id: str, claim_ids: Collection[str]) -> ColumnElement[bool]:
    """Return the condition for the account's rows about these claims."""
    return (table.c.account_id == account_id) & table.c.claim_id.in_(claim_ids)


# Making requests

SLICE_REQUESTS = 500
"""How many requests one transaction creates, so that others can write."""


def request_files(store: Store, files: Sequence[FileRow], action: RequestKind) -> int:
    """Request the action for all of the files, or for none of them. Return the number of files.

    If a request is repeated while an importer handles it, it is handled again. A request to retry a
    held file releases it. Raises Conflict if the action does not apply to a file.
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
    return len(files)


def _fitting(file: FileRow, action: RequestKind) -> RequestKind:
    """Return the action to request for this file. Raises Conflict if `action` does not apply."""
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
    """Request the action for all files to which it applies, and return their number.

    The files can be limited to an account and a reason. Each transaction creates only some of the
    requests, so that others can write.
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
    """Run the change for files to which the action applies; return the number of changed files.

    The change is called with some files of one account at a time, in the order of their arrival.
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
    """Add requests for those of the files to which the action applies now; return their claims."""
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
    """Remove all of these failed or held files, or none, from the ledger.

    The files stay in their folders, and a held file is still imported when the quota allows it.
    Raises Conflict if a file is neither failed nor held.
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
    """Dismiss all failed files, and return their number.

    The files can be limited to an account and a reason. Each transaction dismisses only some of
    them, so that others can write.
    """
    return _for_all_files(store, RequestKind.RETRY, account_id, reason, dismiss)


def dismiss(session: Session, account_id: str, claim_ids: Collection[str]) -> set[str]:
    """Remove the rows of failed and held files, and requests about them; return their claims."""
    these = _are(imported_files, account_id, claim_ids), _IS_FAILED_OR_HELD
    dismissing = delete(imported_files).where(*these).returning(imported_files.c.claim_id)
    dismissed = {*session.exec(dismissing).scalars()}
    session.exec(delete(import_requests).where(_are(import_requests, account_id, dismissed)))
    return dismissed


# Requests that an importer handles


def list_unwatched_roots(store: Store, *, since: str = "") -> list[str | None]:
    """Return the unwatched folders whose files have requests, made at or after `since`.

    A folder is unwatched if no live importer watches it. None stands for unknown folders: any live
    importer looks for their files, so it is returned only if there is no live importer.
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


def describe_queued(
    store: Store,
    count: int,
    action: RequestKind,
    *,
    since: str,
    how_to_watch: Callable[[str | None], str],
) -> tuple[str, bool]:
    """Return a sentence about the queued files, and whether importers watch all of their folders.

    The sentence names the commands that start missing importers for requests made after `since`.
    """
    if not count:
        return f"Nothing to {action}.", True
    queued = f"Queued {counted(count, 'file')} for {action}"
    if unwatched := list_unwatched_roots(store, since=since):
        ways = ", ".join(map(how_to_watch, unwatched[:3]))  # a message is short
        them = "it" if count == 1 else "them"
        return f"{queued}, but no importer is running for {them}: {ways}.", False
    they = "it" if count == 1 else "they"
    return f"{queued}; {they} will be processed within a second.", True


def list_strays(store: Store, *, root: str, limit: int = 1_000) -> list[ImportRequest]:
    """Return the requests about files of other folders than `root` that no live importer watches.

    Return at most `limit` requests per folder, by account, in the order of arrival.
    """
    strays: list[ImportRequest] = []
    for other in list_unwatched_roots(store):
        if other not in (None, root):
            found = list_requests(store, root=other, limit=limit)
            strays += [request for request in found if request.root == other]
    return strays


def drop_requests(store: Store, requests: Sequence[ImportRequest]) -> None:
    """Remove one or more requests in one transaction, except those that were made again since."""
    table = import_requests
    same = delete(table).where(pk_equals(table), params_equal(table.c.requested_at))
    rows = [request.model_dump() for request in requests]
    store.write(lambda session: session.connection().execute(same, rows))


def refuse_request(store: Store, account_id: str, claim_id: str, message: str) -> None:
    """Remove the request about the file, and record the message and the time in the file's row.

    The row is not changed if the file is done or a duplicate by now.
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
