"""Held files: which files are held behind others (`Queues.why_held`), and when they are imported.

Imports, dry runs and the release of held files use the same queues. Failed files that users retry
are imported again in the same way.
"""

import contextlib
import itertools
import os
import socket
import time
from collections import deque
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from importer import json_texts
from importer.claims import Claim, File
from importer.files import escaped_before, find_head, find_sha256
from importer.filing import FRESH_NS, load_report, report_path
from importer.job import Job
from importer.outcomes import Result
from resumes.clock import timestamp
from resumes.errors import Conflict, NotFound, QuotaReached
from resumes.store import identifiers, import_history, import_ledger, import_requests, importers
from resumes.store.accounts import AccountInfo
from resumes.store.import_history import FileRow
from resumes.store.import_ledger import FileOutcome
from resumes.store.schema import ImportRequest
from resumes.watched_folder import (
    FAILED,
    HELD,
    FailedFolder,
    end_of,
    iter_held,
    list_folders,
    read_failed,
    replace_filed,
    shown_root,
)
from resumes.watched_names import is_document

RELEASE_FILES = 500
"""The maximum number of files released at a time, so that other accounts do not have to wait."""
SETTLED_S = 10
"""A file is not missing within this time after its failure: it is recorded before it is moved."""
DISMISSED_FILES = 500
"""The maximum number of missing files that one transaction dismisses, so that others can write."""
FOREIGN_FILES = 1_000
"""The maximum number of files from unwatched folders that are looked for at a time."""


class QuotaBacklog(NamedTuple):
    """The held files of an account: the first one, and the message for files held behind it."""

    first_claim_id: str
    message: str

    @classmethod
    def of(cls, account: AccountInfo | None, first_claim_id: str) -> Self:
        """Return the backlog of an account, or of a deleted account if `account` is None."""
        if account is None or account.max_resumes is None:
            return cls(first_claim_id, "Earlier files in this account must be imported first")
        return cls(first_claim_id, QuotaReached(max_resumes=account.max_resumes).message)


class Queues(dict[str, QuotaBacklog]):
    """By account ID, the held files that new files are held behind (pitfalls I7)."""

    def note(self, claim: Claim, result: Result) -> None:
        """If this file is held, hold later files of the account behind it."""
        if result.outcome is FileOutcome.HELD:
            # A bundle's own message counts its items; its first held item states the cause.
            first = result.items and result.items.first.get(FileOutcome.HELD)
            queue = QuotaBacklog(claim.id, (first or result).message)
            self[claim.account_id] = min(queue, self.get(claim.account_id, queue))

    def why_held(self, claim: Claim) -> str | None:
        """Return why a file is held behind earlier files, or None if none of them is held.

        A bundle is held without being read. For other files, the create path decides
        (`resumes.store.creation.hold`). It holds the file with this message or because the quota is
        reached, unless the file needs no room in the quota.
        """
        queue = self.get(claim.account_id)
        return None if queue is None or claim.id <= queue.first_claim_id else queue.message


class PutAway(NamedTuple):
    """A filed file. Held files sort in the order of arrival."""

    claim_id: str
    account_id: str
    path: str


def _iter_failed(root: Path, claim_ids: Iterable[str]) -> Iterator[PutAway]:
    """Yield the failed files that may belong to these claims. Their reports identify the account,
    since an account imported from another store may have claim IDs of other accounts."""
    ends = {claim_id[-8:] for claim_id in claim_ids}
    for folder in list_folders(root / FAILED):
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):  # noqa: PTH208  (only names are needed)
                if end_of(name) in ends:
                    path = f"{folder}/{name}"
                    report = load_report(report_path(path))
                    yield PutAway(str(report.get("claimId")), str(report.get("accountId")), path)


