"""Files that were put away and are taken up again: held ones that got a place, and those that
somebody asked for."""

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from importer import filing
from importer.batch import Candidate, Queue
from importer.claims import Claim
from importer.files import escaped, escaped_before, find_extension, find_head, find_sha256
from importer.filing import FAILED, report_path
from importer.unpack import text
from resumes.errors import QuotaReached
from resumes.file_names import REPORT
from resumes.store import Store, identifiers, ledger, requests
from resumes.store.accounts import AccountInfo
from resumes.store.requests import Action, Request
from resumes.watched_folder import HELD, HELD_NAME

RELEASE_FILES = 500
"""Files released at a time, so that the others are not kept waiting."""

FRESH_NS = 2_000_000_000
"""A folder that changed so short a time before it was listed may have changed once more within
the same tick of the file system's clock."""


class Held(NamedTuple):
    """A file that waits for a place."""

    claim_id: str
    account_id: str
    path: str


class _Listing(NamedTuple):
    mtime_ns: int
    is_fresh: bool
    files: list[Held]


class HeldFiles:
    """The files that wait below one ROOT, listed again when their folders change."""

    def __init__(self, root: Path, *, time_ns: Callable[[], int] = time.time_ns) -> None:
        self._folder = root / HELD
        self._time_ns = time_ns
        self._listings: dict[str, _Listing] = {}

    def find(self) -> dict[str, list[Held]]:
        """By account id, the files that wait, in the order of arrival."""
        names = _folders(self._folder)
        self._listings = {name: self._refresh(name) for name in names}
        by_account: dict[str, list[Held]] = {}
        for listing in self._listings.values():
            for held in listing.files:
                by_account.setdefault(held.account_id, []).append(held)
        if len(self._listings) > 1:  # an account renamed its folder, or somebody moved files
            for files in by_account.values():
                files.sort()
        return by_account

    def _refresh(self, name: str) -> _Listing:
        path = f"{self._folder}/{name}"
        known = self._listings.get(name)
        try:
            mtime_ns = os.stat(path).st_mtime_ns  # noqa: PTH116  (text, as names are)
        except OSError:
            return _Listing(0, False, [])
        if known is not None and known.mtime_ns == mtime_ns and not known.is_fresh:
            return known
        is_fresh = abs(self._time_ns() - mtime_ns) < FRESH_NS
        return _Listing(mtime_ns, is_fresh, _list(path))


def _folders(folder: Path) -> list[str]:
    # A folder that cannot be listed for now keeps its files, and nobody else waits for it.
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    return []


def _list(path: str) -> list[Held]:
    files = []
    with contextlib.suppress(OSError):
        for name in os.listdir(path):  # noqa: PTH208  (names are all that is asked for)
            match = HELD_NAME.fullmatch(name)
            is_file = match is not None and find_extension(name) is not None
            if match and is_file and not name.endswith(REPORT):
                files.append(Held(match[1], match[2], f"{path}/{name}"))
    return sorted(files)


def as_return(held: Held, root: Path, *, now_us: int) -> Candidate:
    """What takes a held file up again, under the id that it had."""
    return returned(Path(held.path), held.claim_id, held.account_id, root, now_us=now_us)


def returned(path: Path, claim_id: str, account_id: str, root: Path, *, now_us: int) -> Candidate:
    """What takes up a file again that was put away, under the id that it had; by whom is open."""
    report_file = report_path(path)
    report = filing.load_report(report_file)
    place = str(report_file.relative_to(root))
    claim = Claim(
        id=claim_id,
        account_id=account_id,
        account=escaped_before(str(report.get("account") or path.parent.name)),
        name=escaped_before(str(report.get("file") or path.name)),
        source=str(path.relative_to(root)),
        claimed_at_us=now_us,
        reports=(place,) if is_text(place) else (),
        is_return=True,
    )
    return Candidate(claim)


def is_as_reported(path: Path, claim_id: str) -> bool:
    """Whether the file is what the report beside it speaks of, byte for byte."""
    report = filing.load_report(report_path(path))
    if report.get("claim_id") != claim_id:
        return False
    return report.get("sha256") in (None, find_sha256(path))


def is_text(name: str) -> bool:
    """Whether the name is UTF-8, so that a note can name it."""
    return all(not 0xD800 <= ord(char) <= 0xDFFF for char in name)


