"""The importer's main loop, whose turns `importer.service` calls.

Each turn continues with the files that were read, commits and files them, and takes new files,
account by account. About twice a second, a turn also checks for changes by other processes:
accounts, held files, requests and processes that have died.
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

from importer.claims import State
from importer.files import escaped
from importer.held import Reimports
from importer.helper import SLOT, Helper, Setup
from importer.intake import Intake
from importer.job import Job, Observer, unobserved
from importer.notices import FileReport, Notices, Progress, Summary, Totals
from importer.options import Options
from importer.pipeline import Pipeline
from importer.recovery import Recovery
from importer.slots import Slot
from importer.watcher import Changes
from resumes import watched_folder
from resumes.errors import InvalidArgument, StoreUnavailable
from resumes.store import Store
from resumes.text import counted
from resumes.watched_folder import FAILED, shown_root

MAINTENANCE_INTERVAL_S = 0.5
"""How often to check for changes by other processes, and how often an importer on standby tries to
take over the folder. The docs promise at most twice as long."""
ROUND_S = 1.0
"""The maximum duration of a round, even if files are left."""


class Importer:
    """An importer that works on one ROOT."""

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
        self.changes = Changes()
        self.totals = Totals(on_file)
        add, slot = self.totals.add, Slot(root, 0)
        job = self.job = Job(store, str(root), options, slot, add, notices, observe, monotonic)
        self.lead = Leadership(job, let_go=self._let_go)
        self._begin()
        setup = Setup(store.url, root, options, observe)
        self.helper = Helper(setup, on_answer=self.changes.mark, monotonic=monotonic)
        self.schedule = Schedule(self)
        try:
            self.lead.take()
        except OSError as error:
            raise InvalidArgument(f"Cannot write to {shown_root(root)}: {error.strerror}") from None

    def round(self) -> int:
        """Do everything that can be done now, for about a second. Return the number of files that
        were filed. Raises StoreError and OSError."""
        before, now = self.totals.filed, self.job.monotonic()
        self.schedule.maintenance_due = self.recovery.due = now
        self.intake.force()
        while True:
            self.turn()
            if self.schedule.is_awaiting:
                self.changes.wait(self.schedule.wait_s())
            if not self.schedule.has_work or self.job.monotonic() >= now + ROUND_S:
                return self.totals.filed - before

    def turn(self) -> None:
        """Advance all work by one step. Raises StoreError and OSError; a later turn continues with
        the files that were read."""
        self.intake.mark(self.changes.take())
        is_due = self.job.monotonic() >= self.schedule.maintenance_due
        is_held = self.job.slot.is_held or (is_due and self.lead.take())
        if is_due:
            if is_held:
                self._maintain()
            self.schedule.maintenance_due = self.job.monotonic() + MAINTENANCE_INTERVAL_S
        if not is_held:
            return
        if self.intake.schedule.is_due:
            self.intake.find_owners()
        self._hear_helper()
        trouble = self._note_departures()
        self.pipeline.go_on()
        if self.schedule.may_take:
            self.intake.look()
            self.intake.check_owners()
            self._give_helper()
            self._take()
            self.pipeline.commit()
        trouble = self._note_departures() or trouble
        self.reimports.answer()
        if self.reimports.has_released and not self.schedule.is_working:
            self.schedule.maintenance_due = self.job.monotonic()  # more held files may be waiting
        if trouble is not None:
            raise trouble

    def _begin(self) -> None:
        """Start with no file under way; the slots' notes contain the files that were under way."""
        self.pipeline = Pipeline(self.job, on_analyzed=self.changes.mark)
        self.intake = Intake(self.job)
        self.reimports = Reimports(self.job)
        self.recovery = Recovery(self.job, self.pipeline, self.intake, self.reimports)

    def _let_go(self) -> None:
        self.helper.end()
        self.pipeline.drop()
        # Resolve the findings about inboxes and held files, since these are forgotten.
        self.job.notices.resolve_all("unread", "unlisted", "unknown")
        self._begin()

    def _maintain(self) -> None:
        """Check for changes by other processes, and act on them."""
        accounts, pending, reimports = self.intake.accounts, self.pipeline.pending, self.reimports
        held = reimports.held.by_account
        self.lead.check_owner()
        reimports.held.look()
        accounts.refresh(is_due=bool(held))  # these accounts may have free places by now
        self.helper.watch_over()
        if not self.helper.is_running:
            self.intake.give_up(SLOT)  # it may have died before it noted what it was given
        self.recovery.recover(has_helper=self.helper.is_running)
        for files in held.values():
            self.intake.ids.follow(files[-1].claim_id)
        busy = accounts.find_unknown(held.keys()) | self.pipeline.bundles.account_ids
        busy |= self.intake.list_paused()
        by_id = {account.id: account for account in accounts.all}
        queues = reimports.release(by_id, busy=busy, unfiled=pending.with_held({}))
        pending.queues = pending.with_held(queues)
        reimports.take_requests(self.intake.claim_ids)
        self.intake.find_owners()
        if not (self._under_way or reimports.next):
            self.job.notices.resolve_all("unmovable")
        is_moving = self.helper.is_busy or self.pipeline.can_go_on or reimports.next
        if self.schedule.may_take and not is_moving and (count := reimports.missing.dismiss()):
            dismissed = f"Dismissed {counted(count, 'failed file')}"
            self.job.notices.tell(f"{dismissed} that someone deleted or moved out of {FAILED}")

    def _give_helper(self) -> None:
        backlog = sum(len(inbox.queue) for inbox in self.intake.inboxes.values())
        self.helper.supervise(backlog=backlog, is_working=self.pipeline.under_way > 0)
        queued = self.pipeline.pending.queues
        while self.helper.is_free and (batch := self.intake.next_batch(SLOT, busy=queued)):
            self.helper.give(batch)

    def _hear_helper(self) -> None:
        for answer in self.helper.iter_answers():
            self.job.departures += answer.departures
            for key, sentence in answer.remarks:
                self.job.notices(key, sentence)
            for report in answer.reports:
                self.totals.add(report)

    def _take(self) -> None:
        """Read the next files: files that dead processes had under way and files to reimport,
        together with new files of other accounts (pitfalls I12)."""
        busy = self.reimports.due_account_ids
        batch = self.reimports.next_batch(self.job.options.tuning.batch_files)
        batch += self.intake.next_batch(busy=busy)
        if batch:
            self.pipeline.read(batch)

    def _note_departures(self) -> OSError | None:
        """Schedule what happens next to the files that are no longer under way. Return the error
        that concerns every file, if any. Raises StoreError; the next call continues there."""
        trouble = None
        departures = self.job.departures
        while departures:
            file = departures[0]
            claim, state = file.claim, file.state
            if not self.recovery.keep(file):
                self.totals.kept_ids.discard(claim.id)
                if claim.is_return and state not in (State.FILED, State.CHANGED):
                    self.reimports.has_released = False  # or it would be retried without a pause
                self.reimports.end(claim.id, is_over=file.is_over)
                self.intake.leave(file)
            if state is State.TROUBLE:
                trouble = file.error
            del departures[0]
        return trouble

    # Progress and summary

    @property
    def _under_way(self) -> int:
        """The number of unfiled files here and in the helper, and of unreachable files."""
        return self.pipeline.under_way + self.helper.last.under_way + len(self.recovery.unreached)

    @property
    def _unfinished(self) -> int:
        """Return how many files are under way, without those that were reported."""
        return max(0, self._under_way - len(self.totals.kept_ids))

    def progress(self) -> Progress:
        inboxes = self.intake.inboxes.values()
        waiting = sum(inbox.scan.waiting for inbox in inboxes) + self._unfinished
        is_complete = not any(inbox.is_looking for inbox in inboxes)
        return Progress(**vars(self.totals.summary) | {"waiting": waiting}, is_complete=is_complete)

    def summary(self) -> Summary:
        """Return what this importer has done so far, and what the last scan found in the inbox."""
        inboxes = self.intake.inboxes.values()
        resting = sum(inbox.settling.count_resting() for inbox in inboxes)
        stuck = sum(
            inbox.settling.count_left() + bool(inbox.scan.unlisted)
            for inbox in inboxes
            if inbox.account
        )
        return dataclasses.replace(
            self.totals.summary,
            ignored=sum(inbox.scan.ignored for inbox in inboxes) + resting,
            waiting=self.progress().waiting - resting,
            stuck=stuck + self._unfinished,
        )

    def close(self) -> None:
        """Release the slot, so that other importers can continue the remaining work."""
        self.helper.end()
        self._hear_helper()
        self.pipeline.drop()
        self.job.slot.leave()


