"""Reimports of filed files: held ones for which there is room, and those that users requested."""

import contextlib
import os
import socket
import time
from collections import deque
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from importer import json_texts
from importer.claims import Claim
from importer.files import escaped_before, find_head, find_sha256
from importer.filing import load_report, report_path
from importer.job import Candidate, Job
from importer.pending import QuotaBacklog
from resumes.clock import timestamp
from resumes.errors import Conflict, NotFound
from resumes.store import identifiers, import_history, import_ledger, import_requests, importers
from resumes.store.accounts import AccountInfo
from resumes.store.import_history import FileRow
from resumes.store.import_requests import RequestKind
from resumes.store.schema import ImportRequest
from resumes.watched_folder import (
    FAILED,
    HELD,
    HELD_NAME,
    FailedFolder,
    end_of,
    list_folders,
    read_failed,
    replace_filed,
    shown_root,
)
from resumes.watched_names import REPORT, find_filed_extension, is_document

RELEASE_FILES = 500
"""The maximum number of files released at a time, so that other accounts do not wait."""
FRESH_NS = 2_000_000_000
"""A folder that changed less than this before it was listed may have changed again within
the same tick of the file system's clock."""
SETTLED_S = 10
"""How long ago a file must have failed to count as missing: it is recorded first, then moved."""
DISMISSED_FILES = 500
"""The maximum number of missing files dismissed in one transaction, so that others can write."""
FOREIGN_FILES = 1_000
"""The maximum number of files of unwatched folders that are looked for at a time."""


class PutAway(NamedTuple):
    """A filed file. Held ones sort in the order of arrival."""

    claim_id: str
    account_id: str
    path: str


def _iter_held(folder: str) -> Iterator[PutAway]:
    for name in os.listdir(folder):  # noqa: PTH208  (names are all that is asked for)
        match = HELD_NAME.fullmatch(name)
        if match and find_filed_extension(name) and not name.endswith(REPORT):
            yield PutAway(match[1], match[2], f"{folder}/{name}")


def _iter_failed(root: Path, asked: Iterable[ImportRequest]) -> Iterator[PutAway]:
    """Yield the failed files that are asked for. Their reports say who owns them, since an account that was
    imported from another store may name claims of other accounts."""
    claims = {(request.claim_id, request.account_id) for request in asked}
    ends = {claim_id[-8:] for claim_id, _ in claims}
    for folder in list_folders(root / FAILED) if ends else ():
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):  # noqa: PTH208  (names are all that is asked for)
                if end_of(name) in ends:
                    path = f"{folder}/{name}"
                    report = load_report(report_path(path))
                    file = PutAway(str(report.get("claimId")), str(report.get("accountId")), path)
                    if file[:2] in claims:
                        yield file


def _count_due(files: list[PutAway], free_places: int | None) -> tuple[int, bool]:
    """Return how many of these held files may be released now, at most 500, and whether that is a bundle. A
    bundle goes alone: it takes places slice by slice, and no later file may take them first."""
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
        """The held files by folder, with the folder's mtime; None if it may have changed again."""
        self.by_account: dict[str, list[PutAway]] = {}
        """The held files by account id, in the order of arrival; at least one each."""

    def look(self) -> None:
        """Look for held files in the folders that have changed."""
        listings = {}
        for folder in {*list_folders(self._root / HELD), *self._listings}:
            listing = self._listings.get(folder)
            try:
                mtime_ns = os.stat(folder).st_mtime_ns  # noqa: PTH116  (text, as names are)
                if listing is None or listing[0] != mtime_ns:
                    is_fresh = abs(time.time_ns() - mtime_ns) < FRESH_NS
                    listing = (None if is_fresh else mtime_ns, sorted(_iter_held(folder)))
            except FileNotFoundError:
                continue
            except OSError:
                pass  # its files stay held for now, and no other account waits for it
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
    """A file under way: its account, the claim it was filed under, the request for it, and the claim of a
    bundle that was released."""

    account_id: str
    filed_id: str
    request: ImportRequest | None = None
    bundle_id: str | None = None