def split(held: list[Held], free_places: int | None) -> tuple[list[Held], list[Held]]:
    """Those whose turn it is, as many as there are free places, and those who wait on.

    At most 500 at a time; None free places are no further limit. A file of several resumes goes
    alone: it takes places slice by slice, and none that came later may be quicker.
    """
    count = RELEASE_FILES if free_places is None else min(free_places, RELEASE_FILES)
    first_bundle = next(
        (place for place, one in enumerate(held[:count]) if _is_of_several(one)), count
    )
    count = min(count, max(1, first_bundle))
    return held[:count], held[count:]


def _is_of_several(held: Held) -> bool:
    """Whether the file may hold several resumes, by its name or by how it begins."""
    return not held.path.endswith(".json") or text.is_several(find_head(held.path))


def without(held: list[Held], claim_ids: Iterable[str]) -> list[Held]:
    """Those that are not under way already."""
    under_way = set(claim_ids)
    return [one for one in held if one.claim_id not in under_way] if under_way else held


def find_candidates(
    root: Path,
    requests: Iterable[Request],
    held: Mapping[str, list[Held]],
    *,
    now_us: int,
) -> dict[str, Candidate]:
    """By claim id, what takes up the files that are asked for; none for those not found."""
    found: dict[str, Candidate] = {}
    failed: dict[str, Request] = {}
    for request in requests:
        if request.action is Action.RETRY:
            failed[request.claim_id] = request
            continue
        for one in held.get(request.account_id, []):
            if one.claim_id == request.claim_id:
                found[one.claim_id] = as_return(one, root, now_us=now_us)
    for path, request in _iter_failed(root / FAILED, failed.values()):
        claim_id, account_id = request.claim_id, request.account_id
        found[claim_id] = returned(path, claim_id, account_id, root, now_us=now_us)
    return found


def _iter_failed(folder: Path, requests: Iterable[Request]) -> Iterable[tuple[Path, Request]]:
    """The failed files that are asked for, and by whom. Whose they are their reports say, since an
    account that came from elsewhere may name claims of others."""
    by_end = {request.claim_id[-8:]: request for request in requests}
    if not by_end:
        return
    for reason in _reason_folders(folder):
        with contextlib.suppress(OSError):
            for name in os.listdir(reason):  # noqa: PTH208  (names are all that is asked for)
                stem = name[: len(name) - len(find_extension(name) or "")]
                request = by_end.get(stem[-8:])
                if request is None or name.endswith(REPORT):
                    continue
                path = reason / name
                report = filing.load_report(report_path(path))
                asked = (request.claim_id, request.account_id)
                if (report.get("claim_id"), report.get("account_id")) == asked:
                    yield path, request


