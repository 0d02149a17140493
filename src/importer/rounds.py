"""The importer at work, round by round; `running` says when the next one is.

A round takes up what waits, releases what is held, then looks through the inbox.
"""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from importer import holding, scanning, workspaces
from importer.claims import Claim
from importer.filing import Filing
from importer.holding import Held
from importer.names import WORK, escaped
from importer.options import Options
from importer.outcomes import Conclusion
from importer.pipeline import Pipeline, Queue
from importer.recovery import Recovery
from importer.scanning import Inbox, Look
from importer.settling import Settling
from importer.steps import Observer, unobserved
from importer.telling import FileReport, Remarks, Summary, unowned
from importer.workspaces import Workspace
from resumes.errors import InvalidArgument, QuotaReached
from resumes.store import Store, accounts, identifiers
from resumes.store.accounts import AccountInfo
from resumes.store.ledger import FileOutcome

ROUND_S = 1.0
"""After this long a round ends although files are left, so that new ones get their turn."""


class Importer:
    """An importer at work on one ROOT."""

    def __init__(
        self,
        store: Store,
        root: Path,
        options: Options,
        *,
        on_file: Callable[[FileReport], None],
        remarks: Remarks,
        observe: Observer = unobserved,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._root = root
        self._options = options
        self._on_file = on_file
        self._monotonic = monotonic
        self._remarks = remarks
        self._settling = Settling(options.settle_s, monotonic)
        filing = Filing(self._root, store.clock, observe)
        self._pipeline = Pipeline(
            store,
            self._root,
            options.format,
            self._settling,
            filing,
            on_filed=self._filed,
            remark=self._remarks,
            observe=observe,
        )
        self._recovery = Recovery(self._root / WORK, filing, observe)
        self._counts = dict.fromkeys(FileOutcome, 0)
        self._held_ids: set[str] = set()
        self._workspace = self._first_workspace()
        self._recovered: list[Workspace] = []
        self._is_recovered = False
        self._first = 0
        self.has_more = False
        """Whether the last scan ended before it had seen everything."""
        self.looking_s = 0.0
        """How long the last complete scan took, apart from what was done with what it found."""

    def _first_workspace(self) -> Workspace:
        try:
            return self._make_workspace()
        except OSError as error:
            raise InvalidArgument(
                f"Cannot write in {escaped(str(self._root))}: {error.strerror}"
            ) from None

    def _make_workspace(self) -> Workspace:
        while True:
            importer_id = identifiers.resume_id(self._store.clock())
            workspace = workspaces.make(self._root / WORK, importer_id)
            if workspace is not None:
                return workspace

    @property
    def is_stuck(self) -> bool:
        """Whether something could not be filed away; nothing new is taken while that is so."""
        return self._pipeline.is_stuck

    @property
    def holds_files(self) -> bool:
        """Whether an account has files that wait for a place."""
        return bool(self._pipeline.queues)

    @property
    def next_due(self) -> float | None:
        """When the first file will have settled, on the monotonic clock; None without any."""
        return self._settling.next_due()

    def round(self, *, with_scan: bool = True) -> int:
        """Everything that can be done now is done, for about a second; how many files were.

        Without the scan nothing new is taken. Raises StoreError and OSError; what was claimed
        is gone on with in a later round.
        """
        self._keep_workspace()
        self._recover()
        held = holding.find_held(self._root)
        self._line_up(held)
        handled = self._pipeline.go_on()
        if self._pipeline.is_stuck:
            return handled
        by_name = {account.name: account for account in accounts.list_accounts(self._store)}
        handled += self._release(held, by_name)
        if with_scan:
            handled += self._scan(by_name)
        return handled

    def _keep_workspace(self) -> None:
        # Somebody may have emptied or replaced the whole folder under us.
        if not self._workspace.is_held:
            self._workspace.leave()
            self._workspace = self._make_workspace()

    def _recover(self) -> None:
        """Before the first scan, what dead importers left is ours."""
        if self._is_recovered:
            return
        names = {account.id: account.name for account in accounts.list_accounts(self._store)}
        self._recovered += self._recovery.take_over()
        for workspace in self._recovered:
            for claim in self._recovery.iter_claims(workspace, names):
                self._pipeline.waiting[claim.id] = claim
        self._is_recovered = True

    def _line_up(self, held: dict[str, list[Held]]) -> None:
        """What came after the first held file of its account queues behind it."""
        self._pipeline.queues.clear()
        for account_id, files in held.items():
            self._pipeline.queues[account_id] = Queue(files[0].claim_id, QUEUED)
            self._pipeline.ids.follow(files[-1].claim_id)

    def _release(self, held: dict[str, list[Held]], by_name: dict[str, AccountInfo]) -> int:
        """Held files take the places that are free, in the order they came."""
        by_id = {account.id: account for account in by_name.values()}
        released = 0
        for account_id, files in held.items():
            account = by_id.get(account_id)
            # Without the account all are taken up, to be told that it is gone (pitfalls S14).
            free_places = None if account is None else account.free_places
            now, later = holding.split(files, free_places)
            self._pipeline.queues.pop(account_id)
            if later:
                self._pipeline.queues[account_id] = Queue(later[0].claim_id, _told(account))
            released += self._pipeline.release(now, self._workspace)
        return released

    def _scan(self, by_name: dict[str, AccountInfo]) -> int:
        """Files in the inbox are taken in, one account's after another's."""
        started = self._monotonic()
        look = Look(self._monotonic, ends_at=started + ROUND_S)
        inboxes = scanning.find_inboxes(str(self._root), by_name, self._options.account)
        for inbox in inboxes:
            self._remark_owner(inbox)
        sources = [inbox.iter_found(self._remarks) for inbox in inboxes]
        # Rounds may end early, so each begins with another account.
        self._first = (self._first + 1) % len(sources)
        sources = sources[self._first :] + sources[: self._first]
        handled = self._pipeline.take_in(look.through(scanning.in_turns(sources)), self._workspace)
        self._settling.end_round(is_complete=look.is_complete)
        self.has_more = not look.is_complete
        self.looking_s = look.took_s if look.is_complete else 0.0
        return handled

    def _remark_owner(self, inbox: Inbox) -> None:
        """Files that nobody owns are told of once, until somebody does."""
        key = f"unowned {inbox.below}"
        if inbox.account is not None:
            self._remarks.over(key)
        elif not self._remarks.has_told(key) and inbox.holds_files():
            self._remarks(key, unowned(inbox.below, self._options.account))

    def _filed(self, claim: Claim, conclusion: Conclusion, target: Path) -> None:
        outcome = conclusion.outcome
        if outcome is FileOutcome.HELD:
            self._held_ids.add(claim.id)
        else:
            self._held_ids.discard(claim.id)
            self._counts[outcome] += 1
        refusal = conclusion.refusal
        self._on_file(
            FileReport(
                account=claim.account,
                name=claim.name,
                outcome=outcome,
                reason=refusal.reason.value if refusal else None,
                message=refusal.message if refusal else None,
                filed_as=target,
                resume_id=conclusion.resume_id,
                warnings=len(conclusion.warnings),
            )
        )

    def summary(self) -> Summary:
        """What this importer did so far, and what lies in the inbox now."""
        ignored = waiting = 0
        with contextlib.suppress(FileNotFoundError):
            for inbox in scanning.find_inboxes(str(self._root), {}, None):
                for seen in inbox.iter_seen(self._remarks):
                    ignored += seen.signature is None
                    waiting += seen.signature is not None
        resting = self._settling.resting()
        return Summary(
            done=self._counts[FileOutcome.DONE],
            failed=self._counts[FileOutcome.FAILED],
            duplicate=self._counts[FileOutcome.DUPLICATE],
            held=len(self._held_ids),
            ignored=ignored + resting,
            waiting=waiting - resting + len(self._pipeline.waiting),
        )

    def close(self) -> None:
        """Other importers may take over what is left."""
        for workspace in [*self._recovered, self._workspace]:
            workspace.leave()


QUEUED = "Earlier files of the account are taken first"


def _told(account: AccountInfo | None) -> str:
    """What a file is told that queues behind others of its account."""
    if account is None or account.max_resumes is None:
        return QUEUED
    return QuotaReached(max_resumes=account.max_resumes).message