def _count_due(files: list[PutAway], free_places: int | None) -> tuple[int, bool]:
    """Return how many of these held files may be released now, at most 500, and whether this is a
    bundle. A bundle is released alone: it uses the quota slice by slice, before any later file.

    A file must not be held again without a reason, or it would be released in a loop.
    """
    count = RELEASE_FILES if free_places is None else min(free_places, RELEASE_FILES)
    for index, file in enumerate(files[:count]):
        if is_document(file.path):
            continue
        if not file.path.endswith(".json") or json_texts.is_json_bundle(find_head(file.path)):
            return max(1, index), index == 0
    return min(count, len(files)), False


class HeldFiles:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._listings: dict[str, tuple[int | None, list[PutAway]]] = {}
        """The held files by folder, with the folder's mtime, or None if it may be outdated."""
        self.by_account: dict[str, list[PutAway]] = {}
        """The held files by account ID, in the order of arrival; no list is empty."""

    def look(self) -> None:
        """List the held files in the folders that have changed."""
        listings = {}
        for folder in {*list_folders(self._root / HELD), *self._listings}:
            listing = self._listings.get(folder)
            try:
                mtime_ns = os.stat(folder).st_mtime_ns  # noqa: PTH116  (text, as names are)
                if listing is None or listing[0] != mtime_ns:
                    is_fresh = abs(time.time_ns() - mtime_ns) < FRESH_NS
                    found = sorted(itertools.starmap(PutAway, iter_held(folder)))
                    listing = (None if is_fresh else mtime_ns, found)
            except FileNotFoundError:
                continue
            except OSError:
                pass  # its files stay held for now, so that other accounts need not wait
            if listing is not None:
                listings[folder] = listing
        self._listings = listings
        self.by_account.clear()
        for _, files in listings.values():
            for file in files:
                self.by_account.setdefault(file.account_id, []).append(file)
        if len(listings) > 1:  # an account was renamed, or files were moved by hand
            for files in self.by_account.values():
                files.sort()


@dataclass(slots=True)
class _Reimport:
    """A file that is being reimported. `filed_id` is the claim under which it was filed, and
    `bundle_id` the claim of a bundle that was released."""

    account_id: str
    filed_id: str
    request: ImportRequest | None = None
    bundle_id: str | None = None