def _reason_folders(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    return []


QUEUED = "Earlier files of the account are taken first"

FOREIGN_FILES = 1_000
"""Files of one folder that nobody watches, looked for at a time."""


class Returns:
    """The files of one ROOT that return."""

    def __init__(self, store: Store, root: Path) -> None:
        self._store = store
        self._root = root
        self._held_files = HeldFiles(root)
        self._held: dict[str, list[Held]] = {}
        self._under_way: dict[str, Candidate] = {}
        self._asked: dict[str, Request] = {}
        self._answered: list[Request] = []
        self._not_here: set[Request] = set()
        """Of folders that nobody watches, those that were looked for here and not found."""
        self._next: deque[Candidate] = deque()
        self._renamed: dict[str, str] = {}
        self.has_released = False
        """Whether held files were released last time, so that more may be waiting for that."""

    @property
    def holds_files(self) -> bool:
        """Whether an account has files that wait for a place, as far as is known."""
        return bool(self._held)

    @property
    def account_ids(self) -> Collection[str]:
        """The ids of the accounts that have such files."""
        return self._held.keys()

    @property
    def are_due(self) -> bool:
        """Whether there are files to take up now."""
        return bool(self._next)

    def look(self) -> None:
        """The held files are known."""
        self._held = self._held_files.find()

    def last_ids(self) -> list[str]:
        """The claim of each account's last held file: new ones come after it."""
        return [files[-1].claim_id for files in self._held.values()]

    def release(
        self, accounts: Mapping[str, AccountInfo], *, busy: Collection[str] = ()
    ) -> dict[str, Queue]:
        """Held files take the places that are free, in the order they came; by account id, what
        new files of an account queue behind (pitfalls I7).

        `accounts` is by id; of those in `busy` nothing is released now.
        """
        busy = {*busy, *(one.claim.account_id for one in self._under_way.values())}
        self.has_released = False
        queues = {}
        for account_id, files in self._held.items():
            account = accounts.get(account_id)
            later = without(files, self._under_way)
            if account_id not in busy:
                # Without the account all are taken up, to be told that it is gone (pitfalls S14).
                free_places = None if account is None else account.free_places
                now, later = split(files, free_places)
                now_us = self._store.clock()
                self._add(as_return(one, self._root, now_us=now_us) for one in now)
                self.has_released |= bool(now)
            if later:
                queues[account_id] = Queue(later[0].claim_id, _told(account))
        return queues

    def take_requests(self) -> None:
        """Files that somebody asked for are taken up; what cannot be found is answered."""
        self.answer()
        root = escaped(str(self._root))
        asked = requests.list_requests(self._store, root=root)
        strays = self._find_strays(root)
        new = [one for one in (*asked, *strays) if one.claim_id not in self._under_way]
        found = find_candidates(self._root, new, self._held, now_us=self._store.clock())
        self._add(found.values())
        for one in asked:
            if one.claim_id in self._under_way:
                self._asked[one.claim_id] = one
            elif one.root == root:  # another importer may have it otherwise
                message = (
                    f"Could not {one.action.value} it: the file is no longer in {root}, or its "
                    "report is not beside it"
                )
                requests.refuse_request(self._store, one.account_id, one.claim_id, message)
        for one in strays:
            if one.claim_id in self._under_way:
                self._asked[one.claim_id] = one
            else:
                self._not_here.add(one)

    def _find_strays(self, root: str) -> list[Request]:
        """What is asked for files of folders that nobody watches, and was not looked for yet.

        If such a folder was moved here, its files are here, and known by their claims.
        """
        most = FOREIGN_FILES + len(self._not_here)
        strays = requests.list_strays(self._store, root=root, limit=most)
        self._not_here.intersection_update(strays)
        return [one for one in strays if one not in self._not_here]

    def answer(self) -> None:
        """Nobody asks any more for what was taken up. Raises StoreError.

        Not sooner: an importer that is killed before leaves the request to the next.
        """
        if self._answered:
            requests.drop_requests(self._store, self._answered)
            self._answered.clear()

    def _add(self, candidates: Iterable[Candidate]) -> None:
        for one in candidates:
            if one.claim.id not in self._under_way:
                self._under_way[one.claim.id] = one
                self._next.append(self._renewed(one))

    def _renewed(self, one: Candidate) -> Candidate:
        """The file under the claim that it had; but under a new one, if what was imported under
        that one is not what it holds now: somebody changed it, or gave its name to another."""
        claim = one.claim
        items = ledger.find_items(self._store, claim.account_id, claim.id)
        is_of_several = bool(items) and items[0].item > 0
        if not items or (
            is_of_several and is_as_reported(Path(claim.path(str(self._root))), claim.id)
        ):
            return one
        new_id = identifiers.resume_id(self._store.clock())
        renewed = one._replace(claim=claim._replace(id=new_id, reports=()))
        self._under_way[new_id] = renewed
        self._renamed[new_id] = claim.id
        return renewed

    def next_batch(self, at_most: int) -> list[Candidate]:
        """The next files to take up."""
        return [self._next.popleft() for _ in range(min(len(self._next), at_most))]

    def end(self, claim_id: str, *, is_over: bool = True) -> None:
        """The file was taken up, or is gone; unless `is_over` it lies where it lay, and whoever
        asked for it still does."""
        self._under_way.pop(claim_id, None)
        claim_id = self._renamed.pop(claim_id, claim_id)
        self._under_way.pop(claim_id, None)
        request = self._asked.pop(claim_id, None)
        if request is not None and is_over:
            self._answered.append(request)


def _told(account: AccountInfo | None) -> str:
    """What a file is told that queues behind others of its account."""
    if account is None or account.max_resumes is None:
        return QUEUED
    return QuotaReached(max_resumes=account.max_resumes).message
