"""Recovery: a dead process's work in progress is finished, or left to be found again.

    noted, not read             one of these may have killed the process: each is read alone under its
                                claim (I10)
    read, not in the ledger     a new file; read alone too if it killed a process
    in the ledger, not moved    imported again under its claim, which the ledger knows; a held or
                                failed file only if the ledger has another outcome for it now
    the same, changed since     a new file
    moved                       checked again, as the process would have done (I4)
    set aside, to be copied     copied, or put back if it was changed or is not in the ledger
    being unpacked              continued under its claim, after the items that are stored; if it is
                                gone or was changed since, it is dismissed

Each step may be cut off, and is repeated then (pitfalls I1, I6).
"""

import contextlib
import math
import os
from collections.abc import Iterable
from typing import NamedTuple

from importer import files, outcomes
from importer.claims import Claim
from importer.files import Known
from importer.filing import ReadFile, aside_of, iter_places, put_back
from importer.outcomes import Result
from importer.pending import PendingFiling
from importer.reader import Candidate
from importer.slots import SlotEntry
from resumes.analyzer import Format
from resumes.errors import Conflict, NotFound
from resumes.store import Store, accounts, import_history, import_ledger, import_requests
from resumes.store.creation import Created, Duplicate
from resumes.store.import_history import FileRow
from resumes.store.import_ledger import FileOutcome


class Recovery(NamedTuple):
    """What to do with files that were under way."""

    resumed: list[Candidate]
    """Files to import under the claims that they had."""
    ended: list[PendingFiling]
    """Imported files, to file or to check where they were filed."""
    unreached: list[tuple[SlotEntry, OSError]]
    """Files whose state cannot be known for now, and why."""


def plan_recovery(
    store: Store,
    root: str,
    accepted: Format,
    entries: Iterable[SlotEntry],
    default_account: str | None,
) -> Recovery:
    """Return what to do with files that were under way. `default_account` owns the files directly in
    ROOT. Raises StoreError."""
    recovery = Recovery([], [], [])
    for entry in sorted(entries):  # by claim
        try:
            planned = _plan_one(store, root, accepted, entry, default_account)
        except OSError as error:  # concerns its folder alone
            recovery.unreached.append((entry, error))
            continue
        if isinstance(planned, Candidate):
            recovery.resumed.append(planned)
        elif planned is not None:
            recovery.ended.append(planned)
    return recovery


def _plan_one(
    store: Store, root: str, accepted: Format, entry: SlotEntry, default_account: str | None
) -> Candidate | PendingFiling | None:
    """Return what to do with a file; None if it is gone or counts as new. Raises StoreError and OSError."""
    claim, signature = entry.claim, entry.signature
    claim = claim._replace(attempt=claim.attempt + entry.is_begun)
    path, aside = claim.path(root), aside_of(root, claim)
    found = files.find_signature(path)
    row = None if signature is None else _find_row(store, claim)
    if signature is None or row is None:
        if os.path.lexists(aside):
            put_back(root, claim, aside)
        elif (
            found is not None
            and (signature is None or (claim.attempt and found == signature))
            and (claim.is_return or _is_of_its_account(store, claim, default_account))
        ):
            # It has settled already: to wait again would forget the attempt.
            known = None if signature is None else Known(signature, math.inf)
            return Candidate(claim, known, is_alone=True)
        return None
    work = ReadFile(claim, signature, digest=entry.digest)
    result = outcomes.recorded_result(row)
    if os.path.lexists(aside):
        return PendingFiling(work, result)
    is_stored = row.outcome in (FileOutcome.DONE, FileOutcome.DUPLICATE)
    if found != signature or not _has_content(path, entry.digest, is_stored=is_stored):
        # At `claim.source` it would not have been moved.
        places = (
            f"{root}/{place}" for place in iter_places(claim, result) if place != claim.source
        )
        moved = (place for place in places if files.find_signature(place) is not None)
        if (target := next(moved, None)) is not None:
            return PendingFiling(work, result, target)
        if not (claim.is_return and found):  # it is gone, or a new file
            dismiss_unfinished(store, claim)
        return None
    if (recalled := _recall(store, root, accepted, claim, row)) is not None:
        return PendingFiling(work, recalled)
    if row.is_under_way or claim.source not in iter_places(claim, result):
        return Candidate(claim, Known(signature, math.inf), is_alone=True)
    return None


def _is_of_its_account(store: Store, claim: Claim, default_account: str | None) -> bool:
    """Return whether the account still has the folder's name, or had it, by which a file in the inbox is
    owned."""
    folder, is_below, _ = claim.source.partition("/")
    owner = accounts.find_owner(store, folder if is_below else default_account or "")
    return owner is not None and owner.id == claim.account_id


def _find_row(store: Store, claim: Claim) -> FileRow | None:
    try:
        return import_history.get_file(store, claim.id, account_id=claim.account_id)
    except NotFound:
        return None


def _has_content(path: str, digest: bytes | None, *, is_stored: bool) -> bool:
    """Return whether the file still has the content that was read; if it cannot be opened, `is_stored`, as
    its signature is unchanged."""
    try:
        return digest is None or files.digest(files.load(path, files.HASHED_BYTES).body) == digest
    except OSError:
        return is_stored


def _recall(store: Store, root: str, accepted: Format, claim: Claim, row: FileRow) -> Result | None:
    """Return the recorded result of a file of one resume, even if a new import would differ; None
    if the ledger has no resume of it."""
    items = import_ledger.find_items(store, claim.account_id, claim.id, limit=1)
    if not items or items[0].item != 0:
        return None
    accepted = accepted.for_account(claim.first_month)
    verdict = outcomes.judge(files.find_body(claim.path(root), accepted.max_bytes), accepted)
    resume_id = items[0].resume_id
    if items[0].outcome is not FileOutcome.DUPLICATE:
        replaced = import_ledger.list_replaced(store, claim.account_id, claim.id)
        warnings = verdict.warnings  # none if it would be refused by now
        return outcomes.result_of(Created(resume_id, replaced=replaced), warnings)
    recorded = outcomes.recorded_result(row)
    duplicate = outcomes.result_of(Duplicate(resume_id))
    return duplicate._replace(message=recorded.message) if recorded.message else duplicate


CUT_OFF = "Its import was cut off, and it is no longer in its folder. Retry it when it is back"


def dismiss_unfinished(store: Store, claim: Claim) -> None:
    """Dismiss the file if the ledger says that it is being imported: no process will finish that.

    A filed file stays in the list: its disk may be detached, and is not scanned for new files when
    it is back. Raises StoreError.
    """
    with contextlib.suppress(NotFound, Conflict):  # another process has dismissed it
        row = import_history.get_file(store, claim.id, account_id=claim.account_id)
        if row.is_under_way and claim.is_return:
            import_requests.refuse_request(store, claim.account_id, claim.id, CUT_OFF)
        elif row.is_under_way:
            import_requests.dismiss_files(store, [row])