class Reimports:
    """The files of one ROOT that are imported again."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.give_up()

    def give_up(self) -> None:
        """Forget all files."""
        self.held = HeldFiles(Path(self._job.root))
        self.missing = MissingFiles(self._job)
        self._accounts: Mapping[str, AccountInfo] = {}
        """The accounts by id, as of the last `release`."""
        self._under_way: dict[str, _Reimport] = {}
        """By the claims that the files were filed under, and by the new ones that some got since."""
        self._answered: list[ImportRequest] = []
        self._not_here: set[tuple[str, ...]] = set()
        """Requests about files of unwatched folders that were looked for here and not found."""
        self._next: deque[Candidate] = deque()
        self.has_released = False
        """Whether the last `release` released files, so that more may be waiting."""

    @property
    def are_due(self) -> bool:
        return bool(self._next)

    @property
    def due_account_ids(self) -> set[str]:
        return {candidate.claim.account_id for candidate in self._next}

    def release(
        self,
        accounts: Mapping[str, AccountInfo],
        *,
        busy: Collection[str],
        unfiled: Mapping[str, str],
    ) -> dict[str, QuotaBacklog]:
        """Release held files for the places that are free, in the order of arrival.

        Return by account id what new files of an account queue behind (pitfalls I7). `accounts` is
        by id; nothing is released for those in `busy`. `unfiled` has, by account id, the claim of the
        first held file that could not be moved yet: later files are not released before it.
        """
        busy = {*busy, *(file.account_id for file in self._under_way.values())}
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
                # If the account is gone, all are released, to fail for that (pitfalls S14).
                free_places = None if account is None else account.free_places
                first_unfiled = unfiled.get(account_id, identifiers.MAX_ID)
                earlier = [file for file in later if file.claim_id < first_unfiled]
                due, is_bundle = _count_due(earlier, free_places)
                self._add(later[:due])
                if is_bundle:
                    bundles[account_id] = self._next[-1].claim.id
                    self._under_way[later[0].claim_id].bundle_id = bundles[account_id]
                self.has_released |= due > 0
                later = later[due:]
            first = bundles.get(account_id) or (later[0].claim_id if later else None)
            if first is not None:
                queues[account_id] = QuotaBacklog.of(account, first)
        return queues

    def take_requests(self, not_yet: Container[str] = ()) -> None:
        """Reimport the files that users requested; refuse those that cannot be found. Files of the claims
        in `not_yet` are still being moved to where they are looked for."""
        self.answer()
        root = shown_root(self._job.root)
        # An unwatched folder may have been moved here; its files are known by their claims.
        most = FOREIGN_FILES + len(self._not_here)
        found = import_requests.list_strays(self._job.store, root=root, limit=most)
        strays = {(file.account_id, file.claim_id, file.requested_at): file for file in found}
        self._not_here.intersection_update(strays)
        asked = [*import_requests.list_requests(self._job.store, root=root)]
        asked += [file for key, file in strays.items() if key not in self._not_here]
        new = [file for file in asked if file.claim_id not in self._under_way]
        for file in new:
            if file.action == RequestKind.RELEASE:
                held = self.held.by_account.get(file.account_id, ())
                self._add(away for away in held if away.claim_id == file.claim_id)
        retried = [file for file in new if file.action == RequestKind.RETRY]
        self._add(_iter_failed(Path(self._job.root), retried))
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
            elif file.root not in (None, root):  # else another importer may have it
                self._not_here.add((file.account_id, file.claim_id, file.requested_at))

    def _is_elsewhere_too(self) -> bool:
        """Return whether a live importer on another machine watches a folder of this path. The ledger has
        paths only, so a file that is not here may be there."""
        root, host = shown_root(self._job.root), socket.gethostname()
        return any(
            seen.is_live and seen.root == root and seen.host != host
            for seen in importers.list_importers(self._job.store)
        )

    def answer(self) -> None:
        """Delete the requests for files that were reimported. Raises StoreError. An importer that is killed
        before this leaves the request to the next importer."""
        if self._answered:
            import_requests.drop_requests(self._job.store, self._answered)
            self._answered.clear()

    def hold(self, claim: Claim) -> None:
        """Mark a file as under way that a previous importer began to reimport."""
        self._under_way[claim.id] = _Reimport(claim.account_id, claim.id)

    def _add(self, files: Iterable[PutAway]) -> None:
        for file in files:
            if file.claim_id not in self._under_way:
                claim = self._claim(file)
                reimport = _Reimport(file.account_id, file.claim_id)
                self._under_way[file.claim_id] = self._under_way[claim.id] = reimport
                self._next.append(Candidate(claim))

    def _claim(self, file: PutAway) -> Claim:
        """Return the claim that the file had; a new one if it is not what was imported, as it was edited
        or replaced. A bundle that was edited keeps its claim."""
        claim_id, account_id, _ = file
        path = Path(file.path)
        report = load_report(report_path(path))
        account = self._accounts.get(account_id)
        name = report.get("file")
        if not name:  # its folder was its label
            with contextlib.suppress(NotFound):
                store = self._job.store
                name = import_history.get_file(store, claim_id, account_id=account_id).name
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
        items = import_ledger.find_items(self._job.store, account_id, claim_id)
        # A bundle may be imported in part.
        is_its_own = items and items[0].item > 0 and report.get("claimId") == claim_id
        sha256 = report.get("sha256")
        # A file that cannot be read now counts as unedited.
        if not items or (is_its_own and (sha256 is None or find_sha256(path) in (None, sha256))):
            return claim
        if is_its_own:
            # It was edited. Its stored items are recognized by their content.
            import_ledger.forget_items(self._job.store, account_id, claim_id)
            return claim
        return claim._replace(id=identifiers.resume_id(self._job.store.clock()))

    def next_batch(self, at_most: int) -> list[Candidate]:
        return [self._next.popleft() for _ in range(min(len(self._next), at_most))]

    def end(self, claim_id: str, *, is_over: bool = True) -> None:
        """Note that the file was reimported, or is gone. Unless `is_over` it was not moved, and its request
        stays."""
        file = self._under_way.pop(claim_id, None)
        if file is not None:
            self._under_way.pop(file.filed_id, None)
            if file.request is not None and is_over:
                self._answered.append(file.request)


class MissingFiles:
    """The failed files of one ROOT that were deleted or moved away."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._failed_at: dict[str, tuple[int, int, int]] = {}
        """The folders of failed files and their mtimes, at the last complete `dismiss`."""

    def dismiss(self) -> int:
        """Dismiss the failed files that are gone from their folders; return how many.

        A file that was deleted, or moved back into the inbox, needs no more attention. Do nothing if no
        folder has changed since the last call, if one changed too recently (an editor may remove a file
        before it saves it), or if one cannot be listed. Raises StoreError.
        """
        folder = Path(self._job.root, FAILED)
        try:
            seen = {path: os.stat(path) for path in [str(folder), *list_folders(folder)]}  # noqa: PTH116
            changed_at = {
                path: (stat.st_dev, stat.st_ino, stat.st_mtime_ns) for path, stat in seen.items()
            }
            newest_ns = max(stat.st_mtime_ns for stat in seen.values())
            if changed_at == self._failed_at or time.time_ns() - newest_ns < FRESH_NS:
                return 0
            folders = {path: read_failed(path) for path in seen}
            missing = self._find_missing(folders)
            until = timestamp(self._job.store.clock() - SETTLED_S * 1_000_000)
            settled = [
                row
                for row in missing
                if row.finished_at < until and not os.path.lexists(f"{self._job.root}/{row.name}")
            ][:DISMISSED_FILES]
            import_requests.dismiss_files(self._job.store, settled)
            # Other listed files have another outcome by now, or another folder.
            kept = {row.claim_id[-8:] for row in missing} - {row.claim_id[-8:] for row in settled}
            for path, entries in folders.items():
                if path != str(folder):
                    replace_filed(path, entries, entries.present | (entries.filed & kept))
        except (OSError, NotFound, Conflict):
            return 0  # no file has failed yet, or another process removed or dismissed one
        if not kept:
            self._failed_at = changed_at
        return len(settled)

    def _find_missing(self, folders: Mapping[str, FailedFolder]) -> list[FileRow]:
        """Return the failed files that the folders' lists name and that are in no folder. They may be
        back in the inbox."""
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
