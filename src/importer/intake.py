"""New files: in which inboxes they lie, whose they are, and which are tried next."""

import errno
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from importer import scanning
from importer.changes import Marked
from importer.claims import Claim, ClaimIds
from importer.health import Health
from importer.inboxes import Inbox
from importer.names import WORK, escaped, name_hex
from importer.options import Options
from importer.rhythm import Rhythm
from importer.scanning import Seen
from importer.settling import Settling
from importer.taking import Candidate, Left, Why
from importer.telling import Remarks, unowned
from resumes.clock import Clock
from resumes.store.accounts import AccountInfo

STUCK_AGAIN_S = 5.0
"""How soon a file is tried again that cannot be claimed."""


class Intake:
    """The inboxes of one ROOT. `accounts` are given by name."""

    def __init__(
        self,
        root: Path,
        options: Options,
        *,
        ids: ClaimIds,
        clock: Clock,
        monotonic: Callable[[], float],
        remarks: Remarks,
        health: Health,
    ) -> None:
        self._root = root
        self._options = options
        self._ids = ids
        self._clock = clock
        self._monotonic = monotonic
        self._remarks = remarks
        self._health = health
        self._inboxes: dict[str, Inbox] = {}
        self._of_path: dict[str, Inbox] = {}
        self._owners = Rhythm(options.scan_s, monotonic=monotonic)
        self._turn = 0
        self.suspects: dict[str, int] = {}
        """Files that may have ended an importer, by the hexadecimal bytes of their names, with
        the attempts that were made of them alone (pitfalls I10)."""
        self.looks = 0
        """How often ROOT was looked through, or tried to be."""

    @property
    def inboxes(self) -> Iterable[Inbox]:
        """The parts of ROOT."""
        return self._inboxes.values()

    @property
    def folders(self) -> list[str]:
        """The names of the folders in ROOT that are worth listening to: those that are looked
        through, but for those with a backlog."""
        return [name for name, inbox in self._inboxes.items() if name and not inbox.is_flooded]

    @property
    def has_work(self) -> bool:
        """Whether there is something to look at or to try now."""
        return any(inbox.next_due_s() == 0 for inbox in self.inboxes)

    @property
    def wants_owners(self) -> bool:
        """Whether to find the inboxes and their owners anew."""
        return self._owners.is_scan_due

    @property
    def owner_ids(self) -> set[str]:
        """The ids of the accounts whose files are known and to be tried."""
        inboxes = (inbox for inbox in self.inboxes if inbox.queue)
        return {inbox.account.id for inbox in inboxes if inbox.account is not None}

    @property
    def backlog(self) -> int:
        """How many files are known that are to be tried."""
        return sum(len(inbox.queue) + inbox.found for inbox in self.inboxes)

    def wait_s(self) -> float:
        """Seconds until there is something to look at or to try."""
        waits = [inbox.next_due_s() for inbox in self.inboxes]
        return min([self._owners.until_scan_s(), *waits])

    def next_due(self) -> float | None:
        """When the first file that somebody waits for will have settled; None without any."""
        dues = (inbox.settling.next_due() for inbox in self.inboxes)
        return min((due for due in dues if due is not None), default=None)

    def force(self) -> None:
        """Everything is looked through now."""
        self._owners.force()
        for inbox in self.inboxes:
            inbox.rhythm.force()

    def mark(self, marked: Marked) -> None:
        """What changed is looked through soon."""
        if "" in marked or any(name not in self._inboxes for name in marked.names):
            self._owners.ask()
        for name, inbox in self._inboxes.items():
            if name in marked:
                inbox.rhythm.ask()

    def find_owners(self, accounts: Mapping[str, AccountInfo]) -> None:
        """The inboxes are those that ROOT has now, and belong to those who own them now. Raises
        OSError."""
        if self._owners.is_scan_due:
            self._find_inboxes()
        for name, inbox in self._inboxes.items():
            self._own(inbox, accounts.get(name or self._options.account or ""))

    def _find_inboxes(self) -> None:
        self.looks += 1
        started = self._monotonic()
        names = scanning.find_inboxes(str(self._root))
        self._owners.scanned(self._monotonic() - started)
        for name in self._inboxes.keys() - set(names):
            for folder in self._inboxes.pop(name).foreign:
                self._health.ok(f"mount {escaped(os.path.relpath(folder, self._root))}")
        for name in names:
            if name not in self._inboxes:
                self._inboxes[name] = self._make_inbox(name)

    def _make_inbox(self, name: str) -> Inbox:
        return Inbox(
            f"{self._root}/{name}" if name else str(self._root),
            name,
            settling=Settling(self._options.settle_s, self._monotonic),
            rhythm=Rhythm(self._options.scan_s, monotonic=self._monotonic),
            monotonic=self._monotonic,
            remark=self._remarks,
        )

    def _own(self, inbox: Inbox, account: AccountInfo | None) -> None:
        """The inbox is the account's. Files that nobody owns are told of once."""
        if account is not None and inbox.account is None:
            inbox.rhythm.force()
        if account is None:
            inbox.queue.clear()
        inbox.account = account
        key = f"unowned {inbox.below}"
        if account is not None:
            self._remarks.over(key)
        elif inbox.waiting:
            self._remarks(key, unowned(inbox.below, self._options.account))

    def look(self) -> None:
        """Inboxes whose turn it is are looked through, a part at a time."""
        for inbox in self.inboxes:
            inbox.wake_due()
            if inbox.wants_look:
                inbox.look()
                if inbox.account is None:
                    self._own(inbox, None)

    def next_batch(self, hand_id: str, *, for_worker: bool = False) -> list[Candidate]:
        """Files to try next, one of each account in turn, for the workspace of this hand.

        Workers get none of accounts that are nearly full: those files have to queue up in one
        order.
        """
        work = f"{self._root}/{WORK}/{hand_id}"
        batch: list[Candidate] = []
        size_bytes = 0
        self._turn += 1
        inboxes = deque(self.inboxes)
        inboxes.rotate(-self._turn)
        now_us = self._clock()
        tuning = self._options.tuning
        while inboxes and len(batch) < tuning.batch_files and size_bytes < tuning.batch_bytes:
            inbox = inboxes.popleft()
            account = inbox.account
            if account is None or (for_worker and inbox.is_nearly_full):
                continue
            seen = inbox.take()
            if seen is not None:
                inboxes.append(inbox)
                batch.append(self._candidate(seen, inbox, account, work, now_us))
                size_bytes += seen.signature.size_bytes if seen.signature else 0
        return batch

    def _candidate(
        self, seen: Seen, inbox: Inbox, account: AccountInfo, work: str, now_us: int
    ) -> Candidate:
        self._of_path[seen.path] = inbox
        exact_name = name_hex(seen.name)
        suspect = self.suspects.get(exact_name)
        claim = Claim(
            id=self._ids.next(),
            folder=f"{work}/{account.id}",
            account=account.name,
            name=escaped(seen.name),
            name_hex=exact_name,
            claimed_at_us=now_us,
            attempt=suspect or 0,
        )
        known = inbox.settling.find_known(seen.path)
        return Candidate(claim, seen.path, known, is_alone=suspect is not None)

    def suspect(self, claims: Iterable[Claim]) -> None:
        """These files may have ended an importer, and are read alone."""
        for claim in claims:
            attempt = max(claim.attempt, self.suspects.get(claim.name_hex, 0))
            self.suspects[claim.name_hex] = attempt

    def land(self, one: Candidate) -> Inbox | None:
        """The file is not being tried any more; the inbox that it lay in, if it was a new one."""
        inbox = self._of_path.pop(one.path, None)
        if inbox is not None:
            inbox.land(one.path)
        return inbox

    def after_try(self, one: Candidate, left: Left | None) -> None:
        """The file was taken, or was left and is looked at again when it is time."""
        self.suspects.pop(one.claim.name_hex, None)
        inbox = self.land(one)
        if left is None:
            if inbox is not None:
                inbox.settling.forget(one.path)
                self._note_movable(inbox, one)
            return
        if left.why is Why.STUCK:
            self._tell_stuck(one.claim, left.error)
        if inbox is not None:
            self._settle(inbox, left)

    def _settle(self, inbox: Inbox, left: Left) -> None:
        signature = left.signature
        if signature is None or left.why is Why.GONE:
            inbox.settling.forget(left.path)
            return
        inbox.note_left(signature.size_bytes)
        if left.why is Why.SETTLING:
            inbox.settling.note(left.path, signature)
        elif left.why is Why.REPORT:
            inbox.settling.rest(left.path, signature)
        elif left.why is Why.STUCK:
            again_s = max(STUCK_AGAIN_S, self._options.settle_s)
            inbox.settling.leave(left.path, signature, again_s=again_s)
            if left.error is not None and left.error.errno == errno.EXDEV:
                inbox.foreign.add(os.path.dirname(left.path))  # noqa: PTH120  (text, as names are)
                if os.path.dirname(left.path) == inbox.folder:  # noqa: PTH120
                    inbox.block()

    def _note_movable(self, inbox: Inbox, one: Candidate) -> None:
        folder = os.path.dirname(one.path)  # noqa: PTH120  (text, as names are)
        if folder in inbox.foreign:
            inbox.foreign.discard(folder)
            self._health.ok(f"mount {one.claim.name.rpartition('/')[0]}")

    def _tell_stuck(self, claim: Claim, error: OSError | None) -> None:
        code = error.errno if error else 0
        if code == errno.EXDEV:
            folder = claim.name.rpartition("/")[0]
            self._health.degraded(
                f"mount {folder}",
                f'The folder "{folder or "inbox itself"}" is a file system of its own, and files cannot be taken '
                "from it by renaming. Watch it as a folder of its own: "
                f"`resumes watch {escaped(str(self._root))}/{folder} --account {claim.account}`",
            )
            return
        why = error.strerror if error else "it failed"
        self._remarks(
            f"unclaimed {claim.account_id} {code}",
            f"Cannot take {claim.name}: {why}. It stays where it is and is tried again",
        )