class Leadership:
    """Leadership in a folder, held by the importer that has slot 0. Other importers stand by."""

    def __init__(self, job: Job, *, let_go: Callable[[], None]) -> None:
        """`let_go` is called when the folder is lost, and forgets all work in progress."""
        self._job = job
        self._let_go = let_go
        self.stands_by = False
        """Whether another importer works in the folder."""
        self._has_led = False

    @property
    def is_held(self) -> bool:
        """Whether this importer holds the slot; false if that cannot be checked."""
        with contextlib.suppress(OSError):
            return self._job.slot.is_held
        return False

    def take(self) -> bool:
        """Try to take the folder's slot. Return whether this importer holds it now."""
        job = self._job
        if self._has_led:  # the folder was emptied or replaced
            self.check_owner()
            self._let_go()
            watched_folder.set_owner(Path(job.root), watched_folder.owner_of(job.store))
        self.stands_by = not job.slot.take()
        if self.stands_by:
            job.notices(
                "standby",
                f"Another importer is running in {shown_root(job.root)}. This one is on standby, "
                "and takes over when that one stops",
            )
            return False
        job.notices.resolve("standby")
        self._has_led = True
        return True

    def check_owner(self) -> None:
        """Give up the folder and raise StoreUnavailable if it was adopted or replaced."""
        job = self._job
        try:
            watched_folder.check_owner(Path(job.root), watched_folder.owner_of(job.store))
        except InvalidArgument as error:
            job.notices.find("owner", error.message)
            self._let_go()
            job.slot.leave()
            raise StoreUnavailable(f"{shown_root(job.root)} belongs to another store") from None
        job.notices.find("owner", "")