class Reimports:
    """The files of one ROOT that are being imported again."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.held = HeldFiles(Path(job.root))
        self.missing = MissingFiles(job)
        self._accounts: Mapping[str, AccountInfo] = {}
        """The accounts by ID, as of the last `release`."""
        self._under_way: dict[str, _Reimport] = {}
        """By the claim IDs under which files were filed, and by their new claim IDs, if any."""
        self._answered: list[ImportRequest] = []
        self._not_here: set[tuple[str, ...]] = set()
        """Requests for files in unwatched folders that were not found here."""
        self.next: deque[File] = deque()
        """Files to import before new files, under the claims that they had."""
        self.has_released = False
        """Whether the last call of `release` released files, so that more may be waiting."""

    @property
    def due_account_ids(self) -> set[str]:
        return {file.claim.account_id for file in self.next}

    def release(
        self, accounts: Mapping[str, AccountInfo], *, busy: Collection[str], unfiled: Queues
    ) -> dict[str, QuotaBacklog]:
        """Release held files in the order of arrival, as far as the quotas allow.

        Return, by account ID, the backlog that new files of the account queue behind (pitfalls I7).
        `accounts` is by ID; nothing is released for the accounts in `busy`. `unfiled` contains the
        held files that could not be moved yet: later files are not released before them.
        """
        busy = {*busy, *self.due_account_ids}
        busy.update(file.account_id for file in self._under_way.values())
        bundles = {
            file.account_id: file.bundle_id for file in self._under_way.values() if file.bundle_id
        }
        self._accounts = accounts
        self.has_released = False
        queues = {}
        for account_id, files in self.held.by_account.items():
            account = accounts.get(account_id)
            later = files
            if self._under_way:
                later = [file for file in files if file.claim_id not in self._under_way]
            if account_id not in busy:
                # If the account was deleted, release all its files: they fail (pitfalls S14).
                free_places = None if account is None else account.free_places
                first_unfiled, _ = unfiled.get(account_id, (identifiers.MAX_ID, ""))
                earlier = [file for file in later if file.claim_id < first_unfiled]
                due, is_bundle = _count_due(earlier, free_places)
                self._add(later[:due])
                if is_bundle:
                    bundles[account_id] = self.next[-1].claim.id
                    self._under_way[later[0].claim_id].bundle_id = bundles[account_id]
                self.has_released |= due > 0
                later = later[due:]
            first = bundles.get(account_id) or (later[0].claim_id if later else None)
            if first is not None:
                queues[account_id] = QuotaBacklog.of(account, first)
        return queues

    def take_requests(self, not_yet: Container[str] = ()) -> None:
        """Reimport the files that users requested, and reject requests for files that cannot be
        found. Files of the claims in `not_yet` are still being moved to their folder."""
        self.answer()
        root = shown_root(self._job.root)
        # An unwatched folder may have been moved here; its files are identified by their claims.
        most = FOREIGN_FILES + len(self._not_here)
        found = import_requests.list_strays(self._job.store, root=root, limit=most)
        strays = {(file.account_id, file.claim_id, file.requested_at): file for file in found}
        self._not_here.intersection_update(strays)
        asked = [*import_requests.list_requests(self._job.store, root=root)]
        asked += [file for key, file in strays.items() if key not in self._not_here]
        new = {(file.claim_id, file.account_id) for file in asked}
        new = {file for file in new if file[0] not in self._under_way}
        if new:
            failed = _iter_failed(Path(self._job.root), (claim_id for claim_id, _ in new))
            held = itertools.chain.from_iterable(self.held.by_account.values())
            self._add(file for file in (*failed, *held) if file[:2] in new)
        for file in asked:
            if (known := self._under_way.get(file.claim_id)) is not None:
                known.request = known.request or file
            elif (
                file.root == root and file.claim_id not in not_yet and not self._is_elsewhere_too()
            ):
                message = (
                    f"Could not {file.action} it: the file is no longer in {root}, its folder is "
                    "away, or its report is missing"
                )
                import_requests.refuse_request(
                    self._job.store, file.account_id, file.claim_id, message
                )
            elif file.root not in (None, root):  # otherwise another importer may have the file
                self._not_here.add((file.account_id, file.claim_id, file.requested_at))

    def _is_elsewhere_too(self) -> bool:
        """Return whether a live importer on another machine watches a folder with the same path.
        The ledger contains only paths, so a file that is missing here may be there."""
        root, host = shown_root(self._job.root), socket.gethostname()
        return any(
            seen.is_live and seen.root == root and seen.host != host
            for seen in importers.list_importers(self._job.store)
        )

    def answer(self) -> None:
        """Delete the requests for files that were reimported. Raises StoreError. If an importer is
        killed before this, the next importer answers the request."""
        if self._answered:
            import_requests.drop_requests(self._job.store, self._answered)
            self._answered.clear()

    def hold(self, claim: Claim) -> None:
        """Mark a file that a previous importer began to reimport as under way."""
        self._under_way[claim.id] = _Reimport(claim.account_id, claim.id)

    def _add(self, files: Iterable[PutAway]) -> None:
        for file in files:
            if file.claim_id not in self._under_way:
                claim = self._claim(file)
                reimport = _Reimport(file.account_id, file.claim_id)
                self._under_way[file.claim_id] = self._under_way[claim.id] = reimport
                self.next.append(File(claim))

    def _claim(self, file: PutAway) -> Claim:
        """Return the file's previous claim, or a new one if the file was edited or replaced. A
        bundle that was edited keeps its claim."""
        claim_id, account_id, _ = file
        path = Path(file.path)
        report = load_report(report_path(path))
        account = self._accounts.get(account_id)
        name = report.get("file")
        if not name:  # the label was the name of its folder
            row = import_history.find_file(self._job.store, claim_id, account_id)
            name = row and row.name
        claim = Claim(
            id=claim_id,
            account_id=account_id,
            account=escaped_before(str(report.get("account") or path.parent.name)),
            name=escaped_before(str(name or path.name)),
            source=str(path.relative_to(self._job.root)),
            claimed_at_us=self._job.store.clock(),
            is_return=True,
            first_month=account.first_month if account is not None else None,
        )
        items = import_ledger.find_items(self._job.store, account_id, claim_id, limit=1)
        if items and (items[0].item == 0 or report.get("claimId") != claim_id):
            return claim._replace(id=identifiers.resume_id(self._job.store.clock()))
        # A bundle may be imported in part. A file that cannot be read now counts as unchanged.
        sha256 = report.get("sha256")
        if items and sha256 is not None and find_sha256(path) not in (None, sha256):
            # The bundle was edited. Items that are already stored are recognized by their content.
            import_ledger.forget_items(self._job.store, account_id, claim_id)
        return claim

    def next_batch(self, at_most: int) -> list[File]:
        return [self.next.popleft() for _ in range(min(len(self.next), at_most))]

    def end(self, claim_id: str, *, is_over: bool = True) -> None:
        """Note that the file was reimported or no longer exists. Unless `is_over`, it was not
        moved, and its request stays."""
        file = self._under_way.pop(claim_id, None)
        if file is not None:
            self._under_way.pop(file.filed_id, None)
            if file.request is not None and is_over:
                self._answered.append(file.request)


class MissingFiles:
    """The failed files of one ROOT that were deleted or moved away."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._failed_at: dict[str, int] = {}
        """The folders of failed files and their mtimes, as of the last complete `dismiss`."""

    def dismiss(self) -> int:
        """Dismiss the failed files that are no longer in their folders, and return their number.

        A file that was deleted, or moved back into the inbox, needs no more attention. Do nothing
        if no folder has changed since the last call, if one changed very recently (an editor may
        remove a file before it saves it), or if one cannot be listed. Raises StoreError.
        """
        folder = Path(self._job.root, FAILED)
        try:
            changed_at = {
                path: os.stat(path).st_mtime_ns  # noqa: PTH116  (text, as names are)
                for path in [str(folder), *list_folders(folder)]
            }
            newest_ns = max(changed_at.values())
            if changed_at == self._failed_at or time.time_ns() - newest_ns < FRESH_NS:
                return 0
            folders = {path: read_failed(path) for path in changed_at}
            missing = self._find_missing(folders)
            until = timestamp(self._job.store.clock() - SETTLED_S * 1_000_000)
            settled = [
                row
                for row in missing
                if row.finished_at < until and not os.path.lexists(f"{self._job.root}/{row.name}")
            ][:DISMISSED_FILES]
            import_requests.dismiss_files(self._job.store, settled)
            # Other listed files now have another outcome or are in another folder.
            kept = {row.claim_id[-8:] for row in missing} - {row.claim_id[-8:] for row in settled}
            for path, entries in folders.items():
                if path != str(folder):
                    replace_filed(path, entries, entries.present | (entries.filed & kept))
        except (OSError, NotFound, Conflict):
            return 0  # no file has failed yet, or another process removed or dismissed a file
        if not kept:
            self._failed_at = changed_at
        return len(settled)

    def _find_missing(self, folders: Mapping[str, FailedFolder]) -> list[FileRow]:
        """Return the failed files that the folders' lists name but that are in none of the folders.
        They may be back in the inbox."""
        present = frozenset[str]().union(*(folder.present for folder in folders.values()))
        gone = {path: ends for path, folder in folders.items() if (ends := folder.filed - present)}
        if not gone:
            return []
        return [
            file
            for file in import_history.iter_failed(self._job.store, shown_root(self._job.root))
            if not file.is_under_way
            and file.claim_id[-8:] in gone.get(f"{self._job.root}/{FAILED}/{file.reason}", ())
        ]
