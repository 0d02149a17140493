"""New files: which inboxes they are in, which accounts own them, and which are tried next."""

import math
from collections import deque
from collections.abc import Collection, Container
from pathlib import Path
from typing import NamedTuple

from importer.claims import Claim, ClaimIds
from importer.files import describe, escaped
from importer.inbox import Inbox, ScanSchedule, Seen, find_inboxes
from importer.job import Candidate, Cause, Departure, Job
from importer.notices import unowned, untaken
from importer.watcher import EVERYTHING
from resumes import watched_folder
from resumes.store import accounts
from resumes.store.accounts import AccountInfo
from resumes.store.importers import ImporterState
from resumes.watched_names import is_document

STUCK_INTERVAL_S = 5.0
"""How soon a file that cannot be read or moved is tried again."""
OPEN_INTERVAL_S = 1.0
"""How soon a file that is open for writing is checked again."""
ACCOUNTS_INTERVAL_S = 2.0
"""How often accounts are looked up while none of them has held files."""


class AccountList:
    """The open accounts, and those of files here that the store does not know."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.all: list[AccountInfo] = []
        self.due = job.monotonic()
        """When to read them again."""
        self._unknown_ids: set[str] = set()
        """The accounts that the store does not know, as the finding names them."""

    def refresh(self, *, is_due: bool) -> None:
        """Read the accounts, if that is due anyway or now. Raises StoreError."""
        now = self._job.monotonic()
        if is_due or now >= self.due:
            self.all = accounts.list_open(self._job.store)
            self.due = now + min(ACCOUNTS_INTERVAL_S, self._job.options.scan_s)

    def find_unknown(self, account_ids: Collection[str]) -> set[str]:
        """Return the accounts that the store neither has nor has deleted, and report them. Their files are
        left alone: the store may have been restored from an older backup."""
        unknown = set(account_ids) - {info.id for info in self.all}
        if unknown:
            self.all = accounts.list_open(self._job.store)
            unknown -= {info.id for info in self.all}
            unknown -= accounts.find_deleted(self._job.store, unknown)
        if unknown != self._unknown_ids:
            self._unknown_ids = unknown
            held = watched_folder.count_held(Path(self._job.root))
            key, text = (
                watched_folder.UNKNOWN_ACCOUNTS,
                watched_folder.describe_unknown(held, unknown),
            )
            if text is None:
                self._job.notices.clear(key)
            else:
                sentence = f"{text}. {watched_folder.UNKNOWN_REMEDY}"
                self._job.notices.find(key, ImporterState.DEGRADED, sentence)
        return unknown


class _UnderWay(NamedTuple):
    """A file that is under way: where it is, in which inbox, and whose slot has it."""

    name: str
    inbox: Inbox | None
    slot: int


def claim_of(seen: Seen, account: AccountInfo, claim_id: str, now_us: int) -> Claim:
    """Return the claim of a file that was found in the account's inbox."""
    name, month = escaped(seen.name), account.first_month
    return Claim(claim_id, account.id, account.name, name, seen.name, now_us, first_month=month)


