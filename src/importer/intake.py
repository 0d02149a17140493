"""New files: their inboxes, the accounts that own them, and which files are tried next."""

import math
from collections import deque
from collections.abc import Collection, Container
from pathlib import Path

from importer.claims import Claim, ClaimIds, File, State
from importer.files import UNREAD, describe, escaped
from importer.inbox import Inbox, ScanSchedule, Seen, find_inboxes
from importer.job import RETRY_INTERVAL_S, Job
from importer.notices import unowned, untaken
from importer.watcher import EVERYTHING
from resumes import watched_folder
from resumes.store import accounts
from resumes.store.accounts import AccountInfo
from resumes.watched_names import is_document

OPEN_INTERVAL_S = 1.0
"""The pause before a file that is open for writing is checked again."""

PAUSE_MEMORY_S = 30.0
"""How long an account is remembered after its pause if none of its files was tried."""

ACCOUNTS_INTERVAL_S = 2.0
"""The interval at which accounts are read while none of them has held files."""


class AccountList:
    """The open accounts, and the accounts of held files that the store does not know."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.all: list[AccountInfo] = []
        self.due = job.monotonic()
        """When to read the accounts again."""
        self._unknown_ids: set[str] = set()
        """The unknown accounts that the current finding names."""

    def refresh(self, *, is_due: bool) -> None:
        """Read the accounts if `is_due` or if the interval has passed. Raises StoreError."""
        now = self._job.monotonic()
        if is_due or now >= self.due:
            self.all = accounts.list_open(self._job.store)
            self.due = now + min(ACCOUNTS_INTERVAL_S, self._job.options.scan_s)

    def find_unknown(self, account_ids: Collection[str]) -> set[str]:
        """Return and report the accounts that are neither in the store nor deleted. Their files are
        left alone, since the store may have been restored from an older backup."""
        unknown = set(account_ids) - {info.id for info in self.all}
        if unknown:
            self.all = accounts.list_open(self._job.store)
            unknown -= {info.id for info in self.all}
            unknown -= accounts.find_deleted(self._job.store, unknown)
        if unknown != self._unknown_ids:
            self._unknown_ids = unknown
            held = watched_folder.count_held(Path(self._job.root)) if unknown else {}
            text = watched_folder.describe_unknown(held, unknown)
            sentence = f"{text}. {watched_folder.UNKNOWN_REMEDY}" if text else ""
            self._job.notices.find(watched_folder.UNKNOWN_ACCOUNTS, sentence)
        return unknown


def claim_of(seen: Seen, account: AccountInfo, claim_id: str, now_us: int) -> Claim:
    """Return the claim of a new file in the account's inbox."""
    name, month = escaped(seen.name), account.first_month
    return Claim(claim_id, account.id, account.name, name, seen.name, now_us, first_month=month)


