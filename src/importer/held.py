"""Filed files that are imported again: held ones for which there is room, and those that somebody
requested."""

import contextlib
import os
import socket
import time
from collections import deque
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from importer import json_texts
from importer.batch import Candidate, QuotaBacklog
from importer.claims import Claim
from importer.files import escaped_before, find_head, find_sha256
from importer.filing import load_report, report_path
from resumes.clock import timestamp
from resumes.errors import Conflict, NotFound, QuotaReached
from resumes.store import (
    Store,
    identifiers,
    import_history,
    import_ledger,
    import_requests,
    importers,
)
from resumes.store.accounts import AccountInfo
from resumes.store.import_history import FileRow
from resumes.store.import_requests import RequestedFile, RequestKind
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
from resumes.watched_names import REPORT, find_extension

RELEASE_FILES = 500
"""Files released at a time, so that the others are not kept waiting."""

FRESH_NS = 2_000_000_000
"""A folder that changed so short a time before it was listed may have changed again within
the same tick of the file system's clock."""

SETTLED_S = 10
"""How long ago a file has to have failed before it can be missing: first it is recorded, then moved."""

DISMISSED_FILES = 500
"""Missing files dismissed in one transaction, so that others can write."""

FOREIGN_FILES = 1_000
"""Files of one folder that nobody watches, looked for at a time."""


class PutAway(NamedTuple):
    """A file that was put away. Held ones sort in the order of arrival."""

    claim_id: str
    account_id: str
    path: str


def _iter_held(folder: str) -> Iterator[PutAway]:
    for name in os.listdir(folder):  # noqa: PTH208  (names are all that is asked for)
        match = HELD_NAME.fullmatch(name)
        if match and find_extension(name) and not name.endswith(REPORT):
            yield PutAway(match[1], match[2], f"{folder}/{name}")


def _iter_failed(root: Path, asked: Iterable[RequestedFile]) -> Iterator[PutAway]:
    """Yield the failed files that are asked for.

    Whose they are their reports say, since an account that came from elsewhere may name claims of
    others.
    """
    claims = {(one.claim_id, one.account_id) for one in asked}
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
    """Return how many of these held files may be released now, at most 500, and whether it is one
    of several resumes.

    Such a file goes alone: it takes places slice by slice, and none that came later may be quicker.
    """
    count = RELEASE_FILES if free_places is None else min(free_places, RELEASE_FILES)
    for place, one in enumerate(files[:count]):
        if not one.path.endswith(".json") or json_texts.is_several(find_head(one.path)):
            return max(1, place), place == 0
    return min(count, len(files)), False


