"""Asking importers, wherever they run, for files that they put away: to try again, to let in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Executable, bindparam, select

from resumes.clock import timestamp
from resumes.errors import Conflict
from resumes.store.columns import Text
from resumes.store.engine import Store, each
from resumes.store.ledger import NOT_DONE, FileOutcome, FileRow, find_owners
from resumes.store.paging import next_page
from resumes.store.requests import Action
from resumes.store.schema import import_requests, imported_files
from resumes.store.statements import Insert, Prepared, replace_on_conflict

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
    store.write(_ask, _Asking(wanted, timestamp(store.clock()), is_all_or_nothing=True))


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
        store.write(_ask, _Asking(files, now, is_all_or_nothing=False))
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
