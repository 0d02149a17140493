"""New files: in which inboxes they lie, whose they are, and which are tried next."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from importer.batch import Candidate, Left, Why
from importer.claims import Claim, ClaimIds
from importer.files import escaped
from importer.inbox import Inbox, Rhythm, Seen, Settling, find_inboxes
from importer.notices import Notices, unowned
from importer.options import Options
from importer.watcher import Marked
from resumes.clock import Clock
from resumes.store.accounts import AccountInfo

STUCK_AGAIN_S = 5.0
"""How soon a file is tried again that cannot be read or moved."""

OPEN_AGAIN_S = 1.0
"""How soon a file is looked at again that somebody has open for writing."""


class _Out(NamedTuple):
    """A file that is under way: where it lies, in which inbox, and in whose hands."""

    path: str
    inbox: Inbox | None
    slot: int


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
        notices: Notices,
    ) -> None:
        self._root = root
        self._options = options
        self._ids = ids
        self._clock = clock
        self._monotonic = monotonic
        self._notices = notices
        self._inboxes: dict[str, Inbox] = {}
        self._out: dict[str, _Out] = {}
        """By claim, the files that are under way."""
        self._under_way: set[str] = set()
        """Their paths."""
        self._owners = Rhythm(options.scan_s, monotonic=monotonic)
        self._turn = 0
        self.suspects: dict[str, int] = {}
        """Files that may have ended a process, by their paths below ROOT, with the attempts that
        were made of them alone (pitfalls I10)."""
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
        names = find_inboxes(str(self._root))
        self._owners.scanned(self._monotonic() - started)
        for name in self._inboxes.keys() - set(names):
            del self._inboxes[name]
        for name in names:
            if name not in self._inboxes:
                self._inboxes[name] = self._make_inbox(name)

    def _make_inbox(self, name: str) -> Inbox:
        return Inbox(
            f"{self._root}/{name}" if name else str(self._root),
            name,
            under_way=self._under_way,
            settling=Settling(self._options.settle_s, self._monotonic),
            rhythm=Rhythm(self._options.scan_s, monotonic=self._monotonic),
            monotonic=self._monotonic,
            remark=self._notices,
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
            self._notices.over(key)
        elif inbox.waiting:
            self._notices(key, unowned(inbox.below, self._options.account))

    def look(self) -> None:
        """Inboxes whose turn it is are looked through, a part at a time."""
        for inbox in self.inboxes:
            inbox.wake_due()
            if inbox.wants_look:
                inbox.look()
                if inbox.account is None:
                    self._own(inbox, None)

    def next_batch(self, slot: int = 0) -> list[Candidate]:
        """Files to try next, one of each account in turn, by the process that has this slot.

        Helpers get none of accounts that are nearly full: those files have to queue up in one
        order.
        """
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
            if account is None or (slot and inbox.is_nearly_full):
                continue
            seen = inbox.take()
            if seen is not None:
                inboxes.append(inbox)
                batch.append(self._candidate(seen, inbox, account, slot, now_us))
                size_bytes += seen.signature.size_bytes if seen.signature else 0
        return batch

    def _candidate(
        self, seen: Seen, inbox: Inbox, account: AccountInfo, slot: int, now_us: int
    ) -> Candidate:
        attempt = self.suspects.get(seen.name)
        claim = Claim(
            self._ids.next(),
            account.id,
            account.name,
            escaped(seen.name),
            seen.name,
            now_us,
            attempt or 0,
        )
        self._out[claim.id] = _Out(seen.path, inbox, slot)
        self._under_way.add(seen.path)
        return Candidate(claim, inbox.settling.find_known(seen.path), attempt is not None)

    def suspect(self, claims: Iterable[Claim]) -> None:
        """These files may have ended a process, and are read alone."""
        for claim in claims:
            attempt = max(claim.attempt, self.suspects.get(claim.source, 0))
            self.suspects[claim.source] = attempt

    def hold(self, claim: Claim) -> None:
        """The file is under way, though it was not found by a look."""
        path = claim.path(str(self._root))
        self._out[claim.id] = _Out(path, None, 0)
        self._under_way.add(path)

    def end(self, claim_id: str) -> None:
        """The file is not under way any more: it was moved away, or is gone."""
        out = self._land(claim_id)
        if out is not None and out.inbox is not None:
            out.inbox.settling.forget(out.path)

    def look_again(self, claim: Claim) -> None:
        """The file lies where it lay, and is a new one."""
        inbox = self._inboxes.get(claim.source.partition("/")[0]) or self._inboxes.get("")
        if inbox is not None:
            inbox.rhythm.force()

    def give_up(self, slot: int) -> None:
        """What that process had in its hands is looked for again."""
        for claim_id in [claim_id for claim_id, out in self._out.items() if out.slot == slot]:
            out = self._land(claim_id)
            if out is not None and out.inbox is not None:
                out.inbox.rhythm.force()

    def give_up_all(self) -> None:
        """Nothing is in anybody's hands."""
        for slot in {out.slot for out in self._out.values()}:
            self.give_up(slot)

    def _land(self, claim_id: str) -> _Out | None:
        out = self._out.pop(claim_id, None)
        if out is not None:
            self._under_way.discard(out.path)
            if out.inbox is not None:
                out.inbox.out -= 1
        return out

    def leave(self, claim: Claim, left: Left) -> None:
        """The file was not imported, and is looked at again when it is time."""
        out = self._land(claim.id)
        if left.why is Why.STUCK:
            self._tell_stuck(claim, left.error)
        if out is not None and out.inbox is not None:
            self._settle(out.inbox, out.path, left)

    def _settle(self, inbox: Inbox, path: str, left: Left) -> None:
        signature = left.signature
        if signature is None or left.why is Why.GONE:
            inbox.settling.forget(path)
            return
        inbox.note_left(signature.size_bytes)
        if left.why is Why.SETTLING:
            inbox.settling.note(path, signature)
        elif left.why is Why.OPEN:
            inbox.settling.note(path, signature, again_s=OPEN_AGAIN_S)
        elif left.why is Why.REPORT:
            inbox.settling.rest(path, signature)
        elif left.why is Why.STUCK:
            again_s = max(STUCK_AGAIN_S, self._options.settle_s)
            inbox.settling.leave(path, signature, again_s=again_s)

    def _tell_stuck(self, claim: Claim, error: OSError | None) -> None:
        code = error.errno if error else 0
        why = error.strerror if error else "it failed"
        self._notices(
            f"unread {claim.account_id} {code}",
            f"Cannot take {claim.name}: {why}. It stays where it is and is tried again",
        )
