"""Files that were put away and are taken up again: held ones that got a place, and those that
somebody asked for."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from importer import holding, retrying
from importer.batch import Candidate
from importer.holding import Held, HeldFiles
from importer.names import escaped
from importer.queues import Queue
from resumes.errors import QuotaReached
from resumes.store import Store, identifiers, ledger, requests
from resumes.store.accounts import AccountInfo
from resumes.store.requests import Request

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
            later = holding.without(files, self._under_way)
            if account_id not in busy:
                # Without the account all are taken up, to be told that it is gone (pitfalls S14).
                free_places = None if account is None else account.free_places
                now, later = holding.split(files, free_places)
                now_us = self._store.clock()
                self._add(holding.as_return(one, self._root, now_us=now_us) for one in now)
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
        found = retrying.find_candidates(self._root, new, self._held, now_us=self._store.clock())
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
            is_of_several and holding.is_as_reported(Path(claim.path(str(self._root))), claim.id)
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
