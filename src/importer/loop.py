"""The importer's loop, turn by turn; `importer.service` calls the turns.

A turn continues with what was read, commits and files away, and takes new files, one account's
after another's. About twice a second it also checks for changes by other processes: accounts,
held files, requests, processes that have died.
"""

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from importer.failpoints import Observer, unobserved
from importer.files import Signature, escaped
from importer.held import Reimports
from importer.helper import SLOT, Batch, Helper, Setup
from importer.intake import AccountList, Intake
from importer.job import Job
from importer.leadership import Leadership
from importer.notices import FileReport, Notices, Progress, Summary, Totals
from importer.options import Options
from importer.pending import Ended
from importer.pipeline import Pipeline
from importer.reader import FailureReason, NotImported
from importer.slots import Slot
from importer.takeover import Takeover
from importer.watcher import Changes
from resumes.errors import InvalidArgument
from resumes.store import Store, accounts, identifiers
from resumes.text import counted
from resumes.watched_folder import FAILED, shown_root

MAINTENANCE_INTERVAL_S = 0.5
"""How often to check for changes by other processes; the docs promise twice this."""

ROUND_S = 1.0
"""After this long a turn ends although files are left."""


class Importer:
    """An importer at work on one ROOT."""

    def __init__(
        self,
        store: Store,
        root: Path,
        options: Options,
        *,
        on_file: Callable[[FileReport], None],
        notices: Notices,
        observe: Observer = unobserved,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self.root = root
        self.options = options
        self.notices = notices
        self.changes = Changes()
        self._monotonic = monotonic
        self.id = identifiers.resume_id(store.clock())
        self.totals = Totals(on_file)
        slot = Slot(root, 0)
        job = Job(store, str(root), options, slot, self.totals.add, notices, observe, monotonic)
        self.lead = Leadership(job, notices, let_go=self._let_go)
        self._pipeline = Pipeline(job, on_analyzed=self.changes.mark)
        self.intake = Intake(job, notices)
        self._reimports = Reimports(store, root)
        self._takeover = Takeover(job, self._pipeline, self.intake, self._reimports, notices)
        self._helper = Helper(
            Setup(store.url, root, options, observe),
            on_answer=self.changes.mark,
            monotonic=monotonic,
        )
        self._accounts = AccountList(job, notices)
        self._maintenance_due = monotonic()
        self._trouble: OSError | None = None
        try:
            self.lead.take()
        except OSError as error:
            raise InvalidArgument(f"Cannot write to {shown_root(root)}: {error.strerror}") from None

    @property
    def is_stuck(self) -> bool:
        """Whether a file could not be filed away; nothing new is taken until then."""
        return self._pipeline.pending.is_stuck or self._helper.is_stuck

    @property
    def has_work(self) -> bool:
        """Whether there is something to do now, or the helper or the analyzer is busy."""
        return self._can_go_on or self._is_awaiting

    @property
    def _is_awaiting(self) -> bool:
        """Whether the helper or the analyzer is busy."""
        return self._helper.is_busy or bool(self._pipeline.documents)

    @property
    def _can_go_on(self) -> bool:
        if not self.lead.is_held:
            return False
        has_new = self._may_take and (self._reimports.has_released or self.intake.wait_s() == 0)
        return self._is_working or has_new

    @property
    def _is_working(self) -> bool:
        """Whether work in progress can continue immediately."""
        can_resume = self._may_take and bool(self._takeover.resumed or self._reimports.are_due)
        return self._pipeline.can_go_on or can_resume

    @property
    def _may_take(self) -> bool:
        """Whether files may be taken: none before all dead slots are recovered or while one is stuck."""
        return not self._takeover.left_slots and not self.is_stuck

    def wait_s(self) -> float:
        """Return the seconds until there is something to do, unless a change or the helper's answer
        comes first."""
        now = self._monotonic()
        if not self.lead.is_held:
            return max(0.0, self.lead.due - now)
        if self._is_working:
            return 0.0
        wait_s = self._maintenance_due - now  # which also retries filing
        if not self._takeover.left_slots:
            wait_s = min(wait_s, self.intake.wait_s())
        return max(0.0, wait_s)

    @property
    def next_due(self) -> float | None:
        """When the first awaited file will have settled, or the folder's slot is tried again, on the
        monotonic clock; None if no file is awaited."""
        if not self.lead.is_held:
            return self.lead.due
        if self._takeover.left_slots:
            return self._maintenance_due
        return min((due for due, _ in self._list_awaited()), default=None)

    @property
    def awaited(self) -> list[str]:
        """The names of the files that are waiting to settle, below ROOT and escaped."""
        return sorted(name for _, name in self._list_awaited())

    def _list_awaited(self) -> list[tuple[float, str]]:
        settling = [
            (due, escaped(name))
            for inbox in self.intake.inboxes.values()
            for due, name in inbox.list_awaited()
        ]
        return settling + self._pipeline.pending.list_awaited()

    # Turns

    def round(self) -> int:
        """Do everything that can be done now, for about a second; return how many files were filed.
        Raises StoreError and OSError."""
        before = self.totals.filed
        now = self._monotonic()
        self._maintenance_due = self._accounts.due = self.lead.due = self._takeover.due = now
        self.intake.force()
        ends_at = self._monotonic() + ROUND_S
        while True:
            self.turn()
            if self._is_awaiting and not self._can_go_on:
                self.changes.wait(MAINTENANCE_INTERVAL_S)
            if not self.has_work or self._monotonic() >= ends_at:
                return self.totals.filed - before

    def turn(self) -> None:
        """Advance everything by one step. Raises StoreError and OSError; files that were read are
        continued in a later turn."""
        self.intake.mark(self.changes.take())
        if not self.lead.take():
            return
        if self._monotonic() >= self._maintenance_due:
            self._maintain()
            self._maintenance_due = self._monotonic() + MAINTENANCE_INTERVAL_S
        elif self.intake.schedule.is_due:
            self._find_owners()
        self._hear_helper()
        self._pipeline.commit()
        self._note_left(self._pipeline.take_analyzed())
        if (unopened := self._pipeline.go_on()) is not None:
            self._note_resumed([unopened], {unopened.claim.id: unopened.signature})
        if self._may_take:
            self.intake.look()
            self._check_account_owners()
            self._give_helper()
            self._take()
            self._pipeline.commit()
        self._note_ends(self._pipeline.pending.take_ends())
        self._reimports.answer()
        if self._reimports.has_released and not self._is_working:
            self._maintenance_due = self._monotonic()  # more held files may be waiting
        if self._trouble is not None:
            error, self._trouble = self._trouble, None
            raise error

    def _let_go(self) -> None:
        """Forget all work in progress."""
        self._helper.end()
        self._pipeline.drop()
        self._takeover.give_up()
        self._reimports.give_up()
        self.intake.give_up()

    def _maintain(self) -> None:
        """Check for what other processes changed, and act on it."""
        self.lead.check_owner()
        self._reimports.look()
        self._accounts.refresh(is_due=bool(self._reimports.held))  # which may get room
        self._helper.watch_over()
        self._helper.reap()
        self._takeover.recover(has_helper=self._helper.is_running)
        held = self._reimports.held
        for files in held.values():
            self.intake.ids.follow(files[-1].claim_id)
        unknown = self._accounts.find_unknown(held.keys())
        resumed = {file.claim.account_id for file in self._takeover.resumed}
        busy = self._pipeline.bundles.account_ids | resumed | unknown
        pending = self._pipeline.pending
        by_id = {account.id: account for account in self._accounts.all}
        queues = self._reimports.release(by_id, busy=busy, unfiled=pending.first_held)
        pending.set_queues(queues)
        self._accounts.note_unknown(unknown)
        self._reimports.take_requests(self.intake.claim_ids)
        self._find_owners()
        if not (self._under_way or self._takeover.resumed):
            self.notices.all_over("unmovable")
        is_moving = self._helper.is_busy or self._pipeline.can_go_on or self._takeover.resumed
        if not (is_moving or self._takeover.left_slots or self.is_stuck) and (
            count := self._reimports.dismiss_missing()
        ):
            self.notices.tell(
                f"Dismissed {counted(count, 'failed file')} that someone deleted or moved out of {FAILED}"
            )

    def _find_owners(self) -> None:
        self.intake.find_owners(accounts.by_folder(self._accounts.all))

    def _check_account_owners(self) -> None:
        """Find owners again if an account is gone, or another has its former name by now: a new file goes to
        the account that has its folder's name when the file is taken (pitfalls S14)."""
        owned = {
            (box.account.id, box.below or self.options.account)
            for box in self.intake.inboxes.values()
            if box.queue and box.account is not None
        }
        known = accounts.find_open(self.store, {owner_id for owner_id, _ in owned}) if owned else []
        if owned - {(info.id, folder) for info in known for folder in info.folders}:
            self._accounts.refresh(is_due=True)
            self._find_owners()

    def _give_helper(self) -> None:
        """Start a helper if there is a backlog, and give it files."""
        backlog = sum(len(inbox.queue) + inbox.found for inbox in self.intake.inboxes.values())
        is_working = self._pipeline.under_way > 0
        self._helper.supervise(backlog=backlog, is_working=is_working)
        while self._helper.is_free and (candidates := self.intake.next_batch(SLOT)):
            self._helper.give(Batch(candidates, self._pipeline.pending.queues))

    def _hear_helper(self) -> None:
        for answer in self._helper.iter_answers():
            self._note_left(answer.left or ())
            self._note_ends(answer.ends)
            for key, sentence in answer.remarks:
                self.notices(key, sentence)
            for report in answer.reports:
                self.totals.add(report)

    def _take(self) -> None:
        """Read the next files: first those that dead processes had under way, then those to reimport
        together with new files of other accounts (pitfalls I12)."""
        most = self.options.tuning.batch_files
        if batch := self._takeover.next_batch(most):
            read = {file.claim.id: file.known.signature for file in batch if file.known is not None}
            self._note_resumed(self._pipeline.read(batch), read)
            return
        busy = self._reimports.due_account_ids
        batch = self._reimports.next_batch(most) + self.intake.next_batch(busy=busy)
        if batch:
            self._note_left(self._pipeline.read(batch))

    def _note_resumed(
        self, all_left: Sequence[NotImported], read: Mapping[str, Signature | None]
    ) -> None:
        self._trouble = next(
            (file.error for file in all_left if file.why is FailureReason.TROUBLE), self._trouble
        )
        others = self._takeover.keep(all_left, read)
        self._note_left(others)
        self._takeover.dismiss(others)

    def _note_left(self, left: Iterable[NotImported]) -> None:
        for file in left:
            if file.why is FailureReason.TROUBLE:
                self._trouble = file.error
            if file.claim.is_return:
                self._reimports.has_released = False  # else it would be retried without a pause
                self._reimports.end(file.claim.id, is_over=file.why is FailureReason.GONE)
            self.intake.leave(file)

    def _note_ends(self, ends: Iterable[Ended]) -> None:
        for claim, is_new in ends:
            self.totals.kept_ids.discard(claim.id)
            self.intake.end(claim.id)
            self._reimports.end(claim.id)
            if is_new:
                self.intake.look_again(claim)

    # Messages

    @property
    def _under_way(self) -> int:
        """Return how many files are read and not filed, here and in the helper, or out of reach."""
        return self._pipeline.under_way + self._helper.under_way + len(self._takeover.unreached)

    @property
    def _unfinished(self) -> int:
        """Return how many files are under way, without those that were reported."""
        return max(0, self._under_way - len(self.totals.kept_ids))

    def progress(self) -> Progress:
        """Return how far the import is."""
        inboxes = self.intake.inboxes.values()
        waiting = sum(inbox.waiting for inbox in inboxes) + self._unfinished
        is_complete = not any(inbox.is_looking for inbox in inboxes)
        return Progress(**vars(self.totals.summary) | {"waiting": waiting}, is_complete=is_complete)

    def summary(self) -> Summary:
        """Return what this importer did so far, and what was in the inbox at the last scan."""
        inboxes = self.intake.inboxes.values()
        resting = sum(inbox.settling.count_resting() for inbox in inboxes)
        stuck = sum(
            inbox.settling.count_left() + bool(inbox.unlisted) for inbox in inboxes if inbox.account
        )
        return dataclasses.replace(
            self.totals.summary,
            ignored=sum(inbox.ignored for inbox in inboxes) + resting,
            waiting=self.progress().waiting - resting,
            stuck=stuck + self._unfinished,
        )

    def close(self) -> None:
        """Release the slot, so that other importers can continue with what is left."""
        self._helper.end()
        self._hear_helper()
        self._pipeline.drop()
        self.lead.leave()
