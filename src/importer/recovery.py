"""What a process that is gone had under way: brought to its end, or left to be found anew.

    noted, not read             one of these may have ended the process: each is read alone (I10)
    read, not in the ledger     nothing happened yet: a new file
    in the ledger, not moved    imported again under its claim, which the create path knows
    the same, changed since     a new file
    moved                       looked at once more, as the process would have done (I4)
    set aside, to be copied     copied, or put back if it was changed or the ledger knows nothing
    being unpacked              gone on with under its claim, after the items that are stored

Each step may be cut off and is done again (pitfalls I1, I6).
"""

import contextlib
import fcntl
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from importer import files, outcomes
from importer.batch import Candidate, Ended
from importer.claims import CLAIM_ID, Claim
from importer.files import Known, escaped_before
from importer.filing import Work, aside_of, iter_places, put_back
from importer.outcomes import Conclusion
from importer.slots import SlotEntry
from resumes.analyzer import Format
from resumes.errors import NotFound
from resumes.store import Store, import_history, import_ledger
from resumes.store.identifiers import ACCOUNT_ID
from resumes.store.import_history import FileRow
from resumes.watched_names import WORK


@dataclass(slots=True)
class RecoveryPlan:
    """What is left to do."""

    resumed: list[Candidate] = field(default_factory=list)
    """Files to import under the claims that they had."""

    ended: list[Ended] = field(default_factory=list)
    """Files that are imported, to be put away, or looked at where they were put."""

    suspects: list[Claim] = field(default_factory=list)
    """Files in the inbox, one of which may have ended the process."""

    @property
    def kept(self) -> list[Claim]:
        """The claims that stay noted."""
        resumed = [one.claim for one in self.resumed]
        return [*resumed, *(one.work.claim for one in self.ended), *self.suspects]


def plan_recovery(
    store: Store,
    root: str,
    format: Format,  # noqa: A002
    entries: Iterable[SlotEntry],
) -> RecoveryPlan:
    """Return what is to be done with files that were under way. Raises StoreError and OSError."""
    plan = RecoveryPlan()
    for entry in sorted(entries, key=lambda one: one.claim.id):
        claim = entry.claim._replace(attempt=entry.claim.attempt + entry.is_begun)
        is_aside = os.path.lexists(aside_of(root, claim))
        found = files.find_signature(claim.path(root))
        row = None if entry.signature is None else _find_row(store, claim)
        if is_aside and row is None:
            with contextlib.suppress(OSError):
                put_back(root, claim, str(aside_of(root, claim)))
        elif is_aside and entry.signature is not None and row is not None:
            work = Work(claim, entry.signature, digest=entry.digest)
            plan.ended.append(Ended(work, outcomes.conclusion_of(row)))
        elif entry.signature is None or row is None:
            is_suspect = entry.signature is None or entry.is_begun
            if is_suspect and found is not None and claim.is_return:
                plan.resumed.append(Candidate(claim, is_alone=True))
            elif is_suspect and found is not None:
                plan.suspects.append(claim)
        elif found != entry.signature or not _has_content(claim.path(root), entry.digest):
            work = Work(claim, entry.signature, digest=entry.digest)
            known_end = outcomes.conclusion_of(row)
            for target in _find_moved(root, claim, known_end):
                plan.ended.append(Ended(work, known_end, target))
        elif (conclusion := _recall(store, root, format, claim)) is not None:
            work = Work(claim, entry.signature, digest=entry.digest)
            plan.ended.append(Ended(work, conclusion))
        elif row.is_under_way or not claim.is_return:
            known = Known(entry.signature, math.inf)
            plan.resumed.append(Candidate(claim, known, is_alone=True))
    return plan


def _find_row(store: Store, claim: Claim) -> FileRow | None:
    try:
        return import_history.get_file(store, claim.id, account_id=claim.account_id)
    except NotFound:
        return None


def _has_content(path: str, digest: bytes | None) -> bool:
    """Return whether the file still holds what was read. Raises OSError."""
    if digest is None:
        return True
    body = files.find_body(path, files.HASHED_BYTES)
    return body is not None and files.digest(body) == digest


def _find_moved(root: str, claim: Claim, conclusion: Conclusion) -> list[str]:
    """Where the file was moved, if it was."""
    targets = (f"{root}/{place}" for place in iter_places(claim, conclusion))
    return [target for target in targets if files.find_signature(target) is not None][:1]


def _recall(store: Store, root: str, format: Format, claim: Claim) -> Conclusion | None:  # noqa: A002
    """Return what happened to a file of one resume, whatever is thought of it now; None where the ledger
    has no resume of it."""
    items = import_ledger.find_items(store, claim.account_id, claim.id, limit=1)
    if not items or items[0].item != 0:
        return None
    body = files.find_body(claim.path(root), format.max_bytes)
    return outcomes.recall(items[0], None if body is None else outcomes.judge(body, format))


MAX_BYTES = 64 * 1024 * 1024


def find_claimed(root: Path) -> list[Candidate]:
    """Return the claimed files of importers that are gone, in the order in which they came, and
    remove folders that hold none. Raises OSError."""
    found: list[Candidate] = []
    with contextlib.suppress(FileNotFoundError):
        for workspace in sorted((root / WORK).iterdir()):
            if workspace.is_dir() and not workspace.is_symlink() and not _is_locked(workspace):
                claimed = [*_iter_claimed(root, workspace)]
                found += claimed
                if not claimed:
                    _remove(workspace)
        with contextlib.suppress(OSError):  # not empty
            (root / WORK).rmdir()
    return sorted(found, key=lambda one: one.claim.id)


def _is_locked(workspace: Path) -> bool:
    try:
        descriptor = os.open(workspace / "lease", os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _iter_claimed(root: Path, workspace: Path) -> Iterator[Candidate]:
    names = _names(workspace)
    for folder in workspace.iterdir():
        if not ACCOUNT_ID.fullmatch(folder.name) or not folder.is_dir():
            continue
        for path in folder.iterdir():
            if CLAIM_ID.fullmatch(path.name):
                account, name = names.get(path.name, ("", path.name))
                claim = Claim(
                    id=path.name,
                    account_id=folder.name,
                    account=account,
                    name=name,
                    source=str(path.relative_to(root)),
                    claimed_at_us=int(path.name[:16], 16),
                    is_return=True,
                )
                yield Candidate(claim, is_alone=True)


def _names(workspace: Path) -> dict[str, tuple[str, str]]:
    """Return by claim, the account's name and the file's, as journals have them."""
    found = {}
    for journal in workspace.glob("*.journal"):
        with contextlib.suppress(OSError):
            for line in files.load(journal, MAX_BYTES).body.splitlines():
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    fields: dict[str, Any] = orjson.loads(line)
                    names = (str(fields["account"]), str(fields["name"]))
                    found[str(fields["id"])] = (escaped_before(names[0]), escaped_before(names[1]))
    return found


def _remove(workspace: Path) -> None:
    """Remove a folder without claims, unless something else lies there."""
    for path in [*workspace.glob("*.journal"), workspace / "lease"]:
        with contextlib.suppress(OSError):
            path.unlink()
    for path in [*workspace.iterdir(), workspace]:
        with contextlib.suppress(OSError):
            path.rmdir()