class Intake:
    """The inboxes of one ROOT."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.accounts = AccountList(job)
        self.ids = ClaimIds(job.store.clock)
        self.inboxes: dict[str, Inbox] = {}
        """The inboxes by their names in ROOT; empty for ROOT's own files."""
        self._under_way: dict[str, _UnderWay] = {}
        """By claim id."""
        self._names: set[str] = set()
        """The names of the files under way."""
        self.schedule = ScanSchedule(job.options.scan_s, job.monotonic)
        """When to find the inboxes again."""
        self._turn = 0
        self.looks = 0
        """How many scans of ROOT were made or tried."""

    @property
    def folders(self) -> list[str]:
        """The folders in ROOT that are worth watching: those without a backlog."""
        return [name for name, inbox in self.inboxes.items() if name and not inbox.scan.has_backlog]

    @property
    def claim_ids(self) -> Container[str]:
        return self._under_way.keys()

    def wait_s(self) -> float:
        """Return the seconds until there is a folder to scan or a file to try."""
        until_look_s = max(0.0, self.schedule.due - self._job.monotonic())
        return min([until_look_s, *(inbox.wait_s() for inbox in self.inboxes.values())])

    def force(self) -> None:
        """Make a scan of everything due now."""
        self.accounts.due = self._job.monotonic()
        self.schedule.force()
        for inbox in self.inboxes.values():
            inbox.schedule.force()

    def mark(self, names: set[str]) -> None:
        """Scan soon the parts of ROOT that changed (`watcher.Changes`)."""
        if "" in names or names - self.inboxes.keys():
            self.schedule.ask()
        for name, inbox in self.inboxes.items():
            if name in names or EVERYTHING in names:
                inbox.schedule.ask()

    def find_owners(self) -> None:
        """Find the inboxes, if that is due, and their owners. Raises OSError."""
        if self.schedule.is_due:
            self.looks += 1
            started = self._job.monotonic()
            names = find_inboxes(Path(self._job.root))
            self.schedule.done(self._job.monotonic() - started)
            for name in self.inboxes.keys() - set(names):
                self._job.notices.resolve(f"unread {name}")
                self.inboxes[name].forget_unlisted()
            self.inboxes = {
                name: self.inboxes.get(name) or Inbox(self._job, name, self._names)
                for name in names
            }
        by_folder = accounts.by_folder(self.accounts.all)
        for name, inbox in self.inboxes.items():
            self._set_owner(inbox, by_folder.get(name or self._job.options.account or ""))

    def check_owners(self) -> None:
        """Find owners again if an account is gone, or another has its former name by now: a new file goes to
        the account that has its folder's name when the file is taken (pitfalls S14). Raises StoreError."""
        owned = {
            (box.account.id, box.below or self._job.options.account)
            for box in self.inboxes.values()
            if box.queue and box.account is not None
        }
        ids = {owner_id for owner_id, _ in owned}
        known = accounts.find_open(self._job.store, ids) if owned else []
        if owned - {(info.id, folder) for info in known for folder in info.folders}:
            self.accounts.refresh(is_due=True)
            self.find_owners()

    def _set_owner(self, inbox: Inbox, account: AccountInfo | None) -> None:
        """Make the account the inbox's owner. Files without an owner are reported once."""
        if account is not None and inbox.account is None:
            inbox.schedule.force()
        if account is None:
            inbox.queue.clear()
            inbox.forget_unlisted()
        inbox.account = account
        key = f"unowned {inbox.below}"
        if account is not None:
            self._job.notices.resolve(key)
        elif inbox.scan.waiting:
            self._job.notices(key, unowned(inbox.below, self._job.options.account))

    def look(self) -> None:
        """Scan the next part of each inbox whose scan is due."""
        for inbox in self.inboxes.values():
            if not inbox.look():
                continue
            if inbox.account is None:
                self._set_owner(inbox, None)
            if not inbox.settling.count_left():
                self._job.notices.resolve(f"unread {inbox.below}")

    def next_batch(self, slot: int = 0, *, busy: Collection[str] = ()) -> list[Candidate]:
        """Return files to try next, one of each account in turn, for the process with this slot.

        A helper gets no files of accounts that are nearly full, since those have to queue up in one
        order. No process gets files of the accounts in `busy`.
        """
        batch: list[Candidate] = []
        size_bytes = 0
        self._turn += 1
        inboxes = deque(self.inboxes.values())
        inboxes.rotate(-self._turn)
        now_us = self._job.store.clock()
        tuning = self._job.options.tuning
        while inboxes and len(batch) < tuning.batch_files and size_bytes < tuning.batch_bytes:
            inbox = inboxes.popleft()
            account = inbox.account
            if account is None or account.id in busy:
                continue
            if slot and (inbox.is_nearly_full or inbox.is_next_document):
                continue
            if (seen := inbox.take()) is None:
                continue
            inboxes.append(inbox)
            claim = claim_of(seen, account, self.ids.next(), now_us)
            self._under_way[claim.id] = _UnderWay(seen.name, inbox, slot)
            self._names.add(seen.name)
            batch.append(Candidate(claim, inbox.settling.find_known(seen.name)))
            if seen.signature is not None and not is_document(seen.name):
                size_bytes += seen.signature.size_bytes
        return batch

    def hold(self, claim: Claim) -> None:
        """Mark a file as under way that was not found by a scan; new claims come after it, even if the
        clock was set back since."""
        self.ids.follow(claim.id)
        self._release(claim.id)
        self._under_way[claim.id] = _UnderWay(claim.source, None, 0)
        self._names.add(claim.source)

    def _release(self, claim_id: str) -> tuple[str, Inbox | None]:
        """Return the name and the inbox of a file that is no longer under way."""
        file = self._under_way.pop(claim_id, None)
        if file is None:
            return "", None
        self._names.discard(file.name)
        if file.inbox is not None:
            file.inbox.under_way -= 1
        return file.name, file.inbox

    def give_up(self, slot: int | None = None) -> None:
        """Scan again for the files that the process with this slot had under way; None is all processes."""
        under_way = self._under_way.items()
        for claim_id in [id_ for id_, file in under_way if slot is None or file.slot == slot]:
            _, inbox = self._release(claim_id)
            if inbox is not None:
                inbox.schedule.force()

    def leave(self, departure: Departure) -> None:
        """Note that a file is no longer under way, and schedule its next try if it is still in an inbox."""
        claim, cause, signature, error = departure
        name, inbox = self._release(claim.id)
        if cause is Cause.STUCK and error is not None:
            key = f"unreturned {claim.account_id} {error.errno}"
            if inbox is not None:
                key = f"unread {inbox.below}"
            self._job.notices(key, untaken(claim.name, describe(error)))
        if cause is Cause.CHANGED or (inbox is None and cause is not Cause.FILED):
            # It counts as new where it is.
            at = self.inboxes.get(claim.source.partition("/")[0]) or self.inboxes.get("")
            if at is not None:
                at.schedule.force()
        if inbox is None:
            return
        if signature is None or departure.is_over:
            inbox.settling.forget(name)
            return
        inbox.scan.waiting += 1
        if cause is Cause.TROUBLE:
            return
        again_s = {
            Cause.OPEN: OPEN_INTERVAL_S,
            Cause.REPORT: math.inf,
            Cause.STUCK: max(STUCK_INTERVAL_S, self._job.options.settle_s),
        }.get(cause)
        inbox.settling.note(name, signature, again_s, is_left=cause is Cause.STUCK)