class Intake:
    """The inboxes of one ROOT."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.accounts = AccountList(job)
        self.ids = ClaimIds(job.store.clock)
        self.inboxes: dict[str, Inbox] = {}
        """The inboxes by their names in ROOT; the name is empty for ROOT's own files."""
        self._under_way: dict[str, tuple[str, Inbox | None, int]] = {}
        """By the name of a file under way: its claim ID, its inbox, and the number of its slot."""
        self.schedule = ScanSchedule(job.options.scan_s, job.monotonic)
        """When to look for the inboxes again."""
        self._turn = 0
        self.looks = 0
        """The number of scans of ROOT that were made or tried."""

    @property
    def claim_ids(self) -> Container[str]:
        return {claim_id for claim_id, _, _ in self._under_way.values()}

    def wait_s(self) -> float:
        """Return the seconds until a folder must be scanned or a file can be tried."""
        now, paused = self._job.monotonic(), self._job.paused_until
        waits = [max(0.0, self.schedule.due - now)]
        for inbox in self.inboxes.values():
            until = paused.get(inbox.account.id, now) if inbox.account is not None else now
            waits.append(max(inbox.wait_s(), until - now))
        return min(waits)

    def force(self) -> None:
        """Make the scans of all folders due now."""
        self.accounts.due = self._job.monotonic()
        self.schedule.force()
        for inbox in self.inboxes.values():
            inbox.schedule.force()

    def mark(self, names: set[str]) -> None:
        """Schedule early scans of the parts of ROOT that changed (`watcher.Changes`)."""
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
                name: self.inboxes.get(name) or Inbox(self._job, name, self._under_way)
                for name in names
            }
        by_folder = accounts.by_folder(self.accounts.all)
        for name, inbox in self.inboxes.items():
            self._set_owner(inbox, by_folder.get(name or self._job.options.account or ""))

    def check_owners(self) -> None:
        """Find the owners again if an account was deleted or another account now has its old name.
        A new file belongs to the account that has the folder's name when the file is taken
        (pitfalls S14). Raises StoreError."""
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

    def list_paused(self) -> set[str]:
        """Return the accounts that could not be reached just now, and forget those of long ago."""
        paused, now = self._job.paused_until, self._job.monotonic()
        for account_id in [each for each, until in paused.items() if until + PAUSE_MEMORY_S < now]:
            del paused[account_id]
            self._job.notices.resolve(f"unreachable {account_id}")
        return {account_id for account_id, until in paused.items() if until > now}

    def next_batch(self, slot: int = 0, *, busy: Collection[str] = ()) -> list[File]:
        """Return the next files to try, taking accounts in turn, for the process with this slot.

        A helper gets no files of accounts that are nearly full, since their files must be held in
        order. No process gets files of the accounts in `busy`.
        """
        batch: list[File] = []
        size_bytes = 0
        self._turn += 1
        busy = {*busy, *self.list_paused()}
        inboxes = deque(self.inboxes.values())
        inboxes.rotate(-self._turn)
        now_us = self._job.store.clock()
        tuning = self._job.options.tuning
        while inboxes and len(batch) < tuning.batch_files and size_bytes < tuning.batch_bytes:
            inbox = inboxes.popleft()
            account = inbox.account
            if account is None or account.id in busy:
                continue
            is_next_document = bool(inbox.queue) and is_document(inbox.queue[0].name)
            if slot and (inbox.is_nearly_full or is_next_document):
                continue
            if (seen := inbox.take()) is None:
                continue
            inboxes.append(inbox)
            claim = claim_of(seen, account, self.ids.next(), now_us)
            self._under_way[seen.name] = claim.id, inbox, slot
            batch.append(File(claim, inbox.settling.find_known(seen.name)))
            if seen.signature is not None and not is_document(seen.name):
                size_bytes += seen.signature.size_bytes
        return batch

    def hold(self, claim: Claim) -> None:
        """Mark a file that no scan found as under way. New claims sort after its claim, even if the
        clock has been set back since."""
        self.ids.follow(claim.id)
        self._release(claim.source)
        self._under_way[claim.source] = claim.id, None, 0

    def _release(self, name: str) -> Inbox | None:
        """Mark a file as no longer under way, and return its inbox."""
        _, inbox, _ = self._under_way.pop(name, ("", None, 0))
        if inbox is not None:
            inbox.under_way -= 1
        return inbox

    def give_up(self, slot: int) -> None:
        """Make scans due for the files that the process with this slot had under way."""
        under_way = self._under_way.items()
        for name in [name for name, (_, _, of_slot) in under_way if of_slot == slot]:
            if (inbox := self._release(name)) is not None:
                inbox.schedule.force()

    def leave(self, file: File) -> None:
        """Mark a file as no longer under way, and schedule its next try if it is in an inbox."""
        claim, state, error = file.claim, file.state, file.error
        inbox = self._release(claim.source)
        if state is State.UNREACHABLE:
            self._job.pause(claim)
        elif state is State.FILED:
            self._job.paused_until.pop(claim.account_id, None)
            self._job.notices.resolve(f"unreachable {claim.account_id}")
        if state is State.STUCK and error is not None:
            key = f"unreturned {claim.account_id} {error.errno}"
            if inbox is not None:
                key = f"unread {inbox.below}"
            self._job.notices(key, untaken(claim.name, describe(error)))
        if state is State.CHANGED or (inbox is None and state is not State.FILED):
            # In its current folder, the file counts as new.
            at = self.inboxes.get(claim.source.partition("/")[0]) or self.inboxes.get("")
            if at is not None:
                at.schedule.force()
        if inbox is None:
            return
        if file.present == UNREAD:
            inbox.settling.forget(claim.source)
            return
        inbox.scan.waiting += 1
        if state is State.TROUBLE:
            return
        again_s = {State.OPEN: OPEN_INTERVAL_S, State.REPORT: math.inf}.get(state)
        is_left = state in (State.STUCK, State.UNREACHABLE)
        if is_left:
            again_s = max(RETRY_INTERVAL_S, self._job.options.settle_s)
        due = inbox.settling.note(claim.source, file.present, again_s, is_left=is_left)
        inbox.schedule.ask(due)