class Schedule:
    """What an importer can do next, and when."""

    def __init__(self, importer: Importer) -> None:
        self._importer = importer
        self.maintenance_due = importer.job.monotonic()
        """When to check for changes by other processes and retry filing."""

    @property
    def is_stuck(self) -> bool:
        """Whether a file could not be filed; no new files are taken while this is so."""
        return self._importer.pipeline.pending.is_stuck or self._importer.helper.last.is_stuck

    @property
    def may_take(self) -> bool:
        """Whether new files may be taken: all dead slots are recovered and no file is stuck."""
        return not self._importer.recovery.left_slots and not self.is_stuck

    @property
    def is_working(self) -> bool:
        """Whether work in progress can continue immediately."""
        has_next = bool(self._importer.reimports.next)
        return self._importer.pipeline.can_go_on or (self.may_take and has_next)

    @property
    def is_awaiting(self) -> bool:
        """Whether the helper or the analyzer is busy."""
        return self._importer.helper.is_busy or bool(self._importer.pipeline.documents)

    @property
    def has_work(self) -> bool:
        """Whether something can be done now, or the helper or the analyzer is busy."""
        return self.is_awaiting or self.wait_s() == 0

    def wait_s(self) -> float:
        """Return the seconds until there is something to do, apart from changes and answers."""
        wait_s = max(0.0, self.maintenance_due - self._importer.job.monotonic())
        if not self._importer.lead.is_held:
            return wait_s
        if self.is_working:
            return 0.0
        return min(wait_s, self._importer.intake.wait_s()) if self.may_take else wait_s

    @property
    def next_due(self) -> float | None:
        """When the first awaited file will have settled, or the folder's slot is tried again, on
        the monotonic clock. None if no file is awaited."""
        if not self._importer.lead.is_held or self._importer.recovery.left_slots:
            return self.maintenance_due
        return min((due for due, _ in self._list_awaited()), default=None)

    @property
    def awaited(self) -> list[str]:
        """The names of the files that are waiting to settle, below ROOT and escaped."""
        return sorted(name for _, name in self._list_awaited())

    def _list_awaited(self) -> list[tuple[float, str]]:
        inboxes = self._importer.intake.inboxes.values()
        settling = [file for inbox in inboxes for file in inbox.list_awaited()]
        awaited = [(due, escaped(name)) for due, name in settling]
        return awaited + self._importer.pipeline.pending.list_awaited()