class Reimports:
    """The files of one ROOT that return."""

    def __init__(self, store: Store, root: Path) -> None:
        self._store = store
        self._root = root
        self._listings: dict[str, tuple[int | None, list[PutAway]]] = {}
        """Of folders of held files: when it had changed, None where it may have changed again, and
        its files."""
        self.held: dict[str, list[PutAway]] = {}
        """The files that wait for a place, by account id, in the order of arrival; at least one each."""
        self._failed_at: dict[str, tuple[int, int, int]] = {}
        """The folders of failed files, and when each had changed, at the last complete `dismiss_missing`."""
        self._under_way: dict[str, str] = {}
        """Whose files are under way, by claim id."""
        self._asked: dict[str, RequestedFile] = {}
        self._answered: list[RequestedFile] = []
        self._not_here: set[RequestedFile] = set()
        """Of folders that nobody watches, those that were looked for here and not found."""
        self._bundles: dict[str, str] = {}
        """By account id, the claim of the file of several resumes that was released."""
        self._next: deque[Candidate] = deque()
        self._renamed: dict[str, str] = {}
        """The claims that files had before they got new ones, by the new claim's id."""
        self.has_released = False
        """Whether held files were released last time, so that more may be waiting for that."""

    @property
    def are_due(self) -> bool:
        """Whether there are files to take up now."""
        return bool(self._next)

    @property
    def due_account_ids(self) -> set[str]:
        """Whose files are to be taken up now."""
        return {one.claim.account_id for one in self._next}

    def look(self) -> None:
        """Look for held files, in the folders that have changed."""
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
                pass  # it keeps its files for now, and nobody else waits for it
            if listing is not None:
                listings[folder] = listing
        self._listings = listings
        self.held = {}
        for _, files in listings.values():
            for one in files:
                self.held.setdefault(one.account_id, []).append(one)
        if len(listings) > 1:  # an account renamed its folder, or somebody moved files
            for files in self.held.values():
                files.sort()

    def release(
        self, accounts: Mapping[str, AccountInfo], *, busy: Collection[str] = ()
    ) -> dict[str, QuotaBacklog]:
        """Take up held files for the places that are free, in the order they came.

        Return by account id what new files of an account queue behind (pitfalls I7). `accounts` is
        by id; of those in `busy` nothing is released now.
        """
        busy = {*busy, *self._under_way.values()}
        self.has_released = False
        queues = {}
        for account_id, files in self.held.items():
            account = accounts.get(account_id)
            later = files
            if self._under_way:
                later = [one for one in files if one.claim_id not in self._under_way]
            if account_id not in busy:
                # Without the account all are taken up, to find that it is gone (pitfalls S14).
                free_places = None if account is None else account.free_places
                due, is_bundle = _count_due(later, free_places)
                self._add(later[:due])
                if is_bundle:
                    self._bundles[account_id] = self._next[-1].claim.id
                self.has_released |= due > 0
                later = later[due:]
            first = self._bundles.get(account_id) or (later[0].claim_id if later else None)
            if first is not None:
                message = "Earlier files in this account must be imported first"
                if account is not None and account.max_resumes is not None:
                    message = QuotaReached(max_resumes=account.max_resumes).message
                queues[account_id] = QuotaBacklog(first, message)
        return queues

    def take_requests(self, not_yet: Container[str] = ()) -> None:
        """Take up the files that somebody asked for; answer what cannot be found. Files of the claims in
        `not_yet` are still on their way to where they are looked for."""
        self.answer()
        root = shown_root(self._root)
        # If a folder that nobody watches was moved here, its files are here, and known by their
        # claims.
        most = FOREIGN_FILES + len(self._not_here)
        strays = import_requests.list_strays(self._store, root=root, limit=most)
        self._not_here.intersection_update(strays)
        asked = import_requests.list_requests(self._store, root=root)
        asked += [one for one in strays if one not in self._not_here]
        new = [one for one in asked if one.claim_id not in self._under_way]
        for one in new:
            if one.action is RequestKind.RELEASE:
                held = self.held.get(one.account_id, ())
                self._add(file for file in held if file.claim_id == one.claim_id)
        self._add(_iter_failed(self._root, (one for one in new if one.action is RequestKind.RETRY)))
        for one in asked:
            if one.claim_id in self._under_way:
                self._asked.setdefault(one.claim_id, one)
            elif one.root == root and one.claim_id not in not_yet and not self._is_elsewhere_too():
                message = (
                    f"Could not {one.action.value} it: the file is no longer in {root}, its folder is "
                    "away, or its report is missing"
                )
                import_requests.refuse_request(self._store, one.account_id, one.claim_id, message)
            elif one.root not in (None, root):  # else another importer may have it
                self._not_here.add(one)

    def _is_elsewhere_too(self) -> bool:
        """Return whether a live importer on another machine watches a folder of this path.

        The ledger has paths only, so a file that is not here may be there.
        """
        root, host = shown_root(self._root), socket.gethostname()
        return any(
            seen.is_live and seen.importer.root == root and seen.importer.host != host
            for seen in importers.list_importers(self._store)
        )

    def answer(self) -> None:
        """Drop the requests for files that were taken up. Raises StoreError.

        Not sooner: an importer that is killed before leaves the request to the next.
        """
        if self._answered:
            import_requests.drop_requests(self._store, self._answered)
            self._answered.clear()

    def hold(self, claim: Claim) -> None:
        """Take note that a file is under way that was taken up before this importer began."""
        self._under_way[claim.id] = claim.account_id

    def _add(self, files: Iterable[PutAway]) -> None:
        for one in files:
            if one.claim_id not in self._under_way:
                claim = self._claim(one)
                self._under_way[one.claim_id] = one.account_id
                self._next.append(Candidate(claim))

    def _claim(self, file: PutAway) -> Claim:
        """Return the claim that the file had; but a new one if it is not what was imported, unless that is
        a file of several that was edited.

        Somebody may have changed it, or given its name to another.
        """
        claim_id, account_id, _ = file
        path = Path(file.path)
        report = load_report(report_path(path))
        claim = Claim(
            id=claim_id,
            account_id=account_id,
            account=escaped_before(str(report.get("account") or path.parent.name)),
            name=escaped_before(str(report.get("file") or path.name)),
            source=str(path.relative_to(self._root)),
            claimed_at_us=self._store.clock(),
            is_return=True,
        )
        items = import_ledger.find_items(self._store, account_id, claim_id)
        # A file of several resumes may not be at its end.
        is_its_own = items and items[0].item > 0 and report.get("claimId") == claim_id
        sha256 = report.get("sha256")
        # What cannot be read now was not edited.
        if not items or (is_its_own and (sha256 is None or find_sha256(path) in (None, sha256))):
            return claim
        if is_its_own:
            # It was edited. What is stored of it is known by its content.
            import_ledger.forget_items(self._store, account_id, claim_id)
            return claim
        new_id = identifiers.resume_id(self._store.clock())
        self._renamed[new_id] = claim_id
        return claim._replace(id=new_id)

    def next_batch(self, at_most: int) -> list[Candidate]:
        """Return the next files to take up."""
        return [self._next.popleft() for _ in range(min(len(self._next), at_most))]

    def end(self, claim_id: str, *, is_over: bool = True) -> None:
        """Note that the file was taken up, or is gone.

        Unless `is_over` it is where it was, and the request stays.
        """
        earlier_id = self._renamed.pop(claim_id, claim_id)
        account_id = self._under_way.pop(earlier_id, "")
        if self._bundles.get(account_id) == claim_id:
            del self._bundles[account_id]
        request = self._asked.pop(earlier_id, None)
        if request is not None and is_over:
            self._answered.append(request)

    def dismiss_missing(self) -> int:
        """Dismiss the failed files that are gone from the folders that they were put into; return how many.

        A file that was deleted, or moved back into the inbox, needs no attention any more. Do nothing if no
        folder has changed since the last time, if one changed too recently (an editor may remove a file
        before it saves it), or if one cannot be listed. Raises StoreError.
        """
        folder = self._root / FAILED
        try:
            seen = {path: os.stat(path) for path in [str(folder), *list_folders(folder)]}  # noqa: PTH116
            changed_at = {
                path: (one.st_dev, one.st_ino, one.st_mtime_ns) for path, one in seen.items()
            }
            newest_ns = max(one.st_mtime_ns for one in seen.values())
            if changed_at == self._failed_at or time.time_ns() - newest_ns < FRESH_NS:
                return 0
            folders = {path: read_failed(path) for path in seen}
            missing = self._find_missing(folders)
            until = timestamp(self._store.clock() - SETTLED_S * 1_000_000)
            settled = [
                one
                for one in missing
                if one.finished_at < until and not os.path.lexists(self._root / one.name)
            ][:DISMISSED_FILES]
            import_requests.dismiss_files(self._store, settled)
            # What else is on a list has another outcome by now, or another folder.
            kept = {one.claim_id[-8:] for one in missing} - {one.claim_id[-8:] for one in settled}
            for path, one in folders.items():
                if path != str(folder):
                    replace_filed(path, one, one.present | (one.filed & kept))
        except (OSError, NotFound, Conflict):
            return 0  # nothing failed yet, or somebody else is tidying up or has dismissed one
        if not kept:
            self._failed_at = changed_at
        return len(settled)

    def _find_missing(self, folders: Mapping[str, FailedFolder]) -> list[FileRow]:
        """Return the failed files that their folders list and that are in none. Where they came from they
        may wait for their import."""
        present = frozenset[str]().union(*(one.present for one in folders.values()))
        gone = {path: ends for path, one in folders.items() if (ends := one.filed - present)}
        if not gone:
            return []
        return [
            file
            for file in import_history.iter_failed(self._store, shown_root(self._root))
            if not file.is_under_way
            and file.claim_id[-8:] in gone.get(f"{self._root}/{FAILED}/{file.reason}", ())
        ]
